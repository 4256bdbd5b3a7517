/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Reads which command a bash process executes when it forks. The call chain is in the arrays BASH_SOURCE, FUNCNAME and BASH_LINENO,
 * and the line is in `line_number`, with two exceptions. First, a compound command that runs in a subshell has not set `line_number`
 * yet; its line is stored in the command, or in the first command inside it. Second, in text that is not read from a file (eval,
 * trap, $( )), lines are counted from the line where the text began, regardless of the file's own lines: see `bash_texts.h`. */
#pragma once

#include "bash_texts.h"

/* command.h: enum command_type */
enum {
	BASH_FOR, BASH_CASE, BASH_WHILE, BASH_IF, BASH_SIMPLE, BASH_SELECT, BASH_CONNECTION, BASH_FUNCTION, BASH_UNTIL, BASH_GROUP,
	BASH_ARITHMETIC, BASH_CONDITION, BASH_ARITHMETIC_FOR, BASH_SUBSHELL, BASH_COPROCESS,
};
/* command.h: COMMAND, and the fields shared by the structures that its value points to */
struct bash_command {
	__u32 type, flags, line, gap;
	__u64 redirects, value;
};
struct bash_value {
	__u32 flags, line;
	__u64 first, second;
};
/* hashlib.h: BUCKET_CONTENTS, HASH_TABLE */
struct bash_bucket {
	__u64 next, key, data;
	__u32 hash, found;
};
struct bash_table {
	__u64 buckets;
	__u32 bucket_count, entry_count;
};
/* array.h: ARRAY_ELEMENT */
struct bash_element {
	__u64 index, value, next, previous;
};
#define BASH_MAX_COMMAND_DEPTH 12
#define BASH_MAX_BUCKET_LENGTH 16
/* variables.h: VAR_CONTEXT; SHELL_VAR */
#define BASH_CONTEXT_TABLE 32
#define BASH_VARIABLE_VALUE 8

/* Returns the line of a compound command; 0 if it cannot be determined. */
static __always_inline __u32 bash_compound_line(struct bash_command *command)
{
	struct bash_value value;
	for (int depth = 0; depth < BASH_MAX_COMMAND_DEPTH; depth++) {
		__u64 inner;
		if (command->type > BASH_COPROCESS || !read_user(&value, sizeof(value), command->value))
			return 0;
		switch (command->type) {
		case BASH_WHILE: case BASH_IF: case BASH_CONNECTION: case BASH_UNTIL: case BASH_GROUP: case BASH_SUBSHELL:
			inner = value.first;
			break;
		case BASH_COPROCESS:
			inner = value.second;
			break;
		default:
			return value.line;
		}
		if (!read_user(command, sizeof(*command), inner))
			return 0;
	}
	return 0;
}

/* Stores the line being executed in the chain; 0 if it is unknown. */
__noinline int read_bash_line(void)
{
	struct script *script = script_of_this_cpu();
	if (!script)
		return 0;
	struct WireBash *layout = &script->bash.layout;
	struct bash_command command;
	__u32 line = 0, expanding;
	__u64 address;
	script->called.lines[0] = 0;
	if (!read_number(script, &line, layout->line_number) || !read_pointer(script, &address, layout->command))
		return 0;
	if (address) {
		if (!read_user(&command, sizeof(command), address))
			return 0;
		if (command.type != BASH_SIMPLE) {
			if (!read_number(script, &expanding, layout->expanding_redirection))
				return 0;
			/* `done < <(command)`: bash does not know this line. */
			if (expanding) {
				script->line_is_uncertain = 1;
				return 0;
			}
			line = bash_compound_line(&command);
		}
	}
	if ((__s32)line > 0)
		script->called.lines[0] = line;
	return 0;
}

/* Finds the first element of one of the three arrays; returns false if the array cannot be read. */
static __always_inline bool find_bash_array(struct script *script, struct bash_table *table, __u32 which)
{
	struct bash_state *bash = &script->bash;
	struct bash_bucket bucket = {};
	struct bash_element ends; /* the list is a ring, closed by an element without a value */
	__u32 hash = bash->layout.hashes[which], count;
	__u64 array, head;
	__u64 chain = table->buckets + 8 * (hash & (table->bucket_count - 1));
	if (!read_user(&bucket.next, sizeof(bucket.next), chain))
		return false;
	for (int i = 0; i < BASH_MAX_BUCKET_LENGTH && bucket.hash != hash; i++)
		if (!read_user(&bucket, sizeof(bucket), bucket.next))
			return false;
	if (bucket.hash != hash || !read_user(&array, sizeof(array), bucket.data + BASH_VARIABLE_VALUE) ||
	    !read_user(&count, sizeof(count), array + bash->layout.count_offset) ||
	    !read_user(&head, sizeof(head), array + bash->layout.head_offset) ||
	    !read_user(&ends, sizeof(ends), head))
		return false;
	if (which && count != bash->count)
		return false;
	bash->next_elements[which] = ends.next;
	bash->last_line = ends.previous;
	bash->count = count;
	return true;
}

/* Finds the three arrays; returns 0 if they are inconsistent. */
__noinline int find_bash_arrays(void)
{
	struct script *script = script_of_this_cpu();
	struct bash_table table;
	__u64 context, address;
	if (!script || !read_pointer(script, &context, script->bash.layout.global_variables) ||
	    !read_user(&address, sizeof(address), context + BASH_CONTEXT_TABLE) ||
	    !read_user(&table, sizeof(table), address))
		return 0;
	if (!table.bucket_count || table.bucket_count & (table.bucket_count - 1))
		return 0;
	return find_bash_array(script, &table, 0) && find_bash_array(script, &table, 1) && find_bash_array(script, &table, 2);
}

/* Parses a decimal number; returns 0 if the text is not a number. */
static __always_inline __u32 bash_decimal(__u64 address)
{
	char text[12] = {};
	__u32 number = 0;
	if (bpf_probe_read_user_str(text, sizeof(text), (void *)address) <= 0)
		return 0;
	for (int i = 0; i < 10 && text[i]; i++) {
		if (text[i] < '0' || text[i] > '9')
			return 0;
		number = number * 10 + text[i] - '0';
	}
	return number;
}

/* Adds a frame; returns 0 if the arrays are inconsistent. */
__noinline int add_bash_frame(void)
{
	struct script *script = script_of_this_cpu();
	if (!script)
		return 0;
	struct bash_element source, function, line;
	__u64 *elements = script->bash.next_elements;
	__u32 frame = script->called.frames;
	if (frame >= SCRIPT_FRAMES || !read_user(&source, sizeof(source), elements[0]) ||
	    !read_user(&function, sizeof(function), elements[1]) || !read_user(&line, sizeof(line), elements[2]))
		return 0;
	if (source.index != frame || function.index != frame || line.index != frame)
		return 0;
	if (!add_text(script, source.value, SCRIPT_FILE_BYTES) ||
	    !add_text(script, function.value, SCRIPT_FUNCTION_BYTES))
		return 0;
	script->called.lines[frame + 1] = bash_decimal(line.value);
	elements[0] = source.next;
	elements[1] = function.next;
	elements[2] = line.next;
	script->called.frames = frame + 1;
	return 1;
}

/* Whether the last frame has no caller. Such a frame is the script's top level, or a file read at startup. */
static __always_inline bool bash_is_outermost(struct script *script)
{
	struct bash_element line;
	return script->bash.count && read_user(&line, sizeof(line), script->bash.last_line) && !bash_decimal(line.value);
}

/* Appends $0. Since bash 5.3, BASH_SOURCE contains $0 for functions that were read from `-c` or from standard input. */
static __always_inline bool add_bash_dollar_zero(struct script *script)
{
	__u64 name;
	return read_pointer(script, &name, script->bash.layout.dollar_variables) && add_text(script, name, SCRIPT_FILE_BYTES);
}

/* Reads the complete chain; returns 0 if it cannot be read or is inconsistent. */
__noinline int read_bash_chain(void)
{
	struct script *script = script_of_this_cpu();
	__u32 interactive, texts;
	if (!script || !find_bash_arrays())
		return 0;
	read_bash_line();
	for (int frame = 0; frame < SCRIPT_FRAMES; frame++) {
		if (frame >= script->bash.count)
			break;
		if (!add_bash_frame())
			return 0;
	}
	if (script->bash.count > SCRIPT_FRAMES)
		script->called.flags |= SCRIPT_TRUNCATED;
	if (bash_is_outermost(script))
		script->called.flags |= SCRIPT_OUTERMOST;
	else if (!add_bash_dollar_zero(script))
		return 0;
	if (!read_number(script, &interactive, script->bash.layout.interactive_shell) ||
	    !read_number(script, &texts, script->bash.layout.parse_level))
		return 0;
	if (interactive)
		script->called.flags |= SCRIPT_INTERACTIVE;
	if (!texts)
		return 1;
	if (script->bash.layout.counts_from_zero)
		script->called.flags |= SCRIPT_FROM_ZERO;
	return correct_bash_text_lines();
}

/* Reads the call site of the process `task`, which the bash process `creator` has forked; returns false if it cannot be read. */
static __always_inline bool read_bash_call(struct script *script, struct WireTask *creator, struct WireTask *task)
{
	script->line_is_uncertain = !!(creator->flags & TASK_LINE_UNCERTAIN);
	bool is_known = read_bash_chain();
	if (script->line_is_uncertain)
		task->flags |= TASK_LINE_UNCERTAIN;
	return is_known;
}

#ifdef __bpf__
LAYOUT_MAP(bash_layouts, WireBash);

static __always_inline void emit_bash_call(struct task_struct *parent, __u32 layout_index, struct WireTask *creator,
				      struct WireTask *task, __u64 now)
{
	struct WireBash *layout = bpf_map_lookup_elem(&bash_layouts, &layout_index);
	struct script *script = script_of_this_cpu();
	if (!layout || !script)
		return;
	begin_script(script, INTERPRETER_BASH, layout->code_start, parent);
	script->bash.layout = *layout;
	if (read_bash_call(script, creator, task))
		emit_script(script, task, now);
}
#endif
