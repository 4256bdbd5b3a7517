/* Passes NULL for every pointer parameter: the result is an error, never a crash. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <unistd.h>

#include "check.h"
#include "popen_noshell.h"
#include "vspawn.h"

/* PROPERTY checks that a property is refused without a command, POINTER that it is refused without its value. */
#define PROPERTY(name, ...) CHECK(vspawn_command_##name(NULL, ##__VA_ARGS__) == EINVAL)
#define POINTER(name) CHECK(vspawn_command_##name(command, NULL) == EINVAL)

static void commands(struct vspawn_command *command)
{
	sigset_t set;
	const char *none[] = { NULL };
	gid_t group = 1;
	sigemptyset(&set);
	PROPERTY(arg, "x");
	PROPERTY(args, none);
	PROPERTY(arg0, "x");
	PROPERTY(env, "A", "b");
	PROPERTY(env_clear);
	PROPERTY(cwd, "/");
	PROPERTY(chroot, "/");
	PROPERTY(stdio, 0, 0, 0);
	PROPERTY(fd, 5, 0);
	PROPERTY(close_others, 1);
	PROPERTY(umask, 0);
	PROPERTY(process_group, 0);
	PROPERTY(new_session, 1);
	PROPERTY(controlling_terminal, 0);
	PROPERTY(uid, 0);
	PROPERTY(gid, 0);
	PROPERTY(groups, &group, 1);
	PROPERTY(resource_limit, RLIMIT_CORE, 0, 0);
	PROPERTY(nice, 1);
	PROPERTY(blocked_signals, &set);
	PROPERTY(default_signals, &set);
	PROPERTY(ignored_signals, &set);
	PROPERTY(inherit_sigpipe);
	PROPERTY(cgroup, 0);
	PROPERTY(parent_death_signal, 9);
	PROPERTY(mechanism, 0);
	POINTER(arg);
	POINTER(args);
	POINTER(arg0);
	POINTER(cwd);
	POINTER(chroot);
	POINTER(blocked_signals);
	POINTER(default_signals);
	POINTER(ignored_signals);
	CHECK(vspawn_command_env(command, NULL, "x") == EINVAL);
	CHECK(vspawn_command_groups(command, NULL, 1) == EINVAL);
	CHECK(vspawn_command_stdio(command, 3, 0, 0) == EINVAL && vspawn_command_stdio(command, 0, 5, 0) == EINVAL);
	FAILS(vspawn_command_new(NULL), NULL, EINVAL);
	vspawn_command_free(NULL);
}

static void starts(struct vspawn_command *command)
{
	const char *argv[] = { "true", NULL }, *empty[] = { NULL };
	struct vspawn_child *child = (void *)1;
	struct vspawn_prepared *prepared = (void *)1;
	struct vspawn_output *output = (void *)1;
	CHECK(vspawn_command_spawn(NULL, &child) == EINVAL && child == NULL);
	CHECK(vspawn_command_spawn(command, NULL) == EINVAL);
	CHECK(vspawn_command_spawn_nowait(NULL, &child) == EINVAL && vspawn_command_spawn_nowait(command, NULL) == EINVAL);
	CHECK(vspawn_command_prepare(NULL, &prepared) == EINVAL && prepared == NULL);
	CHECK(vspawn_command_prepare(command, NULL) == EINVAL);
	CHECK(vspawn_prepared_spawn(NULL, &child) == EINVAL && vspawn_prepared_spawn_nowait(NULL, &child) == EINVAL);
	CHECK(vspawn_command_prepare(command, &prepared) == 0);
	CHECK(vspawn_prepared_spawn(prepared, NULL) == EINVAL && vspawn_prepared_spawn_nowait(prepared, NULL) == EINVAL);
	vspawn_prepared_free(prepared);
	vspawn_prepared_free(NULL);
	CHECK(vspawn_command_output(NULL, NULL, &output) == EINVAL && output == NULL);
	CHECK(vspawn_command_output(command, NULL, NULL) == EINVAL);
	CHECK(vspawn(NULL, NULL, &child) == EINVAL && vspawn(argv, NULL, NULL) == EINVAL && vspawn(empty, NULL, &child) == EINVAL);
	/* None of these calls has started anything. */
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static void handles(void)
{
	FAILS(vspawn_child_pid(NULL), -1, EINVAL);
	FAILS(vspawn_child_pidfd(NULL), -1, EINVAL);
	FAILS(vspawn_child_take_stdin(NULL), -1, EINVAL);
	FAILS(vspawn_child_take_stdout(NULL), -1, EINVAL);
	FAILS(vspawn_child_take_stderr(NULL), -1, EINVAL);
	CHECK(vspawn_child_started(NULL) == EINVAL && vspawn_child_wait(NULL, NULL) == EINVAL);
	CHECK(vspawn_child_try_wait(NULL, NULL) == EINVAL && vspawn_child_wait_timeout(NULL, 1, NULL) == EINVAL);
	CHECK(vspawn_child_kill(NULL) == EINVAL && vspawn_child_signal(NULL, 9) == EINVAL);
	CHECK(vspawn_child_signal_group(NULL, 9) == EINVAL && vspawn_child_kill_tree(NULL, NULL) == EINVAL);
	vspawn_child_free(NULL);
	FAILS(vspawn_output_status(NULL), -1, EINVAL);
	FAILS(vspawn_output_stdout(NULL, NULL), NULL, EINVAL);
	FAILS(vspawn_output_stderr(NULL, NULL), NULL, EINVAL);
	vspawn_output_free(NULL);
}

static void streams(void)
{
	const char *argv[] = { "true", NULL };
	struct popen_noshell_pass_to_pclose arg;
	FAILS(vspawn_popen(NULL, "r"), NULL, EINVAL);
	FAILS(vspawn_popen(argv, NULL), NULL, EINVAL);
	FAILS(vspawn_pclose(NULL), -1, EINVAL);
	FAILS(vspawn_system(NULL), -1, EINVAL);
	FAILS(popen_noshell(NULL, argv, "r", &arg, 0), NULL, EINVAL);
	FAILS(popen_noshell("true", NULL, "r", &arg, 0), NULL, EINVAL);
	FAILS(popen_noshell("true", argv, NULL, &arg, 0), NULL, EINVAL);
	FAILS(popen_noshell("true", argv, "r", NULL, 0), NULL, EINVAL);
	FAILS(popen_noshell_compat(NULL, "r", &arg), NULL, EINVAL);
	FAILS(popen_noshell_compat("/bin/true", NULL, &arg), NULL, EINVAL);
	FAILS(popen_noshell_compat("/bin/true", "r", NULL), NULL, EINVAL);
	FAILS(pclose_noshell(NULL), -1, EINVAL);
	FAILS(pclose_noshell(&arg), -1, EINVAL);
}

int main(void)
{
	struct vspawn_error error = { .size = sizeof error };
	struct vspawn_command *command = vspawn_command_new("true");
	CHECK(vspawn_last_error(&error) == 0 && error.error == 0 && error.stage == VSPAWN_STAGE_NONE);
	CHECK(command);
	commands(command);
	starts(command);
	vspawn_command_free(command);
	handles();
	streams();
	CHECK(vspawn_last_error(&error) == 0 && error.error == EINVAL && error.stage == VSPAWN_STAGE_PREPARE);
	return 0;
}
