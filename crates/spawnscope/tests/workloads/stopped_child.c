// A child stops itself. The parent waits for the stop (WUNTRACED), pauses, continues the child (WCONTINUED), and reaps it.
// waitpid returns the child three times, but only the last call reaps it. Prints `child` and `stopped_ns`.
#include "truth.h"

static void await(pid_t pid, int options)
{
    int status;
    if (waitpid(pid, &status, options) != pid)
        fail("waitpid");
}

int main(void)
{
    pid_t pid = fork();
    if (pid == -1)
        fail("fork");
    if (pid == 0) {
        raise(SIGSTOP);
        // Long enough for the parent to be notified of the continuation before the end.
        sleep_ms(500);
        _exit(3);
    }
    await(pid, WUNTRACED);
    int64_t stopped_ns = sleep_ms(50);
    kill(pid, SIGCONT);
    await(pid, WCONTINUED);
    await(pid, 0);
    truth("child", pid);
    truth("stopped_ns", stopped_ns);
    return 0;
}
