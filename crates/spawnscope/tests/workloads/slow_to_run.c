// A program whose `run` takes a known time: it sleeps in main. Compile with -DRUN_MS=N; RUN_MS=0 is the program to compare with.
#include "truth.h"

int main(void)
{
    truth("amount_ns", sleep_ms(RUN_MS));
    return 0;
}
