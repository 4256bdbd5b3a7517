// Launches children by every mechanism, each a different number of times, and prints these numbers.
// Their sum, 1009, is a prime, so a loss or a double count cannot be mistaken for a round number.
// Usage: mechanisms TINY.
#include "truth.h"
#include <linux/sched.h>
#include <sched.h>
#include <spawn.h>

enum { FORKS = 211, VFORKS = 197, SPAWNS = 151, VM_VFORKS = 157, CLONES = 149, CLONE3S = 144 };
_Static_assert(FORKS + VFORKS + SPAWNS + VM_VFORKS + CLONES + CLONE3S == 1009, "the sum is a prime");

extern char **environ;
static char *child_arguments[2];
static char child_stack[65536] __attribute__((aligned(16)));

static int execute_tiny(void *unused)
{
    (void)unused;
    execve(child_arguments[0], child_arguments, environ);
    _exit(1);
}

static pid_t by_fork(void)
{
    pid_t pid = fork();
    if (pid == 0)
        execute_tiny(NULL);
    return pid;
}

static pid_t by_vfork(void)
{
    pid_t pid = vfork();
    if (pid == 0) {
        // Nothing but exec and _exit is allowed here.
        execve(child_arguments[0], child_arguments, environ);
        _exit(1);
    }
    return pid;
}

static pid_t by_posix_spawn(void)
{
    pid_t pid;
    errno = posix_spawn(&pid, child_arguments[0], NULL, NULL, child_arguments, environ);
    return errno == 0 ? pid : -1;
}

static pid_t by_clone_vm_vfork(void)
{
    return clone(execute_tiny, child_stack + sizeof child_stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
}

// Counts neither as fork, since it shares the file table, nor as posix_spawn.
static pid_t by_clone(void)
{
    return clone(execute_tiny, child_stack + sizeof child_stack, CLONE_FILES | SIGCHLD, NULL);
}

static pid_t by_clone3(void)
{
    struct clone_args arguments = {.flags = CLONE_FS, .exit_signal = SIGCHLD};
    pid_t pid = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
    if (pid == 0)
        execute_tiny(NULL);
    return pid;
}

static void launch(const char *mechanism, int children, pid_t (*by)(void))
{
    for (int child = 0; child < children; child++) {
        pid_t pid = by();
        if (pid == -1)
            fail(mechanism);
        reap(pid);
    }
}

int main(int count, char **arguments)
{
    if (count != 2)
        fail("usage: mechanisms TINY");
    child_arguments[0] = arguments[1];
    launch("fork", FORKS, by_fork);
    launch("vfork", VFORKS, by_vfork);
    launch("posix_spawn", SPAWNS, by_posix_spawn);
    launch("clone(CLONE_VM | CLONE_VFORK)", VM_VFORKS, by_clone_vm_vfork);
    launch("clone(CLONE_FILES)", CLONES, by_clone);
    launch("clone3(CLONE_FS)", CLONE3S, by_clone3);
    truth("fork", FORKS);
    truth("vfork", VFORKS);
    truth("posix_spawn", SPAWNS + VM_VFORKS);
    truth("clone", CLONES);
    truth("clone3", CLONE3S);
    return 0;
}
