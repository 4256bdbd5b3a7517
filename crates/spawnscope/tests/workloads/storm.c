// Launches a program a given number of times, as fast as one thread can. Usage: storm COUNT PROGRAM; prints `children`.
#include "truth.h"

int main(int count, char **arguments)
{
    if (count != 3)
        fail("usage: storm COUNT PROGRAM");
    int children = atoi(arguments[1]);
    char *child_arguments[] = {arguments[2], NULL};
    for (int child = 0; child < children; child++) {
        pid_t pid = vfork();
        if (pid == -1)
            fail("vfork");
        if (pid == 0) {
            execve(child_arguments[0], child_arguments, NULL);
            _exit(1);
        }
        reap(pid);
    }
    truth("children", children);
    return 0;
}
