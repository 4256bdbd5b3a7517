// A program to be sampled. `sampled spin MS` works in `spinning`; `sampled wait MS` waits in `waiting` for a child that sleeps;
// `sampled search` executes itself again with a library search path of 300 missing directories.
#include "truth.h"

enum { DIRECTORIES = 300, MAX_PATH_LENGTH = 64 };

static volatile unsigned long sum;

__attribute__((noinline)) static void spinning(long milliseconds)
{
    int64_t end = now_ns() + milliseconds * 1000000;
    while (now_ns() < end)
        for (int i = 0; i < 100000; i++)
            sum += i;
}

__attribute__((noinline)) static void waiting(long milliseconds)
{
    pid_t child = fork();
    if (child == 0) {
        sleep_ms(milliseconds);
        _exit(0);
    }
    reap(child);
    sum++;
}

static void search(char **arguments)
{
    static char path[DIRECTORIES * MAX_PATH_LENGTH];
    char *end = path;
    for (int i = 0; i < DIRECTORIES; i++)
        end += sprintf(end, "/nowhere/with/libraries/%d:", i);
    setenv("LD_LIBRARY_PATH", path, 1);
    arguments[1] = "nothing";
    execv(arguments[0], arguments);
    fail("execv");
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "nothing";
    long milliseconds = count > 2 ? atol(arguments[2]) : 0;
    if (strcmp(what, "spin") == 0)
        spinning(milliseconds);
    else if (strcmp(what, "search") == 0)
        search(arguments);
    else if (strcmp(what, "wait") == 0)
        waiting(milliseconds);
    // Without this, the compiler could make the call above a jump, so that `main` would have no frame.
    sum++;
    return 0;
}
