/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Reads which command a zsh process executes when it forks. zsh counts the lines of a function from its beginning, and keeps the
 * line where it begins. Each element of its call chain has the line of its caller. */
#pragma once

/* zsh.h: struct funcstack */
struct zsh_call {
	__u64 outer, name, file, caller, first_line, caller_line;
	__u32 kind, gap;
};

/* Adds the frame of the current call, and moves to its caller. Returns 0 if it cannot be read. Lines of an evaluated text are not in a
 * file, so such a call has no frame; the next one outwards has the line of the eval. Not static: see `step_up` in path.h. */
__noinline int leave_zsh_call(void)
{
	struct script *script = script_of_this_cpu();
	struct zsh_call call;
	if (!script || !read_user(&call, sizeof(call), script->zsh.call))
		return 0;
	__u32 frame = script->called.frames;
	if (call.kind != ZSH_EVALUATED) {
		bool is_function = call.kind == ZSH_FUNCTION;
		if (frame >= SCRIPT_FRAMES)
			return 0;
		script->called.lines[frame] = script->zsh.line + (is_function ? call.first_line : 0);
		if (!add_text(script, call.file, SCRIPT_FILE_BYTES) && !add_nothing(script))
			return 0;
		if (!(is_function && add_text(script, call.name, SCRIPT_FUNCTION_BYTES)) && !add_nothing(script))
			return 0;
		script->called.frames = frame + 1;
	}
	script->zsh.line = call.caller_line;
	script->zsh.file = call.caller;
	script->zsh.call = call.outer;
	return 1;
}

/* Adds what is outside of all calls: the script. */
static __always_inline void add_zsh_script(struct script *script)
{
	__u32 frame = script->called.frames;
	if (frame > SCRIPT_FRAMES)
		return;
	script->called.lines[frame] = script->zsh.line;
	add_text(script, script->zsh.file, SCRIPT_FILE_BYTES);
}

/* Reads the call chain of a zsh; returns false if no file or line is known. */
static __always_inline bool read_zsh_call(struct script *script, const struct WireZsh *layout)
{
	__u32 in_trap, trap_is_function;
	if (!read_pointer(script, &script->zsh.line, layout->line) || !read_pointer(script, &script->zsh.call, layout->calls) ||
	    !read_pointer(script, &script->zsh.file, layout->script) || !read_number(script, &in_trap, layout->in_trap) ||
	    !read_number(script, &trap_is_function, layout->trap_is_function))
		return false;
	/* Lines are those of the trap's text. */
	if (in_trap && !trap_is_function)
		script->called.known_lines = 0;
	for (int i = 0; i < ZSH_MAX_CALLS && script->zsh.call; i++)
		if (!leave_zsh_call())
			break;
	if (script->zsh.call)
		script->called.flags = SCRIPT_TRUNCATED;
	else
		add_zsh_script(script);
	return script->called.data_bytes;
}

#ifdef __bpf__
LAYOUT_MAP(zsh_layouts, WireZsh);

static __always_inline void emit_zsh_call(struct task_struct *parent, __u32 layout_index, struct WireTask *task, __u64 now)
{
	struct WireZsh *layout = bpf_map_lookup_elem(&zsh_layouts, &layout_index);
	struct script *script = script_of_this_cpu();
	if (!layout || !script)
		return;
	begin_script(script, INTERPRETER_ZSH, layout->code_start, parent);
	if (read_zsh_call(script, layout))
		emit_script(script, task, now);
}
#endif
