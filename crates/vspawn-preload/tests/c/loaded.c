/* Prints the LD_PRELOAD that it was started with. With LAUNCHES, it could launch a program. */
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    const char *list = getenv("LD_PRELOAD");
    puts(list ? list : "none");
#ifdef LAUNCHES
    return list ? 0 : system(NULL) == 0;
#endif
    return 0;
}
