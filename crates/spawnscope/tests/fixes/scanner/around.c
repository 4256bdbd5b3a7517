// Runs a command while a permission scanner checks each file that is opened or executed under `scanned`, which contains copies
// of cksum and its input. The scanner has one thread and takes 5 ms per file. In variant `after`, it excludes the directory. The mounts
// are in the mount namespace of this process, and the scanner ends with this process: nothing outside changes.
// Usage: around before|after COMMAND..., in a separate directory. Exits with the exit status of the command.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SCAN_MS = 5, FILES = 10, DEADLINE_SECONDS = 120 };

static _Noreturn void fail(const char *what)
{
    perror(what);
    exit(125);
}

static void mount_private_tmpfs(void)
{
    if (unshare(CLONE_NEWNS) == -1)
        fail("unshare(CLONE_NEWNS)");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1)
        fail("mount(MS_PRIVATE)");
    mkdir("scanned", 0755);
    if (mount("scanned", "scanned", "tmpfs", 0, "size=32m") == -1)
        fail("mount(tmpfs)");
}

static void copy_cksum(void)
{
    char buffer[65536];
    int source = open("/usr/bin/cksum", O_RDONLY | O_CLOEXEC);
    int target = open("scanned/cksum", O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
    if (source == -1 || target == -1)
        fail("scanned/cksum");
    for (ssize_t length; (length = read(source, buffer, sizeof buffer)) > 0;)
        if (write(target, buffer, (size_t)length) != length)
            fail("scanned/cksum");
    close(source);
    close(target);
}

static void make_input(void)
{
    static char bytes[2000000];
    for (int number = 0; number < FILES; number++) {
        char name[64];
        snprintf(name, sizeof name, "scanned/file%d", number);
        memset(bytes, '0' + number, sizeof bytes);
        int file = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        if (file == -1 || write(file, bytes, sizeof bytes) != sizeof bytes)
            fail(name);
        close(file);
    }
}

static void answer(int scanner, const struct fanotify_event_metadata *event)
{
    nanosleep(&(struct timespec){.tv_nsec = SCAN_MS * 1000000}, NULL);
    struct fanotify_response response = {.fd = event->fd, .response = FAN_ALLOW};
    if (write(scanner, &response, sizeof response) != sizeof response)
        fail("fanotify response");
    close(event->fd);
}

static _Noreturn void scan(int scanner, volatile int *scanned)
{
    // No process may hang if the parent of the scanner dies: the scanner then ends too, its descriptor closes, and the kernel allows all
    // pending requests.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "scand");
    alarm(DEADLINE_SECONDS);
    for (;;) {
        char buffer[4096] __attribute__((aligned(8)));
        ssize_t length = read(scanner, buffer, sizeof buffer);
        if (length == -1)
            fail("read fanotify");
        struct fanotify_event_metadata *event = (void *)buffer;
        for (; FAN_EVENT_OK(event, length); event = FAN_EVENT_NEXT(event, length)) {
            answer(scanner, event);
            ++*scanned;
        }
    }
}

static pid_t start_scanner(int is_excluded, volatile int *scanned)
{
    int scanner = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY | O_CLOEXEC);
    if (scanner == -1)
        fail("fanotify_init");
    uint64_t events = FAN_OPEN_PERM | FAN_OPEN_EXEC_PERM;
    if (!is_excluded && fanotify_mark(scanner, FAN_MARK_ADD | FAN_MARK_MOUNT, events, AT_FDCWD, "scanned") == -1)
        fail("fanotify_mark");
    pid_t pid = fork();
    if (pid == -1)
        fail("fork");
    if (pid == 0)
        scan(scanner, scanned);
    close(scanner);
    return pid;
}

static int run(char **command)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        execvp(command[0], command);
        _exit(127);
    }
    if (pid == -1 || waitpid(pid, &status, 0) != pid)
        fail(command[0]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int count, char **arguments)
{
    if (count < 3) {
        fprintf(stderr, "usage: around before|after COMMAND...\n");
        return 2;
    }
    int is_excluded = strcmp(arguments[1], "after") == 0;
    mount_private_tmpfs();
    copy_cksum();
    make_input();
    volatile int *scanned = mmap(NULL, sizeof *scanned, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (scanned == MAP_FAILED)
        fail("mmap");
    pid_t scanner = start_scanner(is_excluded, scanned);
    int status = run(arguments + 2);
    kill(scanner, SIGKILL);
    waitpid(scanner, NULL, 0);
    if (is_excluded == (*scanned > 0)) {
        fprintf(stderr, "%s: the scanner looked at %d files\n", arguments[1], *scanned);
        return 125;
    }
    return status;
}
