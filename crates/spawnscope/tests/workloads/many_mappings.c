// Has an expensive teardown after a cheap run: the same 2 MB are mapped many times, and at the end the kernel frees the
// page table and the page references of each mapping. Private memory would have to be zeroed first, which takes a time
// that depends on the host.
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
