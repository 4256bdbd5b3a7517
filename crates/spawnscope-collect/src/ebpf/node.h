/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Passes on the call sites that Node.js programs report with `record --node-lines`: before a launch, the hook in such a program checks
 * whether a file exists whose name is the call chain. The same thread forks next. */
#pragma once

/* Emits a file name if it begins with NODE_PREFIX_START, as the hook's file names do. */
static __noinline void emit_node_call_site(struct WireTask *task, __u64 name)
{
	struct scratch *scratch = scratch_of_this_cpu();
	__u64 start = 0;
	if (!scratch || bpf_probe_read_user(&start, sizeof(start), (void *)name) || start != NODE_PREFIX_START)
		return;
	/* Build the record in the data part of the scratch buffer. */
	struct WireNodeCallSite *call_site = (struct WireNodeCallSite *)scratch->data;
	fill_header(&call_site->header, KIND_NODE_CALL_SITE, bpf_ktime_get_ns(), task);
	long bytes = bpf_probe_read_user_str(call_site + 1, NODE_BYTES, (void *)name);
	if (bytes < 0 || bytes > NODE_BYTES)
		return;
	call_site->bytes = bytes;
	call_site->reserved = 0;
	if (bpf_ringbuf_output(&events, call_site, sizeof(*call_site) + bytes, wakeup_flag()))
		count_lost(KIND_NODE_CALL_SITE);
}
