/* Prints the LD_PRELOAD that it was started with. */
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    const char *list = getenv("LD_PRELOAD");
    puts(list ? list : "none");
    return 0;
}
