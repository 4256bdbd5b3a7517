// Runs a command under a permission scanner that the command did not start. TINY is copied to DIRECTORY/tiny, and each open
// and execve of a file in DIRECTORY waits for an answer. The scanner is named `test-scanner`; one of its threads, which
// has another name, answers. Usage: scanned TINY DIRECTORY COMMAND...; prints as amount_ns the time that the scanner took for each file.
#include "scanner.h"
#include <pthread.h>

enum { SCAN_MS = 20 };

static void *answer_all(void *scanner)
{
    prctl(PR_SET_NAME, "answers");
    scan(*(int *)scanner, SCAN_MS, answer);
}

static pid_t start_named_scanner(const char *directory)
{
    static int scanner;
    scanner = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY | O_CLOEXEC);
    if (scanner == -1)
        cannot_run_here("fanotify_init");
    if (fanotify_mark(scanner, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_OPEN_PERM, AT_FDCWD, directory) == -1)
        cannot_run_here("fanotify_mark(FAN_OPEN_PERM)");
    pid_t pid = fork();
    if (pid == -1)
        fail("fork");
    if (pid != 0) {
        close(scanner);
        return pid;
    }
    prctl(PR_SET_NAME, "test-scanner");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(DEADLINE_SECONDS);
    pthread_t thread;
    if (pthread_create(&thread, NULL, answer_all, &scanner) != 0)
        fail("pthread_create");
    pthread_join(thread, NULL);
    fail("the scanner's thread ended");
}

int main(int count, char **arguments)
{
    if (count < 4) {
        dprintf(STDERR_FILENO, "usage: scanned TINY DIRECTORY COMMAND...\n");
        return 2;
    }
    char file[4096];
    mount_private_tmpfs(arguments[2]);
    snprintf(file, sizeof file, "%s/tiny", arguments[2]);
    copy(arguments[1], file);
    pid_t scanner = start_named_scanner(arguments[2]);
    pid_t command = fork();
    if (command == -1)
        fail("fork");
    if (command == 0) {
        execv(arguments[3], arguments + 3);
        fail(arguments[3]);
    }
    int status;
    if (waitpid(command, &status, 0) != command)
        fail("waitpid");
    kill(scanner, SIGKILL);
    waitpid(scanner, NULL, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
