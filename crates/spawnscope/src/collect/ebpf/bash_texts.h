/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * The lines of what bash executes from no file: the line where such a text was begun stands for all of it. The list of what bash
 * will undo tells of each such beginning within which function it was. */
#pragma once

/* unwind_prot.c: UNWIND_ELT, when it holds the value of a variable */
struct bash_unwind {
	__u64 next, cleanup, variable;
	__u32 size, value;
};

#define BASH_UNWINDS 512
/* Signals, and EXIT; from here on these are DEBUG, ERR and RETURN, whose commands keep the line that they are run for. */
#define BASH_FIRST_KEEPING_TRAP 66

/* The text that was being executed began within the present frame, and came from no file. */
static __always_inline void bash_settle(struct script *script)
{
	struct bash_state *bash = &script->bash;
	__u32 frame = bash->frame, line = bash->entered_line;
	if (!bash->entered)
		return;
	bash->entered = false;
	if (!line) /* the command line's: there is nothing around it */
		return;
	/* The command of a trap stands elsewhere. */
	if (bash->entered_aside && (script->doubt || (bash->running_trap && bash->running_trap < BASH_FIRST_KEEPING_TRAP)))
		line = 0;
	bash->overridden++;
	if (frame <= SCRIPT_FRAMES)
		script->called.lines[frame] = line;
}

/* One step outwards in the list of what will be undone; 0 at its end. A text that is executed saves the line it began at, whether
 * bash is interactive (unless it is eval's), and last of these how many texts are being executed; a function saves its
 * depth, the reading of a file its own. */
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
		bash->entered = false; /* that was the file's own text */
		bash->frame++;
	}
	return 1;
}

/* Puts the lines right that were counted in texts which came from no file. */
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
	/* A function that is run in a subshell saves nothing, so that it is not known to which frames the lines belong. */
	if (bash->overridden && bash->frame != frames)
		script->called.known_lines = 0;
	return 1;
}
