/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Programs that can be preempted. Since Linux 7.0 a thread can lose the CPU in the middle of a tracepoint's program
 * (`settings.preemptible`), and the kernel skips a program on a CPU where the same program is still running. Two measures compensate
 * for this. First, the body of a program runs with preemption off, since it uses per-CPU buffers and a thread's state without locks.
 * Second, each program has a spare, which is attached after it and handles the event if the kernel skipped the program. The first
 * measure alone is not enough: the thread may lose the CPU just after the body, before the program has ended. If the kernel skips
 * both programs, a third program counts the event as lost. */
#pragma once

/* Linux 6.10 */
extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;

static __always_inline void disable_preemption(void)
{
	if (settings.preemptible && bpf_ksym_exists(bpf_preempt_disable))
		bpf_preempt_disable();
}

static __always_inline void enable_preemption(void)
{
	if (settings.preemptible && bpf_ksym_exists(bpf_preempt_enable))
		bpf_preempt_enable();
}

/* Records that a program has handled the current event of the running thread. */
static __always_inline void mark_handled(void)
{
	struct WireTask *task = settings.preemptible ? find_task(current_task()) : NULL;
	if (task)
		task->flags |= TASK_HANDLED;
}

static __always_inline bool is_handled(void)
{
	struct WireTask *task = find_task(current_task());
	return task && task->flags & TASK_HANDLED;
}

static __always_inline void check_handled(void)
{
	struct WireTask *task = find_task(current_task());
	if (!task)
		return;
	if (recording && !(task->flags & (TASK_IGNORED | TASK_HANDLED)))
		count_lost(KIND_SKIPPED);
	task->flags &= ~TASK_HANDLED;
}

/* Defines a program, its spare, and the program that checks that one of them ran. */
#define PROGRAM_AND_SPARE(event, name, body, parameters...)    \
	SEC(event)                                             \
	int BPF_PROG(name, ##parameters)                       \
	{                                                      \
		disable_preemption();                          \
		body;                                          \
		mark_handled();                                \
		enable_preemption();                           \
		return 0;                                      \
	}                                                      \
	SEC(event)                                             \
	int BPF_PROG(name##_spare, ##parameters)               \
	{                                                      \
		disable_preemption();                          \
		if (!is_handled()) {                           \
			body;                                  \
			mark_handled();                        \
		}                                              \
		enable_preemption();                           \
		return 0;                                      \
	}                                                      \
	SEC(event)                                             \
	int BPF_PROG(name##_check)                             \
	{                                                      \
		disable_preemption();                          \
		check_handled();                               \
		enable_preemption();                           \
		return 0;                                      \
	}
