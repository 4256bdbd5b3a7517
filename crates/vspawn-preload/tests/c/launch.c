/* launch FUNCTION SHELL: for each text on standard input (each ended by NUL), launches `SHELL -c TEXT` by FUNCTION and prints its status.
   Environment variables: LAUNCH_IGNORE, LAUNCH_BLOCK: a signal that is first ignored or blocked; LAUNCH_UMASK: the mask of new files;
   LAUNCH_CLOSE: a descriptor that the launched process does not get; LAUNCH_GROUP: a signal that is handled, in a group of its own. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void exec_shell(const char *function, const char *shell, char *text) {
    const char *slash = strrchr(shell, '/');
    char *name = (char *)(slash ? slash + 1 : shell);
    char *argv[] = {name, "-c", text, NULL};
    if (!strcmp(function, "execve")) execve(shell, argv, environ);
    if (!strcmp(function, "execv")) execv(shell, argv);
    if (!strcmp(function, "execvp")) execvp(name, argv);
    if (!strcmp(function, "execvpe")) execvpe(name, argv, environ);
    if (!strcmp(function, "execl")) execl(shell, name, "-c", text, (char *)NULL);
    if (!strcmp(function, "execlp")) execlp(name, name, "-c", text, (char *)NULL);
    if (!strcmp(function, "execle")) execle(shell, name, "-c", text, (char *)NULL, environ);
    if (!strcmp(function, "execl-more"))
        execl(shell, name, "-c", text, "name", "1", "2", "3", "4", "5", "6", "7", (char *)NULL);
    printf("%s failed: %s\n", function, strerror(errno));
    fflush(stdout);
    _exit(99);
}

static int launch_by_spawn(const char *function, const char *shell, char *text) {
    const char *slash = strrchr(shell, '/');
    char *name = (char *)(slash ? slash + 1 : shell);
    char *argv[] = {name, "-c", text, NULL};
    pid_t pid;
    int status = -1, error;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 7, "/dev/null", O_WRONLY, 0);
    if (!strcmp(function, "spawn-chdir"))
        posix_spawn_file_actions_addchdir_np(&actions, "/");
    if (!strcmp(function, "posix_spawnp"))
        error = posix_spawnp(&pid, name, &actions, NULL, argv, environ);
    else
        error = posix_spawn(&pid, shell, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error) {
        printf("%s failed: %s\n", function, strerror(error));
        return -1;
    }
    waitpid(pid, &status, 0);
    return status;
}

static int launch_by_popen(const char *function, const char *text) {
    char buffer[4096];
    int closes = !strcmp(function, "popen-fclose");
    if (!strcmp(function, "popen-w")) {
        FILE *stream = popen(text, "w");
        return stream ? pclose(stream) : -1;
    }
    FILE *other = popen("cat", "w"), *stream = popen(text, "r");
    if (!stream || !other)
        return -1;
    size_t count;
    while ((count = fread(buffer, 1, sizeof buffer, stream)) > 0)
        fwrite(buffer, 1, count, stdout);
    int status = closes ? fclose(stream) : pclose(stream);
    pclose(other);
    return status;
}

static int launch(const char *function, const char *shell, char *text) {
    int status = -1;
    if (!strcmp(function, "system"))
        return system(text);
    if (!strncmp(function, "popen", 5))
        return launch_by_popen(function, text);
    if (!strncmp(function, "posix_spawn", 11) || !strncmp(function, "spawn", 5))
        return launch_by_spawn(function, shell, text);
    pid_t pid;
    if (!strcmp(function, "vfork")) {
        char *argv[] = {"sh", "-c", text, NULL};
        pid = vfork();
        if (pid == 0) {
            execve(shell, argv, environ);
            _exit(99);
        }
    } else {
        pid = fork();
        if (pid == 0)
            exec_shell(function, shell, text);
    }
    waitpid(pid, &status, 0);
    return status;
}

static void handle(int signal) { (void)signal; }

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    if (getenv("LAUNCH_IGNORE"))
        signal(atoi(getenv("LAUNCH_IGNORE")), SIG_IGN);
    if (getenv("LAUNCH_BLOCK")) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, atoi(getenv("LAUNCH_BLOCK")));
        sigprocmask(SIG_BLOCK, &set, NULL);
    }
    if (getenv("LAUNCH_GROUP")) {
        setpgid(0, 0);
        signal(atoi(getenv("LAUNCH_GROUP")), handle);
    }
    if (getenv("LAUNCH_UMASK"))
        umask(strtol(getenv("LAUNCH_UMASK"), NULL, 8));
    if (getenv("LAUNCH_CLOSE"))
        fcntl(atoi(getenv("LAUNCH_CLOSE")), F_SETFD, FD_CLOEXEC);
    static char texts[1 << 22];
    size_t length = 0;
    ssize_t count;
    while ((count = read(0, texts + length, sizeof texts - 1 - length)) > 0)
        length += count;
    int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    if (null > 0)
        close(null);
    for (char *text = texts; text < texts + length; text += strlen(text) + 1) {
        int status = launch(argv[1], argv[2], text);
        printf("status %x\n--\n", status);
        fflush(stdout);
    }
    return 0;
}
