/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Samples followed threads: at clock ticks, what they do; once a wait is over, where they waited. The kernel part of the stack is
 * stored as addresses, the user part as a copy (`stacks.h`). Active only if `settings.sample_period` is set. */
#pragma once

struct wait {
	/* When the thread left the CPU, and the off-CPU time that the sample represents. */
	__u64 off, span;
	__s32 syscall;
	__u32 kernel_bytes;
	__u64 kernel[KERNEL_FRAMES];
};

/* Kernel stacks of waiting threads. The oldest entries are evicted. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u64);
	__type(value, struct wait);
} waits SEC(".maps");

struct sample_scratch {
	union {
		struct WireSample sample;
		struct wait wait;
	};
	char data[STACK_BYTES + STACK_PIECE_BYTES]; /* as in `stack_scratch` */
};

/* Indexes of the buffers: one for tracepoints, which the clock may interrupt, and one for the clock. */
enum { SCRATCH_OF_TRACEPOINT, SCRATCH_OF_CLOCK, SCRATCHES };
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SCRATCHES);
	__type(key, __u32);
	__type(value, struct sample_scratch);
} sample_scratches SEC(".maps");

/* Whether the thread is in an exec call. During such a call, the registers are those of the old program or unset, while the memory
 * may already be that of the new program. */
static __always_inline bool is_executing(long syscall)
{
	return syscall == NR_execve || syscall == NR_execveat;
}

/* Returns the number under which the process's mappings have been or will be reported. Mappings can be walked only where interrupts
 * are on, so they are reported at the thread's next system call entry or exit; the thread cannot change them before that. If the
 * kernel cannot walk them at all, user space must read them at once (`is_urgent`). */
static __always_inline __u64 image_number(struct task_struct *p, struct WireTask *task, bool *is_urgent)
{
	if (is_image_reported(p, task))
		return task->reported_image;
	if (!can_walk_mappings()) {
		number_image(task, next_id(), BPF_CORE_READ(p, mm, exec_vm), code_changes(p));
		*is_urgent = true;
		return task->reported_image;
	}
	if (!task->wanted_image)
		task->wanted_image = next_id();
	return task->wanted_image;
}

/* Copies the user part of the running thread's stack. The registers are already set. */
static __always_inline __u64 add_user_part(struct WireTask *task, struct sample_scratch *scratch, bool *is_urgent)
{
	struct task_struct *p = current_task();
	struct WireStack *stack = &scratch->sample.stack;
	stack->image = image_number(p, task, is_urgent);
	stack->start_stack = BPF_CORE_READ(p, mm, start_stack);
	return copy_stack(scratch->data, stack->registers.sp, stack_bytes(p, stack->registers.sp));
}

/* Emits a sample whose `kernel`, `kernel_bytes`, `span` and `is_waiting` are already set. */
static __always_inline void emit_sample(struct WireTask *task, struct sample_scratch *scratch, __u64 at, bool has_user_part)
{
	struct task_struct *p = current_task();
	struct WireStack *stack = &scratch->sample.stack;
	__u64 bytes = 0;
	bool is_urgent = false;
	stack->image = stack->start_stack = 0;
	fill_header(&stack->header, KIND_SAMPLE, at, task);
	stack->pid = visible_tid(BPF_CORE_READ(p, group_leader));
	if (has_user_part && BPF_CORE_READ(p, mm) &&
	    !bpf_probe_read_kernel(&stack->registers, sizeof(stack->registers), user_registers(p)) &&
	    ARE_OF_USER_CODE(&stack->registers))
		bytes = add_user_part(task, scratch, &is_urgent);
	else
		__builtin_memset(&stack->registers, 0, sizeof(stack->registers));
	stack->user_bytes = bytes;
	__u64 flag = is_urgent ? BPF_RB_FORCE_WAKEUP : wakeup_flag_of(&stacks);
	if (bpf_ringbuf_output(&stacks, &scratch->sample, sizeof(scratch->sample) + at_most(bytes, STACK_BYTES), flag))
		count_lost(KIND_SAMPLE);
}

/* Samples the thread on the CPU. Runs at each tick of the CPU's clock, in the interrupt. */
SEC("perf_event")
int on_sample(void *ctx)
{
	__u32 index = SCRATCH_OF_CLOCK;
	struct WireTask *task = find_followed(current_task());
	struct sample_scratch *scratch = bpf_map_lookup_elem(&sample_scratches, &index);
	if (!task || !scratch)
		return 0;
	struct WireSample *sample = &scratch->sample;
	long bytes = bpf_get_stack(ctx, sample->kernel, sizeof(sample->kernel), 0);
	sample->kernel_bytes = bytes > 0 ? bytes : 0;
	sample->span = settings.sample_period;
	sample->is_waiting = 0;
	emit_sample(task, scratch, bpf_ktime_get_ns(), !is_executing(task->syscall));
	return 0;
}

/* Makes the recorder read the mappings of the running thread's process while the thread waits, because the process may end right after
 * the wait. Not static: see `step_up` in path.h. */
__noinline int request_image(void)
{
	struct task_struct *p = current_task();
	struct WireTask *task = find_followed(p);
	struct WireImage image = {};
	if (!task || !BPF_CORE_READ(p, mm) || is_executing(task->syscall) || is_image_reported(p, task))
		return 0;
	number_image(task, next_id(), BPF_CORE_READ(p, mm, exec_vm), code_changes(p));
	fill_header(&image.header, KIND_IMAGE, bpf_ktime_get_ns(), task);
	image.image = task->reported_image;
	image.start_stack = BPF_CORE_READ(p, mm, start_stack);
	image.pid = visible_tid(BPF_CORE_READ(p, group_leader));
	if (bpf_ringbuf_output(&stacks, &image, sizeof(image), BPF_RB_FORCE_WAKEUP))
		count_lost(KIND_IMAGE);
	return 0;
}

/* Call when the thread leaves the CPU to wait. Stores its kernel stack. */
static __always_inline void begin_wait(void *ctx, struct WireTask *task, struct sample_scratch *scratch)
{
	struct wait *wait = &scratch->wait;
	__u64 key = task->task;
	long bytes = bpf_get_stack(ctx, wait->kernel, sizeof(wait->kernel), 0);
	wait->kernel_bytes = bytes > 0 ? bytes : 0;
	wait->off = task->off;
	wait->span = 0;
	wait->syscall = task->syscall;
	if (bpf_map_update_elem(&waits, &key, wait, 0))
		count_lost(KIND_SAMPLE);
	else
		task->flags |= TASK_WAITS;
}

/* Call when the thread's wait since `off` is over. Adds up the thread's waiting time, and samples the wait in which the sum reaches a
 * sampling period; that wait also represents the waits before it. So no wait longer than a period is missed, and many short waits cost
 * little. */
static __always_inline void end_wait(struct WireTask *task, __u64 off)
{
	__u64 key = task->task;
	task->flags &= ~TASK_WAITS;
	if (!off || task->on <= off) {
		count_lost(KIND_SAMPLE);
		return;
	}
	task->waited += task->on - off;
	if (task->waited < settings.sample_period)
		return;
	struct wait *wait = bpf_map_lookup_elem(&waits, &key);
	if (wait && wait->off == off) {
		wait->span = task->waited;
		task->flags |= TASK_WAITED;
	} else {
		count_lost(KIND_SAMPLE);
	}
	task->waited = 0;
}

static __always_inline struct sample_scratch *sample_scratch_of_tracepoint(void)
{
	__u32 index = SCRATCH_OF_TRACEPOINT;
	return bpf_map_lookup_elem(&sample_scratches, &index);
}

/* Emits the finished wait of the running thread as a sample. As long as the thread is in the system call, the user part of its stack is
 * still unchanged. Not static: see `step_up` in path.h. */
__noinline int emit_wait(void)
{
	struct WireTask *task = find_followed(current_task());
	struct sample_scratch *scratch = sample_scratch_of_tracepoint();
	if (!task || !scratch)
		return 0;
	__u64 key = task->task;
	struct WireSample *sample = &scratch->sample;
	struct wait *wait = bpf_map_lookup_elem(&waits, &key);
	task->flags &= ~TASK_WAITED;
	if (!wait || !wait->span) {
		count_lost(KIND_SAMPLE);
		return 0;
	}
	__builtin_memcpy(sample->kernel, wait->kernel, sizeof(sample->kernel));
	sample->kernel_bytes = wait->kernel_bytes;
	sample->span = wait->span;
	sample->is_waiting = 1;
	emit_sample(task, scratch, wait->off, wait->syscall >= 0 && !is_executing(wait->syscall));
	return 0;
}

/* Call when the thread leaves the CPU, but was not observed to get it (see `recover_arrival`). `task->off` already belongs to this
 * switch, so the start of the wait is taken from `waits`. */
static __noinline void end_hidden_wait(struct WireTask *task)
{
	__u64 key = task->task;
	struct wait *wait = bpf_map_lookup_elem(&waits, &key);
	end_wait(task, wait ? wait->off : 0);
}

/* Runs after `on_switch`, which comes first in the object and is attached first: `on`, `off` and `left` are already set. */
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch_sample, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	struct WireTask *leaving = find_followed(prev), *coming = find_followed(next);
	if (leaving && leaving->flags & TASK_WAITS)
		end_hidden_wait(leaving);
	if (leaving && leaving->flags & TASK_WAITED)
		emit_wait();
	struct sample_scratch *scratch = sample_scratch_of_tracepoint();
	if (leaving && scratch && prev->exit_state == 0 &&
	    (leaving->reason == LEFT_INTERRUPTIBLE || leaving->reason == LEFT_UNINTERRUPTIBLE)) {
		begin_wait(ctx, leaving, scratch);
		if (!can_walk_mappings())
			request_image();
	}
	if (coming && coming->flags & TASK_WAITS)
		end_wait(coming, coming->off);
	return 0;
}

/* Reports the mappings that samples since the running thread's last system call refer to. Not static: see `step_up` in path.h. */
__noinline int emit_wanted_image(void)
{
	struct task_struct *p = current_task();
	struct WireTask *task = find_followed(p);
	struct WireImage image = {};
	if (!task)
		return 0;
	fill_header(&image.header, KIND_IMAGE, bpf_ktime_get_ns(), task);
	image.image = task->wanted_image;
	image.is_complete = emit_mappings(p, task, image.image);
	task->wanted_image = 0;
	__u64 flag = is_in_other_mount_namespace(p) ? BPF_RB_FORCE_WAKEUP : wakeup_flag_of(&stacks);
	if (bpf_ringbuf_output(&stacks, &image, sizeof(image), flag))
		count_lost(KIND_IMAGE);
	return 0;
}

static __always_inline void handle_sys_enter_sample(void)
{
	struct WireTask *task = find_followed(current_task());
	if (task && task->wanted_image)
		emit_wanted_image();
}

PROGRAM_AND_SPARE("tp_btf/sys_enter", on_sys_enter_sample, handle_sys_enter_sample())

static __always_inline void handle_sys_exit_sample(void)
{
	struct task_struct *p = current_task();
	struct WireTask *task = find_followed(p);
	if (!task)
		return;
	if (task->flags & TASK_WAITS) {
		recover_arrival(p, task);
		end_wait(task, task->off);
	}
	if (task->flags & TASK_WAITED)
		emit_wait();
	if (task->wanted_image)
		emit_wanted_image();
}

PROGRAM_AND_SPARE("tp_btf/sys_exit", on_sys_exit_sample, handle_sys_exit_sample())
