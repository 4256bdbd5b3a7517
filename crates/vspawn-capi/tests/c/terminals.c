/* Tests pseudo-terminals: a child with a controlling terminal, the terminal's size, and what is typed and printed on it. */
#define _GNU_SOURCE
#include <vspawn.h>

#include <sys/ioctl.h>
#include <unistd.h>

#include "check.h"

/* Reads as many bytes as expected, and checks them. */
static void check_next(int pty, const char *expected)
{
	char printed[100];
	size_t length = 0;
	while (length < strlen(expected)) {
		ssize_t bytes = read(pty, printed + length, strlen(expected) - length);
		CHECK(bytes > 0);
		length += (size_t)bytes;
	}
	CHECK(memcmp(printed, expected, length) == 0);
}

/* Starts a shell on the terminal. */
static struct vspawn_child *shell(int pty, const char *text)
{
	const char *argv[] = {"-c", text, NULL};
	struct vspawn_command *command = vspawn_command_new("/bin/sh");
	struct vspawn_child *child = NULL;
	CHECK(command && vspawn_command_args(command, argv) == 0);
	CHECK(vspawn_pty_spawn(pty, command, &child) == 0 && child);
	vspawn_command_free(command);
	return child;
}

static void check_exit(struct vspawn_child *child, int code)
{
	int status;
	CHECK(vspawn_child_wait(child, &status) == 0);
	CHECK(EXITED(status, code));
	vspawn_child_free(child);
}

/* Checks all that the children print until no process has the terminal open, when read fails with EIO. */
static void check_rest(int pty, const char *expected)
{
	char printed[500];
	size_t length = 0;
	ssize_t bytes;
	while ((bytes = read(pty, printed + length, sizeof printed - 1 - length)) > 0)
		length += (size_t)bytes;
	CHECK(bytes == -1 && errno == EIO);
	printed[length] = 0;
	if (strcmp(printed, expected) != 0) {
		fprintf(stderr, "printed %s", printed);
		exit(1);
	}
}

static void a_session_with_a_terminal(int pty)
{
	/* The shell leads a session and the terminal's foreground group: fields 5, 6 and 8 of its stat are its pid. */
	struct vspawn_child *child = shell(pty, "read -r pid name state parent group session tty foreground rest </proc/$$/stat;"
						"test $group = $$ && test $session = $$ && test $foreground = $$ || exit 1;"
						"test -t 0 && test -t 1 && test -t 2 && : </dev/tty || exit 2; stty size");
	check_rest(pty, "24 80\r\n");
	check_exit(child, 0);
}

static void a_size_that_changes(int pty)
{
	struct winsize size;
	CHECK(vspawn_pty_resize(pty, 50, 132) == 0);
	CHECK(ioctl(pty, TIOCGWINSZ, &size) == 0 && size.ws_row == 50 && size.ws_col == 132);
	struct vspawn_child *child = shell(pty, "trap 'stty size; exit 3' WINCH; echo ready; while :; do sleep 0.01; done");
	check_next(pty, "ready\r\n");
	CHECK(vspawn_pty_resize(pty, 24, 80) == 0);
	check_rest(pty, "24 80\r\n");
	check_exit(child, 3);
}

static void typed_text(int pty)
{
	struct vspawn_child *child = shell(pty, "stty -echo; echo ready; read -r line; echo \"<$line>\"; read -r line; exit 4");
	check_next(pty, "ready\r\n");
	CHECK(write(pty, "typed\n", 6) == 6);
	check_next(pty, "<typed>\r\n");
	CHECK(write(pty, "\003", 1) == 1); /* Ctrl-C ends the second read, and discards what is in the queues */
	int status;
	CHECK(vspawn_child_wait(child, &status) == 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
	vspawn_child_free(child);
	check_rest(pty, "");
}

static void invalid_calls(int pty)
{
	struct vspawn_command *command = vspawn_command_new("/nowhere");
	struct vspawn_child *child = (struct vspawn_child *)&pty;
	CHECK(vspawn_pty_spawn(pty, command, &child) == ENOENT && child == NULL);
	CHECK(vspawn_pty_spawn(pty, NULL, &child) == EINVAL && vspawn_pty_spawn(pty, command, NULL) == EINVAL);
	CHECK(vspawn_pty_spawn(-1, command, &child) == EINVAL && child == NULL);
	CHECK(vspawn_pty_resize(-1, 1, 1) == EINVAL);
	int pipes[2];
	CHECK(pipe(pipes) == 0);
	CHECK(vspawn_pty_spawn(pipes[0], command, &child) == ENOTTY && vspawn_pty_resize(pipes[0], 1, 1) == ENOTTY);
	close(pipes[0]);
	close(pipes[1]);
	vspawn_command_free(command);
}

int main(void)
{
	reset_signals();
	int before = open_descriptors();
	int pty = vspawn_pty_open(24, 80);
	CHECK(pty >= 0 && fcntl(pty, F_GETFD) == FD_CLOEXEC);
	a_session_with_a_terminal(pty);
	a_size_that_changes(pty);
	typed_text(pty);
	invalid_calls(pty);
	CHECK(close(pty) == 0);
	CHECK(open_descriptors() == before);
	return 0;
}
