/* `inherited launch PROGRAM [ARGUMENT...]` gives this process unusual values of what an exec keeps, and executes a program. `inherited probe`
 * prints what it has inherited, one property a line. A command must print the same with a recorder between the two as without it. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

static const int TIMERS[] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};

static void check(int result, const char *what)
{
	if (result < 0) {
		perror(what);
		exit(99);
	}
}

static void set_signals(void)
{
	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGUSR2, SIG_IGN);
	sigset_t blocked;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigaddset(&blocked, SIGRTMIN + 3);
	check(sigprocmask(SIG_BLOCK, &blocked, NULL), "sigprocmask");
	check(kill(getpid(), SIGUSR1), "kill");
}

static void set_limits(void)
{
	struct rlimit limit = {.rlim_cur = 4096, .rlim_max = 8192};
	check(setrlimit(RLIMIT_CORE, &limit), "setrlimit");
	umask(027);
	check(nice(3), "nice");
	check(personality(ADDR_NO_RANDOMIZE), "personality");
	check(prctl(PR_SET_TIMERSLACK, 70000UL), "prctl");
	check(prctl(PR_SET_CHILD_SUBREAPER, 1UL), "prctl");
	cpu_set_t first;
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	check(sched_setaffinity(0, sizeof first, &first), "sched_setaffinity");
}

static void launch(char **command)
{
	set_signals();
	set_limits();
	/* Long enough for every test. */
	struct itimerval long_time = {.it_interval.tv_sec = 500, .it_value.tv_sec = 1000};
	for (int i = 0; i < 3; i++)
		check(setitimer(TIMERS[i], &long_time, NULL), "setitimer");
	check(dup2(open("/dev/null", O_RDONLY), 7), "dup2");
	char path[4096];
	snprintf(path, sizeof path, "PATH=%s", getenv("PATH"));
	char *environment[] = {"Z=first", path, "A=1", "A=2", "not a variable", "=no name", "A=3", NULL};
	execvpe(command[0], command, environment);
	perror(command[0]);
	exit(99);
}

/* Prints the lines of /proc/self/status that an exec keeps. */
static void print_status(void)
{
	static const char *kept[] = {"Umask", "Uid", "Gid", "Groups", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "Cap", "NoNewPrivs",
				     "Seccomp:", "Cpus_allowed:", "THP"};
	FILE *status = fopen("/proc/self/status", "r");
	char line[4096];
	while (fgets(line, sizeof line, status))
		for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
			if (!strncmp(line, kept[i], strlen(kept[i])))
				fputs(line, stdout);
	fclose(status);
}

/* A clock runs between two probes, so only the interval is compared, and whether time is left. */
static void print_timers(void)
{
	for (int i = 0; i < 3; i++) {
		struct itimerval timer;
		check(getitimer(TIMERS[i], &timer), "getitimer");
		printf("timer %d: %s, every %ld s\n", i, timer.it_value.tv_sec > 500 ? "armed" : "not armed", timer.it_interval.tv_sec);
	}
}

static void print_descriptors(void)
{
	for (int fd = 0; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf("descriptor %d: flags %d, mode %d\n", fd, fcntl(fd, F_GETFD), fcntl(fd, F_GETFL) & O_ACCMODE);
}

static void print_limits(void)
{
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		struct rlimit limit;
		check(getrlimit(i, &limit), "getrlimit");
		printf("limit %d: %ld %ld\n", i, (long)limit.rlim_cur, (long)limit.rlim_max);
	}
}

static void probe(char **environment)
{
	int subreaper = 0;
	char directory[4096];
	print_status();
	print_timers();
	print_descriptors();
	print_limits();
	check(prctl(PR_GET_CHILD_SUBREAPER, &subreaper), "prctl");
	printf("subreaper %d, timer slack %d, personality %x, niceness %d, policy %d, securebits %d, dumpable %d\n", subreaper,
	       prctl(PR_GET_TIMERSLACK), personality(0xffffffff), getpriority(PRIO_PROCESS, 0), sched_getscheduler(0),
	       prctl(PR_GET_SECUREBITS), prctl(PR_GET_DUMPABLE));
	printf("directory %s, session %d, group is the parent's: %d\n", getcwd(directory, sizeof directory), getsid(0),
	       getpgrp() == getpgid(getppid()));
	for (; *environment; environment++)
		printf("environment: %s\n", *environment);
}

int main(int argc, char **argv, char **environment)
{
	if (argc > 2 && !strcmp(argv[1], "launch"))
		launch(argv + 2);
	probe(environment);
	return 9;
}
