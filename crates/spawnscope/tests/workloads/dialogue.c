// An interactive program: must be in the foreground of a terminal, asks, reads a key without echo, answers, and restores
// the settings of the terminal. Its output has control sequences, so that a test notices if they are altered.
#include "truth.h"
#include <termios.h>

int main(void)
{
    struct termios cooked, raw;
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        if (!isatty(stream))
            fail("not a terminal");
    if (tcgetpgrp(STDIN_FILENO) != getpgrp())
        fail("not in the foreground");
    if (tcgetattr(STDIN_FILENO, &cooked) == -1)
        fail("tcgetattr");
    raw = cooked;
    cfmakeraw(&raw);
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    dprintf(STDOUT_FILENO, "\033[1mkey?\033[0m ");
    char key;
    if (read(STDIN_FILENO, &key, 1) != 1)
        fail("read");
    dprintf(STDOUT_FILENO, "\033[2K\rgot %c\r\n", key);
    tcsetattr(STDIN_FILENO, TCSANOW, &cooked);
    return 5;
}
