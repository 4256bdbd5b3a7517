/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * The eBPF side of the collector: reports what happens to followed processes as the records of `wire.rs`, in a ring buffer (and a
 * second one for stacks). Only BTF tracepoints are used, because some kernels refuse kprobes and fentry. Each program first checks
 * whether the thread is followed, and returns at once if not. */
#include "kernel.h"
#include "wire.h" /* generated from wire.rs */
#include "state.h"
#include "costs.h"
#include "spare.h"
#include "path.h"
#include "file.h"
#include "watched.h"
#include "object.h"
#include "context.h"
#include "scheduler.h" /* the first programs: one of them is often refused, so the refusal is known early */
#include "follow.h"
#include "loader.h"
#include "interpreters.h"
#include "surrounding.h"
#include "script.h"
#include "bash.h"
#include "dash.h"
#include "zsh.h"
#include "python.h"
#include "perl.h"
#include "make.h"
#include "callers.h"
#include "environment.h"
#include "launch.h"
#include "stacks.h"
#include "node.h"
#include "syscalls.h"
#include "samples.h"
#include "last.h"
#include "seeds.h"

/* Some helpers are for GPL-compatible programs only; this is one of the strings the kernel accepts as such. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";
