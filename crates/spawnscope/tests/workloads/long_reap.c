// Lengthens `reap`: the parent sleeps before it waits for a child that is already a zombie.
// Usage: long_reap long|base [look]; with `look`, it calls waitid with WNOWAIT first, which does not reap.
// Prints as amount_ns the time from when the parent noticed the zombie to its wait call.
#include "truth.h"

int main(int count, char **arguments)
{
    int sleeps = is_long(count, arguments, "long_reap long|base [look]");
    int looks = count > 2 && strcmp(arguments[2], "look") == 0;
    for (int child = 0; child < CHILDREN; child++) {
        pid_t pid = fork();
        if (pid == -1)
            fail("fork");
        if (pid == 0)
            _exit(0);
        await_zombie(pid);
        int64_t start = now_ns();
        siginfo_t seen;
        if (looks && waitid(P_PID, (id_t)pid, &seen, WEXITED | WNOWAIT) == -1)
            fail("waitid");
        sleep_ms(sleeps ? 50 : 0);
        int64_t slept = now_ns() - start;
        reap(pid);
        truth("amount_ns", slept);
        truth("child", pid);
    }
    return 0;
}
