// Launches children that close descriptors before they execute TINY, each in another way, and one that executes nothing.
// Usage: closing CLOSES TINY. Prints the pid of each child as `one_by_one`, `at_once`, `with_a_break`, `nothing` or `no_exec`. Each child
// prints as `amount_ns`, before its exec, the time from its first to its last close without the break.
#include <sys/syscall.h>

#include "truth.h"

enum { FIRST = 3 };

static void one_by_one(int closes)
{
    // Most of them are not open, as with a large RLIMIT_NOFILE.
    for (int descriptor = FIRST; descriptor < FIRST + closes; descriptor++)
        close(descriptor);
}

static int64_t close_in(const char *way, int closes)
{
    int64_t start = now_ns(), slept = 0;
    if (strcmp(way, "one_by_one") == 0) {
        one_by_one(closes);
    } else if (strcmp(way, "at_once") == 0) {
        syscall(SYS_close_range, FIRST, ~0u, 0);
    } else if (strcmp(way, "with_a_break") == 0) {
        one_by_one(1);
        slept = sleep_ms(20);
        one_by_one(closes);
    }
    return now_ns() - start - slept;
}

int main(int count, char **arguments)
{
    static const char *const ways[] = {"one_by_one", "at_once", "with_a_break", "nothing", "no_exec"};
    if (count != 3)
        fail("usage: closing CLOSES TINY");
    int closes = atoi(arguments[1]);
    for (size_t way = 0; way < sizeof(ways) / sizeof(*ways); way++) {
        pid_t pid = fork();
        if (pid == -1)
            fail("fork");
        if (pid == 0) {
            truth("amount_ns", close_in(ways[way], closes));
            if (strcmp(ways[way], "no_exec") == 0) {
                one_by_one(closes);
                _exit(0);
            }
            execl(arguments[2], arguments[2], (char *)NULL);
            fail(arguments[2]);
        }
        truth(ways[way], pid);
        reap(pid);
    }
    return 0;
}
