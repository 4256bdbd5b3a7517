/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Shared by all programs: the maps, the state of a followed thread, numbering, and access to the ring buffer. */
#pragma once

/* One buffer for all CPUs, so that events arrive in the order in which they were reserved. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 * 1024 * 1024);
} events SEC(".maps");

/* Lost records, by kind. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, KIND_END);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

/* Maximum number of stack frames that are searched for the function in which threads wait for a permission scanner. In Linux 6.18,
 * there are 7 calls between that function and the switch. */
#define MAX_SCANNER_FRAMES 16

/* Maximum number of descriptors that are examined in a call that waits for one of several. */
#define MAX_WATCHED 8

/* A buffer in which records of variable length are built. Programs run with preemption off (`spare.h`), so one per CPU is enough. The
 * extra PATH_BYTES let the verifier see that a string that begins anywhere within the data ends within the buffer. */
struct scratch {
	union {
		struct WireExecuted executed;
		struct WireExecFailed failed;
		struct {
			char before[sizeof(struct WireExecuted) - sizeof(struct WireFileNamed)];
			struct WireFileNamed named; /* ends where the data begins */
		};
		struct {
			char before_mapping[sizeof(struct WireExecuted) - sizeof(struct WireMapping)];
			struct WireMapping mapping; /* ends where the data begins */
		};
	};
	char data[EXECUTED_DATA_BYTES + PATH_BYTES + ENVIRONMENT_BYTES];
	unsigned long auxv[48];
	__u64 stack[MAX_SCANNER_FRAMES];
	struct path_walk {
		struct vfsmount *mnt, *root_mnt;
		struct dentry *dentry, *root;
		__u32 used, complete;
	} walk;
	/* The files that a call such as poll watches (`watched.h`). */
	struct watched_files {
		/* The file being examined, the first file, and the last internet and unix socket. */
		struct file *file, *first_file, *internet_socket, *unix_socket;
		/* The descriptors of select that have not been examined yet. */
		__u64 set;
		/* Number of internet sockets and of unix sockets; whether there are files that were not examined. */
		__u32 internet_sockets, unix_sockets, has_unexamined;
		/* The nodes of an epoll's tree: their number, and the index of the next node to examine. */
		__u32 used, next;
		struct rb_node *nodes[MAX_WATCHED + 1];
	} watched;
	__u32 reported_mappings, mappings_lost;
	/* The thread that the last observed switch gave this CPU, and when, until the scheduler's clock is known (`scheduler.h`). */
	__u64 arrived_at;
	__u32 arrived;
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

const volatile struct WireSettings settings SEC(".rodata.settings") = {};
struct WireShared shared SEC(".data.shared") = {};
/* Set after loading, because finding it among the kernel's symbols takes about as long as loading does. */
volatile struct WireScannerCode scanner_code SEC(".data.scanner") = {};

/* Set after loading, for the same reason. */
volatile struct WirePerCpuOffsets per_cpu_offsets SEC(".data.offsets") = {};

/* 1 while all programs are attached. Programs are attached and detached one at a time, and a process that only some of them observe
 * would be recorded with gaps. */
volatile __u32 recording SEC(".data.recording") = 0;

#include "tasks.h"

/* Limits a number to `limit`, in a form that every verifier understands. A verifier learns the range of a register only from a
 * comparison of that same register, and older verifiers lose the range if the compiler keeps the number on the stack in between. */
static __always_inline __u64 at_most(__u64 number, const __u32 limit)
{
	asm volatile("if %0 <= %1 goto +1\n\t%0 = %1" : "+r"(number) : "i"(limit));
	return number;
}

static __always_inline struct scratch *scratch_of_this_cpu(void)
{
	__u32 first = 0;
	return bpf_map_lookup_elem(&scratches, &first);
}

static __always_inline void count_lost(__u32 kind)
{
	__u64 *count = bpf_map_lookup_elem(&lost, &kind);
	if (count)
		(*count)++;
}

/* Returns the flag that says whether to wake the reader. The reader polls at short intervals. It is woken only if the buffer fills
 * faster than that, since a wake-up per record would cost more than the record. */
static __always_inline __u64 wakeup_flag_of(void *ring)
{
	return bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > settings.wakeup_bytes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

static __always_inline __u64 wakeup_flag(void)
{
	return wakeup_flag_of(&events);
}

static __always_inline void fill_header(struct WireHeader *header, __u32 kind, __u64 at, struct WireTask *task)
{
	header->at = at;
	header->launch = task->launch;
	header->task = task->task;
	header->kind = kind;
	header->reserved = 0;
}

/* Reserves a record of fixed size in the buffer. On failure, counts a lost record and returns. */
#define RESERVE(record, KIND, when, whose)                                \
	record = bpf_ringbuf_reserve(&events, sizeof(*record), 0);        \
	if (!record) {                                                    \
		count_lost(KIND);                                         \
		return;                                                   \
	}                                                                 \
	fill_header(&record->header, KIND, when, whose);

/* Returns the number of `pid` at a level of the pid namespace hierarchy, and sets `namespace` to the inode of the namespace at that
 * level; both are 0 if `pid` is NULL or does not have this level. */
static __always_inline int pid_at_level(struct pid *pid, __u32 level, __u32 *namespace)
{
	struct upid upid;
	*namespace = 0;
	if (level > BPF_CORE_READ(pid, level) || bpf_core_read(&upid, sizeof(upid), &pid->numbers[level]))
		return 0;
	*namespace = BPF_CORE_READ(upid.ns, ns.inum);
	return upid.nr;
}

/* Returns the thread's id in the recorder's pid namespace; 0 if it is not visible there. Stores the namespace's level once it has been
 * found. */
static __noinline int visible_tid(struct task_struct *p)
{
	struct pid *pid = BPF_CORE_READ(p, thread_pid);
	__u32 known = shared.pid_level_plus_one, namespace;
	if (known) {
		int nr = pid_at_level(pid, known - 1, &namespace);
		return namespace == settings.pid_namespace ? nr : 0;
	}
	for (__u32 level = 0; level < 32; level++) {
		int nr = pid_at_level(pid, level, &namespace);
		if (namespace == settings.pid_namespace) {
			shared.pid_level_plus_one = level + 1;
			return nr;
		}
	}
	return 0;
}

/* Returns the state of a thread if it is followed, otherwise NULL. */
static __always_inline struct WireTask *find_followed(struct task_struct *p)
{
	if (!recording)
		return NULL;
	struct WireTask *task = find_task(p);
	return task && !(task->flags & TASK_IGNORED) ? task : NULL;
}

/* Whether the thread was observed to get the CPU that it is on. */
static __always_inline bool arrival_was_observed(struct WireTask *task)
{
	return task->on > task->off;
}

/* Returns the CPU time of a running thread so far. */
static __always_inline __u64 cpu_time(struct WireTask *task, __u64 now)
{
	return arrival_was_observed(task) && now > task->on ? task->cpu + (now - task->on) : task->cpu;
}
