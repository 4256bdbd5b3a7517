// A library that takes 1.2 s to load, longer than the doctor waits. Preloaded, it delays the start of each program.
#include <time.h>

__attribute__((constructor)) static void take_long(void)
{
    struct timespec span = {.tv_sec = 1, .tv_nsec = 200000000};
    nanosleep(&span, NULL);
}
