// A library whose constructor takes a known time, and a program that is linked with it and takes long to relocate. The library is compiled
// with -DBUSY_MS=N as a shared object. The constructor starts with system calls that loaders make too, so it
// could be mistaken for a part of the load.
#include "truth.h"

#include <fcntl.h>

#ifdef BUSY_MS
int64_t constructor_began, constructor_ended;

__attribute__((constructor)) static void take_long(void)
{
    constructor_began = now_ns();
    char byte;
    int file = open("/dev/zero", O_RDONLY);
    if (file < 0 || read(file, &byte, 1) != 1 || close(file) != 0)
        _exit(CANNOT_RUN_HERE);
    do
        constructor_ended = now_ns();
    while (constructor_ended < constructor_began + BUSY_MS * 1000000LL);
}
#else
extern int64_t constructor_began, constructor_ended;

// The loader must relocate every element.
#define TIMES_8(x) x, x, x, x, x, x, x, x
static const void *volatile const addresses[1 << 18] = {
    TIMES_8(TIMES_8(TIMES_8(TIMES_8(TIMES_8(TIMES_8(&constructor_began)))))),
};

int main(void)
{
    truth("constructor_began", constructor_began);
    truth("constructor_ended", constructor_ended);
    return addresses[0] != &constructor_began;
}
#endif
