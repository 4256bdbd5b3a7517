/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * The life of a process as the scheduler's tracepoints show it: fork, exec, exit, and the moment when it becomes reapable. */
#pragma once

static __always_inline __u64 rss_pages(struct mm_struct *mm)
{
	struct mm_struct___before_6_2 *old = (void *)mm;
	/* The kernel has one main count, and small per-CPU remainders, which are ignored here. */
	if (bpf_core_field_exists(old->rss_stat.count))
		return BPF_CORE_READ(old, rss_stat.count[MM_FILEPAGES].counter) +
		       BPF_CORE_READ(old, rss_stat.count[MM_ANONPAGES].counter) +
		       BPF_CORE_READ(old, rss_stat.count[MM_SHMEMPAGES].counter);
	__s64 pages = BPF_CORE_READ(mm, rss_stat[MM_FILEPAGES].count) + BPF_CORE_READ(mm, rss_stat[MM_ANONPAGES].count) +
		      BPF_CORE_READ(mm, rss_stat[MM_SHMEMPAGES].count);
	return pages > 0 ? pages : 0;
}

static __always_inline void emit_launch(struct task_struct *parent, struct task_struct *child, struct WireTask *creator,
					struct WireTask *task, __u64 now)
{
	struct WireLaunch *launch;
	RESERVE(launch, KIND_LAUNCH, now, task);
	struct mm_struct *mm = BPF_CORE_READ(parent, mm);
	struct WireTask *reaper = find_task(child->real_parent);
	bool call_is_known = creator->syscall >= 0;
	launch->create = call_is_known ? creator->create : 0;
	launch->parent = creator->launch;
	launch->parent_task = creator->task;
	launch->reaper = reaper ? reaper->launch : 0;
	launch->flags = call_is_known ? creator->clone_flags : 0;
	launch->parent_rss_pages = mm ? rss_pages(mm) : 0;
	launch->parent_table_bytes = mm ? BPF_CORE_READ(mm, pgtables_bytes.counter) : 0;
	launch->prepare = call_is_known ? creator->surrounding_since : 0;
	launch->parent_tidied = creator->tidied;
	creator->surrounding_since = 0;
	launch->syscall = creator->syscall;
	launch->pid = visible_tid(child);
	__u32 level = BPF_CORE_READ(child, real_parent, thread_pid, level), namespace;
	launch->pid_for_reaper = pid_at_level(BPF_CORE_READ(child, thread_pid), level, &namespace);
	launch->parent_faults = creator->last_faults_plus_one ? parent->min_flt + 1 - creator->last_faults_plus_one : UNKNOWN_COUNT;
	creator->last_faults_plus_one = parent->min_flt + 1;
	bpf_ringbuf_submit(launch, wakeup_flag());
}

static __always_inline bool handle_fork(struct task_struct *parent, struct task_struct *child, bool collects_lines)
{
	struct WireTask *creator = find_or_adopt_current();
	if (!creator)
		return false;
	bool is_thread = child->tgid == parent->tgid;
	struct WireTask *task = create_task(child, is_thread ? creator->launch : 0);
	if (!task)
		return false;
	__u64 now = bpf_ktime_get_ns();
	task->off = now;
	task->reason = LEFT_CREATED;
	if (is_thread) {
		emit_thread(child, task, creator->task, now);
	} else {
		task->flags |= TASK_IN_SETUP | (may_have_variables(parent, creator) ? TASK_HAS_VARIABLES : 0);
		emit_launch(parent, child, creator, task, now);
		if (collects_lines && settings.script_lines)
			emit_call(parent, creator, task, now);
	}
	return true;
}

/* The tracepoint fires in the parent, before the child can run. The kernel wakes the child a few
 * lines below, within 2 us, so there is no program for sched_wakeup_new. */
PROGRAM_AND_SPARE("tp_btf/sched_process_fork", on_fork, MEASURED(COST_FORK, handle_fork(parent, child, true)),
		  struct task_struct *parent, struct task_struct *child)

/* For verifiers that refuse the code that reads the memory of interpreters. */
PROGRAM_AND_SPARE("tp_btf/sched_process_fork", on_fork_without_lines, MEASURED(COST_FORK, handle_fork(parent, child, false)),
		  struct task_struct *parent, struct task_struct *child)

/* Appends the components of the working directory after `used` bytes of data. */
static __always_inline void add_cwd(struct scratch *scratch, struct fs_struct *fs, __u32 used)
{
	begin_walk(scratch, fs, used);
	scratch->walk.mnt = BPF_CORE_READ(fs, pwd.mnt);
	scratch->walk.dentry = BPF_CORE_READ(fs, pwd.dentry);
	walk_up();
	scratch->executed.cwd_complete = scratch->walk.complete;
}

/* Copies argv, which the kernel has just written to the new stack, each argument NUL-terminated. */
static __always_inline __u32 add_argv(struct scratch *scratch, struct mm_struct *mm, __u32 used)
{
	__u64 start = BPF_CORE_READ(mm, arg_start), bytes = BPF_CORE_READ(mm, arg_end) - start;
	scratch->executed.argv_bytes = bytes;
	scratch->executed.copied_argv_bytes = 0;
	if (bytes > ARGV_BYTES)
		bytes = ARGV_BYTES;
	if (used > EXECUTED_DATA_BYTES - ARGV_BYTES || bpf_probe_read_user(&scratch->data[used], bytes, (void *)start))
		return used;
	scratch->executed.copied_argv_bytes = bytes;
	return used + bytes;
}

static __always_inline __u32 add_names(struct scratch *scratch, struct linux_binprm *bprm)
{
	const char *filename = BPF_CORE_READ(bprm, filename), *interp = BPF_CORE_READ(bprm, interp);
	long bytes = bpf_probe_read_kernel_str(scratch->data, PATH_BYTES, filename);
	__u32 used = bytes > 0 ? bytes : 0;
	scratch->executed.path_bytes = used;
	scratch->executed.interpreter_bytes = 0;
	if (interp == filename || used > PATH_BYTES)
		return used;
	bytes = bpf_probe_read_kernel_str(&scratch->data[used], INTERPRETER_BYTES, interp);
	if (bytes <= 0)
		return used;
	scratch->executed.interpreter_bytes = bytes;
	return used + bytes;
}

/* Adds the number and duration of the calls of close. They are not counted if the process has made 32-bit calls. */
static __always_inline void add_closes(struct WireExecuted *executed, struct WireTask *task)
{
	bool counted = task->flags & TASK_IN_SETUP && task->exec_enter;
	executed->setup_closes = counted ? task->setup_closes : UNKNOWN_COUNT;
	executed->setup_close_span = task->setup_close_span;
}

/* At this tracepoint the new image is set up, but execve has not returned yet. After an exec by a thread other than the first, `p` is
 * that thread, which now has the process's pid. */
static __always_inline bool handle_exec(struct task_struct *p, struct linux_binprm *bprm)
{
	struct WireTask *task = find_followed(p);
	struct scratch *scratch = scratch_of_this_cpu();
	if (!task || !scratch)
		return false;
	recover_arrival(p, task);
	struct WireExecuted *executed = &scratch->executed;
	fill_header(&executed->header, KIND_EXECUTED, bpf_ktime_get_ns(), task);
	executed->first_run = task->first_run;
	executed->enter = task->exec_enter;
	executed->enter_cpu = task->exec_enter_cpu;
	add_closes(executed, task);
	struct mm_struct *mm = BPF_CORE_READ(p, mm);
	__u32 used = add_names(scratch, bprm);
	used = add_argv(scratch, mm, used);
	add_cwd(scratch, BPF_CORE_READ(p, fs), used);
	executed->cwd_bytes = scratch->walk.used - used;
	used = scratch->walk.used;
	if (used > EXECUTED_DATA_BYTES)
		return false;
	used = add_environment(scratch, mm, used, task->flags & TASK_HAS_VARIABLES);
	if (used > EXECUTED_DATA_BYTES + ENVIRONMENT_BYTES)
		return false;
	if (bpf_ringbuf_output(&events, scratch, sizeof(*executed) + used, wakeup_flag()))
		count_lost(KIND_EXECUTED);
	task->exec_enter = task->exec_enter_cpu = 0;
	task->flags = (task->flags | TASK_EXECUTED) & ~(TASK_IN_SETUP | TASK_LINE_UNCERTAIN | TASK_SUBSHELL | TASK_CALL_PENDING |
						      TASK_OWN_LINE);
	task->script_files = 0;
	/* If the new program is a 32-bit one, the kernel treats the thread as 32-bit already. */
	if (MAKES_32_BIT_CALLS(p))
		task->interpreter_base = interpreter_base_of_32_bits(scratch, mm);
	else
		task->interpreter_base = interpreter_base(scratch, mm);
	if (settings.script_lines)
		interpreter_of(p, task); /* reports the executable if it is unknown */
	task->reported_image = 0;
	return true;
}

PROGRAM_AND_SPARE("tp_btf/sched_process_exec", on_exec, MEASURED(COST_EXEC, handle_exec(p, bprm)),
		  struct task_struct *p, int old_pid, struct linux_binprm *bprm)

static __always_inline void emit_exited(struct task_struct *p, struct WireTask *task, __u64 now)
{
	struct WireExited *exited;
	RESERVE(exited, KIND_EXITED, now, task);
	exited->first_run = task->first_run;
	exited->exit_group_entered = task->exit_group_entered;
	exited->cpu = task->exit_group_entered ? task->exit_group_cpu : cpu_time(task, now);
	exited->work_cpu = task->work_cpu;
	struct mm_struct *mm = BPF_CORE_READ(p, mm);
	exited->exit_rss_pages = mm ? rss_pages(mm) : 0;
	exited->exit_faults = task->last_faults_plus_one ? p->min_flt + 1 - task->last_faults_plus_one : UNKNOWN_COUNT;
	exited->reserved = 0;
	exited->wait_status = p->exit_code;
	exited->last_thread = !!(task->flags & TASK_LAST_THREAD);
	bpf_ringbuf_submit(exited, wakeup_flag());
}

/* Since about Linux 6.16 this tracepoint fires before the address space is torn down, in earlier versions afterwards. The entry of
 * exit_group is at the same point in all versions, so its time is used if it was observed. */
static __always_inline bool handle_exit(struct task_struct *p)
{
	struct WireTask *task = find_followed(p);
	if (!task)
		return false;
	recover_arrival(p, task);
	__u64 now = bpf_ktime_get_ns();
	/* do_exit has already removed this thread from `live`. */
	if (BPF_CORE_READ(p, signal, live.counter) == 0)
		task->flags |= TASK_LAST_THREAD;
	end_loading_at_candidate(task);
	emit_exited(p, task, now);
	return true;
}

PROGRAM_AND_SPARE("tp_btf/sched_process_exit", on_exit, MEASURED(COST_EXIT, handle_exit(p)),
		  struct task_struct *p)

/* exit_notify sends the parent a signal when the process becomes reapable. It sets exit_state just before, so an earlier signal from
 * a dying thread is not mistaken for this one. A tracer gets a signal for each thread, and only that of the last thread marks the end
 * of the process. */
SEC("tp_btf/signal_generate")
int BPF_PROG(on_signal, int sig)
{
	struct task_struct *p = current_task();
	struct WireTask *task = find_followed(p);
	if (task && task->flags & TASK_LAST_THREAD && TASK_READ(p, exit_state) && !task->zombie) {
		task->zombie = bpf_ktime_get_ns();
		task->zombie_cpu = cpu_time(task, task->zombie);
	}
	return 0;
}
