/* Checks in a child that every property of a command handle takes effect, and tests all ways to start a command. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "vspawn.h"

static struct vspawn_command *shell(const char *script)
{
	const char *args[] = { "-c", script, NULL };
	struct vspawn_command *command = vspawn_command_new("sh");
	CHECK(command && vspawn_command_args(command, args) == 0);
	return command;
}

/* Runs a command, checks its output, and frees the command. */
static void check_output(struct vspawn_command *command, const char *expected)
{
	struct vspawn_output *output;
	size_t length;
	CHECK(vspawn_command_output(command, NULL, &output) == 0);
	const char *text = (const char *)vspawn_output_stdout(output, &length);
	if (strcmp(text, expected) != 0)
		fprintf(stderr, "printed %s, not %s; %s\n", text, expected, (const char *)vspawn_output_stderr(output, NULL));
	CHECK(strcmp(text, expected) == 0 && length == strlen(expected));
	CHECK(EXITED(vspawn_output_status(output), 0));
	vspawn_output_free(output);
	vspawn_command_free(command);
}

static void arguments_and_environment(void)
{
	struct vspawn_command *command = shell("echo $0 $1 $A ${HOME-none}");
	CHECK(vspawn_command_arg(command, "zero") == 0);
	CHECK(vspawn_command_arg(command, "one") == 0);
	CHECK(vspawn_command_env(command, "A", "a b") == 0);
	CHECK(vspawn_command_env(command, "HOME", NULL) == 0);
	check_output(command, "zero one a b none\n");

	command = vspawn_command_new("/usr/bin/env");
	CHECK(vspawn_command_env(command, "GONE", "1") == 0 && vspawn_command_env_clear(command) == 0);
	CHECK(vspawn_command_env(command, "ONLY", "this") == 0);
	check_output(command, "ONLY=this\n");

	command = vspawn_command_new("sh");
	CHECK(vspawn_command_arg0(command, "named") == 0);
	CHECK(vspawn_command_arg(command, "-c") == 0 && vspawn_command_arg(command, "echo $0") == 0);
	check_output(command, "named\n");
}

static void directory_and_limits(void)
{
	struct vspawn_command *command = shell("pwd; umask; ulimit -n; nice");
	CHECK(vspawn_command_cwd(command, "/usr") == 0);
	CHECK(vspawn_command_umask(command, 027) == 0);
	CHECK(vspawn_command_resource_limit(command, RLIMIT_NOFILE, 77, 78) == 0);
	CHECK(vspawn_command_nice(command, 3) == 0);
	/* Relative to this process's own niceness, which may already be near the maximum. */
	int niceness = getpriority(PRIO_PROCESS, 0) + 3;
	char expected[64];
	snprintf(expected, sizeof expected, "/usr\n0027\n77\n%d\n", niceness > 19 ? 19 : niceness);
	check_output(command, expected);
}

static void groups_of_processes(void)
{
	/* Fields 1, 5 and 6 of stat: pid, group, session. */
	const char *script = "read pid a b c group session rest < /proc/self/stat;"
			     "read pid a b c group session rest < /proc/$$/stat;"
			     "echo $(($$ == group)) $(($$ == session))";
	struct vspawn_command *command = shell(script);
	CHECK(vspawn_command_process_group(command, 0) == 0);
	check_output(command, "1 0\n");
	command = shell(script);
	CHECK(vspawn_command_new_session(command, 1) == 0);
	check_output(command, "1 1\n");
}

/* Returns a command that prints the last four hexadecimal digits of its blocked and of its ignored signals. sed is a single process, so
 * /proc/self is the child itself. awk is not used, because gawk ignores SIGPIPE. */
static struct vspawn_command *print_masks(void)
{
	const char *const arguments[] = { "-nE", "s/^(Sig(Blk|Ign):).*(....)$/\\1\\3/p", "/proc/self/status" };
	struct vspawn_command *command = vspawn_command_new("sed");
	for (int i = 0; i < 3; i++)
		CHECK(vspawn_command_arg(command, arguments[i]) == 0);
	return command;
}

static void signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	/* Bit 9 (0x200) is SIGUSR1, 12 (0x1000) SIGPIPE. */
	struct vspawn_command *command = print_masks();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	CHECK(vspawn_command_blocked_signals(command, &set) == 0);
	CHECK(vspawn_command_default_signals(command, &set) == 0);
	CHECK(vspawn_command_inherit_sigpipe(command) == 0);
	check_output(command, "SigBlk:0200\nSigIgn:1000\n");
	signal(SIGPIPE, SIG_DFL);
	signal(SIGUSR1, SIG_DFL);

	command = print_masks();
	CHECK(vspawn_command_ignored_signals(command, &set) == 0);
	check_output(command, "SigBlk:0000\nSigIgn:0200\n");
}

static void descriptors(void)
{
	int ends[2], stray = open("/dev/null", O_RDONLY);
	CHECK(pipe2(ends, O_CLOEXEC) == 0 && stray >= 0);
	struct vspawn_command *command = shell("echo to 7 >&7; echo err >&2; " LIST_DESCRIPTORS);
	CHECK(vspawn_command_fd(command, 7, ends[1]) == 0);
	CHECK(vspawn_command_stdio(command, 2, VSPAWN_STDIO_FD, ends[1]) == 0);
	CHECK(vspawn_command_stdio(command, 0, VSPAWN_STDIO_NULL, 0) == 0);
	CHECK(vspawn_command_close_others(command, 1) == 0);
	check_output(command, "0 1 2 7 ");
	char text[32] = "";
	CHECK(read(ends[0], text, sizeof text - 1) == 9 && strcmp(text, "to 7\nerr\n") == 0);
	close(ends[0]), close(ends[1]), close(stray);
}

static void identity(void)
{
	gid_t groups[] = { 4242, 4343 };
	struct vspawn_command *command = shell("id -u; id -g; id -G");
	CHECK(vspawn_command_uid(command, 65534) == 0 && vspawn_command_gid(command, 4141) == 0);
	CHECK(vspawn_command_groups(command, groups, 2) == 0);
	if (geteuid() == 0) {
		check_output(command, "65534\n4141\n4141 4242 4343\n");
		command = vspawn_command_new("/no/such/program");
		CHECK(vspawn_command_chroot(command, "/proc") == 0 && vspawn_command_groups(command, NULL, 0) == 0);
		struct vspawn_child *child;
		CHECK(vspawn_command_spawn(command, &child) == ENOENT && child == NULL);
		struct vspawn_error error = { .size = sizeof error };
		CHECK(vspawn_last_error(&error) == 0 && error.stage == VSPAWN_STAGE_EXEC);
		CHECK(vspawn_command_chroot(command, "/no/such/root") == 0);
		CHECK(vspawn_command_spawn(command, &child) == ENOENT);
		CHECK(vspawn_last_error(&error) == 0 && error.stage == VSPAWN_STAGE_CHROOT);
		CHECK(strstr(error.text, "chroot to /no/such/root"));
		vspawn_command_free(command);
	} else {
		struct vspawn_child *child;
		CHECK(vspawn_command_spawn(command, &child) == EPERM && child == NULL);
		vspawn_command_free(command);
	}
}

static void terminal(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	int slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	CHECK(slave >= 0);
	struct vspawn_command *command = shell(": < /dev/tty && echo has one");
	CHECK(vspawn_command_controlling_terminal(command, slave) == 0);
	check_output(command, "has one\n");
	close(slave), close(master);
}

/* The kernel refuses a directory that is not a cgroup, so the request has reached the kernel. */
static void cgroup_and_parent_death(void)
{
	struct vspawn_child *child;
	int directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct vspawn_command *command = vspawn_command_new("true");
	CHECK(directory >= 0 && vspawn_command_cgroup(command, directory) == 0);
	close(directory);
	CHECK(vspawn_command_spawn(command, &child) == EBADF && child == NULL);
	CHECK(vspawn_command_cgroup(command, 4095) == EBADF && vspawn_command_cgroup(command, -1) == EBADF);
	vspawn_command_free(command);

	int ends[2];
	char byte;
	CHECK(pipe2(ends, O_CLOEXEC) == 0);
	command = vspawn_command_new("sleep");
	CHECK(vspawn_command_arg(command, "600") == 0 && vspawn_command_fd(command, 9, ends[1]) == 0);
	CHECK(vspawn_command_parent_death_signal(command, SIGKILL) == 0);
	pid_t middle = fork();
	CHECK(middle >= 0);
	if (middle == 0) {
		/* The grandchild dies with this process, and with it the last writer of the pipe. */
		_exit(vspawn_command_spawn(command, &child) == 0 ? 0 : 1);
	}
	close(ends[1]);
	int status;
	CHECK(waitpid(middle, &status, 0) == middle && EXITED(status, 0));
	struct pollfd gone = { .fd = ends[0], .events = POLLIN };
	CHECK(poll(&gone, 1, 60000) == 1 && read(ends[0], &byte, 1) == 0);
	close(ends[0]);
	vspawn_command_free(command);
}

static void mechanisms_and_preparation(void)
{
	struct vspawn_command *command = vspawn_command_new("true");
	struct vspawn_prepared *prepared;
	struct vspawn_child *child;
	int status = -1;
	CHECK(vspawn_command_mechanism(command, VSPAWN_MECHANISM_FORK) == 0);
	CHECK(vspawn_command_spawn(command, &child) == 0 && vspawn_child_wait(child, &status) == 0 && status == 0);
	vspawn_child_free(child);
	CHECK(vspawn_command_spawn_nowait(command, &child) == EINVAL && child == NULL);
	CHECK(vspawn_command_mechanism(command, VSPAWN_MECHANISM_SHARE) == 0);
	CHECK(vspawn_command_mechanism(command, 7) == EINVAL);
	CHECK(vspawn_command_prepare(command, &prepared) == 0);
	vspawn_command_free(command);
	for (int i = 0; i < 20; i++) {
		CHECK((i % 2 ? vspawn_prepared_spawn : vspawn_prepared_spawn_nowait)(prepared, &child) == 0);
		CHECK(vspawn_child_wait(child, &status) == 0 && status == 0);
		vspawn_child_free(child);
	}
	vspawn_prepared_free(prepared);
}

int main(void)
{
	int before = open_descriptors();
	reset_signals();
	arguments_and_environment();
	directory_and_limits();
	groups_of_processes();
	signals();
	descriptors();
	identity();
	terminal();
	cgroup_and_parent_death();
	mechanisms_and_preparation();
	CHECK(open_descriptors() == before);
	return 0;
}
