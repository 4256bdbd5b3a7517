/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Who asked for a launch: the parent's interpreter is read at the fork, when nothing of it can change. */
#pragma once

/* Runs in the parent when it has created the process of `task`. */
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
