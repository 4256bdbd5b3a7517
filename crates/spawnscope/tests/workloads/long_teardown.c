// Lengthens `teardown`: a child that is the last owner of much memory exits. If the child touched the memory itself,
// its `run` would be long; if it inherited the memory, its `create` would be long. So a builder touches the memory,
// creates the child with CLONE_VM, and exits. Then the child is the only owner, and the workload, a subreaper, its parent.
// Usage: long_teardown long|base [MEGABYTES]; prints as amount_ns the time from just before the child's exit until it can be reaped.
#include "truth.h"
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>

struct handover {
    int may_exit[2]; // gets a byte when the builder has ended, so that the child is the only owner
    _Atomic pid_t child;
    _Atomic int64_t exits_at;
};

static struct handover *handover;
static char child_stack[65536] __attribute__((aligned(16)));

static int exit_when_allowed(void *unused)
{
    char byte;
    (void)unused;
    while (read(handover->may_exit[0], &byte, 1) == -1 && errno == EINTR)
        ;
    handover->exits_at = now_ns();
    _exit(0);
}

static _Noreturn void build(size_t bytes)
{
    if (bytes > 0) {
        char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            cannot_run_here("mmap");
        madvise(memory, bytes, MADV_NOHUGEPAGE);
        memset(memory, 1, bytes);
    }
    pid_t child = clone(exit_when_allowed, child_stack + sizeof child_stack, CLONE_VM | SIGCHLD, NULL);
    if (child == -1)
        fail("clone");
    handover->child = child;
    _exit(0);
}

int main(int count, char **arguments)
{
    int with_memory = is_long(count, arguments, "long_teardown long|base [MEGABYTES]");
    size_t bytes = with_memory ? (size_t)(count > 2 ? atoi(arguments[2]) : 1024) << 20 : 0;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    handover = mmap(NULL, sizeof *handover, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (handover == MAP_FAILED || pipe2(handover->may_exit, O_CLOEXEC) == -1)
        fail("handover");
    for (int child = 0; child < CHILDREN; child++) {
        pid_t builder = fork();
        if (builder == -1)
            fail("fork");
        if (builder == 0)
            build(bytes);
        reap(builder);
        if (write(handover->may_exit[1], "x", 1) != 1)
            fail("write");
        await_zombie(handover->child);
        truth("amount_ns", now_ns() - handover->exits_at);
        truth("child", handover->child);
        reap(handover->child);
    }
    return 0;
}
