/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * When a program begins its work: the first system call after loading that names one of its first arguments as a file, or that
 * reads standard input. What a program does before, each launch of it repeats. */
#pragma once

/* Arguments that are compared, and system calls after which a program counts as one that does not work on files. */
enum { WORK_ARGUMENTS = 8, WORK_LOOKS = 256 };

static __always_inline const char *named_file(struct pt_regs *regs, long number)
{
	switch (number) {
	case NR_open: case NR_stat: case NR_lstat: case NR_access: case NR_readlink:
		return (const char *)argument(regs, 0);
	case NR_openat: case NR_newfstatat: case NR_statx: case NR_faccessat: case NR_faccessat2: case NR_readlinkat:
		return (const char *)argument(regs, 1);
	}
	return NULL;
}

/* Whether a path begins like an argument. When a program starts, its stack has their number and then their addresses. */
static __always_inline bool is_an_argument(__u64 entry_stack, const char *user_path)
{
	__u64 path[2] = {};
	if (bpf_probe_read_user_str(path, sizeof(path), user_path) <= 0)
		return false;
	for (int i = 1; i <= WORK_ARGUMENTS; i++) {
		__u64 text[2] = {}, address = 0;
		if (bpf_probe_read_user(&address, sizeof(address), (void *)(entry_stack + 8 + 8 * i)) || !address)
			return false;
		bpf_probe_read_user_str(text, sizeof(text), (void *)address);
		if (text[0] == path[0] && text[1] == path[1])
			return true;
	}
	return false;
}

static __noinline void note_work(struct WireTask *task, struct pt_regs *regs, long number)
{
	const char *path = named_file(regs, number);
	bool begins = number == NR_read && task->argument == 0;
	if (!begins && !path)
		return;
	if (!begins)
		begins = is_an_argument(task->entry_stack, path);
	if (begins)
		task->work_cpu = cpu_time(task, bpf_ktime_get_ns());
	if (begins || ++task->work_looks >= WORK_LOOKS)
		task->entry_stack = 0;
}
