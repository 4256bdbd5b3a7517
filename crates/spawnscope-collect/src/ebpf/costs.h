/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Measures what the programs themselves cost. The recorder measures the overhead of a recording before it begins, in a loop that keeps
 * the programs and their data in the CPU caches. In the command, they are often not there, so a program takes longer. The difference
 * belongs to the overhead, too. */
#pragma once

/* Of the frequent events, one of COST_PERIOD is measured, because reading the clock twice costs as much as a quarter of such a program. */
enum { COST_PERIOD = 16 };
/* A longer run was interrupted. */
enum { MAX_COST_NS = 200 * 1000 };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COST_END);
	__type(key, __u32);
	__type(value, struct WireCost);
} costs SEC(".maps");

/* The times are kept in the map rather than in registers, so that verifiers see no further states of the program. */
static __always_inline void begin_cost(__u32 event)
{
	struct WireCost *cost = recording ? bpf_map_lookup_elem(&costs, &event) : NULL;
	if (cost)
		cost->since = event > COST_RETURN || !(cost->runs++ % COST_PERIOD) ? bpf_ktime_get_ns() : 0;
}

static __always_inline void end_cost(__u32 event)
{
	struct WireCost *cost = bpf_map_lookup_elem(&costs, &event);
	if (!cost || !cost->since)
		return;
	__u64 span = bpf_ktime_get_ns() - cost->since;
	if (span > MAX_COST_NS)
		return;
	cost->measured++;
	cost->span += span;
}

/* Runs `body`, which returns whether the event was that of a followed thread. */
#define MEASURED(event, body)       \
	begin_cost(event);          \
	if (body)                   \
		end_cost(event);
