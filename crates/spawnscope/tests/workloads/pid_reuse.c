// Gives the same pid to several children, one after the other (clone3 with set_tid). Their exit statuses differ.
// Usage: pid_reuse; prints `pid` and `children`. Run it in a pid namespace of its own, where no other process has the pid.
#include "truth.h"
#include <linux/sched.h>

enum { REUSED_PID = 4242 };

int main(void)
{
    for (int child = 0; child < CHILDREN; child++) {
        pid_t wanted = REUSED_PID;
        struct clone_args arguments = {
            .exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&wanted, .set_tid_size = 1};
        pid_t pid = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
        if (pid == -1)
            cannot_run_here("clone3(set_tid)");
        if (pid == 0)
            _exit(child);
        int status;
        if (waitpid(pid, &status, 0) != REUSED_PID || WEXITSTATUS(status) != child)
            fail("waitpid");
    }
    truth("pid", REUSED_PID);
    truth("children", CHILDREN);
    return 0;
}
