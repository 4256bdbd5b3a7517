/* Tests vspawn_popen and vspawn_pclose. With a number as argument, only reads this many streams, for valgrind. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "check.h"
#include "vspawn.h"

static const char *const echo[] = { "/bin/echo", "hello", NULL };

static void read_once(void)
{
	char line[32] = "";
	FILE *stream = vspawn_popen(echo, "r");
	CHECK(stream && fgets(line, sizeof line, stream) && strcmp(line, "hello\n") == 0);
	CHECK(vspawn_pclose(stream) == 0);
}

/* A stream is the only descriptor: a pidfd would cost two system calls. */
static void a_stream_needs_one_descriptor(void)
{
	const char *silent[] = { "true", NULL };
	int before = open_descriptors();
	FILE *stream = vspawn_popen(silent, "r");
	CHECK(stream && open_descriptors() == before + 1);
	CHECK(vspawn_pclose(stream) == 0 && open_descriptors() == before);
}

static void reading_and_writing(void)
{
	const char *fails[] = { "sh", "-c", "exit 7", NULL };
	const char *counts[] = { "sh", "-c", "read a; read b; test \"$a$b\" = onetwo && exit 9", NULL };
	read_once();
	FILE *stream = vspawn_popen(fails, "re");
	CHECK(stream && fgetc(stream) == EOF);
	int status = vspawn_pclose(stream);
	CHECK(EXITED(status, 7));
	stream = vspawn_popen(counts, "w");
	CHECK(stream && (fcntl(fileno(stream), F_GETFD) & FD_CLOEXEC));
	CHECK(fputs("one\ntwo\n", stream) >= 0);
	status = vspawn_pclose(stream);
	CHECK(EXITED(status, 9));
}

/* The written data is lost. Since the program ended with 0, the failure of the stream is returned. */
static void writing_to_a_program_that_does_not_read(void)
{
	const char *deaf[] = { "true", NULL };
	siginfo_t ended;
	signal(SIGPIPE, SIG_IGN);
	FILE *stream = vspawn_popen(deaf, "we");
	CHECK(stream && fputs("nobody reads this", stream) >= 0);
	CHECK(waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT) == 0);
	FAILS(vspawn_pclose(stream), -1, EPIPE);
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	signal(SIGPIPE, SIG_DFL);
}

static void failures(void)
{
	const char *missing[] = { "no-such-program-anywhere", NULL }, *empty[] = { NULL }, *silent[] = { "true", NULL };
	struct vspawn_error error = { .size = sizeof error };
	FAILS(vspawn_popen(missing, "r"), NULL, ENOENT);
	CHECK(vspawn_last_error(&error) == 0 && error.stage == VSPAWN_STAGE_EXEC);
	FAILS(vspawn_popen(empty, "r"), NULL, EINVAL);
	FAILS(vspawn_popen(echo, "rw"), NULL, EINVAL);
	FAILS(vspawn_popen(echo, ""), NULL, EINVAL);
	FAILS(vspawn_pclose(stdin), -1, EINVAL);
	FILE *stream = vspawn_popen(silent, "r");
	CHECK(stream && vspawn_pclose(stream) == 0);
	FAILS(vspawn_pclose(stream), -1, EINVAL);
	signal(SIGCHLD, SIG_IGN);
	stream = vspawn_popen(echo, "r");
	CHECK(stream && fgetc(stream) == 'h');
	FAILS(vspawn_pclose(stream), -1, ECHILD);
	signal(SIGCHLD, SIG_DFL);
}

/* POSIX requires that a child inherits none of the streams of earlier calls. */
static void streams_are_not_inherited(void)
{
	const char *cat[] = { "cat", NULL };
	const char *script = "for fd do test -e /proc/$$/fd/$fd && echo $fd; done; echo end";
	FILE *first = vspawn_popen(cat, "w"), *second = vspawn_popen(cat, "w");
	char numbers[2][16], line[16] = "";
	CHECK(first && second);
	snprintf(numbers[0], sizeof *numbers, "%d", fileno(first));
	snprintf(numbers[1], sizeof *numbers, "%d", fileno(second));
	const char *look[] = { "sh", "-c", script, "sh", numbers[0], numbers[1], NULL };
	FILE *stream = vspawn_popen(look, "r");
	CHECK(stream && fgets(line, sizeof line, stream) && strcmp(line, "end\n") == 0);
	CHECK(vspawn_pclose(stream) == 0);
	/* The first call would wait forever if the second cat had inherited the first stream. */
	CHECK(vspawn_pclose(first) == 0 && vspawn_pclose(second) == 0);
}

static void mask_and_sigpipe_are_the_callers(void)
{
	/* awk is not used, because gawk ignores SIGPIPE. */
	const char *sed[] = { "sed", "-nE", "s/^Sig(Blk|Ign):.*(....)$/\\2/p", "/proc/self/status", NULL };
	sigset_t set, before;
	char blocked[16] = "", ignored[16] = "";
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	signal(SIGPIPE, SIG_IGN);
	CHECK(sigprocmask(SIG_SETMASK, &set, &before) == 0);
	FILE *stream = vspawn_popen(sed, "r");
	CHECK(stream && fgets(blocked, sizeof blocked, stream) && fgets(ignored, sizeof ignored, stream));
	CHECK(vspawn_pclose(stream) == 0);
	CHECK(sigprocmask(SIG_SETMASK, &before, &set) == 0 && sigismember(&set, SIGUSR1) == 1);
	CHECK(strcmp(blocked, "0200\n") == 0 && strcmp(ignored, "1000\n") == 0);
	signal(SIGPIPE, SIG_DFL);
}

static void *read_many(void *argument)
{
	for (int i = 0; i < 40; i++)
		read_once();
	return argument;
}

/* In a forked child, the lock of the library's table is always free, whatever other threads do. The lock of AddressSanitizer's allocator
 * (GCC 12) is not, so that such a child could wait forever. */
#ifdef __SANITIZE_ADDRESS__
#define FORKING_THREADS 0
#else
#define FORKING_THREADS 1
#endif

static void *fork_many(void *argument)
{
	for (int i = 0; i < 40; i++) {
		pid_t pid = fork();
		CHECK(pid >= 0);
		if (pid == 0) {
			alarm(60);
			_exit(vspawn_pclose(stdin) == -1 && errno == EINVAL ? 0 : 1);
		}
		int status;
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	}
	return argument;
}

static void concurrent_threads(void)
{
	pthread_t threads[9];
	for (int i = 0; i < 8 + FORKING_THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, i < 8 ? read_many : fork_many, NULL) == 0);
	for (int i = 0; i < 8 + FORKING_THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(int argc, char **argv)
{
	int before = open_descriptors();
	reset_signals();
	if (argc > 1) {
		for (int i = 0; i < atoi(argv[1]); i++)
			read_once();
	} else {
		a_stream_needs_one_descriptor();
		reading_and_writing();
		writing_to_a_program_that_does_not_read();
		failures();
		streams_are_not_inherited();
		mask_and_sigpipe_are_the_callers();
		concurrent_threads();
	}
	CHECK(open_descriptors() == before);
	return 0;
}
