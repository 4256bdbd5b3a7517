/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Slices: when a thread was on a CPU, why it left, who woke it. State is kept with the thread and told once, when it
 * gets a CPU again: one record for what would be three. */
#pragma once

static __always_inline __u32 why_left(bool preempted, unsigned int state)
{
	if (preempted || !state)
		return LEFT_PREEMPTED;
	if (state & TASK_STOPPED_OR_TRACED)
		return LEFT_STOPPED;
	return state & TASK_UNINTERRUPTIBLE ? LEFT_UNINTERRUPTIBLE : LEFT_INTERRUPTIBLE;
}

static __always_inline void emit_gone(struct task_struct *p, struct WireTask *task, __u64 now)
{
	struct WireGone *gone;
	RESERVE(gone, KIND_GONE, now, task);
	gone->on = task->on;
	gone->cpu = task->zombie ? task->zombie_cpu : cpu_time(task, now);
	gone->zombie = task->zombie ? task->zombie : task->flags & TASK_LAST_THREAD ? now : 0;
	gone->released = gone->zombie && p->group_leader->exit_state == EXIT_DEAD;
	gone->calls = task->calls;
	bpf_ringbuf_submit(gone, wakeup_flag());
}

static __always_inline void emit_slice(struct WireTask *task, __u32 kind, __u64 now)
{
	struct WireSlice *slice;
	RESERVE(slice, kind, now, task);
	bool blocked = task->left >= LEFT_INTERRUPTIBLE;
	slice->on = task->on;
	slice->off = task->off;
	slice->woken = blocked ? task->woken : 0;
	slice->argument = task->argument;
	slice->waker_task = task->waker_task;
	slice->waker_pid = task->waker_pid;
	slice->waker_kind = slice->woken ? task->waker_kind : WAKER_UNKNOWN;
	slice->syscall = task->syscall;
	slice->left = task->left;
	__builtin_memcpy(slice->waker_comm, task->waker_comm, COMM_BYTES);
	slice->object_inode = task->object_inode;
	slice->object_device = task->object_device;
	slice->object_kind = task->object_kind;
	slice->calls = task->calls;
	slice->reserved = 0;
	bpf_ringbuf_submit(slice, wakeup_flag());
}

static __always_inline void get_cpu(struct WireTask *task, __u64 now)
{
	if (task->off)
		emit_slice(task, KIND_SLICE, now);
	if (!task->first_run)
		task->first_run = now;
	task->on = now;
	task->woken = 0;
	task->calls = 0;
}

/* Some hosts hide the switches away from the threads of their own agents, in tracefs as well: who gets the CPU after
 * them is not seen to arrive. The scheduler keeps the time of the arrival with the thread, but on a clock of its own,
 * which is behind ours by an offset that every arrival seen tells. It is noted a little before the switch is, so the
 * least offset is the best; the slow rise follows a clock that is being adjusted. */
static __always_inline void learn_offset(struct task_struct *p, struct WireTask *task)
{
	if (!bpf_core_field_exists(p->sched_info.last_arrival))
		return;
	__s64 sample = task->on - TASK_READ(p, sched_info.last_arrival), offset = shared.arrival_offset;
	shared.arrival_offset = !offset || sample < offset ? sample : offset + ((sample - offset) >> 6);
}

/* Makes up for a switch to the running thread that was not seen. */
static __noinline void recover_arrival(struct task_struct *p, struct WireTask *task)
{
	if (!task->off || arrival_seen(task) || !shared.arrival_offset ||
	    !bpf_core_field_exists(p->sched_info.last_arrival))
		return;
	__u64 arrival = TASK_READ(p, sched_info.last_arrival) + shared.arrival_offset;
	get_cpu(task, arrival > task->off ? arrival : task->off + 1);
}

/* The thread leaves the CPU: when did it get it? */
static __always_inline void settle_arrival(struct task_struct *p, struct WireTask *task)
{
	if (arrival_seen(task)) {
		learn_offset(p, task);
		return;
	}
	recover_arrival(p, task);
	if (!task->off || arrival_seen(task))
		return;
	count_lost(KIND_SLICE);
	task->on = 0;
}

static __always_inline void leave_cpu(void *ctx, struct task_struct *p, struct WireTask *task, bool preempted,
				      unsigned int state, __u64 now, bool tells_objects)
{
	settle_arrival(p, task);
	if (state & TASK_DEAD) {
		emit_gone(p, task, now);
		task->flags |= TASK_GONE;
		return;
	}
	task->cpu = cpu_time(task, now);
	task->off = now;
	task->left = why_left(preempted, state);
	task->object_kind = OBJECT_UNKNOWN;
	if (tells_objects && (task->left == LEFT_INTERRUPTIBLE || task->left == LEFT_UNINTERRUPTIBLE))
		note_object(ctx, p, task);
	/* A waker on another CPU may be seen just before this switch is; an older one belongs to an earlier wait. */
	if (task->woken + 10000 < now)
		task->woken = 0;
}

static __always_inline int switched(void *ctx, bool preempted, struct task_struct *prev, struct task_struct *next,
				    unsigned int state, bool tells_objects)
{
	struct WireTask *leaving = followed(prev), *coming = followed(next);
	if (!leaving && !coming)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	if (leaving)
		leave_cpu(ctx, prev, leaving, preempted, state, now, tells_objects);
	if (coming)
		get_cpu(coming, now);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	return switched(ctx, preempted, prev, next, prev_state, true);
}

/* For verifiers that refuse to look at what a thread waits for. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_without_objects, bool preempted, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	return switched(ctx, preempted, prev, next, prev_state, false);
}

static __always_inline unsigned int state_of(struct task_struct *p)
{
	struct task_struct___before_5_14 *old = (void *)p;
	return bpf_core_field_exists(p->__state) ? BPF_CORE_READ(p, __state) : BPF_CORE_READ(old, state);
}

/* Before Linux 5.18 the tracepoint does not hand the state over. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_before_5_18, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	return switched(ctx, preempted, prev, next, state_of(prev), true);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_before_5_18_without_objects, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	return switched(ctx, preempted, prev, next, state_of(prev), false);
}

static __always_inline void note_waker(struct WireTask *task, bool interrupt)
{
	struct task_struct *current = current_task();
	struct WireTask *waker = interrupt ? NULL : followed(current);
	task->woken = bpf_ktime_get_ns();
	task->waker_task = 0;
	if (interrupt) {
		task->waker_kind = WAKER_INTERRUPT;
	} else if (waker) {
		task->waker_kind = WAKER_TASK;
		task->waker_task = waker->task;
	} else {
		task->waker_kind = WAKER_OTHER;
		task->waker_pid = visible_tid(current);
		/* Threads are often named after their part; the process's name is what its owner knows. */
		bpf_probe_read_kernel(task->waker_comm, COMM_BYTES, TASK_READ(current, group_leader)->comm);
	}
}

/* The idle thread wakes nobody of its own accord: that is an interrupt. */
static __always_inline bool is_idle(void)
{
	return TASK_READ(current_task(), pid) == 0;
}

/* Runs in whoever wakes `p`; in an interrupt, `current` is merely who was interrupted. */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *p)
{
	struct WireTask *task = followed(p);
	if (task)
		note_waker(task, interrupt_count() || is_idle());
	return 0;
}

/* Where the kernel hides __preempt_count: an interrupt that hit a thread looks like a wake-up by that thread. */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking_anywhere, struct task_struct *p)
{
	struct WireTask *task = followed(p);
	if (task)
		note_waker(task, is_idle());
	return 0;
}
