/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * The few kernel types and constants that the programs use. Field offsets are relocated at load time from the running kernel's
 * BTF (CO-RE), so the position of a field here is irrelevant, and neither vmlinux.h nor kernel headers are needed. */
#pragma once

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __le16;
typedef __u16 __be16;
typedef __u32 __le32;
typedef __u32 __be32;
typedef __u64 __le64;
typedef __u64 __be64;
typedef __u16 __sum16;
typedef __u32 __wsum;
typedef __u8 uint8_t;
typedef __u16 uint16_t;
typedef __u32 uint32_t;
typedef __s32 int32_t;
typedef __s64 int64_t;
typedef __u64 uint64_t;
typedef _Bool bool;

#define true 1
#define false 0
#define NULL ((void *)0)
#define INT_MAX 0x7fffffff

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* include/uapi/linux/bpf.h */
enum {
	BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERCPU_ARRAY = 6, BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27, BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_NOEXIST = 1, BPF_F_NO_PREALLOC = 1, BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2, BPF_RB_AVAIL_DATA = 0 };

#define CORE __attribute__((preserve_access_index))

#include "syscall_numbers.h" /* generated from the table of system calls in spawnscope-data */

#if defined(__TARGET_ARCH_x86)
#include "arch/x86_64.h"
#elif defined(__TARGET_ARCH_arm64)
#include "arch/aarch64.h"
#endif

struct ns_common {
	unsigned int inum;
} CORE;
struct pid_namespace {
	struct ns_common ns;
} CORE;
struct upid {
	int nr;
	struct pid_namespace *ns;
} CORE;
struct pid {
	unsigned int level;
	struct upid numbers[1];
} CORE;

typedef struct {
	long counter;
} atomic_long_t;
typedef struct {
	int counter;
} atomic_t;
struct percpu_counter {
	__s64 count;
} CORE;
struct file;
typedef struct {
	void *vdso;
} CORE mm_context_t;
struct mm_struct {
	mm_context_t context;
	unsigned long arg_start, arg_end, env_start, env_end, start_code;
	struct file *exe_file;
	unsigned long saved_auxv[48];
	unsigned long start_stack, exec_vm;
	atomic_long_t pgtables_bytes;
	struct percpu_counter rss_stat[4];
} CORE;
/* before Linux 6.2 */
struct mm_rss_stat {
	atomic_long_t count[4];
} CORE;
struct mm_struct___before_6_2 {
	struct mm_rss_stat rss_stat;
} CORE;

struct qstr {
	const unsigned char *name;
} CORE;
struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
} CORE;
struct vfsmount {
	struct dentry *mnt_root;
} CORE;
struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
} CORE;
struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
} CORE;
struct fs_struct {
	struct path root, pwd;
} CORE;
struct super_block {
	unsigned int s_dev;
	unsigned long s_magic;
} CORE;
struct inode {
	unsigned short i_mode;
	unsigned int i_rdev;
	unsigned long i_ino;
	struct super_block *i_sb;
	__s64 i_mtime_sec;
	__u32 i_mtime_nsec;
} CORE;
struct timespec64 {
	__s64 tv_sec;
	long tv_nsec;
} CORE;
/* Linux 6.7 to 6.10 */
struct inode___6_7 {
	struct timespec64 __i_mtime;
} CORE;
struct inode___before_6_7 {
	struct timespec64 i_mtime;
} CORE;
struct file {
	struct inode *f_inode;
	struct path f_path;
	void *private_data;
} CORE;
struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_flags, vm_pgoff;
	struct file *vm_file;
} CORE;
struct in6_addr {
	__u64 halves[2];
};
struct net {
	struct ns_common ns;
} CORE;
struct sock_common {
	__be32 skc_daddr, skc_rcv_saddr;
	__be16 skc_dport;
	unsigned short skc_family;
	struct {
		struct net *net;
	} skc_net; /* with CONFIG_NET_NS */
	struct in6_addr skc_v6_daddr, skc_v6_rcv_saddr; /* with CONFIG_IPV6 */
} CORE;
struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
} CORE;
struct socket {
	struct sock *sk;
} CORE;
struct rb_node {
	struct rb_node *rb_left, *rb_right;
} CORE;
struct rb_root {
	struct rb_node *rb_node;
} CORE;
struct rb_root_cached {
	struct rb_root rb_root;
} CORE;
struct epoll_filefd {
	struct file *file;
} CORE;
struct epitem {
	struct rb_node rbn;
	struct epoll_filefd ffd;
} CORE;
struct eventpoll {
	struct rb_root_cached rbr;
} CORE;
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} CORE;
struct files_struct {
	struct fdtable *fdt;
} CORE;

struct mnt_namespace {
	struct ns_common ns;
} CORE;
struct nsproxy {
	struct mnt_namespace *mnt_ns;
} CORE;
struct signal_struct {
	atomic_t live;
} CORE;
struct sched_info {
	unsigned long long last_arrival;
} CORE;
struct rq;
struct cfs_rq {
	struct rq *rq;
} CORE;
struct sched_entity {
	struct cfs_rq *cfs_rq; /* in most kernels: CONFIG_FAIR_GROUP_SCHED */
} CORE;
struct task_struct {
	struct thread_info thread_info;
	void *stack;
	int pid, tgid, exit_code, exit_state;
	unsigned int __state;
	struct task_struct *group_leader, *real_parent;
	struct pid *thread_pid;
	struct mm_struct *mm;
	struct fs_struct *fs;
	struct files_struct *files;
	struct signal_struct *signal;
	struct nsproxy *nsproxy;
	unsigned long min_flt;
	struct thread_struct thread;
	struct sched_entity se;
	struct sched_info sched_info; /* in most kernels: CONFIG_SCHED_INFO */
	char comm[16];
} CORE;
struct task_struct___before_5_14 {
	volatile long state;
} CORE;
struct linux_binprm {
	const char *filename, *interp;
} CORE;
struct kernel_siginfo;
struct bpf_iter__task {
	struct task_struct *task;
} CORE;

/* include/linux/sched.h */
#define TASK_UNINTERRUPTIBLE 0x02
#define TASK_STOPPED_OR_TRACED 0x0c
#define TASK_DEAD 0x80
#define EXIT_DEAD 0x10
#define CLONE_VM 0x100
#define CLONE_VFORK 0x4000
/* include/linux/mm.h */
#define VM_EXEC 4
/* include/linux/mm_types_task.h */
enum { MM_FILEPAGES, MM_ANONPAGES, MM_SWAPENTS, MM_SHMEMPAGES };
/* include/uapi/linux/auxvec.h */
#define AT_NULL 0
#define AT_BASE 7
/* include/uapi/asm-generic/errno-base.h */
#define ENOENT 2
#define EEXIST 17
/* include/uapi/linux/{wait,mman,fcntl}.h */
#define WNOWAIT 0x01000000
#define PROT_READ 1
#define PROT_EXEC 4
#define F_DUPFD 0
#define F_DUPFD_CLOEXEC 1030
#define P_PID 1
/* include/uapi/linux/stat.h */
enum { S_IFMT = 0170000, S_IFSOCK = 0140000, S_IFREG = 0100000, S_IFBLK = 0060000, S_IFDIR = 0040000, S_IFCHR = 0020000, S_IFIFO = 0010000 };
/* include/uapi/linux/magic.h */
enum { PIPEFS_MAGIC = 0x50495045, ANON_INODE_FS_MAGIC = 0x09041934, PID_FS_MAGIC = 0x50494446 };
/* include/linux/socket.h */
#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
/* include/uapi/asm-generic/poll.h */
struct pollfd {
	int fd;
	short events, revents;
};
/* include/uapi/asm-generic/siginfo.h: si_pid on 64-bit machines, where the union after si_code is aligned to 8 */
#define SI_PID_OFFSET 16
#define SI_PID_OFFSET_OF_32_BITS 12
