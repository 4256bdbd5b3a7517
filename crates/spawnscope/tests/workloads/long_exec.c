// Lengthens `exec`: a single-threaded fanotify scanner on a private tmpfs makes each execve wait for permission.
// Usage: long_exec long|base TINY DIRECTORY; prints amount_ns, the time the scanner took for each file.
#include "scanner.h"

enum { SCAN_MS = 20 };

int main(int count, char **arguments)
{
    int scans = is_long(count, arguments, "long_exec long|base TINY DIRECTORY");
    if (count < 4)
        fail("DIRECTORY");
    mount_private_tmpfs(arguments[3]);
    pid_t scanner = start_scanner(arguments[3], FAN_OPEN_EXEC_PERM, scans ? SCAN_MS : 0);
    for (int child = 0; child < CHILDREN; child++) {
        char file[4096];
        snprintf(file, sizeof file, "%s/tiny%d", arguments[3], child);
        copy(arguments[2], file);
        pid_t pid = launch_after_ms(0, file);
        truth("child", pid);
        reap(pid);
    }
    kill(scanner, SIGKILL);
    waitpid(scanner, NULL, 0);
    return 0;
}
