/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Reports what threads are doing when the recording ends. A slice is normally emitted when its
 * thread gets a CPU again. After the end of the recording, this is not observed. So once the other
 * programs are detached, an iterator visits all threads and reports the state of each. User space
 * could not look all of them up by pidfd: before Linux 6.9, only the first thread of a process has
 * one. */
#pragma once

SEC("iter/task")
int on_end(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;
	if (!p)
		return 0;
	struct WireTask *task = find_task(p);
	if (!task || task->flags & (TASK_IGNORED | TASK_GONE))
		return 0;
	__u64 now = bpf_ktime_get_ns();
	if (task->flags & TASK_HAS_DEFERRED_SLICE)
		emit_deferred_slice(task, 0, 0);
	if (arrival_was_observed(task)) {
		/* The thread is on a CPU: report it as preempted at the end. */
		task->off = now;
		task->reason = LEFT_PREEMPTED;
		task->object_kind = OBJECT_UNKNOWN;
	}
	/* If `off` is 0, the thread was never observed to leave or get a CPU, so nothing is known about it. */
	if (task->off)
		emit_slice(task, KIND_LAST_SEEN, now, task->on, task->calls, &task->waker, 0);
	return 0;
}
