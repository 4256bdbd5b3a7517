/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Chooses one of the files that poll, select or epoll_wait watches: the only socket, or the only
 * internet socket beside unix sockets. If there are several candidates, no socket is chosen,
 * because a wrong server is worse than none. The functions that examine one file are not static:
 * see `step_up` in path.h. */
#pragma once

/* Whether a call waits for one of several files. */
static __always_inline bool is_watching_call(int number)
{
	switch (number) {
	case NR_poll: case NR_ppoll: case NR_select: case NR_pselect6: case NR_epoll_wait: case NR_epoll_pwait: case NR_epoll_pwait2:
		return true;
	}
	return false;
}

static __always_inline struct watched_files *watched_of_this_cpu(void)
{
	struct scratch *scratch = scratch_of_this_cpu();
	return scratch ? &scratch->watched : NULL;
}

static __always_inline void begin_watched(struct watched_files *watched)
{
	__builtin_memset(watched, 0, __builtin_offsetof(struct watched_files, nodes));
}

/* "[eventpo" of [eventpoll], as a number. */
#define EPOLL_NAME 0x6f70746e6576655b

/* Whether the file may be an epoll instance, which itself watches other files. Anonymous inodes have no type, or that of a regular
 * file. */
static __always_inline bool may_be_epoll(struct file *file, __u32 type)
{
	return (!type || type == S_IFREG) && anonymous_name(file) == EPOLL_NAME;
}

/* Counts `watched->file`. Sets `watched->has_unexamined` if the file watches files that cannot be counted. */
__noinline int examine_file(void)
{
	struct watched_files *watched = watched_of_this_cpu();
	struct file *file = watched ? watched->file : NULL;
	if (!file)
		return 0;
	if (!watched->first_file)
		watched->first_file = file;
	__u32 type = BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT;
	if (type != S_IFSOCK) {
		watched->has_unexamined |= may_be_epoll(file, type);
		return 0;
	}
	if (kind_of_socket(file) == OBJECT_UNIX_SOCKET) {
		watched->unix_socket = file;
		watched->unix_sockets++;
	} else {
		watched->internet_socket = file;
		watched->internet_sockets++;
	}
	return 0;
}

/* Counts the file of a descriptor of the current thread. */
__noinline int examine_descriptor(__u64 fd)
{
	struct watched_files *watched = watched_of_this_cpu();
	if (!watched)
		return 0;
	watched->file = file_of(current_task(), fd);
	return examine_file();
}

/* Counts the descriptor in a `struct pollfd`. */
__noinline int examine_pollfd(__u64 address)
{
	struct watched_files *watched = watched_of_this_cpu();
	struct pollfd polled = {};
	if (bpf_probe_read_user(&polled, sizeof(polled), (void *)address) && watched)
		watched->has_unexamined = 1;
	else if (polled.fd >= 0)
		examine_descriptor(polled.fd);
	return 0;
}

static __always_inline void examine_polled(struct watched_files *watched, struct WireTask *task)
{
	__u64 count = task->second_argument;
	for (__u64 i = 0; i < MAX_WATCHED && i < count; i++)
		examine_pollfd(task->argument + i * sizeof(struct pollfd));
	watched->has_unexamined |= count > MAX_WATCHED;
}

/* Counts the lowest descriptor of `watched->set` and removes it from the set; returns 0 if the set is empty. It finds the lowest bit
 * without a loop, because the verifier would check each iteration. */
__noinline int examine_lowest(void)
{
	struct watched_files *watched = watched_of_this_cpu();
	if (!watched || !watched->set)
		return 0;
	__u64 lowest = watched->set & -watched->set;
	watched->set &= ~lowest;
	examine_descriptor(!!(lowest & 0xffffffff00000000) << 5 | !!(lowest & 0xffff0000ffff0000) << 4 |
			   !!(lowest & 0xff00ff00ff00ff00) << 3 | !!(lowest & 0xf0f0f0f0f0f0f0f0) << 2 |
			   !!(lowest & 0xcccccccccccccccc) << 1 | !!(lowest & 0xaaaaaaaaaaaaaaaa));
	return 1;
}

/* Counts the descriptors that select watches for reading or writing, among the first 64. */
static __always_inline void examine_selected(struct watched_files *watched, struct WireTask *task)
{
	__u64 count = task->argument, writable = 0;
	if (task->second_argument)
		watched->has_unexamined |= !!bpf_probe_read_user(&watched->set, sizeof(watched->set), (void *)task->second_argument);
	if (task->third_argument)
		watched->has_unexamined |= !!bpf_probe_read_user(&writable, sizeof(writable), (void *)task->third_argument);
	watched->set |= writable;
	if (count < 64)
		watched->set &= (1ULL << (count & 63)) - 1;
	for (int i = 0; i < MAX_WATCHED; i++)
		if (!examine_lowest())
			break;
	watched->has_unexamined |= count > 64 || watched->set;
}

static __always_inline void add_node(struct watched_files *watched, struct rb_node *node)
{
	__u32 used = watched->used;
	if (!node)
		return;
	watched->has_unexamined |= used >= MAX_WATCHED;
	watched->nodes[at_most(used, MAX_WATCHED)] = node;
	watched->used = used + 1;
}

/* Counts the file of the next node of an epoll's tree, and adds the node's children; returns 0 if there is no further node. */
__noinline int examine_node(void)
{
	struct watched_files *watched = watched_of_this_cpu();
	__u32 next = watched ? watched->next : 0;
	if (!watched || next >= watched->used)
		return 0;
	struct rb_node *node = watched->nodes[at_most(next, MAX_WATCHED)];
	struct epitem *item = (void *)node - bpf_core_field_offset(struct epitem, rbn);
	watched->next = next + 1;
	add_node(watched, BPF_CORE_READ(node, rb_left));
	add_node(watched, BPF_CORE_READ(node, rb_right));
	watched->file = BPF_CORE_READ(item, ffd.file);
	examine_file();
	return 1;
}

static __always_inline void examine_epoll(struct watched_files *watched, struct file *file)
{
	struct eventpoll *epoll = BPF_CORE_READ(file, private_data);
	struct epitem *item = NULL;
	if (!bpf_core_field_exists(epoll->rbr) || !bpf_core_field_exists(item->rbn) || !bpf_core_field_exists(item->ffd))
		return;
	add_node(watched, BPF_CORE_READ(epoll, rbr.rb_root.rb_node));
	for (int i = 0; i < MAX_WATCHED; i++)
		if (!examine_node())
			break;
}

/* Returns the only socket, or the only internet socket. In the latter case, sets a flag if there are also unix sockets, which only
 * threads can make ready: an event loop may watch an internet socket, and a pair of unix sockets through which its own threads wake
 * it. */
static __always_inline struct file *only_socket(struct watched_files *watched, __u32 *flags)
{
	if (watched->has_unexamined || watched->internet_sockets > 1 || (!watched->internet_sockets && watched->unix_sockets != 1))
		return NULL;
	if (!watched->internet_sockets)
		return watched->unix_socket;
	*flags = watched->unix_sockets ? OBJECT_UNLESS_THREAD : 0;
	return watched->internet_socket;
}

static __always_inline bool is_epoll_call(int number)
{
	return number == NR_epoll_wait || number == NR_epoll_pwait || number == NR_epoll_pwait2;
}

/* Returns the file that stands for all files which the current call watches: the socket that `only_socket` chooses, or else the epoll
 * instance, or else the first file, if none of the files is a socket. */
static __noinline struct file *watched_file(struct task_struct *p, struct WireTask *task, __u32 *flags)
{
	struct watched_files *watched = watched_of_this_cpu();
	struct file *epoll = NULL, *only;
	if (!watched)
		return NULL;
	begin_watched(watched);
	if (is_epoll_call(task->syscall)) {
		epoll = file_of(p, task->argument);
		examine_epoll(watched, epoll);
	} else if (task->syscall == NR_poll || task->syscall == NR_ppoll) {
		examine_polled(watched, task);
	} else {
		examine_selected(watched, task);
	}
	only = only_socket(watched, flags);
	if (only || epoll)
		return only ? only : epoll;
	return watched->internet_sockets || watched->unix_sockets ? NULL : watched->first_file;
}
