// A child that stops itself; the parent sees it stop (WUNTRACED), lets it lie, continues it (WCONTINUED), reaps it.
// Of the three times that waitpid returns the child only the last reaps it. Prints child and stopped_ns.
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
        // Long enough for the parent to see it continued before it sees it gone.
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
