/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Finds the file that a descriptor refers to, and determines its kind. */
#pragma once

static __always_inline struct file *file_of(struct task_struct *p, __u64 fd)
{
	struct fdtable *fdt = BPF_CORE_READ(p, files, fdt);
	struct file *file;
	if (fd >= BPF_CORE_READ(fdt, max_fds))
		return NULL;
	struct file **table = BPF_CORE_READ(fdt, fd);
	return bpf_probe_read_kernel(&file, sizeof(file), table + fd) ? NULL : file;
}

static __always_inline __u32 kind_of_socket(struct file *file)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	return BPF_CORE_READ(socket, sk, __sk_common.skc_family) == AF_UNIX ? OBJECT_UNIX_SOCKET : OBJECT_SOCKET;
}

/* Checks for anon_inodefs and pidfs first: the mode of their files has no type, or a meaningless one. */
static __always_inline __u32 kind_of_file(struct file *file, struct inode *inode, unsigned long magic)
{
	if (magic == ANON_INODE_FS_MAGIC)
		return OBJECT_ANONYMOUS;
	if (magic == PID_FS_MAGIC)
		return OBJECT_PIDFD;
	switch (BPF_CORE_READ(inode, i_mode) & S_IFMT) {
	case S_IFIFO:
		return magic == PIPEFS_MAGIC ? OBJECT_PIPE : OBJECT_FIFO;
	case S_IFSOCK:
		return kind_of_socket(file);
	case S_IFCHR:
		return OBJECT_CHARACTER_DEVICE;
	case S_IFBLK:
		return OBJECT_BLOCK_DEVICE;
	case S_IFREG:
		return OBJECT_FILE;
	case S_IFDIR:
		return OBJECT_DIRECTORY;
	}
	return OBJECT_UNKNOWN;
}

/* Returns the first eight bytes of the name of an anonymous file, such as [eventfd]. All anonymous files share one inode, so only the
 * name distinguishes them. */
static __always_inline __u64 anonymous_name(struct file *file)
{
	union {
		char bytes[16];
		__u64 beginning;
	} name = {};
	bpf_probe_read_kernel_str(name.bytes, sizeof(name.bytes), BPF_CORE_READ(file, f_path.dentry, d_name.name));
	return name.beginning;
}
