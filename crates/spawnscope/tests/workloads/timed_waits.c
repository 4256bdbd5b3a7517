// Waits in a call that has a time limit. `timed_waits CALL out COUNT` waits COUNT times until the limit of 10 ms, and prints
// as waited_ns the duration of all waits. With `timed_waits CALL woken COUNT`, a child ends each wait after 30 ms; prints each `child`.
#include "truth.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>

enum { TIME_OUT_MS = 10, WAKE_AFTER_MS = 30, LONG_MS = 20000 };

static int pipe_ends[2], sockets[2], semaphores = -1, queue, timer, events;
static aio_context_t context;
static sigset_t usr1;
static struct {
    volatile int word;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
} *shared;

static struct timespec span(int ms)
{
    return (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
}

static struct timespec instant(int ms)
{
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_nsec += ms % 1000 * 1000000L;
    at.tv_sec += ms / 1000 + at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    return at;
}

static void share(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t mutex;
    pthread_condattr_t condition;
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->mutex, &mutex);
    pthread_condattr_init(&condition);
    pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&shared->changed, &condition);
}

// Each of these functions waits for an event with a time limit. Without an event, it returns 0 or -1.
static int by_poll(int ms) { return poll(&(struct pollfd){.fd = pipe_ends[0], .events = POLLIN}, 1, ms); }

static int by_ppoll(int ms)
{
    struct timespec limit = span(ms);
    return ppoll(&(struct pollfd){.fd = pipe_ends[0], .events = POLLIN}, 1, &limit, NULL);
}

static int by_select(int ms)
{
    fd_set readable;
    struct timeval limit = {.tv_usec = ms % 1000 * 1000, .tv_sec = ms / 1000};
    FD_ZERO(&readable);
    FD_SET(pipe_ends[0], &readable);
    return select(pipe_ends[0] + 1, &readable, NULL, NULL, &limit);
}

static int by_pselect(int ms)
{
    fd_set readable;
    struct timespec limit = span(ms);
    FD_ZERO(&readable);
    FD_SET(pipe_ends[0], &readable);
    return pselect(pipe_ends[0] + 1, &readable, NULL, NULL, &limit, NULL);
}

static int by_epoll(int ms) { return epoll_wait(events, &(struct epoll_event){0}, 1, ms); }
static int by_epoll_pwait(int ms) { return epoll_pwait(events, &(struct epoll_event){0}, 1, ms, &usr1); }

static int by_futex(int ms)
{
    struct timespec limit = span(ms);
    syscall(SYS_futex, &shared->word, FUTEX_WAIT, 0, &limit, NULL, 0);
    return shared->word;
}

static int by_condition(int ms)
{
    struct timespec limit = instant(ms);
    pthread_mutex_lock(&shared->mutex);
    while (!shared->word && pthread_cond_timedwait(&shared->changed, &shared->mutex, &limit) == 0)
        ;
    pthread_mutex_unlock(&shared->mutex);
    return shared->word;
}

static int by_semaphore(int ms)
{
    struct timespec limit = span(ms);
    return semtimedop(semaphores, &(struct sembuf){.sem_op = -1}, 1, &limit) == 0;
}

static int by_signal(int ms)
{
    struct timespec limit = span(ms);
    return sigtimedwait(&usr1, NULL, &limit);
}

static int by_queue(int ms)
{
    char message[8];
    struct timespec limit = instant(ms);
    return mq_timedreceive(queue, message, sizeof message, NULL, &limit);
}

static int by_aio(int ms)
{
    struct io_event done;
    struct timespec limit = span(ms);
    return (int)syscall(SYS_io_getevents, context, 1, 1, &done, &limit);
}

static int by_socket(int ms)
{
    char byte;
    struct timeval limit = {.tv_usec = ms % 1000 * 1000, .tv_sec = ms / 1000};
    setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return (int)recv(sockets[0], &byte, 1, 0);
}

static int by_sleep(int ms)
{
    struct timespec limit = span(ms);
    return nanosleep(&limit, NULL);
}

static int by_timer(int ms)
{
    uint64_t times;
    struct itimerspec once = {.it_value = span(ms)};
    timerfd_settime(timer, 0, &once, NULL);
    return read(timer, &times, sizeof times) == sizeof times ? 0 : 1;
}

static int by_alarm(int ms)
{
    sigset_t none;
    struct itimerval once = {.it_value = {.tv_usec = ms * 1000}};
    sigemptyset(&none);
    setitimer(ITIMER_REAL, &once, NULL);
    return sigsuspend(&none);
}

// These functions end a wait of the parent.
static void write_byte(void) { (void)!write(pipe_ends[1], "x", 1); }
static void send_byte(void) { (void)!send(sockets[1], "x", 1, 0); }
static void post(void) { semop(semaphores, &(struct sembuf){.sem_op = 1}, 1); }
static void send_message(void) { mq_send(queue, "x", 1, 0); }
static void send_signal(void) { kill(getppid(), SIGUSR1); }

static void wake_futex(void)
{
    shared->word = 1;
    syscall(SYS_futex, &shared->word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void signal_condition(void)
{
    pthread_mutex_lock(&shared->mutex);
    shared->word = 1;
    pthread_mutex_unlock(&shared->mutex);
    pthread_cond_signal(&shared->changed);
}

static void read_byte(void)
{
    char byte;
    (void)!read(pipe_ends[0], &byte, 1);
}

static void clear_word(void) { shared->word = 0; }
static void ignore_signal(int signal) { (void)signal; }

// These functions create the objects that are waited for.
static void prepare_pipe(void)
{
    if (pipe(pipe_ends) == -1)
        fail("pipe");
}

static void prepare_epoll(void)
{
    prepare_pipe();
    struct epoll_event readable = {.events = EPOLLIN};
    if ((events = epoll_create1(0)) == -1 || epoll_ctl(events, EPOLL_CTL_ADD, pipe_ends[0], &readable) == -1)
        fail("epoll");
}

static void prepare_semaphore(void)
{
    semaphores = semget(IPC_PRIVATE, 1, 0600);
    if (semaphores == -1)
        cannot_run_here("semget");
}

static void prepare_queue(void)
{
    char name[64];
    struct mq_attr shape = {.mq_maxmsg = 1, .mq_msgsize = 8};
    snprintf(name, sizeof name, "/spawnscope-test-%d", getpid());
    if ((queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &shape)) == -1)
        cannot_run_here("mq_open");
    mq_unlink(name);
}

static void prepare_aio(void)
{
    if (syscall(SYS_io_setup, 1, &context) == -1)
        cannot_run_here("io_setup");
}

static void prepare_timer(void) { timer = timerfd_create(CLOCK_MONOTONIC, 0); }

static void prepare_alarm(void)
{
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarm, NULL);
    signal(SIGALRM, ignore_signal);
}

static void prepare_unix(void)
{
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets) == -1)
        fail("socketpair");
}

static void prepare_internet(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    sockets[0] = socket(AF_INET, SOCK_DGRAM, 0);
    sockets[1] = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(sockets[0], (void *)&at, bytes) == -1 || getsockname(sockets[0], (void *)&at, &bytes) == -1 ||
        connect(sockets[1], (void *)&at, bytes) == -1)
        cannot_run_here("loopback sockets");
}

static const struct {
    const char *call;
    void (*prepare)(void);
    int (*wait)(int ms);
    // NULL if no other process can end the wait.
    void (*wake)(void);
    void (*clear)(void);
} CALLS[] = {
    {"poll", prepare_pipe, by_poll, write_byte, read_byte},
    {"ppoll", prepare_pipe, by_ppoll, write_byte, read_byte},
    {"select", prepare_pipe, by_select, write_byte, read_byte},
    {"pselect", prepare_pipe, by_pselect, write_byte, read_byte},
    {"epoll", prepare_epoll, by_epoll, write_byte, read_byte},
    {"epoll_pwait", prepare_epoll, by_epoll_pwait, write_byte, read_byte},
    {"futex", share, by_futex, wake_futex, clear_word},
    {"condition", share, by_condition, signal_condition, clear_word},
    {"semtimedop", prepare_semaphore, by_semaphore, post, NULL},
    {"sigtimedwait", NULL, by_signal, send_signal, NULL},
    {"mq_timedreceive", prepare_queue, by_queue, send_message, NULL},
    {"io_getevents", prepare_aio, by_aio, NULL, NULL},
    {"recv_unix", prepare_unix, by_socket, send_byte, NULL},
    {"recv_internet", prepare_internet, by_socket, send_byte, NULL},
    {"nanosleep", NULL, by_sleep, NULL, NULL},
    {"timerfd", prepare_timer, by_timer, NULL, NULL},
    {"alarm", prepare_alarm, by_alarm, NULL, NULL},
};

static void wait_until_timeout(size_t call, int count)
{
    int64_t start = now_ns();
    for (int wait = 0; wait < count; wait++)
        if (CALLS[call].wait(TIME_OUT_MS) > 0)
            fail("the wait ended before its time limit");
    truth("waited_ns", now_ns() - start);
}

static void wait_for_children(size_t call, int count)
{
    for (int wait = 0; wait < count; wait++) {
        pid_t child = fork();
        if (child == 0) {
            sleep_ms(WAKE_AFTER_MS);
            CALLS[call].wake();
            _exit(0);
        }
        if (CALLS[call].wait(LONG_MS) <= 0)
            fail("no child ended the wait");
        if (CALLS[call].clear)
            CALLS[call].clear();
        reap(child);
        truth("child", child);
    }
}

int main(int count, char **arguments)
{
    if (count != 4)
        fail("usage: timed_waits CALL out|woken COUNT");
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    for (size_t call = 0; call < sizeof CALLS / sizeof *CALLS; call++)
        if (strcmp(CALLS[call].call, arguments[1]) == 0) {
            if (CALLS[call].prepare)
                CALLS[call].prepare();
            (strcmp(arguments[2], "out") == 0 ? wait_until_timeout : wait_for_children)(call, atoi(arguments[3]));
            if (semaphores != -1)
                semctl(semaphores, 0, IPC_RMID);
            return 0;
        }
    fail("no such call");
}
