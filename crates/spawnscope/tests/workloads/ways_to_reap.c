// Children that are reaped in every way except wait4 by their creator, each 20 ms after its end, or that need no reaping.
// Prints for each: `late=PID` and `late_ns` (how late, at least), or `never=PID` (it need not be reaped).
#include "truth.h"
#include <pthread.h>
#include <sched.h>

static pid_t child(void)
{
    pid_t pid = fork();
    if (pid == -1)
        fail("fork");
    if (pid == 0)
        _exit(0);
    return pid;
}

static void *exit_after_the_first_thread(void *unused)
{
    (void)unused;
    sleep_ms(20);
    syscall(SYS_exit, 0);
    return NULL;
}

// A process whose first thread ends before its last one.
static pid_t child_that_loses_its_first_thread(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, exit_after_the_first_thread, NULL);
        syscall(SYS_exit, 0);
    }
    return pid;
}

static void wait_with(idtype_t type, pid_t pid, siginfo_t *info)
{
    await_zombie(pid);
    int64_t zombie_ns = now_ns();
    sleep_ms(20);
    int64_t late_ns = now_ns() - zombie_ns;
    if (waitid(type, type == P_PID ? (id_t)pid : 0, info, WEXITED) != 0)
        fail("waitid");
    truth("late", pid);
    truth("late_ns", late_ns);
}

// The child's child is ours: CLONE_PARENT.
static void adopt_from_a_child(void)
{
    int pipe_fds[2];
    pid_t ours = 0, maker;
    if (pipe(pipe_fds) != 0 || (maker = fork()) == -1)
        fail("pipe or fork");
    if (maker == 0) {
        pid_t made = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
        if (made == 0)
            _exit(0);
        if (write(pipe_fds[1], &made, sizeof made) != sizeof made)
            fail("write");
        _exit(0);
    }
    if (read(pipe_fds[0], &ours, sizeof ours) != sizeof ours)
        fail("read");
    wait_with(P_PID, ours, NULL);
    reap(maker);
}

int main(void)
{
    siginfo_t info;
    wait_with(P_ALL, child(), &info);
    wait_with(P_PID, child(), &info);
    wait_with(P_PID, child(), NULL);
    adopt_from_a_child();
    signal(SIGCHLD, SIG_IGN);
    pid_t simple = child(), threaded = child_that_loses_its_first_thread();
    // They are gone as soon as they end, so no pidfd can be asked for.
    while (kill(simple, 0) == 0 || kill(threaded, 0) == 0)
        sleep_ms(1);
    truth("never", simple);
    truth("never", threaded);
    return 0;
}
