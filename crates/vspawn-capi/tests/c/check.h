/* For every C test: macros that check a condition or an expected error, and otherwise print what failed and end the test. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define CHECK(condition)                                                             \
	do {                                                                         \
		if (!(condition)) {                                                  \
			fprintf(stderr, "%s:%d: %s (errno %d: %s)\n", __FILE__, __LINE__, #condition, errno, \
				strerror(errno));                                    \
			exit(1);                                                     \
		}                                                                    \
	} while (0)

/* Checks that a call returns `failure` (-1 or NULL), with this errno. */
#define FAILS(call, failure, code)                  \
	do {                                        \
		errno = 0;                          \
		CHECK((call) == (failure));         \
		CHECK(errno == (code));             \
	} while (0)

#define EXITED(status, code) (WIFEXITED(status) && WEXITSTATUS(status) == (code))

/* Lists a shell's own descriptors. A glob or a pipeline would open more. */
#define LIST_DESCRIPTORS \
	"for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do test -e /proc/$$/fd/$i && printf \"$i \"; done; true"

/* Sets the default signal settings, whatever the process that started this one has set. */
static inline void reset_signals(void)
{
	sigset_t none;
	for (int number = 1; number < 32; number++)
		signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Returns the number of open descriptors. */
static inline int open_descriptors(void)
{
	int count = 0;
	for (int fd = 0; fd < 4096; fd++)
		count += fcntl(fd, F_GETFD) != -1;
	return count;
}

#endif
