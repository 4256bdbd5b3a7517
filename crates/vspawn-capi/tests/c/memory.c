/* Without memory, every function returns ENOMEM or does without it: the library never ends its host. */
#define _GNU_SOURCE
#include <vspawn.h>

#include "check.h"

/* The library's calls come here too. `left`: allocations until they fail; negative: never. */
static int left = -1;

static int refused(void)
{
	if (left < 0)
		return 0;
	if (left == 0) {
		errno = ENOMEM;
		return 1;
	}
	left--;
	return 0;
}

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t size)
{
	return refused() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return refused() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
	return refused() ? NULL : __libc_realloc(block, size);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
	if (refused())
		return ENOMEM;
	*block = __libc_memalign(alignment, size);
	return *block ? 0 : ENOMEM;
}

static int failed;

/* Counts a failure, which must be ENOMEM. */
static int done(int error)
{
	if (error != 0) {
		if (error != ENOMEM) {
			left = -1;
			fprintf(stderr, "errno %d: %s\n", error, strerror(error));
			exit(1);
		}
		failed++;
	}
	return error == 0;
}

/* Fits into the reserve several times: a request that is larger than it fails before it begins. */
static char large[8000];

static void everything(void)
{
	const char *argv[] = {"echo", large, NULL};
	struct vspawn_command *command = vspawn_command_new("echo");
	struct vspawn_child *child = NULL;
	struct vspawn_prepared *prepared = NULL;
	int status;
	if (!done(command ? 0 : errno))
		return;
	done(vspawn_command_args(command, argv));
	done(vspawn_command_env(command, "KEY", large));
	done(vspawn_command_cwd(command, "/"));
	done(vspawn_command_stdio(command, 1, VSPAWN_STDIO_NULL, 0));
	if (done(vspawn_command_prepare(command, &prepared)) && done(vspawn_prepared_spawn(prepared, &child))) {
		/* A child that was started can be waited for. */
		CHECK(vspawn_child_wait(child, &status) == 0);
		CHECK(EXITED(status, 0));
		vspawn_child_free(child);
	}
	child = NULL;
	if (done(vspawn_command_spawn(command, &child))) {
		CHECK(vspawn_child_wait(child, &status) == 0);
		vspawn_child_free(child);
	}
	vspawn_prepared_free(prepared);
	vspawn_command_free(command);
}

static void stream(void)
{
	const char *argv[] = {"true", NULL};
	FILE *file = vspawn_popen(argv, "r");
	if (done(file ? 0 : errno))
		CHECK(vspawn_pclose(file) == 0);
	argv[0] = "/nowhere/at/all";
	errno = 0;
	CHECK(vspawn_popen(argv, "r") == NULL);
	CHECK(errno == ENOENT || errno == ENOMEM);
}

int main(void)
{
	usual_signals();
	memset(large, 'x', sizeof large - 1);
	everything();
	CHECK(failed == 0);
	for (int allocations = 0; allocations < 120; allocations++) {
		int before = failed;
		left = allocations;
		everything();
		left = allocations;
		stream();
		left = -1;
		CHECK(allocations > 0 || failed > before);
	}
	everything();
	return 0;
}
