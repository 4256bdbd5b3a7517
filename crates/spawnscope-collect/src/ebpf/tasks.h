/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * The map of followed threads. A thread is followed if it has a value in `tasks` without TASK_IGNORED. Programs look the value up
 * with `find_task` and create it with `find_or_create_task`. There are two builds. One uses task storage, which the kernel frees with the
 * thread, and which tracing programs may use since Linux 5.13. The other, for older kernels, is built with HASH_OF_TASKS and uses a
 * hash whose keys are the addresses of the threads' `task_struct`s. */
#pragma once

#ifndef HASH_OF_TASKS

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct WireTask);
} tasks SEC(".maps");

#define current_task() bpf_get_current_task_btf()
#define TASK_READ(p, field) ((p)->field)

static __always_inline struct WireTask *find_task(struct task_struct *p)
{
	return bpf_task_storage_get(&tasks, p, 0, 0);
}

/* Returns the thread's value, creating it if there is none; NULL if the kernel has no memory for it. */
static __always_inline struct WireTask *find_or_create_task(struct task_struct *p)
{
	return bpf_task_storage_get(&tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Like `find_or_create_task`, for a process that several CPUs may add at the same time. `*first` becomes true for only one of them, which fills
 * in the value. */
static __always_inline struct WireTask *claim_task(struct task_struct *p, bool *first)
{
	struct WireTask *task = find_or_create_task(p);
	*first = task && !__sync_val_compare_and_swap(&task->claimed, 0, 1);
	return task;
}

static __always_inline __u64 next_id(void)
{
	return __sync_fetch_and_add(&shared.last_id, 1) + 1;
}

static __always_inline struct pt_regs *user_registers(struct task_struct *p)
{
	return (struct pt_regs *)bpf_task_pt_regs(p);
}

#else /* HASH_OF_TASKS */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_HASHED_TASKS);
	__type(key, __u64);
	__type(value, struct WireTask);
} tasks SEC(".maps");

/* How many ids this CPU has assigned. Before Linux 5.12, BPF has no atomic addition that returns its result. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} assigned_ids SEC(".maps");

/* bpf_get_current_task_btf exists only since Linux 5.11. The pointer that replaces it can be read only through a helper. */
#define current_task() ((struct task_struct *)bpf_get_current_task())
#define TASK_READ(p, field) BPF_CORE_READ(p, field)

const struct WireTask new_task = {};

static __always_inline struct WireTask *find_task(struct task_struct *p)
{
	__u64 key = (__u64)p;
	return bpf_map_lookup_elem(&tasks, &key);
}

static __always_inline struct WireTask *find_or_create_task(struct task_struct *p)
{
	__u64 key = (__u64)p;
	bpf_map_update_elem(&tasks, &key, &new_task, BPF_NOEXIST);
	return bpf_map_lookup_elem(&tasks, &key);
}

static __always_inline struct WireTask *claim_task(struct task_struct *p, bool *first)
{
	__u64 key = (__u64)p;
	*first = !bpf_map_update_elem(&tasks, &key, &new_task, BPF_NOEXIST);
	return bpf_map_lookup_elem(&tasks, &key);
}

/* Returns the next id. Each CPU assigns only ids with its own remainder modulo the number of CPUs, so no other CPU assigns the same id,
 * and no interrupt handler on the same CPU requests one. */
static __always_inline __u64 next_id(void)
{
	__u32 first = 0;
	__u64 *count = bpf_map_lookup_elem(&assigned_ids, &first);
	if (!count)
		return 0;
	__u64 assigned = (*count)++;
	return shared.last_id + 1 + assigned * settings.cpus + bpf_get_smp_processor_id();
}

/* Does what bpf_task_pt_regs does, which exists only since Linux 5.15. */
static __always_inline struct pt_regs *user_registers(struct task_struct *p)
{
	return BPF_CORE_READ(p, stack) + THREAD_SIZE - bpf_core_type_size(struct pt_regs);
}

/* The tracepoint fires after the thread's last switch and its reaping, when its `task_struct` is about to be freed. */
SEC("tp_btf/sched_process_free")
int BPF_PROG(on_free, struct task_struct *p)
{
	__u64 key = (__u64)p;
	bpf_map_delete_elem(&tasks, &key);
	return 0;
}

#endif
