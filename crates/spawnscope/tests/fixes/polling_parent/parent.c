// Starts children one after the other, and polls every 10 ms whether each has ended, or (-DFIXED) waits for it.
// The child is `work`, in the current directory.
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHILDREN = 40 };

static int ends_well(pid_t pid)
{
    int status;
#ifdef FIXED
    if (waitpid(pid, &status, 0) != pid)
        return 0;
#else
    pid_t ended;
    while ((ended = waitpid(pid, &status, WNOHANG)) == 0)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    if (ended != pid)
        return 0;
#endif
    return status == 0;
}

int main(void)
{
    for (int number = 0; number < CHILDREN; number++) {
        char argument[16];
        snprintf(argument, sizeof argument, "%d", number);
        pid_t pid = fork();
        if (pid == 0) {
            execl("./work", "work", argument, "10", (char *)NULL);
            _exit(127);
        }
        if (pid == -1 || !ends_well(pid)) {
            perror("work");
            return 1;
        }
    }
    return 0;
}
