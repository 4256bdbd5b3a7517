/* A reimplementation of the functions of glibc's test support library that its tests of posix_spawn use. That library itself builds only
 * within glibc. A failed check ends the test. */
#ifndef SHIM_H
#define SHIM_H

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define array_length(array) (sizeof(array) / sizeof *(array))
#define INT_STRLEN_BOUND(type) (sizeof(type) * 3 + 1)
#define INT_BUFSIZE_BOUND(type) (INT_STRLEN_BOUND(type) + 1)
#define OBJPFX "./"
#define EXIT_UNSUPPORTED 77

#define FAIL_EXIT1(...) (fprintf(stderr, "%s:%d: ", __FILE__, __LINE__), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), exit(1))
#define FAIL_UNSUPPORTED(...) (fprintf(stderr, __VA_ARGS__), exit(EXIT_UNSUPPORTED))
#define TEST_VERIFY_EXIT(condition) ((condition) ? (void)0 : FAIL_EXIT1("%s", #condition))
#define TEST_VERIFY(condition) TEST_VERIFY_EXIT(condition)
#define TEST_COMPARE(left, right)                                                                    \
	do {                                                                                         \
		long long left_ = (left), right_ = (right);                                          \
		if (left_ != right_)                                                                 \
			FAIL_EXIT1("%s is %lld, %s is %lld", #left, left_, #right, right_);          \
	} while (0)
#define TEST_COMPARE_BLOB(left, left_size, right, right_size) \
	TEST_VERIFY_EXIT((size_t)(left_size) == (size_t)(right_size) && memcmp((left), (right), (left_size)) == 0)

/* Defines a function that makes a call, and ends the test if the call fails. */
#define OR_END(type, name, parameters, call, failed)             \
	static inline __attribute__((unused)) type name parameters \
	{                                                        \
		type result = call;                              \
		if (failed)                                      \
			FAIL_EXIT1("%s: %m", #call);             \
		return result;                                   \
	}
OR_END(int, xopen, (const char *path, int flags, mode_t mode), open(path, flags, mode), result < 0)
OR_END(int, xclose, (int fd), close(fd), result < 0)
OR_END(int, xmkdir, (const char *path, mode_t mode), mkdir(path, mode), result < 0)
OR_END(int, xsymlink, (const char *target, const char *path), symlink(target, path), result < 0)
OR_END(pid_t, xfork, (void), fork(), result < 0)
OR_END(pid_t, xwaitpid, (pid_t pid, int *status, int flags), waitpid(pid, status, flags), result < 0)
OR_END(off_t, xlseek, (int fd, off_t offset, int whence), lseek(fd, offset, whence), result < 0)
OR_END(void *, xmalloc, (size_t size), malloc(size), !result)
OR_END(char *, xstrdup, (const char *text), strdup(text), !result)
OR_END(FILE *, xfopen, (const char *path, const char *mode), fopen(path, mode), !result)
OR_END(int, xfclose, (FILE *file), fclose(file), result != 0)

static inline __attribute__((unused)) void xwrite(int fd, const void *data, size_t size)
{
	TEST_VERIFY_EXIT(write(fd, data, size) == (ssize_t)size);
}

static inline __attribute__((unused)) char *xreadlink(const char *path)
{
	char text[4096];
	ssize_t length = readlink(path, text, sizeof text - 1);
	TEST_VERIFY_EXIT(length >= 0);
	text[length] = 0;
	return xstrdup(text);
}

static inline __attribute__((unused)) char *xasprintf(const char *format, ...)
{
	char *text;
	va_list arguments;
	va_start(arguments, format);
	TEST_VERIFY_EXIT(vasprintf(&text, format, arguments) >= 0);
	va_end(arguments);
	return text;
}

/* Does nothing: the script removes the directory in which a test runs. */
static inline __attribute__((unused)) void add_temp_file(const char *path)
{
	(void)path;
}

static inline __attribute__((unused)) int create_temp_file(const char *prefix, char **path)
{
	char *name = xasprintf("./%sXXXXXX", prefix);
	int fd = mkstemp(name);
	if (path)
		*path = name;
	return fd;
}

static inline __attribute__((unused)) char *support_create_temp_directory(const char *prefix)
{
	char *name = xasprintf("%s/%sXXXXXX", getcwd(NULL, 0), prefix);
	TEST_VERIFY_EXIT(mkdtemp(name) != NULL);
	return name;
}

/* Opens /dev/null at `count` consecutive free numbers, and returns the first. */
static inline __attribute__((unused)) int support_open_dev_null_range(int count, int flags, mode_t mode)
{
	int null = xopen("/dev/null", flags, mode), first = null + 1, last = first;
	while (last - first < count) {
		if (fcntl(last, F_GETFD) != -1)
			first = last + 1;
		last++;
	}
	for (int fd = first; fd < last; fd++)
		TEST_VERIFY_EXIT(dup2(null, fd) == fd);
	xclose(null);
	return first;
}

static int test_verbose __attribute__((unused));

#endif
