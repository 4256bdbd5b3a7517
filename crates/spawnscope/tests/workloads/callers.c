/* Launches /bin/true by the mechanism that the last argument names, from the call chain main -> outer -> middle (inlined) ->
 * inner. The other arguments choose what is between main and outer. The tests expect these function names and the marked lines. */
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static const char *mechanism;

static void reap(pid_t pid)
{
	int status;
	if (pid <= 0 || waitpid(pid, &status, 0) != pid)
		abort();
}

static __attribute__((noinline)) int inner(int depth)
{
	char *const arguments[] = {"true", NULL};
	pid_t pid = 0;
	if (!strcmp(mechanism, "vfork")) {
		pid = vfork(); /* line vfork */
		if (pid == 0) {
			execv("/bin/true", arguments);
			_exit(127);
		}
		reap(pid);
	} else if (!strcmp(mechanism, "fork")) {
		pid = fork();
		if (pid == 0)
			_exit(0);
		reap(pid);
	} else if (!strcmp(mechanism, "posix_spawn")) {
		if (posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, environ))
			abort();
		reap(pid);
	} else if (!strcmp(mechanism, "system")) {
		if (system("exec /bin/true"))
			abort();
	} else if (!strcmp(mechanism, "popen")) {
		FILE *pipe = popen("exec /bin/true", "r");
		if (!pipe || pclose(pipe))
			abort();
	}
	return depth + 1;
}

static inline __attribute__((always_inline)) int middle(int depth)
{
	return inner(depth * 2) + 1; /* line middle */
}

static __attribute__((noinline)) int outer(int depth)
{
	/* Only the unwind table knows the size of this frame. */
	char *room = alloca(16 + (depth & 63));
	memset(room, depth, 16);
	return middle(depth) + room[3]; /* line outer */
}

/* Recurses with large frames. The innermost call launches. */
__attribute__((noinline)) int deep(int levels)
{
	volatile char room[4096];
	room[0] = levels;
	return (levels ? deep(levels - 1) : outer(1)) + room[0];
}

static void *thread_body(void *unused)
{
	(void)unused;
	return (void *)(long)(outer(2) + 1);
}

/* Launches through a function of a library that is loaded at run time. */
static void launch_through(const char *library, const char *name)
{
#ifdef STATIC
	(void)library, (void)name;
	abort();
#else
	void *handle = dlopen(library, RTLD_NOW);
	int (*call_back)(int (*)(int), int) = handle ? (int (*)(int (*)(int), int))dlsym(handle, name) : NULL;
	if (!call_back || !call_back(outer, 1) || dlclose(handle))
		abort();
#endif
}

/* Launches through code that is generated at run time. */
static int launch_through_generated_code(void)
{
	/* push %rbp; mov %rsp,%rbp; mov %rdi,%rax; mov %esi,%edi; call *%rax; pop %rbp; ret */
	static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3};
	void *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (made == MAP_FAILED)
		abort();
	memcpy(made, code, sizeof(code));
	return ((int (*)(int (*)(int), int))made)(outer, 1) + 1;
}

/* callers [linger] [replace FILE | thread | deep | made | libraries FIRST SECOND] MECHANISM */
int main(int count, char **words)
{
	char **word = words + 1;
	int result = 1;
	mechanism = words[count - 1];
	bool lingers = !strcmp(*word, "linger");
	word += lingers;
	if (!strcmp(*word, "replace") && rename(word[1], words[0]))
		abort();
	if (!strcmp(*word, "thread")) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, thread_body, NULL) || pthread_join(thread, NULL))
			abort();
	} else if (!strcmp(*word, "deep")) {
		result = deep(8);
	} else if (!strcmp(*word, "made")) {
		result = launch_through_generated_code();
	} else if (!strcmp(*word, "libraries")) {
		launch_through(word[1], "first_calls_back");
		launch_through(word[2], "second_calls_back");
	} else {
		result = outer(1); /* line main */
	}
	/* Long enough for the recorder to read the files of this process, even on a busy machine. */
	if (lingers)
		sleep(2);
	return result == 0;
}
