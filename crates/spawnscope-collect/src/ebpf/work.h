/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Detects when a program begins its work: at the first system call after loading that names one of its first arguments as a file, or
 * that reads standard input. The time before that is start-up, which each launch of the program repeats. Opening libraries and modules
 * later is start-up, too. */
#pragma once

/* WORK_ARGUMENTS: how many arguments are compared. MAX_WORK_CALLS: after this many system calls that name files, the search ends. Python
 * makes five such calls for each module that it imports, and some programs import hundreds. */
enum { WORK_ARGUMENTS = 8, MAX_WORK_CALLS = 4096 };

/* Maximum length of a path that is examined, in bytes; a power of two. */
enum { EXAMINED_PATH_BYTES = 128 };

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

/* Whether a path has the same first 15 bytes as one of the first arguments. When a program starts, its stack contains the number of
 * arguments, followed by their addresses. */
static __always_inline bool matches_an_argument(__u64 entry_stack, const char *user_path)
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

/* Whether a path is that of a compiled Python module. Such modules may be in any directory: in a virtual environment, in pyenv's, in
 * the user's home. The length includes the final NUL. */
static __always_inline bool is_python_module(const char *path, long length)
{
	if (length < 5 || length > EXAMINED_PATH_BYTES)
		return false;
	const char *end = path + ((length - 5) & (EXAMINED_PATH_BYTES - 1));
	return end[0] == '.' && end[1] == 'p' && end[2] == 'y' && end[3] == 'c';
}

/* Whether a path is that of a library, module or data file of the system: below /usr/lib, /usr/local, /usr/share, /lib, /lib64. `file`
 * reads its patterns from /usr/share, perl its modules. Python modules count wherever they are. */
static __always_inline bool is_system_file(const char *user_path)
{
	char path[EXAMINED_PATH_BYTES + 4] = {};
	long length = bpf_probe_read_user_str(path, EXAMINED_PATH_BYTES, user_path);
	if (length <= 0)
		return false;
	if (is_python_module(path, length))
		return true;
	if (path[0] != '/')
		return false;
	if (path[1] == 'u' && path[2] == 's' && path[3] == 'r' && path[4] == '/')
		return path[5] == 'l' || (path[5] == 's' && path[6] == 'h');
	return path[1] == 'l' && path[2] == 'i' && path[3] == 'b';
}

/* Call when a program that seemed to have begun its work names a file. If it opens a library (a plugin or an imported module), it is
 * still starting up, at least until that call. Its work then begins when it next names an argument. */
static __always_inline void check_for_later_work(struct WireTask *task, const char *path, long number)
{
	bool opens_library = (number == NR_open || number == NR_openat) && is_system_file(path);
	if (!opens_library && !task->work_loading)
		return;
	bool is_argument = matches_an_argument(task->entry_stack, path);
	if (!opens_library && !is_argument)
		return;
	if (is_argument && !task->work_loading)
		return;
	task->work_cpu = cpu_time(task, bpf_ktime_get_ns());
	task->work_loading = !is_argument;
}

/* Call when a system call is entered after loading. Stores the CPU time if the program begins its work. */
static __noinline void check_for_work(struct WireTask *task, struct pt_regs *regs, long number)
{
	const char *path = named_file(regs, number);
	if (path && task->work_cpu) {
		check_for_later_work(task, path, number);
	} else {
		bool begins = number == NR_read && task->argument == 0 && !task->work_cpu;
		if (!begins && !path)
			return;
		if (begins || matches_an_argument(task->entry_stack, path))
			task->work_cpu = cpu_time(task, bpf_ktime_get_ns());
	}
	if (++task->work_calls >= MAX_WORK_CALLS)
		task->entry_stack = 0;
}
