// Reaps children in every way except by wait4 in their creator, each 20 ms after its end. Some children need no reaping.
// Prints for each child `late=PID` and `late_ns` (the minimum delay), or `never=PID` (if it need not be reaped).
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

// Forks a child whose first thread ends before its last one.
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

// Reaps a process that a child has created as a child of this process (CLONE_PARENT).
static void reap_child_of_a_child(void)
{
    int pipe_fds[2];
    pid_t adopted = 0, creator;
    if (pipe(pipe_fds) != 0 || (creator = fork()) == -1)
        fail("pipe or fork");
    if (creator == 0) {
        pid_t created = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
        if (created == 0)
            _exit(0);
        if (write(pipe_fds[1], &created, sizeof created) != sizeof created)
            fail("write");
        _exit(0);
    }
    if (read(pipe_fds[0], &adopted, sizeof adopted) != sizeof adopted)
        fail("read");
    wait_with(P_PID, adopted, NULL);
    reap(creator);
}

int main(void)
{
    siginfo_t info;
    wait_with(P_ALL, child(), &info);
    wait_with(P_PID, child(), &info);
    wait_with(P_PID, child(), NULL);
    reap_child_of_a_child();
    signal(SIGCHLD, SIG_IGN);
    pid_t simple = child(), threaded = child_that_loses_its_first_thread();
    // These children disappear as soon as they end, so a pidfd cannot be opened.
    while (kill(simple, 0) == 0 || kill(threaded, 0) == 0)
        sleep_ms(1);
    truth("never", simple);
    truth("never", threaded);
    return 0;
}
