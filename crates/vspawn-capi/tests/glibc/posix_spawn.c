/* posix_spawn on top of libvspawn, for glibc's own tests. A program linked with this file uses these functions instead of libc's.
 * File actions are kept as a list, which posix_spawn replays into a command. Attributes are read with libc's getters. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vspawn.h>

enum kind { OPEN, CLOSE, CLOSE_FROM, DUP, CHDIR, FCHDIR, FOREGROUND };

struct action {
	enum kind kind;
	int fd, source, flags;
	mode_t mode;
	char *path;
};

static struct action *list(const posix_spawn_file_actions_t *actions)
{
	return (struct action *)actions->__actions;
}

/* Adds an action; `path` is copied. */
static int add(posix_spawn_file_actions_t *actions, struct action action, const char *path)
{
	struct action *longer;
	if (path && !(action.path = strdup(path)))
		return ENOMEM;
	longer = realloc(list(actions), (actions->__used + 1) * sizeof *longer);
	if (!longer) {
		free(action.path);
		return ENOMEM;
	}
	longer[actions->__used++] = action;
	actions->__actions = (struct __spawn_action *)longer;
	return 0;
}

/* Whether a descriptor can have this number. POSIX requires EBADF for all others. */
static int is_valid(int fd)
{
	return fd >= 0 && fd < sysconf(_SC_OPEN_MAX);
}

int posix_spawn_file_actions_init(posix_spawn_file_actions_t *actions)
{
	memset(actions, 0, sizeof *actions);
	return 0;
}

int posix_spawn_file_actions_destroy(posix_spawn_file_actions_t *actions)
{
	for (int i = 0; i < actions->__used; i++)
		free(list(actions)[i].path);
	free(actions->__actions);
	return 0;
}

int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t *actions, int fd, const char *path, int flags, mode_t mode)
{
	return is_valid(fd) ? add(actions, (struct action){.kind = OPEN, .fd = fd, .flags = flags, .mode = mode}, path) : EBADF;
}

int posix_spawn_file_actions_addclose(posix_spawn_file_actions_t *actions, int fd)
{
	return is_valid(fd) ? add(actions, (struct action){.kind = CLOSE, .fd = fd}, NULL) : EBADF;
}

int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int fd)
{
	return is_valid(fd) ? add(actions, (struct action){.kind = CLOSE_FROM, .fd = fd}, NULL) : EBADF;
}

int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *actions, int fd, int target)
{
	return is_valid(fd) && is_valid(target) ? add(actions, (struct action){.kind = DUP, .source = fd, .fd = target}, NULL)
						  : EBADF;
}

int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *actions, const char *path)
{
	return add(actions, (struct action){.kind = CHDIR}, path);
}

int posix_spawn_file_actions_addfchdir_np(posix_spawn_file_actions_t *actions, int fd)
{
	return is_valid(fd) ? add(actions, (struct action){.kind = FCHDIR, .fd = fd}, NULL) : EBADF;
}

int posix_spawn_file_actions_addtcsetpgrp_np(posix_spawn_file_actions_t *actions, int fd)
{
	return is_valid(fd) ? add(actions, (struct action){.kind = FOREGROUND, .fd = fd}, NULL) : EBADF;
}

static int replay(struct vspawn_command *command, const posix_spawn_file_actions_t *actions)
{
	int error = 0;
	for (int i = 0; actions && !error && i < actions->__used; i++) {
		struct action *action = &list(actions)[i];
		switch (action->kind) {
		case OPEN: error = vspawn_command_open(command, action->fd, action->path, action->flags, action->mode); break;
		case CLOSE: error = vspawn_command_close(command, action->fd); break;
		case CLOSE_FROM: error = vspawn_command_close_from(command, action->fd); break;
		case DUP: error = vspawn_command_dup(command, action->source, action->fd); break;
		case CHDIR: error = vspawn_command_chdir(command, action->path); break;
		case FCHDIR: error = vspawn_command_fchdir(command, action->fd); break;
		case FOREGROUND: error = vspawn_command_foreground(command, action->fd); break;
		}
	}
	return error;
}

static int set_attributes(struct vspawn_command *command, const posix_spawnattr_t *attributes)
{
	sigset_t mask, defaults;
	short flags = 0;
	int error = vspawn_command_inherit_sigpipe(command);
	sigprocmask(SIG_BLOCK, NULL, &mask);
	if (attributes) {
		struct sched_param parameter;
		int policy;
		pid_t group;
		posix_spawnattr_getflags(attributes, &flags);
		posix_spawnattr_getschedparam(attributes, &parameter);
		posix_spawnattr_getschedpolicy(attributes, &policy);
		posix_spawnattr_getpgroup(attributes, &group);
		posix_spawnattr_getsigdefault(attributes, &defaults);
		if (flags & POSIX_SPAWN_SETSIGMASK)
			posix_spawnattr_getsigmask(attributes, &mask);
		if (!error && flags & POSIX_SPAWN_SETSIGDEF)
			error = vspawn_command_default_signals(command, &defaults);
		if (!error && flags & POSIX_SPAWN_SETPGROUP)
			error = vspawn_command_process_group(command, group);
		if (!error && flags & POSIX_SPAWN_SETSID)
			error = vspawn_command_new_session(command, 1);
		if (!error && flags & POSIX_SPAWN_RESETIDS)
			error = vspawn_command_reset_ids(command);
		if (!error && flags & (POSIX_SPAWN_SETSCHEDULER | POSIX_SPAWN_SETSCHEDPARAM))
			error = vspawn_command_scheduler(command, flags & POSIX_SPAWN_SETSCHEDULER ? policy : sched_getscheduler(0),
							 parameter.sched_priority);
	}
	return error ? error : vspawn_command_blocked_signals(command, &mask);
}

static int set_environment(struct vspawn_command *command, char *const env[])
{
	int error = vspawn_command_env_clear(command);
	for (; env && *env && !error; env++) {
		const char *equals = strchr(*env, '=');
		char *name = equals ? strndup(*env, equals - *env) : NULL;
		if (name)
			error = vspawn_command_env(command, name, equals + 1);
		free(name);
	}
	return error;
}

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
		char *const argv[], char *const env[])
{
	struct vspawn_command *command = vspawn_command_new(path);
	struct vspawn_child *child = NULL;
	int error = command ? 0 : errno;
	if (!error && argv[0] && argv[1])
		error = vspawn_command_args(command, (const char *const *)argv + 1);
	if (!error && argv[0])
		error = vspawn_command_arg0(command, argv[0]);
	if (!error)
		error = set_environment(command, env);
	if (!error)
		error = set_attributes(command, attributes);
	if (!error)
		error = replay(command, actions);
	if (!error)
		error = vspawn_command_spawn(command, &child);
	if (!error && pid)
		*pid = vspawn_child_pid(child);
	vspawn_child_free(child);
	vspawn_command_free(command);
	return error;
}

/* Searches for a name without a slash in the caller's PATH, since the tests that use this function pass the caller's environment. */
int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
		 char *const argv[], char *const env[])
{
	return posix_spawn(pid, file, actions, attributes, argv, env);
}
