/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Chooses one of the files that poll, select or epoll_wait watches: the only socket among them. A thread that watches several sockets
 * waits for no specific one. The functions that look at one file are not static: the verifier then checks each of them once, on its own,
 * and not again for each file. */
#pragma once

/* Whether a call waits for one of several files. */
static __always_inline bool watches(int number)
{
	switch (number) {
	case NR_poll: case NR_ppoll: case NR_select: case NR_pselect6: case NR_epoll_wait: case NR_epoll_pwait: case NR_epoll_pwait2:
		return true;
	}
	return false;
}

static __always_inline struct watched *watched_of_this_cpu(void)
{
	struct scratch *scratch = scratch_of_this_cpu();
	return scratch ? &scratch->watched : NULL;
}

static __always_inline void begin_watched(struct watched *watched)
{
	__builtin_memset(watched, 0, __builtin_offsetof(struct watched, nodes));
}

/* "[eventpo" of [eventpoll], as a number. */
#define EPOLL_NAME 0x6f70746e6576655b

/* Whether it may be an epoll, which watches other files in turn. Anonymous inodes have no type, or that of a file. */
static __always_inline bool may_be_epoll(struct file *file, __u32 type)
{
	return (!type || type == S_IFREG) && anonymous_name(file) == EPOLL_NAME;
}

/* Counts `watched->file`. */
__noinline int look_at_file(void)
{
	struct watched *watched = watched_of_this_cpu();
	struct file *file = watched ? watched->file : NULL;
	if (!file)
		return 0;
	if (!watched->first)
		watched->first = file;
	__u32 type = BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT;
	if (type != S_IFSOCK) {
		watched->more |= may_be_epoll(file, type);
		return 0;
	}
	if (kind_of_socket(file) == OBJECT_UNIX_SOCKET) {
		watched->local = file;
		watched->locals++;
	} else {
		watched->internet = file;
		watched->internets++;
	}
	return 0;
}

/* Counts the file behind a descriptor of the current thread. */
__noinline int look_at_descriptor(__u64 fd)
{
	struct watched *watched = watched_of_this_cpu();
	if (!watched)
		return 0;
	watched->file = file_of(current_task(), fd);
	return look_at_file();
}

/* Counts the descriptor in a `struct pollfd`. */
__noinline int look_at_pollfd(__u64 address)
{
	struct watched *watched = watched_of_this_cpu();
	struct pollfd polled = {};
	if (bpf_probe_read_user(&polled, sizeof(polled), (void *)address) && watched)
		watched->more = 1;
	else if (polled.fd >= 0)
		look_at_descriptor(polled.fd);
	return 0;
}

static __always_inline void look_at_polled(struct watched *watched, struct WireTask *task)
{
	__u64 places = task->second_argument;
	for (__u64 place = 0; place < WATCHED_MOST && place < places; place++)
		look_at_pollfd(task->argument + place * sizeof(struct pollfd));
	watched->more |= places > WATCHED_MOST;
}

/* Counts the lowest descriptor of `watched->set`, and removes it from the set. Without a loop over bits, which the verifier would follow. */
__noinline int look_at_lowest(void)
{
	struct watched *watched = watched_of_this_cpu();
	if (!watched || !watched->set)
		return 0;
	__u64 lowest = watched->set & -watched->set;
	watched->set &= ~lowest;
	look_at_descriptor(!!(lowest & 0xffffffff00000000) << 5 | !!(lowest & 0xffff0000ffff0000) << 4 |
			   !!(lowest & 0xff00ff00ff00ff00) << 3 | !!(lowest & 0xf0f0f0f0f0f0f0f0) << 2 |
			   !!(lowest & 0xcccccccccccccccc) << 1 | !!(lowest & 0xaaaaaaaaaaaaaaaa));
	return 1;
}

/* Of the descriptors that select waits to read from or to write to, the first 64. */
static __always_inline void look_at_selected(struct watched *watched, struct WireTask *task)
{
	__u64 count = task->argument, writable = 0;
	if (task->second_argument)
		watched->more |= !!bpf_probe_read_user(&watched->set, sizeof(watched->set), (void *)task->second_argument);
	if (task->third_argument)
		watched->more |= !!bpf_probe_read_user(&writable, sizeof(writable), (void *)task->third_argument);
	watched->set |= writable;
	if (count < 64)
		watched->set &= (1ULL << (count & 63)) - 1;
	for (int place = 0; place < WATCHED_MOST; place++)
		if (!look_at_lowest())
			break;
	watched->more |= count > 64 || watched->set;
}

static __always_inline void add_node(struct watched *watched, struct rb_node *node)
{
	__u32 used = watched->used;
	if (!node)
		return;
	watched->more |= used >= WATCHED_MOST;
	watched->nodes[at_most(used, WATCHED_MOST)] = node;
	watched->used = used + 1;
}

/* Counts the file of the next node of an epoll's tree, and adds the nodes below it. */
__noinline int look_at_node(void)
{
	struct watched *watched = watched_of_this_cpu();
	__u32 place = watched ? watched->place : 0;
	if (!watched || place >= watched->used)
		return 0;
	struct rb_node *node = watched->nodes[at_most(place, WATCHED_MOST)];
	struct epitem *item = (void *)node - bpf_core_field_offset(struct epitem, rbn);
	watched->place = place + 1;
	add_node(watched, BPF_CORE_READ(node, rb_left));
	add_node(watched, BPF_CORE_READ(node, rb_right));
	watched->file = BPF_CORE_READ(item, ffd.file);
	look_at_file();
	return 1;
}

static __always_inline void look_at_epoll(struct watched *watched, struct file *file)
{
	struct eventpoll *epoll = BPF_CORE_READ(file, private_data);
	struct epitem *item = NULL;
	if (!bpf_core_field_exists(epoll->rbr) || !bpf_core_field_exists(item->rbn) || !bpf_core_field_exists(item->ffd))
		return;
	add_node(watched, BPF_CORE_READ(epoll, rbr.rb_root.rb_node));
	for (int place = 0; place < WATCHED_MOST; place++)
		if (!look_at_node())
			break;
}

/* The only socket. The flag is for one that others are beside, which only threads make ready: the internet socket of an event loop that
 * its own threads wake through a pair of sockets. */
static __always_inline struct file *only_socket(struct watched *watched, __u32 *flags)
{
	if (watched->more || watched->internets > 1 || (!watched->internets && watched->locals != 1))
		return NULL;
	if (!watched->internets)
		return watched->local;
	*flags = watched->locals ? OBJECT_UNLESS_THREAD : 0;
	return watched->internet;
}

static __always_inline bool is_epoll_call(int number)
{
	return number == NR_epoll_wait || number == NR_epoll_pwait || number == NR_epoll_pwait2;
}

/* The file that the current call, which watches several, waits for. Without sockets, the epoll or the first file stands for all of them. */
static __noinline struct file *watched_file(struct task_struct *p, struct WireTask *task, __u32 *flags)
{
	struct watched *watched = watched_of_this_cpu();
	struct file *epoll = NULL, *only;
	if (!watched)
		return NULL;
	begin_watched(watched);
	if (is_epoll_call(task->syscall)) {
		epoll = file_of(p, task->argument);
		look_at_epoll(watched, epoll);
	} else if (task->syscall == NR_poll || task->syscall == NR_ppoll) {
		look_at_polled(watched, task);
	} else {
		look_at_selected(watched, task);
	}
	only = only_socket(watched, flags);
	if (only || epoll)
		return only ? only : epoll;
	return watched->internets || watched->locals ? NULL : watched->first;
}
