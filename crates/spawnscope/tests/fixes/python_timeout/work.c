// The child: computes for a while, and prints a number.
// Usage: work NUMBER MILLISECONDS, what it prints and the CPU time that it takes. A number of steps would not do: what polling adds depends on
// how much time is left until the next poll. It seldom asks for the time: that is a system call, whose recording takes time, too.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int count, char **arguments)
{
    if (count != 3)
        return 2;
    clock_t end = atol(arguments[2]) * CLOCKS_PER_SEC / 1000;
    while (clock() < end)
        for (volatile int step = 0; step < 100000; step++)
            ;
    printf("%s\n", arguments[1]);
    return 0;
}
