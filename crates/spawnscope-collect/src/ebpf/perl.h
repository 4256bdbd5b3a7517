/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Finds the call site in a Perl program: reads the statement that the forking thread executes, and the contexts around it, which
 * contain their callers' statements. The pointer to a thread's interpreter is a thread-specific value (pthread_getspecific), which glibc
 * stores in its structure for the thread. */
#pragma once

/* descr.h: struct pthread_key_data */
struct thread_value {
	__u64 sequence, value;
};

/* Returns the address of the interpreter of the thread with this thread pointer; 0 if it has none. glibc gives a pthread key that is in
 * use an odd sequence number. */
static __always_inline __u64 perl_of_thread(struct script *script, const struct WirePerl *layout, __u64 thread_pointer)
{
	struct thread_value value;
	__u32 key;
	if (!read_number(script, &key, layout->key) || key >= PTHREAD_INLINE_KEYS ||
	    !read_user(&value, sizeof(value), thread_pointer + layout->values + key * sizeof(value)))
		return 0;
	return value.sequence & 1 ? value.value : 0;
}

/* Returns the address of a function's name. The first word of every SV points to its body. */
static __always_inline __u64 perl_function(__u64 code)
{
	__u32 flags;
	__u64 body = user_pointer(code);
	if (!code || !read_user(&flags, sizeof(flags), body + PERL_CODE_FLAGS))
		return 0;
	__u64 name = user_pointer(body + PERL_CODE_NAME);
	if (!(flags & PERL_CODE_NAMED))
		name = user_pointer(user_pointer(name) + PERL_SYMBOL_NAME);
	return name ? name + PERL_NAME_TEXT : 0;
}

/* Adds the frame of the current statement, which is in the function with this code (0: in no function). Returns 0 if the frame cannot
 * be read. Not static: see `step_up` in path.h. */
__noinline int add_perl_frame(__u64 code)
{
	struct script *script = script_of_this_cpu();
	__u32 line;
	if (!script)
		return 0;
	__u64 statement = script->perl.statement;
	__u32 frame = script->called.frames;
	if (frame && statement - script->perl.interpreter < PERL_MAX_INTERPRETER_BYTES)
		return 0;
	if (frame >= SCRIPT_FRAMES || !statement || !read_user(&line, sizeof(line), statement + PERL_STATEMENT_LINE) ||
	    !line || line >= PERL_LINE_LIMIT)
		return 0;
	if (!add_text(script, user_pointer(statement + PERL_STATEMENT_FILE), SCRIPT_FILE_BYTES))
		return 0;
	if (!add_text(script, perl_function(code), SCRIPT_FUNCTION_BYTES) && !add_nothing(script))
		return 0;
	script->called.lines[frame] = line;
	script->called.frames = frame + 1;
	return 1;
}

/* Moves to the innermost context of a context stack. */
static __always_inline bool enter_perl_stack(struct perl_state *perl, __u64 stack)
{
	perl->stack = stack;
	perl->contexts = user_pointer(stack + PERL_STACK_CONTEXTS);
	return perl->contexts && read_user(&perl->index, sizeof(perl->index), stack + PERL_STACK_INDEX);
}

/* Moves one context outwards. Returns 0 at the end, after adding the last frame. Code that the interpreter calls itself, such as a
 * signal handler, runs on its own context stack. Not static: see `step_up` in path.h. */
__noinline int leave_perl_context(void)
{
	struct script *script = script_of_this_cpu();
	__u8 kind;
	if (!script)
		return 0;
	struct perl_state *perl = &script->perl;
	if (perl->index < 0) {
		__u64 outer = user_pointer(perl->stack + PERL_STACK_OUTER);
		if (outer)
			return enter_perl_stack(perl, outer);
		if (add_perl_frame(0))
			script->called.flags = 0;
		return 0;
	}
	__u64 context = perl->contexts + (__u64)perl->index * PERL_CONTEXT_BYTES;
	perl->index--;
	if (!read_user(&kind, sizeof(kind), context))
		return 0;
	__u8 called = kind & PERL_CONTEXT_KIND;
	if (called == PERL_CONTEXT_EVAL ? kind & PERL_CONTEXT_TRY :
					  called != PERL_CONTEXT_SUB && called != PERL_CONTEXT_FORMAT)
		return 1;
	__u64 code = called == PERL_CONTEXT_SUB ? user_pointer(context + PERL_CONTEXT_CODE) : 0;
	if (!add_perl_frame(code))
		return 0;
	perl->statement = user_pointer(context + PERL_CONTEXT_STATEMENT);
	return 1;
}

/* Reads the call chain of the thread with this thread pointer; returns false if no frame is known. */
static __always_inline bool read_perl_call(struct script *script, const struct WirePerl *layout, __u64 thread_pointer)
{
	script->called.flags = SCRIPT_TRUNCATED;
	__u64 perl = perl_of_thread(script, layout, thread_pointer);
	if (!perl)
		return false;
	script->perl.interpreter = perl;
	script->perl.statement = user_pointer(perl + layout->statement);
	if (!enter_perl_stack(&script->perl, user_pointer(perl + layout->stack)))
		return false;
	for (int i = 0; i < PERL_MAX_CONTEXTS; i++)
		if (!leave_perl_context())
			break;
	return script->called.frames;
}

#ifdef __bpf__
LAYOUT_MAP(perl_layouts, WirePerl);

/* Reports the call site in the parent, which runs a Perl binary with this layout. */
static __always_inline void emit_perl_call(struct task_struct *parent, __u32 layout_index, struct WireTask *child, __u64 now)
{
	struct WirePerl *layout = bpf_map_lookup_elem(&perl_layouts, &layout_index);
	struct script *script = script_of_this_cpu();
	if (!layout || !script)
		return;
	begin_script(script, INTERPRETER_PERL, layout->code_start, parent);
	if (read_perl_call(script, layout, THREAD_POINTER(parent)))
		emit_script(script, child, now);
}
#endif
