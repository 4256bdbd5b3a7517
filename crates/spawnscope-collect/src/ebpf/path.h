/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Builds the path of a directory entry, up to the root directory of the process, component by component, innermost first. */
#pragma once

/* Takes one step up the directory tree, across mount points. Returns 0 at the root directory of the process, or if the tree is
 * inconsistent. Not static: the verifier checks such a function once, on its own. If it were static, the verifier would check it again
 * for each step of each walk, which took 30 ms. */
__noinline int step_up(void)
{
	struct scratch *scratch = scratch_of_this_cpu();
	if (!scratch)
		return 0;
	struct path_walk *walk = &scratch->walk;
	struct vfsmount *mnt = walk->mnt;
	struct dentry *dentry = walk->dentry, *parent = BPF_CORE_READ(dentry, d_parent);
	if (dentry == walk->root && mnt == walk->root_mnt) {
		walk->complete = 1;
		return 0;
	}
	if (dentry == BPF_CORE_READ(mnt, mnt_root) || dentry == parent) {
		struct mount *mount = (void *)mnt - bpf_core_field_offset(struct mount, mnt);
		struct mount *above = BPF_CORE_READ(mount, mnt_parent);
		if (above == mount) /* the namespace's own root: the process is outside its chroot */
			return 0;
		walk->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		walk->mnt = (void *)above + bpf_core_field_offset(struct mount, mnt);
		return 1;
	}
	__u32 used = walk->used;
	if (used > EXECUTED_DATA_BYTES - NAME_BYTES)
		return 0;
	long bytes = bpf_probe_read_kernel_str(&scratch->data[used], NAME_BYTES, BPF_CORE_READ(dentry, d_name.name));
	if (bytes <= 0)
		return 0;
	walk->used = used + bytes;
	walk->dentry = parent;
	return 1;
}

/* Prepares a walk that appends its components after `used` bytes of data. The caller sets `walk.mnt` and `walk.dentry`, where the walk
 * begins. */
static __always_inline void begin_walk(struct scratch *scratch, struct fs_struct *fs, __u32 used)
{
	struct path_walk *walk = &scratch->walk;
	walk->root_mnt = BPF_CORE_READ(fs, root.mnt);
	walk->root = BPF_CORE_READ(fs, root.dentry);
	walk->used = used;
	walk->complete = 0;
}

static __always_inline void walk_up(void)
{
	for (int depth = 0; depth < CWD_DEPTH; depth++)
		if (!step_up())
			break;
}

/* Whether a process is in another mount namespace than the collector. */
static __always_inline bool is_in_other_mount_namespace(struct task_struct *p)
{
	return BPF_CORE_READ(p, nsproxy, mnt_ns, ns.inum) != settings.mount_namespace;
}
