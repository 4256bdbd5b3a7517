/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Finds the call site of a launch: reads the memory of the parent's interpreter at the fork, while that memory cannot change. */
#pragma once

/* Runs in the parent after it has created the process of `task`. */
static __always_inline void emit_call(struct task_struct *parent, struct WireTask *creator, struct WireTask *task,
					__u64 now)
{
	struct WireInterpreter *interpreter = interpreter_of(parent, creator);
	if (!interpreter)
		return;
	if (interpreter->kind == INTERPRETER_BASH)
		emit_bash_call(parent, interpreter->layout_index, creator, task, now);
	else if (interpreter->kind == INTERPRETER_DASH)
		emit_dash_call(parent, interpreter->layout_index, creator, task, now);
	else if (interpreter->kind == INTERPRETER_PYTHON)
		emit_python_call(parent, interpreter->layout_index, task, now);
	else if (interpreter->kind == INTERPRETER_PERL)
		emit_perl_call(parent, interpreter->layout_index, task, now);
	else if (interpreter->kind == INTERPRETER_ZSH)
		emit_zsh_call(parent, interpreter->layout_index, task, now);
	else if (interpreter->kind == INTERPRETER_MAKE)
		emit_make_call(parent, interpreter->layout_index, task, now);
}
