/* Starts a program with a pipe to its output, reads to the end, and waits, in several ways that take turns. Prints the time of each
 * round in nanoseconds: one line for each way, its name first. Arguments: the program, the number of rounds, and optionally a shared
 * library of the original popen_noshell. benchmarks/streams.py builds and runs it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <popen_noshell.h>
#include <vspawn.h>

extern char **environ;
static const char *program;
static char buffer[65536];

static void check(int good, const char *what)
{
	if (!good) {
		perror(what);
		exit(1);
	}
}

/* Reads a descriptor to its end and waits for a child. */
static void finish(int fd, pid_t pid)
{
	int status;

	while (read(fd, buffer, sizeof(buffer)) > 0)
		;
	close(fd);
	check(waitpid(pid, &status, 0) == pid && status == 0, "waitpid");
}

static int run_child(void *ends)
{
	char *argv[] = { (char *)program, NULL };

	dup2(((int *)ends)[1], 1);
	execve(program, argv, environ);
	_exit(127);
}

/* The lower bound: no error is reported, and a handler of a signal could run in the child. */
static void by_clone(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	int ends[2];
	pid_t pid;

	check(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
	pid = clone(run_child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, ends);
	check(pid > 0, "clone");
	close(ends[1]);
	finish(ends[0], pid);
}

static void by_posix_spawn(void)
{
	char *argv[] = { (char *)program, NULL };
	posix_spawn_file_actions_t actions;
	int ends[2];
	pid_t pid;

	check(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	check(posix_spawn(&pid, program, &actions, NULL, argv, environ) == 0, "posix_spawn");
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	finish(ends[0], pid);
}

static void read_stream(FILE *stream)
{
	check(stream != NULL, "open a stream");
	while (fread(buffer, 1, sizeof(buffer), stream) > 0)
		;
}

static void by_popen(void)
{
	FILE *stream = popen(program, "re");

	read_stream(stream);
	check(pclose(stream) == 0, "pclose");
}

static void by_vspawn_popen(void)
{
	const char *argv[] = { program, NULL };
	FILE *stream = vspawn_popen(argv, "r");

	read_stream(stream);
	check(vspawn_pclose(stream) == 0, "vspawn_pclose");
}

static struct {
	FILE *(*open)(const char *, const char *const *, const char *, struct popen_noshell_pass_to_pclose *, int);
	int (*close)(struct popen_noshell_pass_to_pclose *);
} original;

static void by_original(void)
{
	const char *argv[] = { program, NULL };
	struct popen_noshell_pass_to_pclose stream;

	read_stream(original.open(program, argv, "r", &stream, 0));
	check(original.close(&stream) == 0, "pclose_noshell");
}

static void by_noshell(void)
{
	const char *argv[] = { program, NULL };
	struct popen_noshell_pass_to_pclose stream;

	read_stream(popen_noshell(program, argv, "r", &stream, 0));
	check(pclose_noshell(&stream) == 0, "pclose_noshell");
}

static void by_command(void)
{
	static struct vspawn_prepared *prepared;
	struct vspawn_child *child;
	int status, fd;

	if (prepared == NULL) {
		struct vspawn_command *command = vspawn_command_new(program);

		vspawn_command_stdio(command, 1, VSPAWN_STDIO_PIPED, -1);
		check(vspawn_command_prepare(command, &prepared) == 0, "vspawn_command_prepare");
		vspawn_command_free(command);
	}
	check(vspawn_prepared_spawn(prepared, &child) == 0, "vspawn_prepared_spawn");
	fd = vspawn_child_take_stdout(child);
	while (read(fd, buffer, sizeof(buffer)) > 0)
		;
	close(fd);
	check(vspawn_child_wait(child, &status) == 0 && status == 0, "vspawn_child_wait");
	vspawn_child_free(child);
}

static struct way {
	const char *name;
	void (*run)(void);
	long *times;
} ways[] = {
	{ "clone", by_clone, NULL },
	{ "prepared", by_command, NULL },
	{ "posix_spawn", by_posix_spawn, NULL },
	{ "vspawn_popen", by_vspawn_popen, NULL },
	{ "popen_noshell", by_noshell, NULL },
	{ "popen", by_popen, NULL },
	{ "original", by_original, NULL },
};

static long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}

int main(int argc, char **argv)
{
	int count = sizeof(ways) / sizeof(*ways) - (argc < 4), rounds, round, i;

	check(argc >= 3, "arguments");
	program = argv[1];
	rounds = atoi(argv[2]);
	if (argc > 3) {
		void *library = dlopen(argv[3], RTLD_NOW | RTLD_LOCAL);

		check(library != NULL, "dlopen");
		*(void **)&original.open = dlsym(library, "popen_noshell");
		*(void **)&original.close = dlsym(library, "pclose_noshell");
	}
	for (i = 0; i < count; i++) {
		ways[i].times = malloc(sizeof(long) * rounds);
		ways[i].run(); /* not counted: makes what later calls reuse */
	}
	for (round = 0; round < rounds; round++)
		for (i = 0; i < count; i++) {
			struct way *way = &ways[(i + round) % count];
			long began = now();

			way->run();
			way->times[round] = now() - began;
		}
	for (i = 0; i < count; i++) {
		printf("%s", ways[i].name);
		for (round = 0; round < rounds; round++)
			printf(" %ld", ways[i].times[round]);
		printf("\n");
	}
	return 0;
}
