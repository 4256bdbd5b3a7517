/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * System calls of followed threads: the calls that create processes, execute, exit and reap, the calls of the loader, and the call
 * that a thread is in when it leaves the CPU. */
#pragma once

#include "surrounding.h"
#include "work.h"

/* Returns an argument of a 64-bit or 32-bit call. */
static __always_inline __u64 argument_of_call(struct pt_regs *regs, const int index)
{
	return MAKES_32_BIT_CALLS(current_task()) ? argument_of_32_bit_call(regs, index) : argument(regs, index);
}

/* Handles the entry of a call that creates a process or thread. Sets CLONE_ON_OWN_STACK if the caller passes no stack, or its
 * own: on architectures without a vfork call, glibc's vfork passes the current stack pointer to clone. */
static __always_inline void enter_clone(struct WireTask *task, long number, __u64 first, __u64 stack, __u64 own_stack)
{
	task->create = bpf_ktime_get_ns();
	task->clone_flags = 0;
	if (number == NR_clone)
		task->clone_flags = first | (stack && stack != own_stack ? 0 : CLONE_ON_OWN_STACK);
	else if (number == NR_clone3) /* struct clone_args begins with its flags */
		bpf_probe_read_user(&task->clone_flags, sizeof(task->clone_flags), (void *)first);
}

static __always_inline void enter_exec(struct WireTask *task)
{
	__u64 now = bpf_ktime_get_ns();
	end_loading_at_candidate(task);
	task->exec_enter = now;
	task->exec_enter_cpu = cpu_time(task, now);
}

static __always_inline void enter_exit(struct WireTask *task)
{
	task->exit_group_entered = bpf_ktime_get_ns();
	task->exit_group_cpu = cpu_time(task, task->exit_group_entered);
}

/* Handles the entry of the calls that a launch consists of. */
static __always_inline void enter_launch(struct WireTask *task, long number, __u64 stack, __u64 own_stack)
{
	switch (number) {
	case NR_clone: case NR_clone3: case NR_fork: case NR_vfork:
		enter_clone(task, number, task->argument, stack, own_stack);
		break;
	case NR_execve: case NR_execveat:
		enter_exec(task);
		break;
	case NR_exit_group:
		enter_exit(task);
	}
}

/* Handles the entry of a call of a 32-bit program, whose calls have other numbers. Only the calls that a launch consists of are handled;
 * loading and the surrounding calls are not recorded. */
static __noinline void enter_32_bit_call(struct WireTask *task, struct pt_regs *regs, long number)
{
	number = number_of_32_bit_call(number);
	task->syscall = number;
	task->argument = argument_of_32_bit_call(regs, 0);
	if (number == NR_wait4) /* -1: any child */
		task->argument = (__s32)task->argument;
	task->flags &= ~(TASK_IN_SETUP | TASK_CALL_PENDING);
	end_surrounding_calls(task);
	enter_launch(task, number, argument_of_32_bit_call(regs, 1), (__u32)regs->sp);
}

/* Returns the address of the file name in an access or faccessat call. The barrier keeps the compiler from merging the two reads into
 * one read through a pointer to either, which verifiers refuse. */
static __always_inline __u64 accessed_file_name(struct WireTask *task, struct pt_regs *regs, long number)
{
	__u64 name = argument(regs, 1);
	asm volatile("" : "+r"(name));
	return number == NR_access ? task->argument : name;
}

static __always_inline bool handle_sys_enter(struct pt_regs *regs, long number, bool collects_lines)
{
	struct WireTask *task = find_or_adopt_current();
	if (!task)
		return false;
	task->calls++;
	if (MAKES_32_BIT_CALLS(current_task())) {
		enter_32_bit_call(task, regs, number);
		return true;
	}
	task->syscall = number;
	task->argument = argument(regs, 0);
	if (is_surrounding_call(task, number))
		enter_surrounding_call(task, number);
	else if (!is_creating_call(number))
		end_surrounding_calls(task);
	if (collects_lines && task->flags & TASK_CALL_PENDING)
		emit_dash_call_after_setup(task, regs, number);
	switch (number) {
	case NR_mmap: case NR_mprotect: case NR_pkey_mprotect:
		if ((settings.stacks || settings.sample_period) && argument(regs, 2) & PROT_EXEC)
			count_code_change(current_task());
		break;
	case NR_fcntl:
		count_dash_file_move(task, regs);
		break;
	case NR_poll: case NR_ppoll: case NR_select: case NR_pselect6:
		task->second_argument = argument(regs, 1);
		task->third_argument = argument(regs, 2);
		break;
	case NR_access: case NR_faccessat: case NR_faccessat2:
		if (settings.node_lines)
			emit_node_call_site(task, accessed_file_name(task, regs, number));
		break;
	default:
		enter_launch(task, number, argument(regs, 1), regs->sp);
	}
	if (task->load_state != LOAD_IDLE)
		enter_loader_call(task, regs, number);
	else if (task->entry_stack)
		check_for_work(task, regs, number);
	return true;
}

PROGRAM_AND_SPARE("tp_btf/sys_enter", on_sys_enter, MEASURED(COST_ENTER, handle_sys_enter(regs, number, true)),
		  struct pt_regs *regs, long number)

/* For verifiers that refuse the code that reads the memory of dash. */
PROGRAM_AND_SPARE("tp_btf/sys_enter", on_sys_enter_without_lines, MEASURED(COST_ENTER, handle_sys_enter(regs, number, false)),
		  struct pt_regs *regs, long number)

static __noinline void emit_exec_failed(struct WireTask *task, struct pt_regs *regs, long number, long error)
{
	struct scratch *scratch = scratch_of_this_cpu();
	if (!scratch)
		return;
	struct WireExecFailed *failed = &scratch->failed;
	/* The string still exists, because a failed exec does not replace the caller's memory. */
	const char *path = (const char *)(number == NR_execve ? argument_of_call(regs, 0) : argument_of_call(regs, 1));
	char *data = (char *)(failed + 1);
	fill_header(&failed->header, KIND_EXEC_FAILED, bpf_ktime_get_ns(), task);
	failed->enter = task->exec_enter;
	failed->errno = -error;
	long bytes = bpf_probe_read_user_str(data, PATH_BYTES, path);
	if (bytes < 0 || bytes > PATH_BYTES)
		bytes = 0;
	failed->path_bytes = bytes;
	if (bpf_ringbuf_output(&events, scratch, sizeof(*failed) + bytes, wakeup_flag()))
		count_lost(KIND_EXEC_FAILED);
}

static __always_inline void emit_reaped(struct WireTask *task, __u32 pid)
{
	struct WireReaped *reaped;
	RESERVE(reaped, KIND_REAPED, bpf_ktime_get_ns(), task);
	reaped->pid = pid;
	reaped->reserved = 0;
	bpf_ringbuf_submit(reaped, wakeup_flag());
}

/* Emits the reaping by a waitid call. With P_PID, the pid is an argument. Otherwise waitid returns it only in siginfo, if the caller
 * passes one. */
static __always_inline void emit_waitid_reaping(struct WireTask *task, struct pt_regs *regs)
{
	__u64 info = argument_of_call(regs, 2);
	__u64 offset = MAKES_32_BIT_CALLS(current_task()) ? SI_PID_OFFSET_OF_32_BITS : SI_PID_OFFSET;
	__u32 pid = 0;
	if (argument_of_call(regs, 3) & WNOWAIT)
		return;
	if (argument_of_call(regs, 0) == P_PID)
		pid = argument_of_call(regs, 1);
	else if (info)
		bpf_probe_read_user(&pid, sizeof(pid), (void *)(info + offset));
	if (pid)
		emit_reaped(task, pid);
}

static __always_inline bool handle_sys_exit(struct pt_regs *regs, long result)
{
	struct WireTask *task = find_or_adopt_current();
	if (!task)
		return false;
	long number = task->syscall;
	if (task->flags & TASK_HAS_DEFERRED_SLICE)
		emit_deferred_slice(task, WAKER_CALL_RETURNED, result);
	task->syscall = -1;
	if (task->load_state > LOAD_RUNNING) {
		leave_loader_call(task, result);
		return true;
	}
	if (task->load_state == LOAD_RUNNING)
		count_loader_lookup(task, number, result);
	if (is_surrounding_call(task, number))
		leave_surrounding_call(task, number);
	switch (number) {
	case NR_execve: case NR_execveat:
		if (result < 0)
			emit_exec_failed(task, regs, number, result);
		else if (task->flags & TASK_EXECUTED) {
			begin_loading(task);
			task->entry_stack = MAKES_32_BIT_CALLS(current_task()) ? 0 : regs->sp;
		}
		break;
	case NR_wait4:
		if (result > 0) {
			begin_tidying(task);
			emit_reaped(task, result);
		}
		break;
	case NR_waitid:
		if (result == 0) {
			begin_tidying(task);
			emit_waitid_reaping(task, regs);
		}
	}
	return true;
}

PROGRAM_AND_SPARE("tp_btf/sys_exit", on_sys_exit, MEASURED(COST_RETURN, handle_sys_exit(regs, result)),
		  struct pt_regs *regs, long result)
