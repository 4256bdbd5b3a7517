// A fanotify permission scanner on a private tmpfs, and files for it to scan. The mounts are in a mount namespace of this
// process, and the scanner ends with this process: nothing outside changes.
#pragma once
#include "truth.h"
#include <fcntl.h>
#include <sched.h>
#include <sys/fanotify.h>
#include <sys/mount.h>
#include <sys/prctl.h>

enum { DEADLINE_SECONDS = 60 };

static inline void mount_private_tmpfs(const char *directory)
{
    if (unshare(CLONE_NEWNS) == -1)
        cannot_run_here("unshare(CLONE_NEWNS)");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1)
        cannot_run_here("mount(MS_PRIVATE)");
    if (mount("spawnscope-test", directory, "tmpfs", 0, "size=8m") == -1)
        cannot_run_here("mount(tmpfs)");
}

static inline void allow(int scanner, const struct fanotify_event_metadata *event)
{
    struct fanotify_response response = {.fd = event->fd, .response = FAN_ALLOW};
    if (write(scanner, &response, sizeof response) != sizeof response)
        fail("fanotify response");
    close(event->fd);
}

static inline void answer(int scanner, const struct fanotify_event_metadata *event, int scan_ms)
{
    int64_t start = now_ns();
    sleep_ms(scan_ms);
    truth("amount_ns", scan_ms == 0 ? 0 : now_ns() - start);
    allow(scanner, event);
}

typedef void handle_event(int scanner, const struct fanotify_event_metadata *event, int scan_ms);

static inline _Noreturn void scan(int scanner, int scan_ms, handle_event *handle_event)
{
    // No execve may hang, whatever ends this process: the kernel allows all pending requests when the scanner's descriptor is closed.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(DEADLINE_SECONDS);
    for (;;) {
        char buffer[4096] __attribute__((aligned(8)));
        ssize_t length = read(scanner, buffer, sizeof buffer);
        if (length == -1)
            fail("read fanotify");
        struct fanotify_event_metadata *event = (void *)buffer;
        for (; FAN_EVENT_OK(event, length); event = FAN_EVENT_NEXT(event, length))
            handle_event(scanner, event, scan_ms);
    }
}

static inline pid_t start_scanner(const char *directory, uint64_t what, int scan_ms)
{
    int scanner = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY | O_CLOEXEC);
    if (scanner == -1)
        cannot_run_here("fanotify_init");
    if (fanotify_mark(scanner, FAN_MARK_ADD | FAN_MARK_MOUNT, what, AT_FDCWD, directory) == -1)
        cannot_run_here("fanotify_mark");
    pid_t pid = fork();
    if (pid == -1)
        fail("fork");
    if (pid == 0)
        scan(scanner, scan_ms, answer);
    close(scanner);
    return pid;
}

static inline void copy(const char *from, const char *to)
{
    char buffer[65536];
    int source = open(from, O_RDONLY | O_CLOEXEC), target = open(to, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
    if (source == -1 || target == -1)
        fail(to);
    for (ssize_t length; (length = read(source, buffer, sizeof buffer)) > 0;)
        if (write(target, buffer, (size_t)length) != length)
            fail(to);
    close(source);
    close(target);
}
