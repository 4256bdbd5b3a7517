/* Without memory, every function returns ENOMEM or succeeds nevertheless: the library never ends its host process. */
#define _GNU_SOURCE
#include <vspawn.h>

#include "check.h"

/* The number of allocations that still succeed; a negative number means all. The library's allocations count, too. */
static int allocations_left = -1;

static int is_refused(void)
{
	if (allocations_left < 0)
		return 0;
	if (allocations_left == 0) {
		errno = ENOMEM;
		return 1;
	}
	allocations_left--;
	return 0;
}

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t size)
{
	return is_refused() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return is_refused() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
	return is_refused() ? NULL : __libc_realloc(block, size);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
	if (is_refused())
		return ENOMEM;
	*block = __libc_memalign(alignment, size);
	return *block ? 0 : ENOMEM;
}

static int failed;

/* Returns whether a call succeeded. Counts a failure, which must be ENOMEM. */
static int succeeded(int error)
{
	if (error != 0) {
		if (error != ENOMEM) {
			allocations_left = -1;
			fprintf(stderr, "errno %d: %s\n", error, strerror(error));
			exit(1);
		}
		failed++;
	}
	return error == 0;
}

/* Larger than the library's static reserve of 32 KiB. */
static char large[100000];

static void commands(void)
{
	const char *argv[] = {"echo", large, NULL};
	struct vspawn_command *command = vspawn_command_new("echo");
	struct vspawn_child *child = NULL;
	struct vspawn_prepared *prepared = NULL;
	int status;
	if (!succeeded(command ? 0 : errno))
		return;
	succeeded(vspawn_command_args(command, argv));
	succeeded(vspawn_command_env(command, "KEY", large));
	succeeded(vspawn_command_cwd(command, "/"));
	succeeded(vspawn_command_stdio(command, 1, VSPAWN_STDIO_NULL, 0));
	if (succeeded(vspawn_command_prepare(command, &prepared)) && succeeded(vspawn_prepared_spawn(prepared, &child))) {
		/* A child that was started can be waited for. */
		CHECK(vspawn_child_wait(child, &status) == 0);
		CHECK(EXITED(status, 0));
		vspawn_child_free(child);
	}
	child = NULL;
	if (succeeded(vspawn_command_spawn(command, &child))) {
		CHECK(vspawn_child_wait(child, &status) == 0);
		vspawn_child_free(child);
	}
	vspawn_prepared_free(prepared);
	vspawn_command_free(command);
}

/* Tests all calls that copy the caller's environment, which is large here. */
static void environment(void)
{
	struct vspawn_command *command = vspawn_command_new("true");
	struct vspawn_child *child = NULL;
	struct vspawn_prepared *prepared = NULL;
	int status;
	if (!succeeded(command ? 0 : errno))
		return;
	succeeded(vspawn_command_prepare(command, &prepared));
	vspawn_prepared_free(prepared);
	if (succeeded(vspawn_command_spawn_nowait(command, &child))) {
		CHECK(vspawn_child_wait(child, &status) == 0 && EXITED(status, 0));
		vspawn_child_free(child);
	}
	if (succeeded(vspawn_command_env(command, "KEY", "value")) && succeeded(vspawn_command_spawn(command, &child))) {
		CHECK(vspawn_child_wait(child, &status) == 0 && EXITED(status, 0));
		vspawn_child_free(child);
	}
	vspawn_command_free(command);
}

/* A capture that fails leaves no child: the last wait of the program finds none. */
static void output(void)
{
	const char *argv[] = {"-c", "cat; head -c 200000 /dev/zero", NULL};
	struct vspawn_capture_options options = {.size = sizeof options, .input = large, .input_length = sizeof large};
	struct vspawn_command *command = vspawn_command_new("sh");
	struct vspawn_output *output = NULL;
	size_t length;
	if (!succeeded(command ? 0 : errno))
		return;
	if (succeeded(vspawn_command_args(command, argv)) && succeeded(vspawn_command_output(command, &options, &output))) {
		const unsigned char *bytes = vspawn_output_stdout(output, &length);
		CHECK(length == sizeof large + 200000 && bytes[0] == 'x' && bytes[length] == 0);
	} else {
		CHECK(output == NULL);
	}
	vspawn_output_free(output);
	vspawn_command_free(command);
}

static void program_and_tree(void)
{
	const char *argv[] = {"true", large, NULL}, *sleeper[] = {"sleep", "1000", NULL};
	struct vspawn_child *child;
	int status = vspawn_system(argv);
	if (succeeded(status == -1 ? errno : 0))
		CHECK(EXITED(status, 0));
	if (!succeeded(vspawn(sleeper, NULL, &child)))
		return;
	if (!succeeded(vspawn_child_kill_tree(child, NULL)))
		CHECK(vspawn_child_kill(child) == 0);
	CHECK(vspawn_child_wait(child, &status) == 0 && WIFSIGNALED(status));
	vspawn_child_free(child);
}

static void stream(void)
{
	const char *argv[] = {"true", NULL};
	FILE *file = vspawn_popen(argv, "r");
	if (succeeded(file ? 0 : errno))
		CHECK(vspawn_pclose(file) == 0);
	argv[0] = "/nowhere/at/all";
	errno = 0;
	CHECK(vspawn_popen(argv, "r") == NULL);
	CHECK(errno == ENOENT || errno == ENOMEM);
}

int main(void)
{
	reset_signals();
	memset(large, 'x', sizeof large - 1);
	for (int i = 0; i < 1500; i++) {
		char name[32];
		snprintf(name, sizeof name, "VARIABLE_%d", i);
		CHECK(setenv(name, "a value of some length, so that they need more than the reserve", 1) == 0);
	}
	void (*const parts[])(void) = {commands, environment, output, program_and_tree, stream};
	for (size_t part = 0; part < sizeof parts / sizeof *parts; part++) {
		failed = 0;
		parts[part]();
		CHECK(failed == 0);
		for (int allocations = 0; allocations < 120; allocations++) {
			allocations_left = allocations;
			parts[part]();
			allocations_left = -1;
			CHECK(allocations > 0 || failed > 0);
		}
		failed = 0;
		parts[part]();
		CHECK(failed == 0);
	}
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	return 0;
}
