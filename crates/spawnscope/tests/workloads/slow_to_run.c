// A program whose `run` takes a known time: it sleeps in main. Compile with -DRUN_MS=N; 0 makes the comparison.
#include "truth.h"

int main(void)
{
    truth("amount_ns", sleep_ms(RUN_MS));
    return 0;
}
