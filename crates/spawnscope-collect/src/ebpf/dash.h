/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Reads what a dash executes when it forks. Dash keeps no call chain: there is one frame. It sets its line before each command,
 * but not before it forks for the commands of a pipeline, nor before it forks for a command in the background. These children
 * set their line before their first system call that is not setup. Lines are counted per input. In a string (eval, a trap, the
 * argument of -c) the count is not that of the file. The text between backquotes was also read from a string, and no variable
 * shows that, but its lines are smaller than the line that the subshell was forked for. */
#pragma once

#include "surrounding.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LAYOUTS);
	__type(key, __u32);
	__type(value, struct WireDash);
} dash_layouts SEC(".maps");

/* input.h: struct parsefile */
struct dash_input {
	__u64 outer;
	__u32 line;
	__s32 fd; /* -1: a string */
};
/* jobs.h: struct job, which holds the process itself if there is only one */
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

#define DASH_INPUT_DEPTH 8

/* The address of a variable in the process. */
static __always_inline __u64 dash_place(struct script *script, __u64 block, __u64 variable)
{
	return (variable < DASH_BLOCK_BYTES ? block : script->bias) + variable;
}

/* Adds the name of the function. It precedes the parameters, unless `set` replaced them. */
static __always_inline bool dash_function(struct script *script)
{
	struct dash_parameters parameters;
	__u64 name = 0;
	if (script->dash.function_line &&
	    read_user(&parameters, sizeof(parameters), dash_place(script, script->dash.words, script->dash.layout.parameters) - sizeof(__u32)) &&
	    !(parameters.allocated & 0xff))
		read_user(&name, sizeof(name), parameters.words - sizeof(name));
	return add_text(script, name, SCRIPT_FUNCTION_BYTES) || add_nothing(script);
}

/* Counts files that dash moves away from the script's descriptors before reading them. Dash also does this with the descriptors
 * of a redirection that it will undo. */
static __always_inline void dash_moves_file(struct WireTask *task, struct pt_regs *regs)
{
	if ((argument(regs, 1) == F_DUPFD || argument(regs, 1) == F_DUPFD_CLOEXEC) && argument(regs, 2) == 10 &&
	    argument(regs, 0) > 2 && task->script_files < 2)
		task->script_files++;
}

/* Adds the name of the file being read. A function may come from any file read before, or from a string; only a string has
 * functions in line 1, since scripts name their interpreter there. The name of a sourced file is hidden by the name of a command
 * that evaluates a string. */
static __always_inline bool dash_file(struct script *script, struct WireTask *task)
{
	struct dash_state *dash = &script->dash;
	bool certain = !dash->function_line || (dash->function_line > 1 && task->script_files < 2);
	__u64 name = 0;
	if (certain && dash->reads == DASH_READS_SCRIPT)
		read_user(&name, sizeof(name), dash_place(script, dash->own, dash->layout.own_name));
	else if (!dash->function_line && dash->reads == DASH_READS_FILE && !dash->counted)
		read_user(&name, sizeof(name), dash_place(script, dash->own, dash->layout.command_name));
	return add_text(script, name, SCRIPT_FILE_BYTES) || add_nothing(script);
}

/* Finds the input being read, below strings that are being evaluated. A subshell has lost the inputs it was forked in. */
static __always_inline bool dash_reads(struct script *script, struct WireTask *task)
{
	struct dash_state *dash = &script->dash;
	struct dash_input input;
	bool subshell = task->flags & TASK_SUBSHELL;
	__u64 address;
	dash->counted = 0;
	if (!read_user(&address, sizeof(address), dash_place(script, dash->own, dash->layout.input)) ||
	    !read_user(&input, sizeof(input), address))
		return false;
	for (int depth = 0; depth < DASH_INPUT_DEPTH && input.fd < 0 && input.outer; depth++) {
		__u32 lines = input.line;
		if (!read_user(&input, sizeof(input), input.outer))
			return false;
		/* The string given to -c is the script: nothing was read from the input around it. */
		if (!subshell && !input.outer && !input.fd && input.line <= 1)
			break;
		if (lines > dash->counted)
			dash->counted = lines;
	}
	dash->read_lines = input.line;
	dash->inherits = subshell && !input.outer && input.fd <= 0;
	dash->reads = input.fd <= 0 ? DASH_READS_NOTHING : input.outer ? DASH_READS_FILE : DASH_READS_SCRIPT;
	if (dash->inherits) {
		dash->reads = task->script_input;
		if (task->script_counted > dash->counted)
			dash->counted = task->script_counted;
	}
	return true;
}

/* The line in the file; 0 if unknown. It is unknown if it belongs to a string, or to a file that a function has read, where it
 * may also be the function's own line. */
static __always_inline __u32 dash_line(struct script *script, struct WireTask *task)
{
	struct dash_state *dash = &script->dash;
	__u32 line = dash->line, function_line = dash->function_line;
	/* Busybox counts the lines of the -c string from 0. */
	if (dash->layout.own_block && dash->reads == DASH_READS_NOTHING)
		return 0;
	if (function_line ? dash->reads == DASH_READS_FILE || line <= dash->counted : dash->counted)
		return 0;
	if (dash->inherits && function_line == task->script_function &&
	    (!task->script_line || line < task->script_line))
		return task->script_line;
	return line < function_line ? 0 : line;
}

/* Restores the position of the shell that forked this one. This shell may have called a function since; the call site of that
 * function is then unknown. */
static __always_inline bool dash_returns(struct dash_state *dash, struct WireTask *task, __u32 *line)
{
	bool own = task->flags & TASK_OWN_LINE;
	if (dash->function_line != task->script_function) {
		if (own || task->script_function)
			return false;
		dash->function_line = 0;
	}
	if (!own)
		*line = task->script_line;
	return true;
}

/* Reads the only frame of the shell that runs here; 0 if it cannot be read. Not static, for the reason given at `step_up`. */
__noinline int dash_frame(void)
{
	struct script *script = script_of_this_cpu();
	struct WireTask *task = find_task(current_task());
	struct dash_job job;
	__u64 address;
	if (!script || !task)
		return 0;
	struct dash_state *dash = &script->dash;
	if (!read_user(&dash->line, sizeof(dash->line), dash_place(script, dash->own, dash->layout.line)) ||
	    !read_number(script, &dash->function_line, dash->layout.function_line) ||
	    !read_pointer(script, &address, dash->layout.job) || !dash_reads(script, task))
		return 0;
	dash->pipeline = address && read_user(&job, sizeof(job), address) && job.processes != address;
	__u32 line = dash_line(script, task);
	if (task->flags & TASK_CALL_PENDING && !dash_returns(dash, task, &line))
		return 0;
	if (!dash_file(script, task) || !dash_function(script))
		return 0;
	script->called.frames = 1;
	script->called.lines[0] = line;
	if (dash->function_line || dash->reads == DASH_READS_FILE)
		script->called.flags |= SCRIPT_TRUNCATED;
	return 1;
}

static __always_inline struct script *begin_dash(struct task_struct *p, __u32 number)
{
	struct WireDash *layout = bpf_map_lookup_elem(&dash_layouts, &number);
	struct script *script = script_of_this_cpu();
	if (!layout || !script)
		return NULL;
	begin_script(script, INTERPRETER_DASH, layout->code_start, p);
	script->dash.layout = *layout;
	script->dash.own = script->dash.words = 0;
	/* A busybox that runs another applet has no such blocks. */
	if (layout->own_block && (!read_pointer(script, &script->dash.own, layout->own_block) || !script->dash.own ||
				  !read_pointer(script, &script->dash.words, layout->parameters_block)))
		return NULL;
	return script;
}

static __always_inline void emit_dash_call(struct task_struct *parent, __u32 number, struct WireTask *creator,
				      struct WireTask *task, __u64 now)
{
	struct script *script = begin_dash(parent, number);
	if (!script || !dash_frame())
		return;
	struct dash_state *dash = &script->dash;
	__u32 line = script->called.lines[0];
	if (shares_memory(creator)) { /* it launches a program */
		emit_script(script, task, now);
		return;
	}
	bool within = dash->inherits && creator->script_function == dash->function_line;
	bool not_read_yet = !dash->inherits && !dash->function_line && line > dash->read_lines;
	task->flags |= TASK_SUBSHELL | TASK_CALL_PENDING | (dash->pipeline || not_read_yet ? TASK_OWN_LINE : 0);
	task->script_line = line;
	task->script_bound = within ? creator->script_line : 1;
	task->script_function = dash->function_line;
	task->script_input = dash->reads;
	task->script_counted = dash->counted;
	task->script_files = creator->script_files;
}

/* Not static, for the reason given at `step_up`. */
__noinline int emit_own_dash_call(void)
{
	struct task_struct *p = current_task();
	struct WireTask *task = find_task(p);
	if (!task)
		return 0;
	struct WireInterpreter *interpreter = interpreter_of(p, task);
	if (interpreter && interpreter->kind == INTERPRETER_DASH) {
		struct script *script = begin_dash(p, interpreter->layout);
		if (task->flags & TASK_OWN_LINE)
			task->script_line = task->script_bound;
		if (script && dash_frame()) {
			task->script_line = script->called.lines[0];
			emit_script(script, task, bpf_ktime_get_ns());
		}
	}
	task->flags &= ~(TASK_CALL_PENDING | TASK_OWN_LINE);
	return 1;
}

/* A forked shell whose call has not been emitted enters a system call. Emits the call unless this is still part of the setup. A
 * shell in the background closes its standard input to replace it. */
static __always_inline void dash_sets_up(struct WireTask *task, struct pt_regs *regs, long number)
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
