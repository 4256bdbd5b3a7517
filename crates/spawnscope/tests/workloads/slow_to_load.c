// A program whose dynamic loading takes a known time: the loader calls the resolver of an indirect function while
// it relocates the program, before the program's entry. Compile with -DLOAD_MS=N; LOAD_MS=0 is the program to compare with.
// The resolver makes only raw system calls, because libc may not be relocated yet.
#include "raw_syscall.h"
#include "truth.h"

static struct timespec before, after;

static void implementation(void) {}

__attribute__((no_stack_protector)) static void (*resolve(void))(void)
{
    struct timespec span = {.tv_nsec = LOAD_MS * 1000000L};
    raw_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&before);
    if (LOAD_MS != 0)
        raw_syscall(SYS_nanosleep, (long)&span, 0);
    raw_syscall(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&after);
    return implementation;
}

void indirect(void) __attribute__((ifunc("resolve")));

int main(void)
{
    indirect();
    truth("amount_ns", (after.tv_sec - before.tv_sec) * 1000000000LL + after.tv_nsec - before.tv_nsec);
    return 0;
}
