/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Decides which threads are followed: those created by followed threads and, if the settings
 * request it, existing ones. Existing ones are followed from their next system call on: a scan of
 * /proc would race with forks, and a thread without system calls has no events. */
#pragma once

static __always_inline void emit_adopted(struct task_struct *leader, struct WireTask *task, __u64 now)
{
	struct WireAdopted *adopted;
	RESERVE(adopted, KIND_ADOPTED, now, task);
	adopted->pid = visible_tid(leader);
	adopted->reserved = 0;
	bpf_probe_read_kernel(adopted->comm, COMM_BYTES, leader->comm);
	bpf_ringbuf_submit(adopted, wakeup_flag());
}

static __always_inline void emit_thread(struct task_struct *p, struct WireTask *task, __u64 creator, __u64 now)
{
	struct WireThread *thread;
	RESERVE(thread, KIND_THREAD, now, task);
	thread->creator = creator;
	thread->tid = visible_tid(p);
	thread->reserved = 0;
	bpf_ringbuf_submit(thread, wakeup_flag());
}

/* Begins to follow a new thread of the process `launch`, or, if `launch` is 0, the first thread of a new process. */
static __always_inline struct WireTask *create_task(struct task_struct *p, __u64 launch)
{
	struct WireTask *task = find_or_create_task(p);
	if (!task) {
		count_lost(KIND_UNFOLLOWED);
		return NULL;
	}
	task->task = next_id();
	task->launch = launch ? launch : task->task;
	task->syscall = -1;
	task->cache_fd = -1;
	return task;
}

/* Begins to follow a process that existed before the recording. `leader` is its first thread. Several of its threads may call this
 * at the same time; the thread that claims the entry fills it in. */
static __always_inline struct WireTask *adopt_process(struct task_struct *leader, __u64 now)
{
	bool first;
	struct WireTask *task = claim_task(leader, &first);
	if (!task) {
		count_lost(KIND_UNFOLLOWED);
		return NULL;
	}
	if (!first) /* another CPU may be about to number it */
		return task->launch ? task : NULL;
	__u64 id = next_id();
	task->task = id;
	task->launch = id;
	task->syscall = -1;
	task->cache_fd = -1;
	emit_adopted(leader, task, now);
	return task;
}

/* Begins to follow the running thread, which existed before the recording. Returns NULL if it is not to be followed. */
static __noinline struct WireTask *adopt(struct task_struct *p)
{
	struct WireTask *leader = find_task(TASK_READ(p, group_leader));
	__u64 now = bpf_ktime_get_ns();
	bool is_leader = TASK_READ(p, pid) == TASK_READ(p, tgid);
	if (!leader) {
		if (!settings.follow_all || !BPF_CORE_READ(p, mm))
			return NULL;
		leader = adopt_process(TASK_READ(p, group_leader), now);
		if (!leader)
			return NULL;
		if (is_leader)
			leader->on = now;
	}
	if (is_leader)
		return leader;
	if (!leader->launch) /* another CPU is about to number it */
		return NULL;
	struct WireTask *task = create_task(p, leader->launch);
	if (!task)
		return NULL;
	task->flags = leader->flags & TASK_IGNORED;
	task->on = now;
	if (!(task->flags & TASK_IGNORED))
		emit_thread(p, task, 0, now);
	return task;
}

/* Returns the state of the running thread if it is followed, otherwise NULL. Adopts the thread if the settings request it. */
static __always_inline struct WireTask *find_or_adopt_current(void)
{
	if (!recording)
		return NULL;
	struct task_struct *p = current_task();
	struct WireTask *task = find_task(p);
	if (!task) {
		if (!settings.follow_all && !settings.follow_old_threads)
			return NULL;
		task = adopt(p);
		if (!task)
			return NULL;
	}
	if (task->flags & TASK_IGNORED)
		return NULL;
	recover_arrival(p, task);
	return task;
}
