/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Copies the environment of a new program, of which the collector keeps a few variables (event/variables.rs). An
 * environment is copied only if an ancestor may have set one of these variables, so that other launches have no extra cost. */
#pragma once

/* Up to seven letters, as a little-endian number. */
#define LETTERS(a, b, c, d, e, f, g) \
	((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 | (__u64)(e) << 32 | (__u64)(f) << 40 | (__u64)(g) << 48)
/* The mask for the first `count` bytes. */
#define BYTES_MASK(count) ((1ULL << 8 * (count)) - 1)

/* Whether the children of this process may have one of these variables. A process that changes its name is not recognized. */
static __always_inline bool may_have_variables(struct task_struct *process, struct WireTask *task)
{
	union {
		char text[16];
		__u64 start;
	} name = {};
	if (task->flags & TASK_HAS_VARIABLES)
		return true;
	BPF_CORE_READ_INTO(&name.text, process, group_leader, comm);
	__u64 start = name.start;
	return (start & BYTES_MASK(5)) == LETTERS('c', 'a', 'r', 'g', 'o', 0, 0) ||
	       (start & BYTES_MASK(6)) == LETTERS('p', 'y', 't', 'h', 'o', 'n', 0) ||
	       (start & BYTES_MASK(6)) == LETTERS('p', 'y', 't', 'e', 's', 't', 0) ||
	       (start & BYTES_MASK(7)) == LETTERS('p', 'y', '.', 't', 'e', 's', 't') ||
	       (start & BYTES_MASK(3)) == LETTERS('n', 'p', 'm', 0, 0, 0, 0) ||
	       (start & BYTES_MASK(4)) == LETTERS('n', 'o', 'd', 'e', 0, 0, 0);
}

/* Copies the beginning of the environment and, if the environment is longer than VARIABLES_BYTES, also its end: some programs add
 * variables at the end, others sort them. The kernel has just written the environment to the new stack. */
static __always_inline __u32 add_environment(struct scratch *scratch, struct mm_struct *mm, __u32 used, bool wanted)
{
	struct WireExecuted *executed = &scratch->executed;
	executed->environment_bytes = executed->environment_end_bytes = 0;
	if (!wanted)
		return used;
	__u64 start = BPF_CORE_READ(mm, env_start), end = BPF_CORE_READ(mm, env_end);
	__u64 bytes = at_most(end - start, VARIABLES_BYTES), rest = at_most(end - start - bytes, VARIABLES_BYTES);
	if (used > EXECUTED_DATA_BYTES || bpf_probe_read_user(&scratch->data[used], bytes, (void *)start))
		return used;
	executed->environment_bytes = bytes;
	used += bytes;
	if (!rest || used > EXECUTED_DATA_BYTES + VARIABLES_BYTES ||
	    bpf_probe_read_user(&scratch->data[used], rest, (void *)(end - rest)))
		return used;
	executed->environment_end_bytes = rest;
	return used + rest;
}
