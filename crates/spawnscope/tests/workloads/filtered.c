// Runs a command under two seccomp filters, which allow everything by default. With -DREFUSED=SYS_..., that call fails with
// ENOSYS, as on a kernel that lacks it, or with the error of -DERROR=E... With -DLIKE_DOCKER, they have the rules of Docker's default
// profile, for a container without capabilities, on the calls that recorders need: bpf and perf_event_open fail with EPERM, and clone3
// fails as on a kernel that lacks it. Usage: filtered COMMAND...
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef ERROR
#define ERROR ENOSYS
#endif

int main(int count, char **arguments)
{
    struct sock_filter filter[] = {
#ifdef REFUSED
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, REFUSED, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ERROR),
#endif
#ifdef LIKE_DOCKER
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
#endif
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    if (count < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
        return 2;
    for (int number = 0; number < 2; number++)
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == -1) {
            perror("seccomp");
            return 2;
        }
    execv(arguments[1], arguments + 1);
    perror(arguments[1]);
    return 2;
}
