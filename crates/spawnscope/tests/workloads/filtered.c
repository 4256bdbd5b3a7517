// Runs a command under two seccomp filters that allow everything. Usage: filtered COMMAND...
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {.len = 1, .filter = allow};
    if (count < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
        return 2;
    for (int filter = 0; filter < 2; filter++)
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == -1) {
            perror("seccomp");
            return 2;
        }
    execv(arguments[1], arguments + 1);
    perror(arguments[1]);
    return 2;
}
