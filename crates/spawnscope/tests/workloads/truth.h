// Shared by all workloads: the clock, facts printed as `key=value` lines, measured sleeps, and launches of children.
// Facts are printed with dprintf, not by buffered stdio: a buffer that is not flushed would be copied into every child.
#pragma once
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHILDREN = 7, CANNOT_RUN_HERE = 77 };

// CLOCK_MONOTONIC, the clock of recordings.
static inline int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static inline void truth(const char *key, int64_t value)
{
    dprintf(STDOUT_FILENO, "%s=%lld\n", key, (long long)value);
}

// Exits with the status that means "not possible on this machine".
static inline _Noreturn void cannot_run_here(const char *what)
{
    dprintf(STDERR_FILENO, "%s: %s\n", what, strerror(errno));
    _exit(CANNOT_RUN_HERE);
}

static inline _Noreturn void fail(const char *what)
{
    dprintf(STDERR_FILENO, "%s: %s\n", what, strerror(errno));
    _exit(1);
}

// Sleeps, and returns the real duration. Makes no system call and returns 0 for 0 ms.
static inline int64_t sleep_ms(long milliseconds)
{
    if (milliseconds == 0)
        return 0;
    int64_t start = now_ns();
    struct timespec span = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000};
    while (nanosleep(&span, &span) == -1 && errno == EINTR)
        ;
    return now_ns() - start;
}

// Blocks until the process is a zombie, without a wait call.
static inline void await_zombie(pid_t pid)
{
    int descriptor = (int)syscall(SYS_pidfd_open, pid, 0);
    if (descriptor == -1)
        cannot_run_here("pidfd_open");
    // A pidfd becomes readable when its process becomes a zombie.
    struct {
        int fd;
        short events, revents;
    } poll_fd = {.fd = descriptor, .events = 1};
    struct timespec deadline = {.tv_sec = 30};
    if (syscall(SYS_ppoll, &poll_fd, 1, &deadline, NULL, 0) != 1)
        fail("ppoll");
    close(descriptor);
}

static inline void reap(pid_t pid)
{
    int status;
    if (waitpid(pid, &status, 0) != pid)
        fail("waitpid");
    if (status != 0) {
        dprintf(STDERR_FILENO, "child %d: wait status %#x\n", pid, status);
        _exit(1);
    }
}

// Forks a child that sleeps and then executes `program`. Returns its pid.
static inline pid_t launch_after_ms(long milliseconds, const char *program)
{
    pid_t pid = fork();
    if (pid == -1)
        fail("fork");
    if (pid == 0) {
        int64_t slept = sleep_ms(milliseconds);
        if (milliseconds != 0)
            truth("amount_ns", slept);
        execl(program, program, (char *)NULL);
        fail(program);
    }
    return pid;
}

// Whether the first argument is `long` (with the cost of the workload) and not `base` (without it).
static inline int is_long(int count, char **arguments, const char *usage)
{
    if (count < 2 || (strcmp(arguments[1], "long") != 0 && strcmp(arguments[1], "base") != 0)) {
        dprintf(STDERR_FILENO, "usage: %s\n", usage);
        _exit(2);
    }
    return strcmp(arguments[1], "long") == 0;
}
