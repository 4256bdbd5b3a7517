/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * x86-64: registers, the fields of other processor-dependent state of a thread, and what 32-bit system calls correspond to. All
 * files in this directory define the same items. */
#pragma once

struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
} CORE;

/* Returns an argument of a system call, at the call's entry or exit. */
static __always_inline __u64 argument(struct pt_regs *regs, const int index)
{
	return index == 0 ? regs->di : index == 1 ? regs->si : index == 2 ? regs->dx : index == 3 ? regs->r10 : regs->r8;
}

/* Returns an argument of a system call through the 32-bit entry. */
static __always_inline __u64 argument_of_32_bit_call(struct pt_regs *regs, const int index)
{
	return (__u32)(index == 0 ? regs->bx : index == 1 ? regs->cx : index == 2 ? regs->dx : index == 3 ? regs->si : regs->di);
}

/* arch/x86/include/asm/segment.h: the code segment of 64-bit user space */
#define USER_CS 0x33
/* Whether these registers are those of 64-bit user code. */
#define ARE_OF_USER_CODE(registers) ((registers)->cs == USER_CS)

struct thread_info {
	__u32 status;
} CORE;
struct thread_struct {
	unsigned long fsbase;
} CORE;
/* The thread pointer, the base of libc's thread-local data. */
#define THREAD_POINTER(p) BPF_CORE_READ(p, thread.fsbase)

/* arch/x86/include/asm/thread_info.h: the current system call came through the 32-bit entry */
#define TS_COMPAT 0x02
#define MAKES_32_BIT_CALLS(p) (TASK_READ(p, thread_info.status) & TS_COMPAT)

/* arch/x86/include/asm/page_64_types.h, without KASAN */
#define THREAD_SIZE (4 * 4096)

/* A CPU's preempt count is a separate variable, except in Linux 6.2 to 6.14, where it is a field of this structure. */
struct pcpu_hot {
	int preempt_count;
} CORE;
extern const int __preempt_count __ksym __weak;
extern const struct pcpu_hot pcpu_hot __ksym __weak;

/* Reads the preempt count by its symbol; returns false if the kernel has no such symbol. A kernel that hides the symbol refuses a
 * program that contains this function. */
static __always_inline bool read_preempt_count(__u32 *count)
{
	if (&pcpu_hot)
		*count = ((const struct pcpu_hot *)bpf_this_cpu_ptr(&pcpu_hot))->preempt_count;
	else if (&__preempt_count)
		*count = *(const int *)bpf_this_cpu_ptr(&__preempt_count);
	else
		return false;
	return true;
}

/* Returns the 64-bit number of a 32-bit call that creates, executes, exits, reaps, reads or writes; -1 for all other calls.
 * (arch/x86/entry/syscalls/syscall_32.tbl) */
static __always_inline long number_of_32_bit_call(long number)
{
	switch (number) {
	case 2: return NR_fork;
	case 3: return NR_read;
	case 4: return NR_write;
	case 7: case 114: return NR_wait4; /* waitpid is wait4 without its last argument */
	case 11: return NR_execve;
	case 120: return NR_clone;
	case 190: return NR_vfork;
	case 252: return NR_exit_group;
	case 284: return NR_waitid;
	case 358: return NR_execveat;
	case NR_clone3: return NR_clone3;
	}
	return -1;
}
