// A library whose loading takes longer than anybody waits: preloaded, it holds up each start of a program.
#include <time.h>

__attribute__((constructor)) static void take_long(void)
{
    struct timespec span = {.tv_sec = 1, .tv_nsec = 200000000};
    nanosleep(&span, NULL);
}
