/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Lines of text that bash executes from no file. Every line of such a text is reported as the line where the text began. Bash's
 * unwind-protect list shows in which function each text began. */
#pragma once

/* unwind_prot.c: UNWIND_ELT, if it holds the value of a variable */
struct bash_unwind {
	__u64 next, cleanup, variable;
	__u32 size, value;
};

#define BASH_UNWINDS 512
/* Traps below this number are signals and EXIT. From here on they are DEBUG, ERR and RETURN, whose commands keep the line they
 * run for. */
#define BASH_FIRST_KEEPING_TRAP 66

/* The text being executed began within the current frame, and did not come from a file. */
static __always_inline void bash_settle(struct script *script)
{
	struct bash_state *bash = &script->bash;
	__u32 frame = bash->frame, line = bash->entered_line;
	if (!bash->entered)
		return;
	bash->entered = false;
	if (!line) /* the command line's own text: nothing surrounds it */
		return;
	/* The command of a trap was written elsewhere. */
	if (bash->entered_aside && (script->doubt || (bash->running_trap && bash->running_trap < BASH_FIRST_KEEPING_TRAP)))
		line = 0;
	bash->overridden++;
	if (frame <= SCRIPT_FRAMES)
		script->called.lines[frame] = line;
}

/* Takes one step outwards in the unwind-protect list; 0 at its end. Executing a text saves the line it began at, then whether
 * bash is interactive (except for eval), then the number of texts being executed. A function saves its nesting depth, and the
 * reading of a file saves the source level. */
__noinline int bash_unwind(void)
{
	struct script *script = script_of_this_cpu();
	struct bash_unwind unwind;
	if (!script)
		return 0;
	struct bash_state *bash = &script->bash;
	if (!bash->unwind || !read_user(&unwind, sizeof(unwind), bash->unwind))
		return 0;
	bash->unwind = unwind.next;
	__u64 variable = unwind.variable - script->bias;
	if (!unwind.cleanup) {
		bash->saved_interactive = 0;
	} else if (variable == bash->layout.line_number) {
		bash->saved_line = unwind.value;
	} else if (variable == bash->layout.interactive) {
		bash->saved_interactive = 1;
	} else if (variable == bash->layout.parse_level) {
		bash_settle(script);
		bash->entered = true;
		bash->entered_line = bash->saved_line;
		bash->entered_aside = bash->saved_interactive;
	} else if (variable == bash->layout.function_nesting) {
		bash_settle(script);
		bash->frame++;
	} else if (variable == bash->layout.source_level) {
		bash->entered = false; /* the file's own text */
		bash->frame++;
	}
	return 1;
}

/* Corrects the lines that were counted within texts that came from no file. */
__noinline int bash_texts(void)
{
	struct script *script = script_of_this_cpu();
	if (!script)
		return 0;
	struct bash_state *bash = &script->bash;
	__u32 frames = bash->count;
	bash->frame = bash->overridden = bash->saved_interactive = 0;
	bash->entered = false;
	if (!read_number(script, &bash->running_trap, bash->layout.running_trap) ||
	    !read_pointer(script, &bash->unwind, bash->layout.unwinds))
		return 0;
	for (int i = 0; i < BASH_UNWINDS; i++)
		if (!bash_unwind())
			break;
	if (script->called.flags & SCRIPT_OUTERMOST)
		frames--;
	if (bash->unwind) {
		script->called.known_lines = bash->overridden ? 0 : bash->frame;
		return 1;
	}
	bash_settle(script);
	/* A function that runs in a subshell saves nothing, so it is unknown which frames the lines belong to. */
	if (bash->overridden && bash->frame != frames)
		script->called.known_lines = 0;
	return 1;
}
