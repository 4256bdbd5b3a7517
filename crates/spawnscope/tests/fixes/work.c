// The child of some pairs: computes for a while and prints the result.
// Usage: work NUMBER [MILLIONS], the initial number and the millions of steps (default 2).
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    unsigned state = count > 1 ? (unsigned)atoi(arguments[1]) : 1;
    long steps = (count > 2 ? atol(arguments[2]) : 2) * 1000000;
    for (long step = 0; step < steps; step++)
        state = state * 1664525 + 1013904223;
    printf("%u\n", state);
    return 0;
}
