// Starts a daemon in the classic way: fork, setsid, fork, exec. The first process ends at once.
// Usage: daemonize PROGRAM [ARGUMENT]; prints the pids of the middle process and of the daemon. The caller ends the daemon.
#include "truth.h"
#include <fcntl.h>

static void detach_standard_streams(void)
{
    int null = open("/dev/null", O_RDWR);
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        dup2(null, stream);
}

int main(int count, char **arguments)
{
    if (count < 2)
        fail("usage: daemonize PROGRAM [ARGUMENT]");
    pid_t middle = fork();
    if (middle == -1)
        fail("fork");
    if (middle > 0) {
        truth("middle", middle);
        reap(middle);
        return 0;
    }
    setsid();
    pid_t daemon = fork();
    if (daemon == -1)
        fail("fork");
    if (daemon > 0) {
        truth("daemon", daemon);
        _exit(0);
    }
    detach_standard_streams();
    execvp(arguments[1], arguments + 1);
    _exit(1);
}
