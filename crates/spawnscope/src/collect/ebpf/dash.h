/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * What a dash executes when it forks. It keeps no chain of callers: there is one frame. It sets its line before each command, but
 * not before it forks for the commands of a pipeline, and to anything before it forks for one in the background; these, once
 * forked, set theirs before they call the kernel for anything but their own set-up. Lines are counted in whatever is read. In a string (eval, a trap, what -c was given) that is
 * not the file. What stands between backquotes was read as a string too, though nothing tells any more: but then a line is
 * less than the one which the subshell was forked for. */
#pragma once

#include "errands.h"

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
/* jobs.h: struct job, whose processes are stored in it when there is only one */
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

/* Adds the name of the function; it stands in front of its parameters, unless `set` replaced these. */
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

/* Dash moves the file that it is about to read out of the way of the script's descriptors; but also the descriptors of a
 * redirection that it will undo. */
static __always_inline void dash_moves_file(struct WireTask *task, struct pt_regs *regs)
{
	if ((argument(regs, 1) == F_DUPFD || argument(regs, 1) == F_DUPFD_CLOEXEC) && argument(regs, 2) == 10 &&
	    argument(regs, 0) > 2 && task->script_files < 2)
		task->script_files++;
}

/* Adds the name of the file that is being read. A function may have come from any that were, or (in line 1, where scripts name
 * their interpreter) from a string. The name of a file that another reads is hidden by that of the command which evaluates
 * a string. */
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

/* Finds what is being read, behind strings that are being evaluated. A subshell has forgotten what it was forked within. */
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
		/* The string that -c was given is the script: nothing was read of what is around it. */
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

/* The line in the file, 0 when it is not known: as when it is that of a string, or of the file that a function has read, where
 * it may be the function's own as well. */
static __always_inline __u32 dash_line(struct script *script, struct WireTask *task)
{
	struct dash_state *dash = &script->dash;
	__u32 line = dash->line, function_line = dash->function_line;
	/* Busybox counts the lines of what -c was given from 0. */
	if (dash->layout.own_block && dash->reads == DASH_READS_NOTHING)
		return 0;
	if (function_line ? dash->reads == DASH_READS_FILE || line <= dash->counted : dash->counted)
		return 0;
	if (dash->inherits && function_line == task->script_function &&
	    (!task->script_line || line < task->script_line))
		return task->script_line;
	return line < function_line ? 0 : line;
}

/* Back to where the shell was that forked this one: which may have called a function since, so that it is not known any more
 * where that was called. */
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

/* Reads the one frame there is of the shell that runs here; 0 where it cannot be read. Not static for the verifier's sake, as
 * `step_up`. */
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
	if (task->flags & TASK_ASKS && !dash_returns(dash, task, &line))
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
	/* A busybox that runs no shell has no blocks. */
	if (layout->own_block && (!read_pointer(script, &script->dash.own, layout->own_block) || !script->dash.own ||
				  !read_pointer(script, &script->dash.words, layout->parameters_block)))
		return NULL;
	return script;
}

static __always_inline void tell_dash(struct task_struct *parent, __u32 number, struct WireTask *creator,
				      struct WireTask *task, __u64 now)
{
	struct script *script = begin_dash(parent, number);
	if (!script || !dash_frame())
		return;
	struct dash_state *dash = &script->dash;
	__u32 line = script->called.lines[0];
	if (shares_memory(creator)) { /* for a program */
		emit_script(script, task, now);
		return;
	}
	bool within = dash->inherits && creator->script_function == dash->function_line;
	bool not_read_yet = !dash->inherits && !dash->function_line && line > dash->read_lines;
	task->flags |= TASK_SUBSHELL | TASK_ASKS | (dash->pipeline || not_read_yet ? TASK_OWN_LINE : 0);
	task->script_line = line;
	task->script_bound = within ? creator->script_line : 1;
	task->script_function = dash->function_line;
	task->script_input = dash->reads;
	task->script_counted = dash->counted;
	task->script_files = creator->script_files;
}

/* Not static, as above. */
__noinline int tell_dash_itself(void)
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
	task->flags &= ~(TASK_ASKS | TASK_OWN_LINE);
	return 1;
}

/* A forked shell that was not told of yet enters a system call: is that still its set-up? In the background, it closes its
 * standard input for another. */
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
	if (!is_errand(task, number))
		tell_dash_itself();
}
