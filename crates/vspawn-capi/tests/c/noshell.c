/* Tests popen_noshell.h: its functions have exactly the types and the behaviour of the original; compat mode accepts and refuses the
 * right commands. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

#include "check.h"
#include "popen_noshell.h"

/* Variables with the types of the original header. The assignments compile without a warning only if the types are the same. */
static FILE *(*open_stream)(const char *, const char *const *, const char *, struct popen_noshell_pass_to_pclose *, int) =
	popen_noshell;
static FILE *(*open_command)(const char *, const char *, struct popen_noshell_pass_to_pclose *) = popen_noshell_compat;
static int (*close_stream)(struct popen_noshell_pass_to_pclose *) = pclose_noshell;
static void (*set_mode)(int) = popen_noshell_set_fork_mode;

_Static_assert(offsetof(struct popen_noshell_pass_to_pclose, fp) == 0, "fp");
_Static_assert(offsetof(struct popen_noshell_pass_to_pclose, pid) == 8, "pid");
_Static_assert(offsetof(struct popen_noshell_pass_to_pclose, free_clone_mem) == 12, "free_clone_mem");
_Static_assert(offsetof(struct popen_noshell_pass_to_pclose, stack) == 16, "stack");
_Static_assert(offsetof(struct popen_noshell_pass_to_pclose, func_args) == 24, "func_args");
_Static_assert(sizeof(struct popen_noshell_pass_to_pclose) == 32, "size");

static void check_reading(const char *script, int stderr_mode, const char *expected)
{
	const char *argv[] = { "sh", "-c", script, NULL };
	struct popen_noshell_pass_to_pclose arg;
	char text[128] = "";
	memset(&arg, 0x55, sizeof arg);
	FILE *stream = open_stream("sh", argv, "r", &arg, stderr_mode);
	CHECK(stream && arg.fp == stream && arg.pid > 1 && arg.free_clone_mem == 0);
	text[fread(text, 1, sizeof text - 1, stream)] = '\0';
	if (strcmp(text, expected) != 0)
		fprintf(stderr, "%s printed %s, not %s\n", script, text, expected);
	CHECK(strcmp(text, expected) == 0);
	CHECK(close_stream(&arg) == 0);
	FAILS(close_stream(&arg), -1, EINVAL);
}

static void streams(void)
{
	for (int mode = POPEN_NOSHELL_MODE_CLONE; mode <= POPEN_NOSHELL_MODE_POSIX_SPAWN; mode++) {
		set_mode(mode);
		CHECK(popen_noshell_get_fork_mode() == mode);
		check_reading("echo out; cat", 0, "out\n");
		check_reading("echo out; echo err >&2", 1, "out\n");
		check_reading("echo out; echo err >&2", 2, "out\nerr\n");
		check_reading("readlink /proc/$$/fd/0", 0, "/dev/null\n");
	}
	set_mode(POPEN_NOSHELL_MODE_CLONE);
	const char *argv[] = { "sh", "-c", "read word; test $word = given && test $(readlink /proc/$$/fd/1) = /dev/null || exit 4",
			       NULL };
	struct popen_noshell_pass_to_pclose arg;
	CHECK(popen_noshell("sh", argv, "w", &arg, 0));
	CHECK(fputs("given\n", arg.fp) >= 0 && pclose_noshell(&arg) == 0);
	const char *fails[] = { "sh", "-c", "exit 3", NULL };
	CHECK(popen_noshell("sh", fails, "r", &arg, 0));
	int status = pclose_noshell(&arg);
	CHECK(EXITED(status, 3));
}

static void failures(void)
{
	const char *argv[] = { "no-such-program-anywhere", NULL };
	struct popen_noshell_pass_to_pclose arg, foreign = { .fp = stdin, .pid = getppid() };
	FAILS(popen_noshell(argv[0], argv, "r", &arg, 0), NULL, ENOENT);
	CHECK(arg.fp == NULL);
	FAILS(popen_noshell("true", argv, "rw", &arg, 0), NULL, EINVAL);
	FAILS(popen_noshell("true", argv, "r", &arg, 3), NULL, EINVAL);
	FAILS(popen_noshell("true", argv, "r", &arg, -1), NULL, EINVAL);
	FAILS(pclose_noshell(&foreign), -1, EINVAL);
	FAILS(popen_noshell_compat("no-such-program-anywhere", "r", &arg), NULL, ENOENT);
	/* A struct whose pid is not the stream's closes nothing. */
	const char *silent[] = { "true", NULL };
	CHECK(popen_noshell("true", silent, "r", &arg, 0));
	foreign = (struct popen_noshell_pass_to_pclose){ .fp = arg.fp, .pid = arg.pid + 1 };
	FAILS(pclose_noshell(&foreign), -1, EINVAL);
	CHECK(pclose_noshell(&arg) == 0);
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

/* Reads a stream to its end. */
static void read_all(FILE *stream, char *text, size_t size)
{
	CHECK(stream);
	text[fread(text, 1, size - 1, stream)] = '\0';
}

/* Accepted commands have the same meaning as in this machine's shell. */
static void compat_behaves_like_the_shell(void)
{
	static const char *const commands[] = {
		"env printf '<%s>' a  b",
		"env printf '<%s>' 'a  b'\"c d\"e ''  \"\" x",
		"/usr/bin/env printf '<%s>' '$HOME;|&<>(){}*?[]~#!`' \"'*?[a]~#;|&<>(){}\"",
		"env printf '<%s>' a=b -x +y ../z @a 1:2 %d c,d",
		"env printf '<%s>' 'größe' \"ß\"",
		"'env' \"printf\" '<%s>' x",
		"env printf '<%s>' \\x 'a\\tb' \"\\x\" 'a\nb' \"x!\" ^x =x",
		" \tenv  printf\t'<%s>' x ",
		"seq 3",
	};
	char with[256], without[256];
	struct popen_noshell_pass_to_pclose arg;
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		FILE *shell = popen(commands[i], "r");
		read_all(shell, with, sizeof with);
		CHECK(pclose(shell) == 0);
		FILE *ours = open_command(commands[i], "r", &arg);
		if (!ours)
			fprintf(stderr, "refused: %s\n", commands[i]);
		read_all(ours, without, sizeof without);
		CHECK(pclose_noshell(&arg) == 0);
		CHECK(strlen(with) > 2 && strcmp(with, without) == 0);
	}
}

static void compat_refuses(void)
{
	static const char *const commands[] = {
		"", " ", "\t", "''", "echo x", "printf x", "true", "test x", "kill -l", "pwd", "cd /", "exec ls", "exit 0",
		"if", "! ls", "{ ls; }", "time ls", "time", "[ x ]", "[[ x ]]", ":", ". x", "command ls", "eval ls",
		"-c ls", "+x ls", "A=b ls", "A=b", "'A=b' ls", "%1", "ls\n", "ls\nls", "ls *", "ls ?", "ls [a]",
		"ls ~", "~/x", "ls {a,b}", "ls #x", "#x", "ls $x", "ls \"$x\"",
		"ls `x`", "ls \"`x`\"", "ls; ls", "ls & ls", "ls | cat", "ls > x", "ls < x", "(ls)", "ls 2>&1", "ls && ls",
		"ls 'x", "ls \"x", "ls !x", "ls gr\xc3\xb6\xc3\x9f" "e", "ls '\xff'", "ls\r", "ls \x01", "ls 'a\x01'", "alias",
		"source x", "function x", "let x", "type ls", "ulimit -n", "history", "r", "integer x",
	};
	struct popen_noshell_pass_to_pclose arg;
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		errno = 0;
		FILE *stream = popen_noshell_compat(commands[i], "r", &arg);
		if (stream || errno != EINVAL)
			fprintf(stderr, "not refused: %s\n", commands[i]);
		CHECK(stream == NULL && errno == EINVAL && arg.fp == NULL);
	}
	static char long_command[128 * 1024 + 1] = "ls ";
	memset(long_command + 3, 'x', sizeof long_command - 4);
	FAILS(popen_noshell_compat(long_command, "r", &arg), NULL, EINVAL);
}

/* With one of these variables in the environment, a shell may interpret the same words differently. */
static void compat_refuses_an_environment_that_changes_a_shell(void)
{
	static const char *const variables[] = { "BASH_FUNC_seq%%", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS" };
	struct popen_noshell_pass_to_pclose arg;
	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
		CHECK(setenv(variables[i], "() { echo other; }", 1) == 0);
		FAILS(popen_noshell_compat("seq 3", "r", &arg), NULL, EINVAL);
		CHECK(unsetenv(variables[i]) == 0);
	}
	char *path = strdup(getenv("PATH"));
	CHECK(setenv("PATH", "~/bin:/bin:/usr/bin", 1) == 0);
	FAILS(popen_noshell_compat("seq 3", "r", &arg), NULL, EINVAL);
	CHECK(unsetenv("PATH") == 0);
	FAILS(popen_noshell_compat("seq 3", "r", &arg), NULL, EINVAL);
	CHECK(popen_noshell_compat("/usr/bin/seq 3", "r", &arg) && fgetc(arg.fp) == '1');
	while (fgetc(arg.fp) != EOF)
		;
	CHECK(pclose_noshell(&arg) == 0);
	CHECK(setenv("PATH", path, 1) == 0);
	free(path);
}

int main(void)
{
	int before = open_descriptors();
	reset_signals();
	streams();
	failures();
	compat_behaves_like_the_shell();
	compat_refuses();
	compat_refuses_an_environment_that_changes_a_shell();
	CHECK(open_descriptors() == before);
	return 0;
}
