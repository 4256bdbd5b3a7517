// A large parent: touches the given number of MiB, in pages of 4 KiB, and runs a command by vfork.
// Usage: large_parent MEBIBYTES COMMAND...
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    if (count < 3)
        return 2;
    size_t bytes = (size_t)atoi(arguments[1]) << 20;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        return 2;
    }
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    memset(memory, 1, bytes);
    pid_t child = vfork();
    if (child == 0) {
        execv(arguments[2], arguments + 2);
        _exit(127);
    }
    int status;
    if (child == -1 || waitpid(child, &status, 0) == -1) {
        perror(arguments[2]);
        return 2;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}
