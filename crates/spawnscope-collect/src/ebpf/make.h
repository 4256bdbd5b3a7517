/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Finds the call site in a makefile: the target and the recipe line whose command GNU make starts, or the line with the $(shell ...)
 * that it expands. None of make's variables refers to a job before the job's first command runs. But when make calls posix_spawn,
 * pointers to the job and to its environment are on the stack. User space finds the recipe's line in the makefile. */
#pragma once

#define MAKE_WORDS (MAKE_STACK_BYTES / 8)
/* A field of the job in `script->make.job`. */
#define JOB(type, offset) (*(type *)&script->make.job[offset])

/* Returns the index of this word, counted from 1, in the part of the stack that contains the arguments of posix_spawn; 0 if it is not
 * there. Not static: see `step_up` in path.h. */
__noinline int index_on_make_stack(__u64 word)
{
	struct script *script = script_of_this_cpu();
	if (!script)
		return 0;
	for (int i = 0; i < MAKE_ENVIRONMENT_BYTES / 8; i++)
		if (script->make.stack[i] == word)
			return i + 1;
	return 0;
}

/* Whether an allocator may have returned this value. */
static __always_inline bool may_be_allocated(__u64 address)
{
	return address > MAKE_LINE_LIMIT && !(address & 15);
}

/* Stores the job at this address, if it may be the job being started. That is the job whose
 * environment is closest to the stack pointer, since make passed it last: with parallel jobs, up
 * to 7 % of the stacks contained remains of another job and its environment. A job that has
 * ended is not accepted: its memory was freed, which has overwritten the pointer to its
 * environment. Not static: see `step_up` in path.h. */
__noinline int store_make_job_if_starting(__u64 address)
{
	struct script *script = script_of_this_cpu();
	__u16 count;
	if (!script || !read_user(script->make.job, MAKE_JOB_BYTES, address))
		return 0;
	__u64 target = JOB(__u64, MAKE_JOB_FILE), environment = JOB(__u64, MAKE_JOB_ENVIRONMENT);
	__u32 line = JOB(__u32, MAKE_JOB_LINE);
	if (!line || !may_be_allocated(target) || !may_be_allocated(environment) || !may_be_allocated(JOB(__u64, MAKE_JOB_LINES)))
		return 0;
	__u64 recipe = user_pointer(target + MAKE_TARGET_RECIPE);
	if (!may_be_allocated(recipe) || !may_be_allocated(user_pointer(recipe + MAKE_RECIPE_TEXTS)) ||
	    !read_user(&count, sizeof(count), recipe + MAKE_RECIPE_COUNT) || line > count)
		return 0;
	__u32 stack_index = index_on_make_stack(environment);
	if (!stack_index || (script->make.environment_index && script->make.environment_index <= stack_index))
		return 0;
	script->make.environment_index = stack_index;
	script->make.target = target;
	script->make.index = line - 1;
	return 0;
}

/* Reads the stack of the forking thread from its stack pointer upwards. Pieces that cannot be read become 0. */
static __always_inline void read_make_stack(struct script *script, __u64 stack_pointer)
{
	for (int piece = 0; piece < MAKE_STACK_BYTES / MAKE_STACK_PIECE; piece++)
		read_user((char *)script->make.stack + piece * MAKE_STACK_PIECE, MAKE_STACK_PIECE,
			  stack_pointer + piece * MAKE_STACK_PIECE);
	script->make.stack_pointer = stack_pointer;
	script->make.environment_index = 0;
}

/* Searches the stack for the job that is being started. Jobs are allocated, so they are aligned. */
static __always_inline void find_make_job(struct script *script)
{
	for (int i = 0; i < MAKE_WORDS; i++) {
		__u64 word = script->make.stack[i];
		if (may_be_allocated(word))
			store_make_job_if_starting(word);
	}
}

/* Appends a string, truncated to MAKE_TEXT_BYTES; returns false if it cannot be read. */
static __always_inline bool add_truncated_text(struct script *script, __u64 address)
{
	__u32 used = script->called.data_bytes;
	if (used > SCRIPT_DATA_BYTES)
		return false;
	long bytes = bpf_probe_read_user_str(&script->data[used], MAKE_TEXT_BYTES, (void *)address);
	if (bytes <= 0)
		return false;
	script->called.data_bytes = used + bytes;
	return true;
}

/* Appends the string at this address, or an empty string if it cannot be read. */
static __always_inline bool add_text_or_nothing(struct script *script, __u64 address)
{
	return add_text(script, address, SCRIPT_FILE_BYTES) || add_nothing(script);
}

/* Adds the file and line of the position at this address, and the name of the target at `target` (0: none). */
static __always_inline bool add_position(struct script *script, __u64 position, __u64 target)
{
	__u64 line = user_pointer(position + MAKE_POSITION_LINE);
	script->called.lines[MAKE_AT_LINE] = line < MAKE_LINE_LIMIT ? line : 0;
	script->called.lines[MAKE_AT_INDEX] = 0;
	script->called.frames = 1;
	return add_text_or_nothing(script, user_pointer(position)) &&
	       add_text_or_nothing(script, target ? user_pointer(target) : 0);
}

/* Adds the text of a line of a recipe. */
static __always_inline bool add_recipe_line(struct script *script, __u64 recipe, __u64 index)
{
	__u64 texts = user_pointer(recipe + MAKE_RECIPE_TEXTS);
	if (index >= MAKE_LINE_LIMIT || !texts)
		return add_nothing(script);
	script->called.lines[MAKE_AT_INDEX] = index;
	return add_truncated_text(script, user_pointer(texts + index * 8)) || add_nothing(script);
}

static __always_inline bool add_running_recipe(struct script *script)
{
	__u64 recipe = user_pointer(script->make.target + MAKE_TARGET_RECIPE);
	script->called.flags = MAKE_RUNS;
	return add_position(script, recipe, script->make.target) && add_recipe_line(script, recipe, script->make.index);
}

/* Appends the name of the variable whose position is at this address; returns false if the position is not that of a variable. */
static __always_inline bool add_variable(struct script *script, __u64 position)
{
	__u32 before = script->called.data_bytes, length;
	if (!read_user(&length, sizeof(length), position + MAKE_POSITION_BYTES) ||
	    !add_truncated_text(script, user_pointer(position - MAKE_NAME_TO_POSITION)))
		return false;
	if (script->called.data_bytes - before == length + 1)
		return true;
	script->called.data_bytes = before;
	return false;
}

/* Adds the position that make reads or expands. A position on make's stack belongs to text that make reads; any other position
 * belongs to a variable or a recipe. */
static __always_inline bool add_read_position(struct script *script, __u64 position)
{
	if (!position || !add_position(script, position, 0))
		return false;
	if (position - script->make.stack_pointer < MAKE_MAX_STACK_BYTES) {
		script->called.flags = user_pointer(position - MAKE_FILE_TO_POSITION) ? MAKE_READS : MAKE_EVALUATES;
		return add_nothing(script);
	}
	script->called.flags = MAKE_VARIABLE;
	if (add_variable(script, position))
		return true;
	script->called.flags = MAKE_EXPANDS;
	return add_recipe_line(script, position, user_pointer(position + MAKE_POSITION_INDEX));
}

/* Reads the call site of the thread with this stack pointer; returns false if it is unknown. */
static __always_inline bool read_make_call(struct script *script, const struct WireMake *layout, __u64 stack_pointer)
{
	__u64 position;
	read_make_stack(script, stack_pointer);
	find_make_job(script);
	if (script->make.environment_index)
		return add_running_recipe(script);
	return read_pointer(script, &position, layout->reading) && add_read_position(script, position);
}

#ifdef __bpf__
LAYOUT_MAP(make_layouts, WireMake);

/* Appends the components of the working directory, which names of files may be relative to. */
static __always_inline void add_directory(struct script *script, struct task_struct *p)
{
	struct scratch *scratch = scratch_of_this_cpu();
	struct fs_struct *fs = BPF_CORE_READ(p, fs);
	__u32 used = script->called.data_bytes;
	if (!scratch || used > 1024)
		return;
	begin_walk(scratch, fs, 0);
	scratch->walk.mnt = BPF_CORE_READ(fs, pwd.mnt);
	scratch->walk.dentry = BPF_CORE_READ(fs, pwd.dentry);
	walk_up();
	__u64 bytes = scratch->walk.used;
	if (!scratch->walk.complete || bytes > 8192 ||
	    bpf_probe_read_kernel(&script->data[used], at_most(bytes, 8192), scratch->data))
		return;
	script->called.data_bytes = used + bytes;
	script->called.flags |= SCRIPT_HAS_DIRECTORY;
}

/* Reports the call site in the parent, which runs a make binary with this layout. */
static __always_inline void emit_make_call(struct task_struct *parent, __u32 layout_index, struct WireTask *child, __u64 now)
{
	struct WireMake *layout = bpf_map_lookup_elem(&make_layouts, &layout_index);
	struct script *script = script_of_this_cpu();
	struct WireRegisters registers;
	if (!layout || !script || bpf_probe_read_kernel(&registers, sizeof(registers), user_registers(parent)) ||
	    !ARE_OF_USER_CODE(&registers))
		return;
	begin_script(script, INTERPRETER_MAKE, layout->code_start, parent);
	if (!read_make_call(script, layout, registers.sp))
		return;
	add_directory(script, parent);
	add_place(script, parent);
	emit_script(script, child, now);
}
#endif
