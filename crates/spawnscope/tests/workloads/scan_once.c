// Runs a command with TMPDIR on a private mount on which each executable waits 50 ms for a scanner with one thread before its
// first execve, and not again until it is changed, as on-access scanners do it. Usage: scan_once DIRECTORY COMMAND...
#include "scanner.h"

enum { SCAN_MS = 50 };

static _Noreturn void scan_new_files(int scanner)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(DEADLINE_SECONDS);
    for (;;) {
        struct fanotify_event_metadata event;
        if (read(scanner, &event, sizeof event) != sizeof event)
            fail("read fanotify");
        sleep_ms(SCAN_MS);
        // Until the next write, no more events of this file.
        if (fanotify_mark(scanner, FAN_MARK_ADD | FAN_MARK_IGNORED_MASK, FAN_OPEN_EXEC_PERM, event.fd, NULL) == -1)
            fail("fanotify_mark(FAN_MARK_IGNORED_MASK)");
        struct fanotify_response response = {.fd = event.fd, .response = FAN_ALLOW};
        if (write(scanner, &response, sizeof response) != sizeof response)
            fail("fanotify response");
        close(event.fd);
    }
}

int main(int count, char **arguments)
{
    if (count < 3) {
        dprintf(STDERR_FILENO, "usage: scan_once DIRECTORY COMMAND...\n");
        return 2;
    }
    mount_private_tmpfs(arguments[1]);
    int scanner = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY | O_CLOEXEC);
    if (scanner == -1)
        cannot_run_here("fanotify_init");
    if (fanotify_mark(scanner, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_OPEN_EXEC_PERM, AT_FDCWD, arguments[1]) == -1)
        cannot_run_here("fanotify_mark(FAN_OPEN_EXEC_PERM)");
    pid_t pid = fork();
    if (pid == -1)
        fail("fork");
    if (pid == 0)
        scan_new_files(scanner);
    close(scanner);
    setenv("TMPDIR", arguments[1], 1);
    execv(arguments[2], arguments + 2);
    fail(arguments[2]);
}
