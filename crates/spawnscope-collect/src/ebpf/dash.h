/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Reads which command a dash process executes when it forks. Dash keeps no call chain, so there is one frame. Dash sets its line before
 * each command, but not before it forks for the commands of a pipeline or for a command in the background. Such children set
 * their line themselves, before their first system call that is not setup. Dash counts lines per input. In a string (eval, a trap,
 * the argument of -c) the count is not that of the file. Text between backquotes was also read from a string. No variable shows
 * that, but its lines are smaller than the line that the subshell was forked for. */
#pragma once

/* input.h: struct parsefile */
struct dash_input {
	__u64 outer;
	__u32 line;
	__s32 fd; /* -1: a string */
};
/* jobs.h: struct job. `processes` points to the job's first member if there is only one process. */
struct dash_job {
	__u64 process, command, processes;
};
/* options.h: struct shparam, from `malloc` on */
struct dash_parameters {
	__u32 allocated;
	__u64 words;
} __attribute__((packed));

/* `script_input` */
enum { DASH_READS_NOTHING, DASH_READS_SCRIPT, DASH_READS_FILE };

#define DASH_MAX_INPUT_DEPTH 8
#define DASH_MAX_SUBSHELL_DEPTH 4

/* Returns the address of a variable in the process. */
static __always_inline __u64 dash_address(struct script *script, __u64 block, __u64 variable)
{
	return (variable < DASH_BLOCK_BYTES ? block : script->bias) + variable;
}

/* Adds the name of the current function, or an empty name if it is unknown. The name precedes the positional parameters, unless `set`
 * has replaced them. */
static __always_inline bool add_dash_function(struct script *script)
{
	struct dash_parameters parameters;
	__u64 name = 0;
	if (read_user(&parameters, sizeof(parameters),
		      dash_address(script, script->dash.parameters_block, script->dash.layout.parameters) - sizeof(__u32)) &&
	    !(parameters.allocated & 0xff))
		read_user(&name, sizeof(name), parameters.words - sizeof(name));
	return add_text(script, name, SCRIPT_FUNCTION_BYTES) || add_nothing(script);
}

/* Adds the name of a file at this address, or an empty name if it is unknown. */
static __always_inline bool add_dash_file(struct script *script, __u64 name)
{
	return add_text(script, name, SCRIPT_FILE_BYTES) || add_nothing(script);
}

/* Adds the name of the file being read, and that of the function. A function may come from any file that was read before, or from a
 * string: the collector looks for the file, beginning with the script and the file being read. */
static __always_inline bool add_dash_names(struct script *script)
{
	struct dash_state *dash = &script->dash;
	bool reads_file = dash->input_kind == DASH_READS_FILE;
	__u64 source = reads_file && !dash->string_lines ? dash->source_name : 0, main = 0;
	if (dash->input_kind == DASH_READS_SCRIPT || (reads_file && dash->function_line))
		read_user(&main, sizeof(main), dash_address(script, dash->block, dash->layout.dollar_zero));
	script->called.lines[DASH_AT_FUNCTION] = dash->function_line;
	if (!dash->function_line)
		return add_dash_file(script, reads_file ? source : main) && add_nothing(script);
	if (reads_file)
		script->called.flags |= SCRIPT_READS_FILE;
	return add_dash_file(script, main) && add_dash_function(script) && add_dash_file(script, source);
}

/* Finds the input being read, outside of the strings being evaluated. A subshell no longer has the inputs of the shell that forked
 * it. The variable with the name of a sourced file contains another command's name while that command evaluates a string, or runs in a
 * subshell. */
static __always_inline bool find_dash_input(struct script *script, struct WireTask *task)
{
	struct dash_state *dash = &script->dash;
	struct dash_input input;
	bool subshell = task->flags & TASK_SUBSHELL;
	__u64 address;
	dash->string_lines = 0;
	if (!read_user(&address, sizeof(address), dash_address(script, dash->block, dash->layout.input)) ||
	    !read_user(&input, sizeof(input), address))
		return false;
	for (int depth = 0; depth < DASH_MAX_INPUT_DEPTH && input.fd < 0 && input.outer; depth++) {
		__u32 lines = input.line;
		if (!read_user(&input, sizeof(input), input.outer))
			return false;
		/* The string given to -c is the script: nothing was read from the input around it. */
		if (!subshell && !input.outer && !input.fd && input.line <= 1)
			break;
		if (lines > dash->string_lines)
			dash->string_lines = lines;
	}
	dash->read_lines = input.line;
	dash->inherits_input = subshell && !input.outer && input.fd <= 0;
	dash->input_kind = input.fd <= 0 ? DASH_READS_NOTHING : input.outer ? DASH_READS_FILE : DASH_READS_SCRIPT;
	if (!read_user(&dash->source_name, sizeof(dash->source_name), dash_address(script, dash->block, dash->layout.command_name)))
		dash->source_name = 0;
	if (dash->inherits_input) {
		dash->input_kind = task->script_input;
		dash->source_name = task->script_name;
		if (task->script_string_lines > dash->string_lines)
			dash->string_lines = task->script_string_lines;
	}
	return true;
}

/* Returns the line in the file; 0 if it is unknown, or if it is a line of a string. If a function sources a file, it may be a line of
 * either. */
static __always_inline __u32 dash_line(struct script *script, struct WireTask *task)
{
	struct dash_state *dash = &script->dash;
	__u32 line = dash->line, function_line = dash->function_line;
	/* Busybox counts the lines of the -c string from 0. */
	if (dash->layout.state_block && dash->input_kind == DASH_READS_NOTHING)
		return 0;
	if (function_line ? line <= dash->string_lines : dash->string_lines)
		return 0;
	if (dash->inherits_input && function_line == task->script_function &&
	    (!task->script_line || line < task->script_line))
		return task->script_line;
	return line < function_line ? 0 : line;
}

/* Restores the position at which this shell was forked: the function and, unless this shell has its own line, the line. Returns false
 * if the position is unknown, because this shell has since entered or left a function. */
static __always_inline bool restore_creator_position(struct dash_state *dash, struct WireTask *task, __u32 *line)
{
	bool has_own_line = task->flags & TASK_OWN_LINE;
	if (dash->function_line != task->script_function) {
		if (has_own_line || task->script_function)
			return false;
		dash->function_line = 0;
	}
	if (!has_own_line)
		*line = task->script_line;
	return true;
}

/* Reads the only frame that dash keeps, in the current process; returns 0 if it cannot be read. Not static: see `step_up` in path.h. */
__noinline int read_dash_frame(void)
{
	struct script *script = script_of_this_cpu();
	struct WireTask *task = find_task(current_task());
	struct dash_job job;
	__u64 address;
	if (!script || !task)
		return 0;
	struct dash_state *dash = &script->dash;
	if (!read_user(&dash->line, sizeof(dash->line), dash_address(script, dash->block, dash->layout.line)) ||
	    !read_number(script, &dash->function_line, dash->layout.function_line) ||
	    !read_pointer(script, &address, dash->layout.job) || !find_dash_input(script, task))
		return 0;
	dash->is_pipeline = address && read_user(&job, sizeof(job), address) && job.processes != address;
	__u32 line = dash_line(script, task);
	if (task->flags & TASK_CALL_PENDING && !restore_creator_position(dash, task, &line))
		return 0;
	if (!add_dash_names(script))
		return 0;
	script->called.frames = 1;
	script->called.lines[0] = line;
	if (dash->function_line || dash->input_kind == DASH_READS_FILE)
		script->called.flags |= SCRIPT_TRUNCATED;
	return 1;
}

/* Finds the blocks in which busybox keeps its variables. A busybox that runs an applet other than ash has none. */
static __always_inline bool find_dash_blocks(struct script *script)
{
	struct dash_state *dash = &script->dash;
	dash->block = dash->parameters_block = 0;
	return !dash->layout.state_block ||
	       (read_pointer(script, &dash->block, dash->layout.state_block) && dash->block &&
		read_pointer(script, &dash->parameters_block, dash->layout.parameters_block));
}

/* Reads where the dash process `creator` has forked `task`; returns false if it cannot be read. The call site of a fork that is not
 * `spawned` (vfork: the child executes a program without being a subshell first) is known only after the setup of the subshell. */
static __always_inline bool read_dash_call(struct script *script, struct WireTask *creator, struct WireTask *task, bool spawned)
{
	if (!find_dash_blocks(script) || !read_dash_frame())
		return false;
	struct dash_state *dash = &script->dash;
	__u32 line = script->called.lines[0];
	if (spawned)
		return true;
	bool is_in_same_function = dash->inherits_input && creator->script_function == dash->function_line;
	bool not_read_yet = !dash->inherits_input && !dash->function_line && line > dash->read_lines;
	task->flags |= TASK_SUBSHELL | TASK_CALL_PENDING | (dash->is_pipeline || not_read_yet ? TASK_OWN_LINE : 0);
	task->script_line = line;
	task->script_min_line = is_in_same_function ? creator->script_line : 1;
	task->script_function = dash->function_line;
	task->script_input = dash->input_kind;
	task->script_name = dash->source_name;
	task->script_files = creator->script_files;
	task->script_string_lines = dash->string_lines;
	return true;
}

/* Reads the call site of the current process, a forked shell whose setup is over; returns false if it cannot be read. */
static __always_inline bool read_own_dash_call(struct script *script, struct WireTask *task)
{
	if (task->flags & TASK_OWN_LINE)
		task->script_line = task->script_min_line;
	if (!find_dash_blocks(script) || !read_dash_frame())
		return false;
	task->script_line = script->called.lines[0];
	return true;
}

#ifdef __bpf__
LAYOUT_MAP(dash_layouts, WireDash);

/* Counts the files that dash moves to high descriptors before it reads commands from them. Dash also moves descriptors in this way
 * for a redirection that it will undo. */
static __always_inline void count_dash_file_move(struct WireTask *task, struct pt_regs *regs)
{
	if ((argument(regs, 1) == F_DUPFD || argument(regs, 1) == F_DUPFD_CLOEXEC) && argument(regs, 2) == 10 &&
	    argument(regs, 0) > 2 && task->script_files < 2)
		task->script_files++;
}

static __always_inline struct script *begin_dash(struct task_struct *p, __u32 layout_index)
{
	struct WireDash *layout = bpf_map_lookup_elem(&dash_layouts, &layout_index);
	struct script *script = script_of_this_cpu();
	if (!layout || !script)
		return NULL;
	begin_script(script, INTERPRETER_DASH, layout->code_start, p);
	script->dash.layout = *layout;
	return script;
}

/* Returns the shell from which a shell was forked, perhaps through others, without an exec. Forks of it may have ended when the record
 * is read. */
static __always_inline struct task_struct *first_shell(struct task_struct *shell)
{
	struct file *program = BPF_CORE_READ(shell, mm, exe_file);
	for (int depth = 0; depth < DASH_MAX_SUBSHELL_DEPTH; depth++) {
		struct task_struct *parent = BPF_CORE_READ(shell, real_parent);
		if (BPF_CORE_READ(parent, mm, exe_file) != program)
			break;
		shell = parent;
	}
	return shell;
}

/* Emits a call site. The collector opens files as `shell` does. `reader` is the process that executes the script. */
static __always_inline void emit_dash_script(struct script *script, struct task_struct *shell, struct WireTask *reader,
					     struct WireTask *task, __u64 now)
{
	if (script->dash.function_line)
		add_place(script, shell);
	/* A function in line 1 comes from a string, since line 1 of a script names its interpreter. */
	if (script->dash.function_line > 1 && reader->script_files < 2)
		script->called.flags |= SCRIPT_IS_ONLY_FILE;
	emit_script(script, task, now);
}

static __always_inline void emit_dash_call(struct task_struct *parent, __u32 layout_index, struct WireTask *creator,
				      struct WireTask *task, __u64 now)
{
	struct script *script = begin_dash(parent, layout_index);
	bool spawned = shares_memory(creator);
	if (script && read_dash_call(script, creator, task, spawned) && spawned)
		emit_dash_script(script, parent, creator, task, now);
}

/* Emits the call site of the current process, a forked shell. Not static: see `step_up` in path.h. */
__noinline int emit_own_dash_call(void)
{
	struct task_struct *p = current_task();
	struct WireTask *task = find_task(p);
	if (!task)
		return 0;
	struct WireInterpreter *interpreter = interpreter_of(p, task);
	if (interpreter && interpreter->kind == INTERPRETER_DASH) {
		struct script *script = begin_dash(p, interpreter->layout_index);
		if (script && read_own_dash_call(script, task))
			emit_dash_script(script, first_shell(p), task, task, bpf_ktime_get_ns());
	}
	task->flags &= ~(TASK_CALL_PENDING | TASK_OWN_LINE);
	return 1;
}

/* Call when a forked shell whose call site has not been emitted enters a system call. Emits the call site, unless the system call is
 * still part of the shell's setup. A shell in the background closes its standard input in order to replace it. */
static __always_inline void emit_dash_call_after_setup(struct WireTask *task, struct pt_regs *regs, long number)
{
	switch (number) {
	case NR_openat: case NR_open: case NR_mmap: case NR_munmap: case NR_brk: case NR_getpid: case NR_set_robust_list: case NR_rseq:
		return;
	case NR_close:
		if (!argument(regs, 0))
			task->flags |= TASK_OWN_LINE;
		return;
	}
	if (!is_surrounding_call(task, number))
		emit_own_dash_call();
}
#endif
