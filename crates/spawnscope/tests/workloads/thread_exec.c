// A child whose second thread calls execve: the kernel gives it the leader's pid and ends the leader.
// Usage: thread_exec PROGRAM; prints child, the pid before and after.
#include "truth.h"
#include <pthread.h>

static char *program;

static void *become_program(void *unused)
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
        if (pthread_create(&thread, NULL, become_program, NULL) != 0)
            fail("pthread_create");
        for (;;)
            pause();
    }
    truth("child", pid);
    reap(pid);
    return 0;
}
