/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Lines in text that bash executes but does not read from a file. Every line of such a text is reported as the line where the text
 * began. Bash's unwind-protect list shows in which function each text began. */
#pragma once

/* unwind_prot.c: UNWIND_ELT, the variant that contains the value of a variable */
struct bash_unwind {
	__u64 next, cleanup, variable;
	__u32 size, value;
};

#define BASH_MAX_UNWINDS 512
/* Traps below this number are signals and EXIT. The others are DEBUG, ERR and RETURN, whose commands keep the line that triggered
 * them. */
#define BASH_FIRST_TRAP_KEEPING_LINE 66

/* Ends a text that did not come from a file, which is now known to have begun within the current frame: gives that frame the line
 * where the text began. */
static __always_inline void end_bash_text(struct script *script)
{
	struct bash_state *bash = &script->bash;
	__u32 frame = bash->frame, line = bash->text_line;
	if (!bash->in_text)
		return;
	bash->in_text = false;
	if (!line) /* the text of the command line (-c): no other text surrounds it */
		return;
	/* The command of a trap was written elsewhere. */
	if (bash->text_is_not_eval &&
	    (script->line_is_uncertain || (bash->running_trap && bash->running_trap < BASH_FIRST_TRAP_KEEPING_LINE)))
		line = 0;
	bash->replaced_lines++;
	if (frame <= SCRIPT_FRAMES)
		script->called.lines[frame] = line;
}

/* Takes one step outwards in the unwind-protect list; returns 0 at its end. When bash executes a text, it saves the line where the
 * text begins, then whether bash is interactive (except for eval), then the number of texts being executed. When it calls a
 * function, it saves the function nesting depth; when it sources a file, the source level. */
__noinline int step_bash_unwinding(void)
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
		bash->interactive_is_saved = 0;
	} else if (variable == bash->layout.line_number) {
		bash->saved_line = unwind.value;
	} else if (variable == bash->layout.interactive) {
		bash->interactive_is_saved = 1;
	} else if (variable == bash->layout.parse_level) {
		end_bash_text(script);
		bash->in_text = true;
		bash->text_line = bash->saved_line;
		bash->text_is_not_eval = bash->interactive_is_saved;
	} else if (variable == bash->layout.function_nesting) {
		end_bash_text(script);
		bash->frame++;
	} else if (variable == bash->layout.source_level) {
		bash->in_text = false; /* the file's own text */
		bash->frame++;
	}
	return 1;
}

/* Corrects the lines that bash counted within texts that did not come from a file. */
__noinline int correct_bash_text_lines(void)
{
	struct script *script = script_of_this_cpu();
	if (!script)
		return 0;
	struct bash_state *bash = &script->bash;
	__u32 frames = bash->count;
	bash->frame = bash->replaced_lines = bash->interactive_is_saved = 0;
	bash->in_text = false;
	if (!read_number(script, &bash->running_trap, bash->layout.running_trap) ||
	    !read_pointer(script, &bash->unwind, bash->layout.unwinds))
		return 0;
	for (int i = 0; i < BASH_MAX_UNWINDS; i++)
		if (!step_bash_unwinding())
			break;
	if (script->called.flags & SCRIPT_OUTERMOST)
		frames--;
	if (bash->unwind) {
		script->called.known_lines = bash->replaced_lines ? 0 : bash->frame;
		return 1;
	}
	end_bash_text(script);
	/* A function that runs in a subshell saves nothing, so it is unknown which frames the lines belong to. */
	if (bash->replaced_lines && bash->frame != frames)
		script->called.known_lines = 0;
	return 1;
}
