/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Determines the context that a CPU is in: that of a thread, or of an interrupt that hit the
 * running thread. The kernel's preempt count shows the context, but its location differs between
 * most kernel versions, and some kernels hide it. The alternatives cost more: a walk of the
 * kernel's stack takes microseconds for each wake-up, and tracepoints of interrupts and timers
 * would run on all CPUs for every process. */
#pragma once

/* The fields of x86's per-CPU structure in Linux 6.2 to 6.14. Their offsets are read from BTF. */
struct pcpu_hot___counted {
	struct task_struct *current_task;
	int preempt_count;
} CORE;
/* Kernels that have this function use different bits of the count, although the function itself still counts in the old bits. */
extern void local_interrupt_disable(void) __ksym __weak;

/* include/linux/preempt.h: the bits for NMIs and hard interrupts, in kernels without that function and in kernels with it. The
 * highest bit of the count has another meaning. */
#define OLD_INTERRUPT_BITS 0x00ff0000
#define INTERRUPT_BITS 0x7f000000
/* The CPU is serving soft interrupts. This bit is clear if they are merely disabled. */
#define SOFT_INTERRUPT_BIT 0x00000100

enum context { CONTEXT_UNKNOWN, CONTEXT_THREAD, CONTEXT_SOFT_INTERRUPT, CONTEXT_INTERRUPT };

static __always_inline enum context context_of_count(__u32 count)
{
	if (count & (bpf_ksym_exists(local_interrupt_disable) ? INTERRUPT_BITS : OLD_INTERRUPT_BITS))
		return CONTEXT_INTERRUPT;
	return count & SOFT_INTERRUPT_BIT ? CONTEXT_SOFT_INTERRUPT : CONTEXT_THREAD;
}

/* Reads the preempt count at its offset from the CPU's run queue, which is reachable from the running thread. The offsets are right
 * if the pointer to the running thread is found at its offset. */
static __always_inline enum context context_by_offsets(void)
{
	struct task_struct *p = current_task();
	struct pcpu_hot___counted *hot = NULL;
	__s64 current_offset = per_cpu_offsets.current_task, count_offset = per_cpu_offsets.preempt_count;
	__u64 run_queue, found;
	__u32 count;
	if (!per_cpu_offsets.are_known || !bpf_core_field_exists(p->se.cfs_rq))
		return CONTEXT_UNKNOWN;
	if (bpf_core_type_exists(struct pcpu_hot___counted)) {
		current_offset += bpf_core_field_offset(hot->current_task);
		count_offset += bpf_core_field_offset(hot->preempt_count);
	}
	run_queue = (__u64)BPF_CORE_READ(p, se.cfs_rq, rq);
	if (bpf_probe_read_kernel(&found, sizeof(found), (void *)(run_queue + current_offset)) ||
	    found != bpf_get_current_task() ||
	    bpf_probe_read_kernel(&count, sizeof(count), (void *)(run_queue + count_offset)))
		return CONTEXT_UNKNOWN;
	return context_of_count(count);
}

/* Reads the preempt count by its symbol, or by its offset if the kernel has no such symbol. A kernel that has the symbol but hides it
 * refuses programs that contain this function. */
static __always_inline enum context context_by_symbol(void)
{
	__u32 count;
	return read_preempt_count(&count) ? context_of_count(count) : context_by_offsets();
}

static __always_inline bool connects_to_this_machine(struct sock *sock)
{
	struct in6_addr to, from;
	__u32 family = BPF_CORE_READ(sock, __sk_common.skc_family);
	if (family == AF_INET) {
		__u32 address = BPF_CORE_READ(sock, __sk_common.skc_daddr);
		return address && (address == BPF_CORE_READ(sock, __sk_common.skc_rcv_saddr) || (address & 0xff) == 127);
	}
	return family == AF_INET6 && bpf_core_field_exists(sock->__sk_common.skc_v6_daddr) &&
	       !bpf_core_read(&to, sizeof(to), &sock->__sk_common.skc_v6_daddr) &&
	       !bpf_core_read(&from, sizeof(from), &sock->__sk_common.skc_v6_rcv_saddr) &&
	       (to.halves[0] || to.halves[1]) && to.halves[0] == from.halves[0] && to.halves[1] == from.halves[1];
}

/* Whether a wake-up in a soft interrupt may come from the thread's own system call: data that a thread sends to its own machine
 * arrives in a soft interrupt within the sending call. */
static __noinline bool is_within_own_call(struct task_struct *p, struct WireTask *task)
{
	switch (task->syscall) {
	case NR_read: case NR_write: case NR_readv: case NR_writev: case NR_sendfile: case NR_splice: case NR_connect:
	case NR_sendto: case NR_sendmsg: case NR_sendmmsg: case NR_recvfrom: case NR_recvmsg: case NR_recvmmsg:
		break;
	default:
		return false;
	}
	struct file *file = file_of(p, task->argument);
	if (!file || (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
		return false;
	struct socket *socket = BPF_CORE_READ(file, private_data);
	return connects_to_this_machine(BPF_CORE_READ(socket, sk));
}
