// Lengthens `create`: forks from a parent that holds touched memory, so that fork copies its page tables.
// The copy must also be freed, which would lengthen the child's own `teardown`. So a grandchild that shares the
// child's memory outlives the child, and frees the copy. It is not a child of this program, so the test ignores it.
// Usage: long_create long|base [MEGABYTES]; prints as amount_ns the duration of each fork call, as the parent measured it.
#include "truth.h"
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>

static char grandchild_stack[65536] __attribute__((aligned(16)));

static void await_end_of_file(int descriptor)
{
    char byte;
    while (read(descriptor, &byte, 1) == -1 && errno == EINTR)
        ;
}

static int outlive_child(void *reaped_pipe)
{
    await_end_of_file(*(int *)reaped_pipe);
    _exit(0);
}

static void leave_memory_to_grandchild(int *reaped_pipe, int *gone_pipe)
{
    close(reaped_pipe[1]);
    close(gone_pipe[0]);
    if (clone(outlive_child, grandchild_stack + sizeof grandchild_stack, CLONE_VM, &reaped_pipe[0]) == -1)
        fail("clone");
    _exit(0);
}

int main(int count, char **arguments)
{
    int with_memory = is_long(count, arguments, "long_create long|base [MEGABYTES]");
    size_t bytes = (size_t)(count > 2 ? atoi(arguments[2]) : 1024) << 20;
    if (with_memory) {
        char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            cannot_run_here("mmap");
        // Huge pages would need 512 times fewer page table entries.
        madvise(memory, bytes, MADV_NOHUGEPAGE);
        memset(memory, 1, bytes);
    }
    for (int child = 0; child < CHILDREN; child++) {
        int reaped_pipe[2], gone_pipe[2];
        if (pipe2(reaped_pipe, O_CLOEXEC) == -1 || pipe2(gone_pipe, O_CLOEXEC) == -1)
            fail("pipe2");
        int64_t start = now_ns();
        pid_t pid = fork();
        int64_t forked = now_ns();
        if (pid == -1)
            fail("fork");
        if (pid == 0)
            leave_memory_to_grandchild(reaped_pipe, gone_pipe);
        truth("amount_ns", forked - start);
        truth("child", pid);
        close(gone_pipe[1]);
        reap(pid);
        close(reaped_pipe[0]);
        close(reaped_pipe[1]);
        await_end_of_file(gone_pipe[0]);
        close(gone_pipe[0]);
    }
    return 0;
}
