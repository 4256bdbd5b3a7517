// Runs a command while a process serves a FUSE file system in memory that is slow or hangs. The file system is mounted on
// DIRECTORY in a mount namespace of this process, and ends with the command. Usage: file_system DIRECTORY MICROSECONDS COMMAND...:
// each answer is delayed by MICROSECONDS; with -1, only FUSE_INIT is answered.
#include "truth.h"
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>

enum { DEADLINE_SECONDS = 60, FILES = 64, MAX_BYTES = 4096, ROOT = 1 };

// The index is the node ID; 0 means no node. Directories have no list of entries: each file stores its parent.
static struct file {
    uint64_t parent;
    char name[64];
    uint32_t mode;
    uint64_t size;
    char content[MAX_BYTES];
} files[FILES];

static int device;

static void answer(const struct fuse_in_header *request, int error, const void *content, size_t length)
{
    char buffer[65536 + 4096];
    struct fuse_out_header header = {(uint32_t)(sizeof header + length), -error, request->unique};
    memcpy(buffer, &header, sizeof header);
    if (length != 0)
        memcpy(buffer + sizeof header, content, length);
    // ENOENT: the process that made the request has been killed in the meantime.
    if (write(device, buffer, sizeof header + length) == -1 && errno != ENOENT)
        fail("answer");
}

static struct fuse_attr attributes(uint64_t node)
{
    return (struct fuse_attr){.ino = node, .mode = files[node].mode, .size = files[node].size, .nlink = 1, .blksize = 4096};
}

static struct fuse_entry_out entry(uint64_t node)
{
    return (struct fuse_entry_out){.nodeid = node, .attr = attributes(node)};
}

static uint64_t find(uint64_t parent, const char *name)
{
    for (uint64_t node = ROOT + 1; node < FILES; node++)
        if (files[node].parent == parent && strcmp(files[node].name, name) == 0)
            return node;
    return 0;
}

static uint64_t make(uint64_t parent, const char *name, uint32_t mode)
{
    for (uint64_t node = ROOT + 1; node < FILES; node++)
        if (files[node].mode == 0) {
            files[node] = (struct file){.parent = parent, .mode = mode};
            snprintf(files[node].name, sizeof files[node].name, "%s", name);
            return node;
        }
    fail("no room for files");
}

static void reply_init(const struct fuse_in_header *request)
{
    struct fuse_init_out reply = {
        .major = FUSE_KERNEL_VERSION, .minor = 31, .max_readahead = 4096, .max_write = 4096, .max_background = 8};
    answer(request, 0, &reply, sizeof reply);
}

static void reply_entry(const struct fuse_in_header *request, uint64_t node)
{
    struct fuse_entry_out found = entry(node);
    answer(request, node == 0 ? ENOENT : 0, &found, node == 0 ? 0 : sizeof found);
}

static void reply_attributes(const struct fuse_in_header *request)
{
    struct fuse_attr_out reply = {.attr = attributes(request->nodeid)};
    answer(request, 0, &reply, sizeof reply);
}

static void create(const struct fuse_in_header *request, const void *argument)
{
    const struct fuse_create_in *wanted = argument;
    struct {
        struct fuse_entry_out entry;
        struct fuse_open_out open;
    } reply = {.entry = entry(make(request->nodeid, (const char *)(wanted + 1), wanted->mode))};
    answer(request, 0, &reply, sizeof reply);
}

static void read_file(const struct fuse_in_header *request, const struct fuse_read_in *wanted)
{
    const struct file *file = &files[request->nodeid];
    uint64_t left = wanted->offset < file->size ? file->size - wanted->offset : 0;
    answer(request, 0, file->content + wanted->offset, left < wanted->size ? left : wanted->size);
}

static void write_file(const struct fuse_in_header *request, const struct fuse_write_in *wanted)
{
    struct file *file = &files[request->nodeid];
    struct fuse_write_out written = {.size = wanted->size};
    if (wanted->offset + wanted->size > MAX_BYTES)
        return answer(request, ENOSPC, NULL, 0);
    memcpy(file->content + wanted->offset, wanted + 1, wanted->size);
    if (file->size < wanted->offset + wanted->size)
        file->size = wanted->offset + wanted->size;
    answer(request, 0, &written, sizeof written);
}

static void remove_file(const struct fuse_in_header *request, const char *name)
{
    uint64_t node = find(request->nodeid, name);
    int error = node == 0 ? ENOENT : 0;
    for (uint64_t child = ROOT + 1; node != 0 && child < FILES; child++)
        if (files[child].mode != 0 && files[child].parent == node)
            error = ENOTEMPTY;
    if (error == 0)
        files[node] = (struct file){0};
    answer(request, error, NULL, 0);
}

static void serve(const struct fuse_in_header *request, const void *argument)
{
    struct fuse_open_out opened = {0};
    switch (request->opcode) {
    case FUSE_INIT:
        return reply_init(request);
    case FUSE_LOOKUP:
        return reply_entry(request, find(request->nodeid, argument));
    case FUSE_MKDIR: {
        const struct fuse_mkdir_in *wanted = argument;
        return reply_entry(request, make(request->nodeid, (const char *)(wanted + 1), wanted->mode | S_IFDIR));
    }
    case FUSE_GETATTR:
    case FUSE_SETATTR:
        return reply_attributes(request);
    case FUSE_CREATE:
        return create(request, argument);
    case FUSE_OPEN:
    case FUSE_OPENDIR:
        return answer(request, 0, &opened, sizeof opened);
    case FUSE_READ:
        return read_file(request, argument);
    case FUSE_WRITE:
        return write_file(request, argument);
    case FUSE_UNLINK:
    case FUSE_RMDIR:
        return remove_file(request, argument);
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
    case FUSE_FLUSH:
        return answer(request, 0, NULL, 0);
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
        return;
    default:
        return answer(request, ENOSYS, NULL, 0);
    }
}

// No process hangs for long, whatever ends this process: all requests fail when the device is closed.
static _Noreturn void serve_requests(long microseconds)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(DEADLINE_SECONDS);
    files[ROOT].mode = S_IFDIR | 0777;
    for (;;) {
        static char buffer[1 << 16] __attribute__((aligned(8)));
        ssize_t length = read(device, buffer, sizeof buffer);
        // ENOENT: the process was killed before its request was read, and the kernel withdrew the request.
        if (length == -1 && (errno == ENOENT || errno == EINTR))
            continue;
        if (length == -1)
            fail("read of /dev/fuse");
        const struct fuse_in_header *request = (const void *)buffer;
        buffer[length] = 0;
        if (request->opcode != FUSE_INIT && microseconds < 0)
            continue;
        if (request->opcode != FUSE_INIT && microseconds > 0) {
            struct timespec span = {.tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000};
            nanosleep(&span, NULL);
        }
        serve(request, request + 1);
    }
}

int main(int count, char **arguments)
{
    if (count < 4) {
        dprintf(STDERR_FILENO, "usage: file_system DIRECTORY MICROSECONDS COMMAND...\n");
        return 2;
    }
    device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (device == -1)
        cannot_run_here("/dev/fuse");
    if (unshare(CLONE_NEWNS) == -1 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1)
        cannot_run_here("a mount namespace");
    char options[128];
    snprintf(options, sizeof options, "fd=%d,rootmode=40777,user_id=0,group_id=0,allow_other", device);
    if (mount("spawnscope-test", arguments[1], "fuse", 0, options) == -1)
        cannot_run_here("mount(fuse)");
    pid_t server = fork();
    if (server == -1)
        fail("fork");
    if (server == 0)
        serve_requests(atol(arguments[2]));
    close(device);
    pid_t command = fork();
    if (command == -1)
        fail("fork");
    if (command == 0) {
        execvp(arguments[3], arguments + 3);
        fail(arguments[3]);
    }
    int status;
    if (waitpid(command, &status, 0) != command)
        fail("waitpid");
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
