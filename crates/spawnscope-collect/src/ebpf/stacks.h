/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Captures the native call site of a launch: the parent's registers, a copy of its stack, and the files that its code is mapped from.
 * User space unwinds the stack. Active only with `settings.stacks`, or for `samples.h`. Stacks have a separate ring buffer, so that
 * many stacks do not displace other records. */
#pragma once

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* set to the required size before loading */
} stacks SEC(".maps");

/* The extra page lets the verifier see that a piece that begins anywhere within STACK_BYTES ends within the buffer. */
struct stack_scratch {
	struct WireStack stack;
	char data[STACK_BYTES + STACK_PIECE_BYTES];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack_scratch);
} stack_scratches SEC(".maps");

struct bpf_iter_task_vma {
	__u64 opaque[1];
} __attribute__((aligned(8)));
/* These functions exist since Linux 6.7. Without them, user space reads /proc/PID/maps when it first gets the number of an image. */
extern int bpf_iter_task_vma_new(struct bpf_iter_task_vma *it, struct task_struct *task, __u64 address) __ksym __weak;
extern struct vm_area_struct *bpf_iter_task_vma_next(struct bpf_iter_task_vma *it) __ksym __weak;
extern void bpf_iter_task_vma_destroy(struct bpf_iter_task_vma *it) __ksym __weak;

/* Call when the process maps code or makes memory executable: the mappings reported before are then out of date. */
static __always_inline void count_code_change(struct task_struct *p)
{
	struct WireTask *leader = find_task(TASK_READ(p, group_leader));
	if (leader)
		__sync_fetch_and_add(&leader->code_changes, 1);
}

static __always_inline __u64 modification_time_ns(struct inode *inode)
{
	struct inode___6_7 *newer = (void *)inode;
	struct inode___before_6_7 *old = (void *)inode;
	if (bpf_core_field_exists(inode->i_mtime_sec))
		return BPF_CORE_READ(inode, i_mtime_sec) * 1000000000ull + BPF_CORE_READ(inode, i_mtime_nsec);
	if (bpf_core_field_exists(newer->__i_mtime))
		return BPF_CORE_READ(newer, __i_mtime.tv_sec) * 1000000000ull + BPF_CORE_READ(newer, __i_mtime.tv_nsec);
	return BPF_CORE_READ(old, i_mtime.tv_sec) * 1000000000ull + BPF_CORE_READ(old, i_mtime.tv_nsec);
}

/* Emits the mapping in the scratch buffer, with the path of its file; returns 0 if the ring buffer is full. Not static: see `step_up`
 * in path.h. */
__noinline int emit_mapping(void)
{
	struct scratch *scratch = scratch_of_this_cpu();
	if (!scratch)
		return 0;
	struct WireMapping *mapping = &scratch->mapping;
	scratch->walk.used = scratch->walk.complete = 0;
	if (mapping->inode)
		walk_up();
	__u32 used = scratch->walk.used;
	if (used > EXECUTED_DATA_BYTES)
		return 0;
	mapping->path_bytes = used;
	mapping->complete = scratch->walk.complete;
	if (!bpf_ringbuf_output(&stacks, mapping, sizeof(*mapping) + used, wakeup_flag_of(&stacks)))
		return 1;
	count_lost(KIND_MAPPING);
	return 0;
}

/* Describes a mapping in the scratch buffer. A mapping without a file, which contains code that the process generated itself, gets
 * inode 0. */
static __always_inline void describe_mapping(struct scratch *scratch, struct vm_area_struct *vma)
{
	struct WireMapping *mapping = &scratch->mapping;
	struct file *file = BPF_CORE_READ(vma, vm_file);
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	mapping->start = BPF_CORE_READ(vma, vm_start);
	mapping->end = BPF_CORE_READ(vma, vm_end);
	mapping->offset = file ? BPF_CORE_READ(vma, vm_pgoff) * settings.page_bytes : 0;
	mapping->inode = file ? BPF_CORE_READ(inode, i_ino) : 0;
	mapping->device = BPF_CORE_READ(inode, i_sb, s_dev);
	mapping->modified = file ? modification_time_ns(inode) : 0;
	scratch->walk.mnt = BPF_CORE_READ(file, f_path.mnt);
	scratch->walk.dentry = BPF_CORE_READ(file, f_path.dentry);
}

/* Emits all executable mappings of the running process; returns false if some could not be emitted. */
static __always_inline bool walk_mappings(struct scratch *scratch)
{
	struct bpf_iter_task_vma it;
	struct vm_area_struct *vma;
	struct task_struct *p = current_task();
	/* No launch comes from the vDSO. */
	unsigned long vdso = (unsigned long)BPF_CORE_READ(p, mm, context.vdso);
	/* The counts are in memory: with a count in a register, the verifier would check the loop again for each value. */
	scratch->reported_mappings = scratch->mappings_lost = 0;
	/* Fails while another thread changes the mappings. */
	if (bpf_iter_task_vma_new(&it, p, 0))
		scratch->mappings_lost = 1;
	while ((vma = bpf_iter_task_vma_next(&it))) {
		if (!(BPF_CORE_READ(vma, vm_flags) & VM_EXEC) || BPF_CORE_READ(vma, vm_start) == vdso)
			continue;
		if (scratch->reported_mappings++ == MAX_MAPPINGS)
			break;
		describe_mapping(scratch, vma);
		if (!emit_mapping())
			scratch->mappings_lost++;
	}
	bpf_iter_task_vma_destroy(&it);
	return scratch->reported_mappings && !scratch->mappings_lost;
}

static __always_inline __u32 code_changes(struct task_struct *p)
{
	struct WireTask *leader = find_task(TASK_READ(p, group_leader));
	return leader ? leader->code_changes : 0;
}

/* Whether the reported mappings of the thread are still valid; if not, sets `reported_image` to 0. */
static __always_inline bool is_image_reported(struct task_struct *p, struct WireTask *task)
{
	if (task->reported_image && task->reported_pages == BPF_CORE_READ(p, mm, exec_vm) && task->reported_changes == code_changes(p))
		return true;
	task->reported_image = 0;
	return false;
}

static __always_inline bool can_walk_mappings(void)
{
	return settings.emit_mappings && bpf_ksym_exists(bpf_iter_task_vma_new);
}

/* Gives the current mappings a number. `is_image_reported` returns true for it until the mappings change. */
static __always_inline void number_image(struct WireTask *task, __u64 image, __u64 pages, __u32 changes)
{
	task->reported_image = image;
	task->reported_pages = pages;
	task->reported_changes = changes;
}

/* Emits the mappings of the running process under a number; returns false if some could not be emitted. */
static __always_inline bool emit_mappings(struct task_struct *p, struct WireTask *task, __u64 image)
{
	struct scratch *scratch = scratch_of_this_cpu();
	__u64 pages = BPF_CORE_READ(p, mm, exec_vm);
	__u32 changes = code_changes(p);
	if (!scratch || !can_walk_mappings())
		return false;
	struct WireMapping *mapping = &scratch->mapping;
	fill_header(&mapping->header, KIND_MAPPING, bpf_ktime_get_ns(), task);
	mapping->image = image;
	mapping->pid = visible_tid(BPF_CORE_READ(p, group_leader));
	begin_walk(scratch, BPF_CORE_READ(p, fs), 0);
	if (!walk_mappings(scratch))
		return false;
	number_image(task, image, pages, changes);
	return true;
}

/* Gives the mappings a number and emits them, unless this was done before. Returns whether user space must read them at once, because
 * they could not be emitted or because their files are visible only through this process. */
static __always_inline bool emit_image(struct task_struct *p, struct WireTask *creator)
{
	if (is_image_reported(p, creator))
		return false;
	if (can_walk_mappings() && emit_mappings(p, creator, next_id()))
		return is_in_other_mount_namespace(p);
	/* Use a new number: some mappings may have been emitted under the one above. */
	number_image(creator, next_id(), BPF_CORE_READ(p, mm, exec_vm), code_changes(p));
	return true;
}

/* Returns how many bytes of the stack to copy. The frames of the first thread end where exec put its stack, and those of any other
 * thread at its thread pointer, because libc keeps a thread's own data at the upper end of its stack. */
static __always_inline __u64 stack_bytes(struct task_struct *p, __u64 sp)
{
	__u64 bytes = STACK_BYTES, end = BPF_CORE_READ(p, mm, start_stack) - sp;
	if (end && end < bytes)
		bytes = end;
	end = THREAD_POINTER(p) - sp;
	if (end && end < bytes)
		bytes = end;
	return bytes;
}

/* Copies as much of the stack as can be read, and returns the number of bytes copied. */
static __always_inline __u64 copy_stack(char *data, __u64 sp, __u64 bytes)
{
	__u64 done = 0;
	if (!bpf_probe_read_user(data, at_most(bytes, STACK_BYTES), (void *)sp))
		return bytes;
	for (int piece = 0; piece <= STACK_BYTES / STACK_PIECE_BYTES && done < bytes; piece++) {
		__u64 size = STACK_PIECE_BYTES - ((sp + done) & (STACK_PIECE_BYTES - 1));
		if (size > bytes - done)
			size = bytes - done;
		if (bpf_probe_read_user(&data[at_most(done, STACK_BYTES)], at_most(size, STACK_PIECE_BYTES), (void *)(sp + done)))
			break;
		done += size;
	}
	return done;
}

static __always_inline void emit_stack(struct task_struct *p, struct WireTask *creator, struct WireTask *task,
				       bool is_urgent)
{
	__u32 first = 0;
	struct stack_scratch *scratch = bpf_map_lookup_elem(&stack_scratches, &first);
	if (!scratch)
		return;
	struct WireStack *stack = &scratch->stack;
	if (bpf_probe_read_kernel(&stack->registers, sizeof(stack->registers), user_registers(p)) ||
	    !ARE_OF_USER_CODE(&stack->registers))
		return;
	fill_header(&stack->header, KIND_STACK, bpf_ktime_get_ns(), task);
	stack->image = creator->reported_image;
	stack->start_stack = BPF_CORE_READ(p, mm, start_stack);
	stack->pid = visible_tid(BPF_CORE_READ(p, group_leader));
	__u64 bytes = copy_stack(scratch->data, stack->registers.sp, stack_bytes(p, stack->registers.sp));
	stack->user_bytes = bytes;
	__u64 flag = is_urgent ? BPF_RB_FORCE_WAKEUP : wakeup_flag_of(&stacks);
	if (bpf_ringbuf_output(&stacks, scratch, sizeof(*stack) + at_most(bytes, STACK_BYTES), flag))
		count_lost(KIND_STACK);
}

static __always_inline void handle_fork_stack(struct task_struct *parent, struct task_struct *child)
{
	struct WireTask *creator = find_followed(current_task());
	if (!creator || child->tgid == parent->tgid || !BPF_CORE_READ(parent, mm))
		return;
	struct WireTask *task = find_task(child);
	if (!task)
		return;
	bool is_urgent = emit_image(current_task(), creator);
	emit_stack(current_task(), creator, task, is_urgent);
	/* The child has the parent's mappings, as a copy or shared. */
	task->reported_image = creator->reported_image;
	task->reported_pages = creator->reported_pages;
	task->reported_changes = 0;
}

/* Runs after `on_fork`, which comes first in the object and is attached first. */
PROGRAM_AND_SPARE("tp_btf/sched_process_fork", on_fork_stack, handle_fork_stack(parent, child), struct task_struct *parent,
		  struct task_struct *child)
