/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * aarch64: registers, the fields of other processor-dependent state of a thread, and what 32-bit system calls correspond to. All
 * files in this directory define the same items. */
#pragma once

struct pt_regs {
	unsigned long long regs[31], sp, pc, pstate, orig_x0;
} CORE;

/* Returns an argument of a system call, at the call's entry or exit. At the exit, x0 contains the result. */
static __always_inline __u64 argument(struct pt_regs *regs, const int index)
{
	return index ? regs->regs[index] : regs->orig_x0;
}

/* Returns an argument of a system call of a 32-bit program. */
#define argument_of_32_bit_call(regs, index) ((__u32)argument(regs, index))

/* arch/arm64/include/uapi/asm/ptrace.h: the mode of 64-bit code in user space is 0 */
#define PSTATE_MODE 0x1f
/* Whether these registers are those of 64-bit user code. */
#define ARE_OF_USER_CODE(registers) (((registers)->pstate & PSTATE_MODE) == 0)

struct thread_info {
	unsigned long flags;
	__u64 preempt_count;
} CORE;
struct thread_state {
	unsigned long tp_value;
} CORE;
struct thread_struct {
	struct thread_state uw;
} CORE;
/* The thread pointer, the base of libc's thread-local data, as of when the thread last left its CPU. */
#define THREAD_POINTER(p) BPF_CORE_READ(p, thread.uw.tp_value)

/* arch/arm64/include/asm/thread_info.h: TIF_32BIT */
#define MAKES_32_BIT_CALLS(p) (TASK_READ(p, thread_info.flags) & 1 << 22)

/* arch/arm64/include/asm/memory.h, with pages of 4 KiB and without KASAN */
#define THREAD_SIZE (4 * 4096)

/* Reads the preempt count, which is per thread. The upper half of the 64-bit word is a flag. */
#define read_preempt_count(count) (*(count) = TASK_READ(current_task(), thread_info.preempt_count), true)

/* Returns the 64-bit number of a 32-bit call that creates, executes, exits, reaps, reads or writes; -1 for all other calls. fork
 * and vfork have no 64-bit number; libraries use clone. (arch/arm/tools/syscall.tbl) */
static __always_inline long number_of_32_bit_call(long number)
{
	switch (number) {
	case 3: return NR_read;
	case 4: return NR_write;
	case 11: return NR_execve;
	case 114: return NR_wait4;
	case 120: return NR_clone;
	case 248: return NR_exit_group;
	case 280: return NR_waitid;
	case 387: return NR_execveat;
	case NR_clone3: return NR_clone3;
	}
	return -1;
}
