/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Identifies the interpreter that a process runs by the process's executable file, never by a name. */
#pragma once

/* The kinds of the executables seen so far. The least recently used ones are evicted. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, EXECUTABLES);
	__type(key, struct WireExecutable);
	__type(value, struct WireInterpreter);
} executables SEC(".maps");

/* Reports an unknown executable. Wakes the reader at once, so that it identifies the executable soon, and script lines of the
 * process's later launches can be read. */
static __always_inline void emit_executable(struct WireTask *task, struct WireExecutable *executable, __u32 pid)
{
	struct WireNewExecutable *new;
	RESERVE(new, KIND_NEW_EXECUTABLE, bpf_ktime_get_ns(), task);
	new->executable = *executable;
	new->pid = pid;
	new->reserved = 0;
	bpf_ringbuf_submit(new, BPF_RB_FORCE_WAKEUP);
}

/* Returns the interpreter that a thread's process runs; NULL if it is not known yet. Reports each unknown executable to the
 * collector once. */
static __noinline struct WireInterpreter *interpreter_of(struct task_struct *p, struct WireTask *task)
{
	struct WireInterpreter pending = {};
	struct WireExecutable executable = {};
	struct inode *inode = BPF_CORE_READ(p, mm, exe_file, f_inode);
	if (!inode)
		return NULL;
	executable.inode = BPF_CORE_READ(inode, i_ino);
	executable.device = BPF_CORE_READ(inode, i_sb, s_dev);
	struct WireInterpreter *known = bpf_map_lookup_elem(&executables, &executable);
	if (known)
		return known->kind == INTERPRETER_PENDING ? NULL : known;
	long failed = bpf_map_update_elem(&executables, &executable, &pending, BPF_NOEXIST);
	if (!failed)
		emit_executable(task, &executable, visible_tid(BPF_CORE_READ(p, group_leader)));
	else if (failed != -EEXIST) /* another CPU may have added it just now */
		count_lost(KIND_NEW_EXECUTABLE);
	return NULL;
}
