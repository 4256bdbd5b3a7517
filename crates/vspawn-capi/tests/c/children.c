/* Tests child handles, captured output, and vspawn(), which starts a process with one call. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "check.h"
#include "vspawn.h"

static struct vspawn_child *start(const char *const *argv, struct vspawn_options options)
{
	struct vspawn_child *child;
	options.size = sizeof options;
	int code = vspawn(argv, &options, &child);
	struct vspawn_error error = { .size = sizeof error };
	CHECK(vspawn_last_error(&error) == 0);
	if (code != 0)
		fprintf(stderr, "%s\n", error.text);
	CHECK(code == 0 && child);
	return child;
}

static void pipes_of_a_child(void)
{
	const char *argv[] = { "sh", "-c", "cat; echo err >&2", NULL };
	struct vspawn_stream piped = { .kind = VSPAWN_STDIO_PIPED };
	struct vspawn_child *child = start(argv, (struct vspawn_options){ .input = piped, .output = piped, .error = piped });
	char text[32] = "";
	int in = vspawn_child_take_stdin(child), out = vspawn_child_take_stdout(child), err = vspawn_child_take_stderr(child);
	CHECK(in > 2 && out > 2 && err > 2 && (fcntl(in, F_GETFD) & FD_CLOEXEC));
	FAILS(vspawn_child_take_stdin(child), -1, EBADF);
	CHECK(write(in, "hello", 5) == 5 && close(in) == 0);
	CHECK(read(out, text, sizeof text) == 5 && memcmp(text, "hello", 5) == 0);
	CHECK(read(err, text, sizeof text) == 4 && memcmp(text, "err\n", 4) == 0);
	int status;
	CHECK(vspawn_child_wait(child, &status) == 0 && EXITED(status, 0));
	close(out), close(err);
	vspawn_child_free(child);
}

static void waiting(void)
{
	const char *argv[] = { "cat", NULL };
	struct vspawn_stream piped = { .kind = VSPAWN_STDIO_PIPED };
	struct vspawn_child *child = start(argv, (struct vspawn_options){ .input = piped });
	int status = -1, in = vspawn_child_take_stdin(child);
	CHECK(vspawn_child_try_wait(child, &status) == EAGAIN);
	CHECK(vspawn_child_wait_timeout(child, 1, &status) == ETIMEDOUT && status == -1);
	struct pollfd ended = { .fd = vspawn_child_pidfd(child), .events = POLLIN };
	CHECK(vspawn_child_pid(child) > 1 && poll(&ended, 1, 0) == 0);
	close(in);
	CHECK(poll(&ended, 1, 60000) == 1);
	CHECK(vspawn_child_try_wait(child, &status) == 0 && status == 0);
	CHECK(vspawn_child_wait_timeout(child, 60000, &status) == 0 && vspawn_child_wait(child, NULL) == 0);
	vspawn_child_free(child);
}

static void signals_and_killing(void)
{
	const char *sleep[] = { "sleep", "60", NULL };
	const char *tree[] = { "sh", "-c", "sleep 60 & sleep 60 & echo; wait", NULL };
	int status;
	struct vspawn_child *child = start(sleep, (struct vspawn_options){ 0 });
	CHECK(vspawn_child_signal_group(child, SIGTERM) == EINVAL);
	CHECK(vspawn_child_signal(child, SIGTERM) == 0 && vspawn_child_wait(child, &status) == 0);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	CHECK(vspawn_child_kill(child) == 0 && vspawn_child_signal(child, SIGKILL) == 0);
	vspawn_child_free(child);

	child = start(sleep, (struct vspawn_options){ .flags = VSPAWN_FLAG_PROCESS_GROUP });
	CHECK(vspawn_child_signal_group(child, SIGUSR1) == 0 && vspawn_child_wait(child, &status) == 0);
	CHECK(WTERMSIG(status) == SIGUSR1);
	vspawn_child_free(child);

	size_t descendants = 0;
	char line;
	child = start(tree, (struct vspawn_options){ .output.kind = VSPAWN_STDIO_PIPED });
	int out = vspawn_child_take_stdout(child);
	CHECK(read(out, &line, 1) == 1);
	CHECK(vspawn_child_kill_tree(child, &descendants) == 0 && descendants == 2);
	CHECK(vspawn_child_wait(child, &status) == 0 && WTERMSIG(status) == SIGKILL);
	/* All writers of the pipe have ended. */
	CHECK(read(out, &line, 1) == 0);
	close(out);
	vspawn_child_free(child);
}

static void one_call(void)
{
	const char *argv[] = { "name", "-c", "echo $0 $A $PWD; umask; " LIST_DESCRIPTORS, NULL };
	const char *env[] = { "A=b=c", "PATH=/bin:/usr/bin", NULL };
	int ends[2];
	CHECK(pipe2(ends, O_CLOEXEC) == 0);
	struct vspawn_fd fds[] = { { .target = 9, .source = ends[0] } };
	struct vspawn_options options = {
		.flags = VSPAWN_FLAG_CLOSE_OTHERS | VSPAWN_FLAG_UMASK | VSPAWN_FLAG_NEW_SESSION | VSPAWN_FLAG_NOWAIT,
		.program = "sh",
		.env = env,
		.cwd = "/usr",
		.input.kind = VSPAWN_STDIO_NULL,
		.output = { .kind = VSPAWN_STDIO_FD, .fd = ends[1] },
		.fds = fds,
		.fd_count = 1,
		.umask = 077,
	};
	struct vspawn_child *child = start(argv, options);
	int status;
	CHECK(vspawn_child_started(child) == 0);
	CHECK(vspawn_child_wait(child, &status) == 0 && status == 0);
	vspawn_child_free(child);
	char text[64] = "";
	CHECK(read(ends[0], text, sizeof text - 1) > 0);
	CHECK(strcmp(text, "name b=c /usr\n0077\n0 1 2 9 ") == 0);
	close(ends[0]), close(ends[1]);

	const char *plain[] = { "sh", "-c", "exit 3", NULL };
	CHECK(vspawn(plain, NULL, &child) == 0 && vspawn_child_wait(child, &status) == 0 && EXITED(status, 3));
	vspawn_child_free(child);
	child = start(plain, (struct vspawn_options){ .flags = VSPAWN_FLAG_FORK });
	CHECK(vspawn_child_wait(child, &status) == 0 && EXITED(status, 3));
	vspawn_child_free(child);
}

static void options_of_other_versions(void)
{
	const char *argv[] = { "true", NULL };
	struct {
		struct vspawn_options options;
		long later;
	} newer = { .options.size = sizeof newer };
	struct vspawn_child *child;
	CHECK(vspawn(argv, &newer.options, &child) == 0 && vspawn_child_wait(child, NULL) == 0);
	vspawn_child_free(child);
	newer.later = 1;
	CHECK(vspawn(argv, &newer.options, &child) == EINVAL && child == NULL);
	/* An older caller has only the fields up to program; later ones are not read. */
	struct vspawn_options older = { .size = offsetof(struct vspawn_options, env), .env = (void *)1, .cwd = (void *)1 };
	CHECK(vspawn(argv, &older, &child) == 0 && vspawn_child_wait(child, NULL) == 0);
	vspawn_child_free(child);
	const size_t sizes[] = { 0, 7, (size_t)-1 };
	struct vspawn_options wrong;
	for (int i = 0; i < 3; i++) {
		wrong = (struct vspawn_options){ .size = sizes[i] };
		CHECK(vspawn(argv, &wrong, &child) == EINVAL);
	}
	wrong = (struct vspawn_options){ .size = sizeof wrong, .reserved[3] = 1 };
	CHECK(vspawn(argv, &wrong, &child) == EINVAL);
	wrong = (struct vspawn_options){ .size = sizeof wrong, .flags = 1u << 30 };
	CHECK(vspawn(argv, &wrong, &child) == EINVAL);
	wrong = (struct vspawn_options){ .size = sizeof wrong, .input.kind = 9 };
	CHECK(vspawn(argv, &wrong, &child) == EINVAL);
	wrong = (struct vspawn_options){ .size = sizeof wrong, .input = { .kind = VSPAWN_STDIO_FD, .fd = -1 } };
	CHECK(vspawn(argv, &wrong, &child) == EINVAL);
	const char *bad_env[] = { "NOVALUE", NULL };
	wrong = (struct vspawn_options){ .size = sizeof wrong, .env = bad_env };
	CHECK(vspawn(argv, &wrong, &child) == EINVAL);
}

static void failures(void)
{
	const char *missing[] = { "no-such-program-anywhere", NULL }, *pass[] = { "true", NULL };
	struct vspawn_child *child;
	struct vspawn_error error = { .size = sizeof error };
	CHECK(vspawn(missing, NULL, &child) == ENOENT && child == NULL && waitpid(-1, NULL, 0) == -1);
	CHECK(vspawn_last_error(&error) == 0 && error.error == ENOENT && error.stage == VSPAWN_STAGE_EXEC);
	CHECK(strstr(error.text, "no-such-program-anywhere") && error.size == sizeof error);
	struct vspawn_options options = { .size = sizeof options, .cwd = "/no/such/directory" };
	CHECK(vspawn(pass, &options, &child) == ENOENT);
	CHECK(vspawn_last_error(&error) == 0 && error.stage == VSPAWN_STAGE_CHDIR);
	CHECK(strncmp(error.text, "chdir to /no/such/directory: ", 29) == 0);
	struct vspawn_fd closed = { .target = 5, .source = 4000 };
	options = (struct vspawn_options){ .size = sizeof options, .fds = &closed, .fd_count = 1 };
	CHECK(vspawn(pass, &options, &child) == EBADF);
	CHECK(vspawn_last_error(&error) == 0 && error.stage == VSPAWN_STAGE_DUP && strstr(error.text, "dup 4000 to 5"));
	error.size = 8;
	CHECK(vspawn_last_error(&error) == EINVAL && vspawn_last_error(NULL) == EINVAL);
	error.size = sizeof error;
	CHECK(vspawn_last_error(&error) == 0 && error.stage == VSPAWN_STAGE_DUP);

	options = (struct vspawn_options){ .size = sizeof options, .flags = VSPAWN_FLAG_NOWAIT };
	CHECK(vspawn(missing, &options, &child) == 0 && vspawn_child_started(child) == ENOENT);
	CHECK(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
	vspawn_child_free(child);
}

static void capturing(void)
{
	struct vspawn_command *command = vspawn_command_new("cat");
	struct vspawn_output *output;
	size_t length, large = 300000;
	char *input = malloc(large);
	memset(input, 'x', large);
	struct vspawn_capture_options options = { .size = sizeof options, .input = input, .input_length = large };
	CHECK(vspawn_command_output(command, &options, &output) == 0);
	const unsigned char *text = vspawn_output_stdout(output, &length);
	CHECK(length == large && memcmp(text, input, large) == 0 && text[large] == 0);
	CHECK(vspawn_output_stderr(output, &length)[0] == 0 && length == 0);
	vspawn_output_free(output);

	options.limit = 1000;
	CHECK(vspawn_command_output(command, &options, &output) == EMSGSIZE && output);
	CHECK(vspawn_output_stdout(output, &length) && length == 1000 && WTERMSIG(vspawn_output_status(output)) == SIGKILL);
	vspawn_output_free(output);
	vspawn_command_free(command);
	free(input);

	command = vspawn_command_new("sh");
	CHECK(vspawn_command_arg(command, "-c") == 0 && vspawn_command_arg(command, "echo part; exec sleep 60") == 0);
	options = (struct vspawn_capture_options){ .size = sizeof options, .timeout_ms = 1500 };
	CHECK(vspawn_command_output(command, &options, &output) == ETIMEDOUT && output);
	CHECK(strcmp((const char *)vspawn_output_stdout(output, NULL), "part\n") == 0);
	vspawn_output_free(output);
	options.reserved[0] = 1;
	CHECK(vspawn_command_output(command, &options, &output) == EINVAL && output == NULL);
	options = (struct vspawn_capture_options){ .size = sizeof options, .input_length = 3 };
	CHECK(vspawn_command_output(command, &options, &output) == EINVAL && output == NULL);
	vspawn_command_free(command);
}

static void pipelines(void)
{
	struct vspawn_command *commands[3];
	struct vspawn_child *children[3];
	const char *programs[] = { "sh", "cat", "wc" };
	char line[16];
	int i, status;

	for (i = 0; i < 3; i++)
		CHECK((commands[i] = vspawn_command_new(programs[i])) != NULL);
	CHECK(vspawn_command_arg(commands[0], "-c") == 0 && vspawn_command_arg(commands[0], "echo a; echo b >&2; exit 3") == 0);
	CHECK(vspawn_command_stdio(commands[0], 2, VSPAWN_STDIO_STDOUT, -1) == 0);
	CHECK(vspawn_command_arg(commands[2], "-l") == 0 && vspawn_command_stdio(commands[2], 1, VSPAWN_STDIO_PIPED, -1) == 0);
	CHECK(vspawn_pipeline_spawn((const struct vspawn_command *const *)commands, 3, children) == 0);
	int output = vspawn_child_take_stdout(children[2]);
	CHECK(read(output, line, sizeof line) == 2 && line[0] == '2' && close(output) == 0);
	for (i = 0; i < 3; i++) {
		CHECK(vspawn_child_wait(children[i], &status) == 0 && WEXITSTATUS(status) == (i == 0 ? 3 : 0));
		vspawn_child_free(children[i]);
	}

	vspawn_command_free(commands[2]);
	CHECK((commands[2] = vspawn_command_new("/no/such")) != NULL);
	CHECK(vspawn_pipeline_spawn((const struct vspawn_command *const *)commands, 3, children) == ENOENT);
	CHECK(children[0] == NULL && children[1] == NULL && children[2] == NULL && waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
	CHECK(vspawn_pipeline_spawn((const struct vspawn_command *const *)commands, 0, children) == EINVAL);
	CHECK(vspawn_pipeline_spawn(NULL, 3, children) == EINVAL);
	CHECK(vspawn_pipeline_spawn((const struct vspawn_command *const *)commands, 3, NULL) == EINVAL);
	for (i = 0; i < 3; i++)
		vspawn_command_free(commands[i]);
}

int main(void)
{
	int before = open_descriptors();
	reset_signals();
	pipes_of_a_child();
	waiting();
	signals_and_killing();
	one_call();
	options_of_other_versions();
	failures();
	capturing();
	pipelines();
	CHECK(open_descriptors() == before);
	return 0;
}
