// Waits for a byte that a child writes to a pipe after 200 ms. Usage: wait_on_pipe read|poll|select|epoll; prints the child's pid,
// and the pipe's inode and device (in the kernel's encoding).
#include "truth.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { WRITE_AFTER_MS = 200 };

static void wait_by_select(int pipe)
{
    fd_set readable;
    FD_ZERO(&readable);
    FD_SET(pipe, &readable);
    if (select(pipe + 1, &readable, NULL, NULL, NULL) != 1)
        fail("select");
}

static void wait_by_epoll(int pipe)
{
    struct epoll_event event = {.events = EPOLLIN};
    int all = epoll_create1(0);
    if (all == -1 || epoll_ctl(all, EPOLL_CTL_ADD, pipe, &event) == -1 || epoll_wait(all, &event, 1, -1) != 1)
        fail("epoll");
}

int main(int count, char **arguments)
{
    const char *how = count == 2 ? arguments[1] : "";
    int ends[2];
    char byte;
    struct stat stat;
    if (pipe(ends) == -1 || fstat(ends[0], &stat) == -1)
        fail("pipe");
    pid_t child = fork();
    if (child == -1)
        fail("fork");
    if (child == 0) {
        sleep_ms(WRITE_AFTER_MS);
        _exit(write(ends[1], "x", 1) != 1);
    }
    // poll ignores the first entry, because its descriptor is negative.
    struct pollfd polled[] = {{.fd = -1}, {.fd = ends[0], .events = POLLIN}};
    if (strcmp(how, "poll") == 0 && poll(polled, 2, -1) != 1)
        fail("poll");
    else if (strcmp(how, "select") == 0)
        wait_by_select(ends[0]);
    else if (strcmp(how, "epoll") == 0)
        wait_by_epoll(ends[0]);
    if (read(ends[0], &byte, 1) != 1)
        fail("read");
    reap(child);
    truth("child", child);
    truth("inode", (int64_t)stat.st_ino);
    truth("device", (int64_t)major(stat.st_dev) << 20 | minor(stat.st_dev));
    return 0;
}
