// Starts children that close their descriptors before exec: one by one, or (-DFIXED) with close_range.
// The child is `work`, in the current directory.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 100, DESCRIPTORS = 20000 };

static void close_descriptors(void)
{
#ifdef FIXED
    close_range(3, DESCRIPTORS - 1, 0);
#else
    for (int descriptor = 3; descriptor < DESCRIPTORS; descriptor++)
        close(descriptor);
#endif
}

int main(void)
{
    for (int number = 0; number < CHILDREN; number++) {
        char argument[16];
        snprintf(argument, sizeof argument, "%d", number);
        pid_t pid = fork();
        if (pid == 0) {
            close_descriptors();
            execl("./work", "work", argument, (char *)NULL);
            _exit(127);
        }
        int status;
        if (pid == -1 || waitpid(pid, &status, 0) != pid || status != 0) {
            perror("work");
            return 1;
        }
    }
    return 0;
}
