/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * The environment of a new program, of which the collector keeps a few variables (event/variables.rs). It is copied only for descendants of
 * programs that set one of these, so that other launches have no extra cost. */
#pragma once

/* Up to seven letters as they are in memory. */
#define LETTERS(a, b, c, d, e, f, g) \
	((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 | (__u64)(e) << 32 | (__u64)(f) << 40 | (__u64)(g) << 48)
#define FIRST(count) ((1ULL << 8 * (count)) - 1)

/* Whether what this process launches may have such a variable. A process that changes its name is not recognised. */
static __always_inline bool has_variables(struct task_struct *process, struct WireTask *task)
{
	union {
		char text[16];
		__u64 start;
	} name = {};
	if (task->flags & TASK_HAS_VARIABLES)
		return true;
	BPF_CORE_READ_INTO(&name.text, process, group_leader, comm);
	__u64 start = name.start;
	return (start & FIRST(5)) == LETTERS('c', 'a', 'r', 'g', 'o', 0, 0) ||
	       (start & FIRST(6)) == LETTERS('p', 'y', 't', 'h', 'o', 'n', 0) ||
	       (start & FIRST(6)) == LETTERS('p', 'y', 't', 'e', 's', 't', 0) ||
	       (start & FIRST(7)) == LETTERS('p', 'y', '.', 't', 'e', 's', 't') ||
	       (start & FIRST(3)) == LETTERS('n', 'p', 'm', 0, 0, 0, 0) ||
	       (start & FIRST(4)) == LETTERS('n', 'o', 'd', 'e', 0, 0, 0);
}

/* Copies the beginning of the environment and, if it is longer than VARIABLES_BYTES, also its end: programs add variables at the end, or sort
 * them. The kernel has just written it to the new stack. */
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
