/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Detects when the dynamic loader is done, and counts the files that it searched for. There is no
 * cheap probe for this (a uprobe on _dl_debug_state costs 55 to 100 us per launch), but the
 * loader's system calls show it. glibc's loader maps /etc/ld.so.cache, and unmaps it as its last
 * action before the program's initializers run. If it did not map the cache, and in musl's loader,
 * the last calls are mprotect calls on relocated data: glibc's loader protects its own data last,
 * musl's loader the program's. Such a call was the last one if a call of another kind follows. */
#pragma once

enum { LOAD_IDLE, LOAD_RUNNING, LOAD_OPENING_CACHE, LOAD_MAPPING_CACHE, LOAD_UNMAPPING_CACHE, LOAD_OPENING_DIRECTORIES, LOAD_PROTECTING };

/* Returns the base address of the image's ELF interpreter, from the auxiliary vector that exec made; 0 if the image has none. */
static __always_inline __u64 interpreter_base(struct scratch *scratch, struct mm_struct *mm)
{
	if (bpf_core_read(scratch->auxv, sizeof(scratch->auxv), &mm->saved_auxv))
		return 0;
	for (int i = 0; i < 48; i += 2) {
		if (scratch->auxv[i] == AT_BASE)
			return scratch->auxv[i + 1];
		if (scratch->auxv[i] == AT_NULL)
			break;
	}
	return 0;
}

/* Like `interpreter_base`, for a 32-bit program, whose vector has 32-bit entries. */
static __always_inline __u64 interpreter_base_of_32_bits(struct scratch *scratch, struct mm_struct *mm)
{
	const __u32 *auxv = (const __u32 *)scratch->auxv;
	if (bpf_core_read(scratch->auxv, sizeof(scratch->auxv), &mm->saved_auxv))
		return 0;
	for (int i = 0; i < 48; i += 2) {
		if (auxv[i] == AT_BASE)
			return auxv[i + 1];
		if (auxv[i] == AT_NULL)
			break;
	}
	return 0;
}

static __always_inline void emit_loaded(struct WireTask *task, __u32 loader, __u64 end, __u64 end_cpu, __u64 now)
{
	struct WireLoaded *loaded;
	task->load_state = LOAD_IDLE;
	RESERVE(loaded, KIND_LOADED, now, task);
	loaded->returned = task->exec_returned;
	loaded->return_cpu = task->exec_return_cpu;
	loaded->load_end = end;
	loaded->load_cpu = end_cpu;
	loaded->loader = loader;
	loaded->load_opens = task->candidate_opens;
	loaded->load_failed_opens = task->candidate_failed_opens;
	loaded->load_cache = task->cache;
	bpf_ringbuf_submit(loaded, wakeup_flag());
}

/* Ends loading at the candidate, if there is one. Call when a process exits or calls exec before the end of loading was observed, and
 * when a call of another kind follows the candidate. */
static __always_inline void end_loading_at_candidate(struct WireTask *task)
{
	if (task->load_state == LOAD_IDLE)
		return;
	if (task->load_candidate && !task->cache_address)
		emit_loaded(task, LOADER_DONE, task->load_candidate, task->load_candidate_cpu, bpf_ktime_get_ns());
	else
		emit_loaded(task, LOADER_UNKNOWN, 0, 0, bpf_ktime_get_ns());
}

/* Call when execve returns to user space successfully. */
static __noinline void begin_loading(struct WireTask *task)
{
	__u64 now = bpf_ktime_get_ns();
	task->flags &= ~TASK_EXECUTED;
	task->exec_returned = now;
	task->exec_return_cpu = cpu_time(task, now);
	task->cache_fd = -1;
	task->cache_address = 0;
	task->load_candidate = 0;
	task->load_opens = task->load_failed_opens = 0;
	task->candidate_opens = task->candidate_failed_opens = 0;
	task->cache = CACHE_NOT_TRIED;
	task->work_cpu = 0;
	task->work_calls = 0;
	task->work_loading = 0;
	if (task->interpreter_base)
		task->load_state = LOAD_RUNNING;
	else
		emit_loaded(task, LOADER_NONE, 0, 0, now);
}

static __always_inline bool is_cache_path(const char *user_path)
{
	char path[20] = {}, cache[20] = "/etc/ld.so.cache";
	if (bpf_probe_read_user_str(path, sizeof(path), user_path) != sizeof("/etc/ld.so.cache"))
		return false;
	for (int i = 0; i < 16; i++)
		if (path[i] != cache[i])
			return false;
	return true;
}

/* Whether this is musl's list of library directories. Its file name ends with the architecture. */
static __always_inline bool is_directories_path(const char *user_path)
{
	char path[14] = {}, directories[14] = "/etc/ld-musl-";
	if (bpf_probe_read_user_str(path, sizeof(path), user_path) != sizeof(path))
		return false;
	for (int i = 0; i < 13; i++)
		if (path[i] != directories[i])
			return false;
	return true;
}

static __always_inline void check_loader_open(struct WireTask *task, const char *user_path)
{
	if (task->cache_fd < 0 && is_cache_path(user_path))
		task->load_state = LOAD_OPENING_CACHE;
	else if (is_directories_path(user_path))
		task->load_state = LOAD_OPENING_DIRECTORIES;
}

/* Call when a system call is entered while the loader runs. */
static __noinline void enter_loader_call(struct WireTask *task, struct pt_regs *regs, long number)
{
	__u64 first = argument(regs, 0);
	bool protects = number == NR_mprotect && argument(regs, 2) == PROT_READ;
	if (task->load_candidate && !task->cache_address && !protects) {
		end_loading_at_candidate(task);
		return;
	}
	switch (number) {
	case NR_open:
		check_loader_open(task, (const char *)first);
		break;
	case NR_openat:
		check_loader_open(task, (const char *)argument(regs, 1));
		break;
	case NR_mmap:
		if (task->cache_fd >= 0 && (int)argument(regs, 4) == task->cache_fd)
			task->load_state = LOAD_MAPPING_CACHE;
		break;
	case NR_close: /* an empty cache is closed without being mapped; the next file reuses its descriptor */
		if ((int)first == task->cache_fd)
			task->cache_fd = -1;
		break;
	case NR_munmap:
		if (task->cache_address && first == task->cache_address)
			task->load_state = LOAD_UNMAPPING_CACHE;
		break;
	case NR_mprotect:
		if (protects && !task->cache_address)
			task->load_state = LOAD_PROTECTING;
	}
}

/* Call when a system call returns while the loader runs, unless `leave_loader_call` handles it. The files that the loader opens are
 * libraries. A search also checks whether files and directories exist (glibc: stat, and access for /etc/ld.so.preload). */
static __always_inline void count_loader_lookup(struct WireTask *task, long number, long result)
{
	switch (number) {
	case NR_open: case NR_openat:
		if (result >= 0)
			task->load_opens++;
		else
			task->load_failed_opens++;
		break;
	case NR_access: case NR_faccessat: case NR_faccessat2: case NR_stat: case NR_lstat: case NR_newfstatat:
	case NR_statx: case NR_readlink: case NR_readlinkat:
		if (result == -ENOENT)
			task->load_failed_opens++;
	}
}

/* Call when a system call returns for which `enter_loader_call` has changed the load state. */
static __noinline void leave_loader_call(struct WireTask *task, long result)
{
	__u32 state = task->load_state;
	task->load_state = LOAD_RUNNING;
	if (state == LOAD_OPENING_CACHE) {
		task->cache = result >= 0 ? CACHE_OPENED : CACHE_FAILED;
		if (result >= 0)
			task->cache_fd = result;
	} else if (state == LOAD_MAPPING_CACHE) {
		task->cache_fd = -1;
		if (result > 0)
			task->cache_address = result;
	} else if (state == LOAD_OPENING_DIRECTORIES) {
		task->load_failed_opens += result < 0;
	} else {
		__u64 now = bpf_ktime_get_ns();
		task->load_candidate = now;
		task->load_candidate_cpu = cpu_time(task, now);
		task->candidate_opens = task->load_opens;
		task->candidate_failed_opens = task->load_failed_opens;
		if (state != LOAD_PROTECTING)
			emit_loaded(task, LOADER_DONE, now, task->load_candidate_cpu, now);
	}
}
