// The second thread of a child calls execve: the kernel gives the thread the leader's pid and ends the leader.
// Usage: thread_exec PROGRAM; prints `child`, the pid before and after the exec.
#include "truth.h"
#include <pthread.h>

static char *program;

static void *execute_program(void *unused)
{
    (void)unused;
    execl(program, program, (char *)NULL);
    fail(program);
}

int main(int count, char **arguments)
{
    if (count != 2)
        fail("usage: thread_exec PROGRAM");
    program = arguments[1];
    pid_t pid = fork();
    if (pid == -1)
        fail("fork");
    if (pid == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, execute_program, NULL) != 0)
            fail("pthread_create");
        for (;;)
            pause();
    }
    truth("child", pid);
    reap(pid);
    return 0;
}
