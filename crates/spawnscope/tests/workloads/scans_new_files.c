// Runs a command under a permission scanner named `test-scanner`. Like products, it scans each file once before its first exec
// or open, and again after a change. It has one thread, and scans only files in DIRECTORY, a private tmpfs, which is also the
// command's TMPDIR. Compile with -DEVENTS=FAN_... and -DSCAN_MS=N.
// Usage: scans_new_files DIRECTORY COMMAND...
#include "scanner.h"

// Makes the kernel send no further events for a file until the file changes.
static void ignore_until_changed(int scanner, int file)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (fanotify_mark(scanner, FAN_MARK_ADD | FAN_MARK_IGNORED_MASK, EVENTS, AT_FDCWD, path) == -1)
        fail("fanotify_mark(FAN_MARK_IGNORED_MASK)");
}

static void scan_once(int scanner, const struct fanotify_event_metadata *event, int scan_ms)
{
    sleep_ms(scan_ms);
    ignore_until_changed(scanner, event->fd);
    allow(scanner, event);
}

int main(int count, char **arguments)
{
    if (count < 3) {
        dprintf(STDERR_FILENO, "usage: scans_new_files DIRECTORY COMMAND...\n");
        return 2;
    }
    mount_private_tmpfs(arguments[1]);
    int scanner = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY | O_CLOEXEC);
    if (scanner == -1)
        cannot_run_here("fanotify_init");
    if (fanotify_mark(scanner, FAN_MARK_ADD | FAN_MARK_MOUNT, EVENTS, AT_FDCWD, arguments[1]) == -1)
        cannot_run_here("fanotify_mark");
    pid_t daemon = fork();
    if (daemon == -1)
        fail("fork");
    if (daemon == 0) {
        prctl(PR_SET_NAME, "test-scanner");
        scan(scanner, SCAN_MS, scan_once);
    }
    close(scanner);
    pid_t command = fork();
    if (command == -1)
        fail("fork");
    if (command == 0) {
        setenv("TMPDIR", arguments[1], 1);
        execv(arguments[2], arguments + 2);
        fail(arguments[2]);
    }
    int status;
    if (waitpid(command, &status, 0) != command)
        fail("waitpid");
    kill(daemon, SIGKILL);
    waitpid(daemon, NULL, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
