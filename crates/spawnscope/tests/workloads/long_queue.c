// Lengthens `queue`: the parent keeps the only CPU that its child may use. The parent is real-time, the child is
// not (SCHED_RESET_ON_FORK), so the scheduler cannot let the child run before the parent sleeps.
// Usage: long_queue long|base; prints amount_ns, the time from fork's return to the parent's wait call.
#include "truth.h"
#include <sched.h>

enum { SPIN_NS = 50 * 1000 * 1000 };

static void keep_one_cpu_for_ourselves(void)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == -1)
        fail("sched_getaffinity");
    CPU_ZERO(&one);
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--) {
        if (CPU_ISSET(cpu, &allowed)) {
            CPU_SET(cpu, &one);
            break;
        }
    }
    if (sched_setaffinity(0, sizeof one, &one) == -1)
        fail("sched_setaffinity");
    struct sched_param priority = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &priority) == -1)
        cannot_run_here("sched_setscheduler");
}

int main(int count, char **arguments)
{
    int spins = is_long(count, arguments, "long_queue long|base");
    keep_one_cpu_for_ourselves();
    for (int child = 0; child < CHILDREN; child++) {
        // Real-time threads may use 95 % of each second. This pause keeps the parent below that limit.
        sleep_ms(30);
        pid_t pid = fork();
        if (pid == -1)
            fail("fork");
        if (pid == 0)
            _exit(0);
        int64_t start = now_ns(), spun = 0;
        while (spins && spun < SPIN_NS)
            spun = now_ns() - start;
        reap(pid);
        truth("amount_ns", spun);
        truth("child", pid);
    }
    return 0;
}
