/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Finds the call site of a launch: reads the parent's interpreter at the fork, while the interpreter cannot change. */
#pragma once

/* Runs in the parent after it has created the process of `task`. */
static __always_inline void tell_caller(struct task_struct *parent, struct WireTask *creator, struct WireTask *task,
					__u64 now)
{
	struct WireInterpreter *interpreter = interpreter_of(parent, creator);
	if (!interpreter)
		return;
	if (interpreter->kind == INTERPRETER_BASH)
		tell_bash(parent, interpreter->layout, creator, task, now);
	else if (interpreter->kind == INTERPRETER_DASH)
		tell_dash(parent, interpreter->layout, creator, task, now);
	else if (interpreter->kind == INTERPRETER_PYTHON)
		tell_python(parent, interpreter->layout, task, now);
}
