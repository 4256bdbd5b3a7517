/* Prints everything that a launched program can see of how it was launched. PROBE_STATUS and PROBE_SIGNAL determine how it ends; with
   LAUNCH_GROUP, the signal is sent to the whole group. Variables are sorted, unless PROBE_UNSORTED is set. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

static void print_status_lines(void) {
    char line[256];
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "SigBlk", 6) || !strncmp(line, "SigIgn", 6))
            fputs(line, stdout);
    if (status)
        fclose(status);
}

static void print_descriptors(void) {
    for (int fd = 0; fd < 64; fd++) {
        struct stat status;
        if (fstat(fd, &status) == 0)
            printf("fd %d type %o flags %o\n", fd, status.st_mode & S_IFMT, fcntl(fd, F_GETFL));
    }
}

static void print_input(void) {
    struct stat status;
    char line[64];
    if (fstat(0, &status) == 0 && S_ISREG(status.st_mode))
        printf("input [%.*s]\n", (int)read(0, line, sizeof line), line);
}

static int compare(const void *a, const void *b) { return strcmp(*(char **)a, *(char **)b); }

int main(int argc, char **argv) {
    char directory[4096];
    size_t variables = 0;
    for (int i = 0; i < argc; i++)
        printf("argument [%s]\n", argv[i]);
    print_descriptors();
    while (environ[variables])
        variables++;
    if (!getenv("PROBE_UNSORTED"))
        qsort(environ, variables, sizeof *environ, compare);
    for (char **variable = environ; *variable; variable++)
        if (strncmp(*variable, "SPAWNSCOPE_ACCEL=", 17))
            printf("variable [%s]\n", *variable);
    printf("program [%s]\n", (const char *)getauxval(AT_EXECFN));
    printf("directory [%s]\n", getcwd(directory, sizeof directory) ? directory : "none");
    print_status_lines();
    print_input();
    fflush(stdout);
    fputs("to standard error\n", stderr);
    const char *number = getenv("PROBE_SIGNAL");
    if (number) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        kill(getenv("LAUNCH_GROUP") ? 0 : getpid(), atoi(number));
    }
    number = getenv("PROBE_STATUS");
    return number ? atoi(number) : 0;
}
