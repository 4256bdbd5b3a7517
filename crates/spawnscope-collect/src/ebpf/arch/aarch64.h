/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * aarch64: registers, the fields of other processor-dependent state of a thread, and system call numbers. All files in this
 * directory define the same items. */
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
/* Whether `pointer` is the thread pointer of the thread with this pthread_t. The pthread_t is slightly lower: by 1856 bytes in
 * glibc 2.36. */
#define IS_PTHREAD(pthread, pointer) ((pointer) - (pthread) - 1 < 4096)

/* arch/arm64/include/asm/thread_info.h: TIF_32BIT */
#define MAKES_32_BIT_CALLS(p) (TASK_READ(p, thread_info.flags) & 1 << 22)

/* arch/arm64/include/asm/memory.h, with pages of 4 KiB and without KASAN */
#define THREAD_SIZE (4 * 4096)

/* Reads the preempt count, which is per thread. The upper half of the 64-bit word is a flag. */
#define read_preempt_count(count) (*(count) = TASK_READ(current_task(), thread_info.preempt_count), true)

/* include/uapi/asm-generic/unistd.h */
enum {
	NR_epoll_pwait = 22, NR_dup = 23, NR_dup3 = 24, NR_fcntl = 25, NR_ioctl = 29, NR_flock = 32,
	NR_faccessat = 48, NR_openat = 56, NR_close = 57, NR_pipe2 = 59, NR_getdents64 = 61, NR_read = 63,
	NR_write = 64, NR_readv = 65, NR_writev = 66, NR_pread64 = 67, NR_pwrite64 = 68, NR_preadv = 69,
	NR_pwritev = 70, NR_sendfile = 71, NR_pselect6 = 72, NR_ppoll = 73, NR_splice = 76, NR_readlinkat = 78,
	NR_newfstatat = 79, NR_fstat = 80, NR_fsync = 82, NR_fdatasync = 83, NR_exit_group = 94, NR_waitid = 95,
	NR_set_tid_address = 96, NR_set_robust_list = 99, NR_rt_sigaction = 134, NR_rt_sigprocmask = 135,
	NR_rt_sigreturn = 139, NR_setpgid = 154, NR_getpid = 172, NR_accept = 202, NR_connect = 203, NR_sendto = 206,
	NR_recvfrom = 207, NR_sendmsg = 211, NR_recvmsg = 212, NR_brk = 214, NR_munmap = 215, NR_clone = 220,
	NR_execve = 221, NR_mmap = 222, NR_mprotect = 226, NR_accept4 = 242, NR_recvmmsg = 243, NR_wait4 = 260,
	NR_prlimit64 = 261, NR_sendmmsg = 269, NR_getrandom = 278, NR_execveat = 281, NR_preadv2 = 286,
	NR_pwritev2 = 287, NR_pkey_mprotect = 288, NR_statx = 291, NR_rseq = 293, NR_clone3 = 435,
	NR_close_range = 436, NR_openat2 = 437, NR_faccessat2 = 439, NR_epoll_pwait2 = 441,
};
/* Calls that do not exist on this architecture. No call has such a number: the only negative one in use is -1. */
enum {
	NR_open = -1001, NR_stat = -1002, NR_lstat = -1003, NR_poll = -1004, NR_access = -1005, NR_pipe = -1006,
	NR_dup2 = -1007, NR_select = -1008, NR_fork = -1009, NR_vfork = -1010, NR_creat = -1011, NR_readlink = -1012,
	NR_arch_prctl = -1013, NR_epoll_wait = -1014,
};

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
