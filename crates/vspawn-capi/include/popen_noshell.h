/* The interface of the popen_noshell library (Ivan Zahariev, https://github.com/famzah/popen-noshell), implemented with vspawn. It has
 * the same names, types and constants, so that its users compile unchanged and link with -lvspawn. This is a new implementation; it
 * contains no code of that library.
 *
 * Differences:
 * - If a program cannot be executed, popen_noshell itself fails and returns NULL with errno. Nothing is printed, and there is no
 *   child and no status 255. An unknown stderr_mode is an error, too (EINVAL).
 * - NULL for a required pointer is EINVAL, not a crash.
 * - popen_noshell_compat refuses everything that a shell would interpret differently (see there).
 * - A failed call leaves no memory or descriptor behind. pclose_noshell reaps the child even if the last write to
 *   it failed.
 * - The parent's signal handlers never run in the child before its exec, and signal masks are as with popen.
 * - popen_noshell_vmfork, which ran a caller's function in shared memory, is missing, because it cannot be made safe.
 *
 * Linking with -lvspawn replaces popen_noshell.c, which is then no longer compiled into the program.
 */
#ifndef POPEN_NOSHELL_H
#define POPEN_NOSHELL_H

#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For popen_noshell_set_fork_mode. The first and the last are equivalent here: the child shares the parent's memory. */
#define POPEN_NOSHELL_MODE_CLONE 0
#define POPEN_NOSHELL_MODE_FORK 1
#define POPEN_NOSHELL_MODE_POSIX_SPAWN 2

struct popen_noshell_clone_arg;

/* Provided by the caller, who need not initialise it. popen_noshell fills it, pclose_noshell reads it. */
struct popen_noshell_pass_to_pclose {
	FILE *fp;
	pid_t pid;
	/* The last three fields are always zero. They exist so that programs compiled with the original header have the same struct. */
	int free_clone_mem;
	void *stack;
	struct popen_noshell_clone_arg *func_args;
};

/* Starts a program with a stream to its standard input (type "w") or from its standard output ("r"). The other one of
 * these two streams is /dev/null.
 *
 * file: the program, searched for in PATH if it has no slash. argv: its name and arguments, ended by NULL. Both are
 * borrowed for the call. pclose_arg: filled. stderr_mode: the program's standard error; 0: the caller's, 1: /dev/null, 2: the same
 * file as its standard output. Returns a stream that pclose_noshell closes; NULL with errno on failure. */
FILE *popen_noshell(const char *file, const char *const *argv, const char *type,
		    struct popen_noshell_pass_to_pclose *pclose_arg, int stderr_mode);

/* popen_noshell for a command in the form of popen, with stderr_mode 0. The command must be a program with plain words,
 * quotes and backslashes, which has the same meaning as for `sh -c`. Any other command (with variables, globs, redirections,
 * builtins such as echo, an unknown shell at /bin/sh ...) is refused: NULL with errno EINVAL. */
FILE *popen_noshell_compat(const char *command, const char *type, struct popen_noshell_pass_to_pclose *pclose_arg);

/* Closes the stream and waits for the program. Returns what waitpid stores; -1 with errno on failure, EINVAL if the
 * stream of arg is not open, for instance because it was already closed. */
int pclose_noshell(struct popen_noshell_pass_to_pclose *arg);

/* Sets how later children are created, in all threads: POPEN_NOSHELL_MODE_*. */
void popen_noshell_set_fork_mode(int mode);
int popen_noshell_get_fork_mode(void);

#ifdef __cplusplus
}
#endif

#endif
