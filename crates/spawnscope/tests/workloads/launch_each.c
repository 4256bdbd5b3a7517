// Launches a program several times, one after the other, for workloads whose whole cost is in the child.
// Usage: launch_each PROGRAM; prints the pid of each child. The program itself prints the amount.
#include "truth.h"

int main(int count, char **arguments)
{
    if (count != 2)
        fail("usage: launch_each PROGRAM");
    for (int child = 0; child < CHILDREN; child++) {
        pid_t pid = launch_after_ms(0, arguments[1]);
        truth("child", pid);
        reap(pid);
    }
    return 0;
}
