// Fills 256 MB with computed numbers and then starts children with fork; the memory is in small pages, or (-DFIXED) in huge pages.
// The child is `work`, in the current directory.
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 60 };
#define BYTES ((size_t)256 << 20)
#define NUMBERS (BYTES / sizeof(unsigned long))

static unsigned long *fill_memory(void)
{
    unsigned long *numbers = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (numbers == MAP_FAILED)
        return NULL;
#ifdef FIXED
    madvise(numbers, BYTES, MADV_HUGEPAGE);
#else
    madvise(numbers, BYTES, MADV_NOHUGEPAGE);
#endif
    unsigned long state = 1;
    for (size_t index = 0; index < NUMBERS; index++) {
        for (int round = 0; round < 8; round++)
            state = state * 6364136223846793005 + 1442695040888963407;
        numbers[index] = state;
    }
    return numbers;
}

int main(void)
{
    unsigned long *numbers = fill_memory();
    if (numbers == NULL) {
        perror("mmap");
        return 1;
    }
    for (int number = 0; number < CHILDREN; number++) {
        char argument[16];
        snprintf(argument, sizeof argument, "%lu", numbers[((size_t)number << 20) % NUMBERS] % 1000);
        pid_t pid = fork();
        if (pid == 0) {
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
