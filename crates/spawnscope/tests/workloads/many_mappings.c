// Ends dearly although it lived cheaply: the same 2 MB are mapped again and again, and at the end each mapping has its
// own page table and page references to give back. Memory of its own would have to be zeroed first, for as long as the
// host needs.
// Usage: many_mappings COUNT.
#include "truth.h"
#include <sys/mman.h>

enum { BYTES = 2 << 20 };

int main(int count, char **arguments)
{
    if (count != 2)
        fail("usage: many_mappings COUNT");
    int memory = memfd_create("shared", MFD_CLOEXEC);
    if (memory == -1 || ftruncate(memory, BYTES) == -1)
        cannot_run_here("memfd_create");
    for (int mapping = 0; mapping < atoi(arguments[1]); mapping++)
        if (mmap(NULL, BYTES, PROT_READ, MAP_SHARED | MAP_POPULATE, memory, 0) == MAP_FAILED)
            cannot_run_here("mmap");
    return 0;
}
