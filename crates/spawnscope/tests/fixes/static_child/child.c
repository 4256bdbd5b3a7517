// A small program that computes for half a millisecond. Built twice: linked dynamically and statically.
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    unsigned state = count > 1 ? (unsigned)atoi(arguments[1]) : 1;
    for (int step = 0; step < 200000; step++)
        state = state * 1664525 + 1013904223;
    printf("%u\n", state);
    return 0;
}
