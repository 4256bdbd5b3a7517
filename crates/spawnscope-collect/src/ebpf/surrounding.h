/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Surrounding calls: system calls of the parent that belong to a launch, before its fork and after its reaping (shells mask signals,
 * make pipes, close descriptors). Their time is part of the launch's cost. Also counts the calls of close in setup. */
#pragma once

static __always_inline bool is_creating_call(long number)
{
	return number == NR_clone || number == NR_clone3 || number == NR_fork || number == NR_vfork;
}

/* Whether the current call is vfork, or the clone call that libc makes for vfork on architectures without that call. */
static __always_inline bool shares_memory(struct WireTask *task)
{
	return task->syscall == NR_vfork || (task->clone_flags & (CLONE_VM | CLONE_VFORK)) == (CLONE_VM | CLONE_VFORK);
}

/* Whether a system call can be a surrounding call. NR_read is one only after a reaping: a shell may reap its child before it has read
 * all the child's output. */
static __always_inline bool is_surrounding_call(struct WireTask *task, long number)
{
	switch (number) {
	case NR_read:
		return task->flags & TASK_TIDYING;
	case NR_close: case NR_close_range: case NR_rt_sigaction: case NR_rt_sigprocmask: case NR_rt_sigreturn: case NR_ioctl:
	case NR_pipe: case NR_pipe2: case NR_dup: case NR_dup2: case NR_dup3: case NR_fcntl: case NR_setpgid: case NR_wait4:
	case NR_waitid:
		return true;
	}
	return false;
}

static __always_inline bool is_closing_call(long number)
{
	return number == NR_close || number == NR_close_range;
}

/* Call when close or close_range is entered, or returns, during setup. Loops over thousands of
 * descriptors are there, and one close_range could replace them. */
static __always_inline void continue_closing(struct WireTask *task, __u64 now)
{
	if (task->close_run_since)
		task->setup_close_span += now - task->close_run_since;
	task->close_run_since = now;
}

static __always_inline void end_surrounding_calls(struct WireTask *task)
{
	task->surrounding_since = task->close_run_since = 0;
	task->flags &= ~TASK_TIDYING;
}

static __always_inline void enter_surrounding_call(struct WireTask *task, long number)
{
	__u64 now = bpf_ktime_get_ns();
	if (now - task->surrounding_end > SURROUNDING_GAP_NS) {
		task->surrounding_since = 0;
		task->flags &= ~TASK_TIDYING;
	}
	if (!task->surrounding_since)
		task->surrounding_since = now;
	if (!is_closing_call(number)) {
		task->close_run_since = 0;
	} else if (task->flags & TASK_IN_SETUP) {
		continue_closing(task, now);
		task->setup_closes++;
	}
}

static __always_inline void leave_surrounding_call(struct WireTask *task, long number)
{
	__u64 before = task->surrounding_end;
	task->surrounding_end = bpf_ktime_get_ns();
	/* The rest of a child's output can be read without waiting. A longer read waits for something else, such as the user's next
	 * command. */
	if (number == NR_read && task->surrounding_end - before > MAX_LEFTOVER_READ_NS)
		end_surrounding_calls(task);
	if (task->flags & TASK_TIDYING)
		task->tidied = task->surrounding_end;
	if (is_closing_call(number) && task->flags & TASK_IN_SETUP)
		continue_closing(task, task->surrounding_end);
}

/* Call when a wait has returned a child. Surrounding calls before that wait do not belong to the child. */
static __always_inline void begin_tidying(struct WireTask *task)
{
	task->flags |= TASK_TIDYING;
	task->tidied = task->surrounding_end;
	task->surrounding_since = 0;
	task->last_faults_plus_one = TASK_READ(current_task(), min_flt) + 1;
}
