/* Tests vspawn_system: its status, and the signals of the caller and of the child. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "check.h"
#include "vspawn.h"

static volatile sig_atomic_t interrupted, child_ended;

static void on_interrupt(int signal)
{
	(void)signal;
	interrupted++;
}

static void on_child(int signal)
{
	(void)signal;
	child_ended++;
}

static int run(const char *script)
{
	const char *argv[] = { "sh", "-c", script, NULL };
	return vspawn_system(argv);
}

static void statuses(void)
{
	const char *missing[] = { "no-such-program-anywhere", NULL };
	CHECK(run("exit 0") == 0);
	int status = run("exit 5");
	CHECK(EXITED(status, 5));
	status = run("kill -9 $$");
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	FAILS(vspawn_system(missing), -1, ENOENT);
	FAILS(vspawn_system(NULL), -1, EINVAL);
	signal(SIGCHLD, SIG_IGN);
	FAILS(run("exit 0"), -1, ECHILD);
	signal(SIGCHLD, SIG_DFL);
}

/* SIGINT and SIGQUIT sent to this process during the call have no effect on it; SIGCHLD is delivered after the call. */
static void callers_signals(void)
{
	struct sigaction action = { .sa_handler = on_interrupt }, now;
	sigset_t mask;
	CHECK(sigaction(SIGINT, &action, NULL) == 0 && sigaction(SIGQUIT, &action, NULL) == 0);
	action.sa_handler = on_child;
	CHECK(sigaction(SIGCHLD, &action, NULL) == 0);
	CHECK(run("kill -INT $PPID; kill -QUIT $PPID") == 0);
	CHECK(interrupted == 0);
	CHECK(sigaction(SIGINT, NULL, &now) == 0 && now.sa_handler == on_interrupt);
	CHECK(sigaction(SIGQUIT, NULL, &now) == 0 && now.sa_handler == on_interrupt);
	CHECK(sigprocmask(SIG_BLOCK, NULL, &mask) == 0 && sigismember(&mask, SIGCHLD) == 0);
	raise(SIGINT);
	CHECK(interrupted == 1 && child_ended == 1);
	signal(SIGCHLD, SIG_DFL);
}

/* In the program, SIGINT and SIGQUIT have their default effect if the caller handles them, and stay ignored if the caller ignores them.
 * No signal is blocked. */
static void childs_signals(void)
{
	/* Bit 1 is SIGINT, bit 2 SIGQUIT. */
	const char *both_effective = "/^SigIgn/ { i = substr($2, 16) } /^SigBlk/ { b = substr($2, 12) }"
				     "END { exit !(i == \"0\" && b == \"00000\") }";
	const char *quit_ignored = "/^SigIgn/ { i = substr($2, 16) } END { exit !(i == \"4\") }";
	const char *argv[] = { "awk", both_effective, "/proc/self/status", NULL };
	CHECK(vspawn_system(argv) == 0);
	signal(SIGQUIT, SIG_IGN);
	argv[1] = quit_ignored;
	CHECK(vspawn_system(argv) == 0);
	signal(SIGQUIT, SIG_DFL);
	signal(SIGINT, SIG_DFL);
}

static void *repeat(void *script)
{
	for (int i = 0; i < 25; i++)
		CHECK(run(script) == 0);
	return NULL;
}

/* Of several concurrent calls, only the last one restores the dispositions. Each child interrupts this process. */
static void concurrent_threads(void)
{
	struct sigaction action = { .sa_handler = on_interrupt }, now;
	pthread_t threads[4];
	interrupted = 0;
	CHECK(sigaction(SIGINT, &action, NULL) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, repeat, "kill -INT $PPID") == 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(interrupted == 0);
	CHECK(sigaction(SIGINT, NULL, &now) == 0 && now.sa_handler == on_interrupt);
}

/* A cancellation requested during the call takes effect after it, when the signals are restored. */
static void *cancelled(void *argument)
{
	CHECK(pthread_cancel(pthread_self()) == 0);
	CHECK(run("exit 0") == 0);
	*(int *)argument = 1;
	pthread_testcancel();
	*(int *)argument = 2;
	return NULL;
}

static void cancellation(void)
{
	pthread_t thread;
	void *result;
	int reached = 0;
	CHECK(pthread_create(&thread, NULL, cancelled, &reached) == 0 && pthread_join(thread, &result) == 0);
	CHECK(result == PTHREAD_CANCELED && reached == 1);
}

int main(void)
{
	int before = open_descriptors();
	reset_signals();
	statuses();
	callers_signals();
	childs_signals();
	concurrent_threads();
	cancellation();
	CHECK(open_descriptors() == before);
	return 0;
}
