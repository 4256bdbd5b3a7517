/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Inserts and removes the first followed threads in the build where `tasks` is a hash. Only the kernel knows the keys of the hash, so
 * an iterator over all threads does this. Where `tasks` is task storage, user space inserts the threads by pidfd. */
#pragma once

#ifdef HASH_OF_TASKS

struct WireSeed seed SEC(".data.seed") = {};

SEC("iter/task")
int on_seed(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;
	__u64 key = (__u64)p;
	if (!p || visible_tid(p) != (int)seed.pid)
		return 0;
	if (seed.remove)
		seed.failed = bpf_map_delete_elem(&tasks, &key);
	else
		seed.failed = bpf_map_update_elem(&tasks, &key, &seed.task, 0);
	seed.found = 1;
	return 0;
}

#endif
