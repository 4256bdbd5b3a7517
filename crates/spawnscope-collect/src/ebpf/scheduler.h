/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Slices: when a thread was on a CPU, why it left, and what woke it. The programs keep the times with the thread and emit them when
 * the thread gets a CPU again, as one record instead of three. */
#pragma once

static __always_inline __u32 leave_reason(bool preempted, unsigned int state)
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
	gone->auto_reaped = gone->zombie && BPF_CORE_READ(p, group_leader, exit_state) == EXIT_DEAD;
	gone->calls = task->calls;
	bpf_ringbuf_submit(gone, wakeup_flag());
}

static __always_inline void emit_slice(struct WireTask *task, __u32 kind, __u64 at, __u64 on, __u32 calls,
				       const struct WireWaker *waker, long result)
{
	struct WireSlice *slice;
	RESERVE(slice, kind, at, task);
	slice->on = on;
	slice->off = task->off;
	slice->argument = task->argument;
	slice->waker = *waker;
	if (task->reason < LEFT_INTERRUPTIBLE)
		slice->waker.woken = 0;
	if (!slice->waker.woken)
		slice->waker.kind = WAKER_UNKNOWN;
	slice->syscall = task->syscall;
	slice->reason = task->reason;
	slice->object_inode = task->object_inode;
	slice->object_device = task->object_device;
	slice->object_kind = task->object_kind;
	slice->calls = calls;
	slice->result = result > INT_MAX ? INT_MAX : result;
	bpf_ringbuf_submit(slice, wakeup_flag());
}

/* Whether an interrupt may have ended this wait, rather than the thread that it interrupted. The return value of the system call may
 * resolve this. */
static __always_inline bool is_in_doubt(struct WireTask *task)
{
	return task->waker.woken && task->waker.kind & WAKER_IN_DOUBT && task->reason >= LEFT_INTERRUPTIBLE &&
	       task->syscall >= 0;
}

/* Whether an interrupt ended the wait, but it is unknown whether it was that of the socket or that of a timer. */
static __always_inline bool is_socket_or_timer(struct WireTask *task)
{
	return task->waker.woken && task->waker.kind == WAKER_INTERRUPT && task->reason == LEFT_INTERRUPTIBLE &&
	       (task->object_kind & ~OBJECT_UNLESS_THREAD) == OBJECT_SOCKET && is_watching_call(task->syscall);
}

static __always_inline void defer_slice(struct WireTask *task)
{
	task->deferred_waker = task->waker;
	task->deferred_on = task->on;
	task->deferred_calls = task->calls;
	task->flags |= TASK_HAS_DEFERRED_SLICE;
}

/* Emits the deferred slice. The thread has neither left the CPU since the wait nor entered another system call. */
static __noinline void emit_deferred_slice(struct WireTask *task, __u32 returned, long result)
{
	task->flags &= ~TASK_HAS_DEFERRED_SLICE;
	task->deferred_waker.kind |= returned;
	emit_slice(task, KIND_SLICE, task->on, task->deferred_on, task->deferred_calls, &task->deferred_waker, result);
}

static __always_inline void get_cpu(struct WireTask *task, __u64 now)
{
	if (task->off && (is_in_doubt(task) || is_socket_or_timer(task)))
		defer_slice(task);
	else if (task->off)
		emit_slice(task, KIND_SLICE, now, task->on, task->calls, &task->waker, 0);
	if (!task->first_run)
		task->first_run = now;
	task->on = now;
	task->waker.woken = 0;
	task->calls = 0;
}

/* Updates the offset of the scheduler's clock. Some hosts hide switches away from their own agents' threads, even in tracefs, so the
 * next thread is not observed to get the CPU. The scheduler stores with each thread when it got the CPU, but on the scheduler's own
 * clock, which lags CLOCK_MONOTONIC by an offset. Every switch that is observed gives a sample of this offset. The scheduler stores its
 * time slightly before the switch is reported, so the smallest offset is the best one. The estimate also rises slowly, in order to
 * follow a clock that is being adjusted. */
static __always_inline void learn_offset(struct task_struct *p, __u64 on)
{
	if (!bpf_core_field_exists(p->sched_info.last_arrival))
		return;
	__s64 sample = on - TASK_READ(p, sched_info.last_arrival), offset = shared.arrival_offset;
	shared.arrival_offset = !offset || sample < offset ? sample : offset + ((sample - offset) >> 6);
}

/* Learns the offset from any thread of the machine until it is known, since the first switch to a followed thread may be one that is
 * hidden. The idle thread has no time of arrival. */
static __always_inline void learn_first_offset(struct task_struct *leaving, struct task_struct *coming, __u64 now)
{
	struct scratch *scratch = shared.arrival_offset ? NULL : scratch_of_this_cpu();
	if (!scratch)
		return;
	__u32 tid = TASK_READ(leaving, pid);
	if (tid && tid == scratch->arrived)
		learn_offset(leaving, scratch->arrived_at);
	scratch->arrived = TASK_READ(coming, pid);
	scratch->arrived_at = now;
}

/* If the switch to the running thread was not observed, recovers its time from the scheduler. */
static __noinline void recover_arrival(struct task_struct *p, struct WireTask *task)
{
	if (!task->off || arrival_was_observed(task) || !shared.arrival_offset ||
	    !bpf_core_field_exists(p->sched_info.last_arrival))
		return;
	__u64 arrival = TASK_READ(p, sched_info.last_arrival) + shared.arrival_offset;
	get_cpu(task, arrival > task->off ? arrival : task->off + 1);
}

/* Call when the thread leaves the CPU. Determines when it got the CPU, or counts a lost slice if that is unknown. */
static __always_inline void settle_arrival(struct task_struct *p, struct WireTask *task)
{
	if (arrival_was_observed(task)) {
		learn_offset(p, task->on);
		return;
	}
	recover_arrival(p, task);
	if (!task->off || arrival_was_observed(task))
		return;
	count_lost(KIND_SLICE);
	task->on = 0;
}

static __always_inline void leave_cpu(void *ctx, struct task_struct *p, struct WireTask *task, bool preempted,
				      unsigned int state, __u64 now, bool collects_objects)
{
	settle_arrival(p, task);
	if (task->flags & TASK_HAS_DEFERRED_SLICE)
		emit_deferred_slice(task, 0, 0);
	if (state & TASK_DEAD) {
		emit_gone(p, task, now);
		task->flags |= TASK_GONE;
		return;
	}
	task->cpu = cpu_time(task, now);
	task->off = now;
	task->reason = leave_reason(preempted, state);
	task->object_kind = OBJECT_UNKNOWN;
	if (collects_objects && (task->reason == LEFT_INTERRUPTIBLE || task->reason == LEFT_UNINTERRUPTIBLE))
		set_object(ctx, p, task);
	/* A waker on another CPU may have been recorded just before this switch. A record older than 10 us belongs to an earlier wait. */
	if (task->waker.woken + 10000 < now)
		task->waker.woken = 0;
}

static __always_inline int handle_switch(void *ctx, bool preempted, struct task_struct *prev, struct task_struct *next,
				    unsigned int state, bool collects_objects)
{
	struct WireTask *leaving = find_followed(prev), *coming = find_followed(next);
	if (!leaving && !coming && shared.arrival_offset)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	learn_first_offset(prev, next, now);
	if (leaving)
		leave_cpu(ctx, prev, leaving, preempted, state, now, collects_objects);
	if (coming)
		get_cpu(coming, now);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	return handle_switch(ctx, preempted, prev, next, prev_state, true);
}

/* For verifiers that refuse the code that determines what a thread waits for. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_without_objects, bool preempted, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	return handle_switch(ctx, preempted, prev, next, prev_state, false);
}

static __always_inline unsigned int state_of(struct task_struct *p)
{
	struct task_struct___before_5_14 *old = (void *)p;
	return bpf_core_field_exists(p->__state) ? BPF_CORE_READ(p, __state) : BPF_CORE_READ(old, state);
}

/* For kernels before Linux 5.18, whose tracepoint does not pass the state. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_before_5_18, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	return handle_switch(ctx, preempted, prev, next, state_of(prev), true);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_before_5_18_without_objects, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	return handle_switch(ctx, preempted, prev, next, state_of(prev), false);
}

static __always_inline void set_waker(struct WireTask *task, enum context context)
{
	struct task_struct *current = current_task();
	/* The idle thread itself wakes no thread; an interrupt does. */
	bool interrupt = context == CONTEXT_INTERRUPT || TASK_READ(current, pid) == 0;
	struct WireTask *waker_task = interrupt ? NULL : find_followed(current);
	struct WireWaker *waker = &task->waker;
	if (context == CONTEXT_SOFT_INTERRUPT)
		interrupt = !waker_task || !is_within_own_call(current, waker_task);
	waker->woken = bpf_ktime_get_ns();
	waker->task = 0;
	if (interrupt) {
		waker->kind = WAKER_INTERRUPT;
		return;
	}
	if (waker_task) {
		waker->kind = WAKER_TASK;
		waker->task = waker_task->task;
	} else {
		waker->kind = WAKER_OTHER;
		waker->pid = visible_tid(current);
		/* Threads are often named after their role; users know the name of the process. */
		bpf_probe_read_kernel(waker->comm, COMM_BYTES, BPF_CORE_READ(current, group_leader)->comm);
	}
	if (context == CONTEXT_UNKNOWN)
		waker->kind |= WAKER_IN_DOUBT;
}

/* The tracepoint fires in the context of the waker of `p`. In an interrupt, the current thread is the interrupted one. */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *p)
{
	struct WireTask *task = find_followed(p);
	if (task)
		set_waker(task, context_by_symbol());
	return 0;
}

/* For kernels that hide the symbol of the preempt count. */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking_anywhere, struct task_struct *p)
{
	struct WireTask *task = find_followed(p);
	if (task)
		set_waker(task, context_by_offsets());
	return 0;
}
