/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Builds the call chain of a script from its interpreter's memory. The readers of interpreters (this file, `bash.h`, `dash.h`, `python.h`,
 * `perl.h`, `make.h`, `zsh.h`) are compiled twice: for BPF, and for the ptrace collector (`ptrace/lines/readers.c`), which reads stopped processes.
 * What only BPF programs need is between `#ifdef __bpf__` and `#endif`. */
#pragma once

/* The call chain being built. Programs run with preemption off (`spare.h`), so one per CPU is enough. It is in a map because it is too
 * large for the stack, and because functions that are verified separately cannot take a pointer to it. */
struct script {
	struct WireScriptCalled called;
	/* The last string may begin anywhere within SCRIPT_DATA_BYTES, so there is room for one more. */
	char data[SCRIPT_DATA_BYTES + SCRIPT_FILE_BYTES];
	/* An address in the process minus the same address in the ELF file. */
	__u64 bias;
	/* 1: the line at which the process was created cannot be determined. */
	__u32 line_is_uncertain;
	union {
		struct bash_state {
			struct WireBash layout;
			/* The next element of BASH_SOURCE, FUNCNAME and BASH_LINENO. */
			__u64 next_elements[3];
			/* The last element of BASH_LINENO. */
			__u64 last_line;
			__u32 count;
			__u32 running_trap;
			/* The next element of the unwind-protect list. */
			__u64 unwind;
			/* The current frame, and the number of lines that were replaced so far. */
			__u32 frame, replaced_lines;
			/* The values that the latest elements saved: the line, and whether bash is interactive (1: saved). */
			__u32 saved_line, interactive_is_saved;
			/* If a text without a file has begun (`in_text`): the line where it began, and whether it is the text of a trap or of $( ). */
			__u32 text_line, text_is_not_eval;
			bool in_text;
		} bash;
		struct dash_state {
			struct WireDash layout;
			/* The addresses of the blocks in which busybox keeps the shell's variables and its parameters; 0: none. */
			__u64 block, parameters_block;
			__u32 line, function_line;
			/* The address of the name of the sourced file being read. */
			__u64 source_name;
			/* The input being read (DASH_READS_*). */
			__u32 input_kind;
			/* The largest line count of the strings being evaluated; 0 if there are none. */
			__u32 string_lines;
			/* The number of lines that were read from the input. */
			__u32 read_lines;
			/* Whether the shell reads the input of the shell that forked it. */
			bool inherits_input;
			/* Whether the shell is forking for a pipeline. */
			bool is_pipeline;
		} dash;
		struct zsh_state {
			/* The next element of the call chain, the line that is executed there, and the file of its caller. */
			__u64 call, line, file;
		} zsh;
		struct perl_state {
			__u64 interpreter;
			/* The statement of the next frame. */
			__u64 statement;
			/* The current context stack, its contexts, and the index of the next context. */
			__u64 stack, contexts;
			__s32 index;
		} perl;
		struct make_state {
			/* The stack pointer, and the words above it. Words that could not be read are 0. */
			__u64 stack_pointer, stack[MAKE_STACK_BYTES / 8];
			char job[MAKE_JOB_BYTES];
			/* The target of the job being started, and the index of the line in its recipe. */
			__u64 target, index;
			/* The index in `stack` of the job's environment, counted from 1; 0: no job was found. */
			__u32 environment_index;
		} make;
	};
};
#ifdef __bpf__
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct script);
} scripts SEC(".maps");

/* The map of the layouts of one kind of interpreter, by slot. */
#define LAYOUT_MAP(name, layout)                  \
	struct {                                  \
		__uint(type, BPF_MAP_TYPE_ARRAY); \
		__uint(max_entries, LAYOUTS);     \
		__type(key, __u32);               \
		__type(value, struct layout);     \
	} name SEC(".maps")

static __always_inline struct script *script_of_this_cpu(void)
{
	__u32 first = 0;
	return bpf_map_lookup_elem(&scripts, &first);
}
#else
static struct script *script_of_this_cpu(void);
#endif

static __always_inline bool read_user(void *to, __u32 bytes, __u64 address)
{
	return !bpf_probe_read_user(to, bytes, (void *)address);
}

/* Reads the variable of the interpreter that has this address in the ELF file. */
static __always_inline bool read_number(struct script *script, __u32 *number, __u64 variable)
{
	return read_user(number, sizeof(*number), script->bias + variable);
}

static __always_inline bool read_pointer(struct script *script, __u64 *pointer, __u64 variable)
{
	return read_user(pointer, sizeof(*pointer), script->bias + variable);
}

/* Appends a string of the process to the data; returns false if it cannot be read. A string that fills `room` may be truncated, so it
 * is stored as unknown. */
static __always_inline bool add_text(struct script *script, __u64 address, __u32 room)
{
	__u32 used = script->called.data_bytes;
	if (used > SCRIPT_DATA_BYTES)
		return false;
	long bytes = bpf_probe_read_user_str(&script->data[used], room, (void *)address);
	if (bytes <= 0)
		return false;
	if (bytes == room) {
		script->data[used] = 0;
		bytes = 1;
	}
	script->called.data_bytes = used + bytes;
	return true;
}

/* Appends an empty string, which means unknown. */
static __always_inline bool add_nothing(struct script *script)
{
	__u32 used = script->called.data_bytes;
	if (used > SCRIPT_DATA_BYTES)
		return false;
	script->data[used] = 0;
	script->called.data_bytes = used + 1;
	return true;
}

static __always_inline void begin_script_at(struct script *script, __u32 interpreter, __u64 bias)
{
	script->bias = bias;
	script->called.interpreter = interpreter;
	script->called.flags = 0;
	script->called.frames = 0;
	script->called.known_lines = SCRIPT_FRAMES + 1;
	script->called.data_bytes = 0;
}

#ifdef __bpf__
static __always_inline void begin_script(struct script *script, __u32 interpreter, __u64 code_start,
					 struct task_struct *parent)
{
	begin_script_at(script, interpreter, BPF_CORE_READ(parent, mm, start_code) - code_start);
}

/* Adds a process whose root and working directory tell which file a name means. */
static __always_inline void add_place(struct script *script, struct task_struct *p)
{
	if (is_in_other_mount_namespace(p))
		script->called.flags |= SCRIPT_IN_OTHER_MOUNTS;
	script->called.lines[SCRIPT_AT_PROCESS] = visible_tid(BPF_CORE_READ(p, group_leader));
}

static __always_inline void emit_script(struct script *script, struct WireTask *task, __u64 now)
{
	if (script->called.data_bytes > SCRIPT_DATA_BYTES)
		return;
	__u64 bytes = at_most(script->called.data_bytes, SCRIPT_DATA_BYTES);
	fill_header(&script->called.header, KIND_SCRIPT_CALLED, now, task);
	if (bpf_ringbuf_output(&events, script, sizeof(script->called) + bytes, wakeup_flag()))
		count_lost(KIND_SCRIPT_CALLED);
}
#endif
