/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Determines what a thread that blocks in a system call waits for: the file of a descriptor, or a permission scanner. This happens
 * when the thread leaves the CPU, because at that moment the cost matters least. */
#pragma once

static __always_inline bool has_path(__u32 kind)
{
	return kind == OBJECT_FIFO || (kind >= OBJECT_CHARACTER_DEVICE && kind <= OBJECT_DIRECTORY);
}

static __always_inline void emit_file_named(struct task_struct *p, struct WireTask *task, struct file *file)
{
	struct scratch *scratch = scratch_of_this_cpu();
	if (!scratch)
		return;
	begin_walk(scratch, BPF_CORE_READ(p, fs), 0);
	scratch->walk.mnt = BPF_CORE_READ(file, f_path.mnt);
	scratch->walk.dentry = BPF_CORE_READ(file, f_path.dentry);
	walk_up();
	struct WireFileNamed *named = &scratch->named;
	fill_header(&named->header, KIND_FILE_NAMED, task->off, task);
	named->inode = task->object_inode;
	named->device = task->object_device;
	named->complete = scratch->walk.complete;
	named->reserved = 0;
	__u32 used = scratch->walk.used;
	if (used > EXECUTED_DATA_BYTES)
		return;
	named->path_bytes = used;
	if (bpf_ringbuf_output(&events, named, sizeof(*named) + used, wakeup_flag()))
		count_lost(KIND_FILE_NAMED);
}

/* Emits the address of a connected socket's peer. Call only if the thread's previous wait was for another object. */
static __always_inline void emit_peer_named(struct WireTask *task, struct file *file, __u64 inode, __u32 device)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sock = BPF_CORE_READ(socket, sk);
	__u16 port = BPF_CORE_READ(sock, __sk_common.skc_dport);
	__u32 family = BPF_CORE_READ(sock, __sk_common.skc_family);
	if (!port || (family != AF_INET && family != AF_INET6))
		return;
	struct WirePeerNamed *peer;
	RESERVE(peer, KIND_PEER_NAMED, task->off, task);
	__builtin_memset(peer->address, 0, sizeof(peer->address) + sizeof(peer->own_address));
	peer->inode = inode;
	peer->device = device;
	peer->family = family;
	peer->protocol = BPF_CORE_READ(sock, sk_protocol);
	__builtin_memcpy(peer->port, &port, sizeof(port));
	peer->reserved = 0;
	peer->network = bpf_core_field_exists(sock->__sk_common.skc_net) ? BPF_CORE_READ(sock, __sk_common.skc_net.net, ns.inum) : 0;
	if (family == AF_INET) {
		bpf_core_read(peer->address, sizeof(__be32), &sock->__sk_common.skc_daddr);
		bpf_core_read(peer->own_address, sizeof(__be32), &sock->__sk_common.skc_rcv_saddr);
	} else if (bpf_core_field_exists(sock->__sk_common.skc_v6_daddr)) {
		bpf_core_read(peer->address, sizeof(peer->address), &sock->__sk_common.skc_v6_daddr);
		bpf_core_read(peer->own_address, sizeof(peer->own_address), &sock->__sk_common.skc_v6_rcv_saddr);
	}
	bpf_ringbuf_submit(peer, wakeup_flag());
}

static __noinline void set_file_object(struct task_struct *p, struct WireTask *task, struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct super_block *super = BPF_CORE_READ(inode, i_sb);
	if (!super)
		return;
	__u32 kind = kind_of_file(file, inode, BPF_CORE_READ(super, s_magic));
	__u32 device = BPF_CORE_READ(super, s_dev);
	__u64 number = kind == OBJECT_ANONYMOUS ? anonymous_name(file) : BPF_CORE_READ(inode, i_ino);
	if (kind == OBJECT_SOCKET && (task->object_inode != number || task->object_device != device))
		emit_peer_named(task, file, number, device);
	task->object_kind = kind;
	task->object_device = device;
	task->object_inode = number;
	if (has_path(kind))
		emit_file_named(p, task, file);
}

/* Returns the file that the current system call waits for; NULL if it is unknown. Adds flags for `object_kind`. */
static __always_inline struct file *awaited_file(struct task_struct *p, struct WireTask *task, __u32 *flags)
{
	if (is_watching_call(task->syscall))
		return watched_file(p, task, flags);
	switch (task->syscall) {
	case NR_read: case NR_write: case NR_pread64: case NR_pwrite64: case NR_readv: case NR_writev: case NR_preadv:
	case NR_pwritev: case NR_preadv2: case NR_pwritev2: case NR_sendfile: case NR_splice: case NR_getdents64:
	case NR_connect: case NR_accept: case NR_accept4: case NR_sendto: case NR_recvfrom: case NR_sendmsg:
	case NR_recvmsg: case NR_recvmmsg: case NR_sendmmsg: case NR_ioctl: case NR_fcntl: case NR_flock: case NR_fsync:
	case NR_fdatasync:
		return file_of(p, task->argument);
	}
	return NULL;
}

/* Checks whether the thread waits for a permission scanner. A reply of a scanner wakes all threads that wait for that scanner, and the
 * threads whose answer is still missing sleep again. So such waits are identified by the thread's kernel stack, not by the waker. */
static __noinline void set_object_if_scanner(void *ctx, struct WireTask *task)
{
	struct scratch *scratch = scratch_of_this_cpu();
	if (!scanner_code.start || !scratch)
		return;
	long bytes = bpf_get_stack(ctx, scratch->stack, sizeof(scratch->stack), 0);
	for (int depth = 0; depth < MAX_SCANNER_FRAMES; depth++) {
		if (depth * (long)sizeof(__u64) >= bytes)
			return;
		if (scratch->stack[depth] - scanner_code.start < scanner_code.bytes) {
			task->object_kind = OBJECT_PERMISSION;
			task->object_inode = task->object_device = 0;
			return;
		}
	}
}

/* Stores what a blocking thread waits for. Calls `set_file_object` in one place only, because the verifier checks that function again for
 * each call. */
static __always_inline void set_object(void *ctx, struct task_struct *p, struct WireTask *task)
{
	switch (task->syscall) {
	case NR_execve: case NR_execveat: case NR_open: case NR_openat: case NR_openat2: case NR_creat:
		set_object_if_scanner(ctx, task);
		return;
	}
	__u32 flags = 0;
	struct file *file = awaited_file(p, task, &flags);
	if (!file)
		return;
	set_file_object(p, task, file);
	task->object_kind |= flags;
}
