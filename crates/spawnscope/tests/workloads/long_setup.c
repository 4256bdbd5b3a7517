// Lengthens `setup`: each child sleeps between fork and exec, instead of work such as closing descriptors.
// Usage: long_setup long|base TINY; each child prints as amount_ns the duration of its sleep, as it measured it.
#include "truth.h"

int main(int count, char **arguments)
{
    int sleeps = is_long(count, arguments, "long_setup long|base TINY");
    for (int child = 0; child < CHILDREN; child++) {
        pid_t pid = launch_after_ms(sleeps ? 50 : 0, arguments[2]);
        truth("child", pid);
        reap(pid);
    }
    return 0;
}
