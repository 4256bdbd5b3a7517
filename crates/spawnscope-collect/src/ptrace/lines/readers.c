/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Compiles the readers of interpreters (the headers in `ebpf`) for the recorder, so that ptrace and eBPF find call sites by the same code.
 * Here, they read a stopped process, through functions of the caller. The kernel's verifier checks that they stay within their buffers,
 * whatever the memory of the process contains. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t __u8;
typedef uint16_t __u16;
typedef uint32_t __u32;
typedef int32_t __s32;
typedef uint64_t __u64;

#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline static __attribute__((noinline))

#include "wire.h"

struct reader;
static _Thread_local struct reader *current;

static long bpf_probe_read_user(void *to, __u32 bytes, const void *address);
static long bpf_probe_read_user_str(char *to, __u32 room, const void *address);
static struct WireTask *current_dash(void);

#define current_task() NULL
#define find_task(task) current_dash()

static inline __u64 at_most(__u64 number, __u32 limit)
{
	return number < limit ? number : limit;
}

#include "script.h"
#include "bash.h"
#include "dash.h"
#include "python.h"
#include "perl.h"
#include "make.h"
#include "zsh.h"

/* The first members are those of `Head` in `readers.rs`. */
struct reader {
	/* Reads `bytes` bytes from an address in the process; returns false if they cannot all be read. */
	bool (*read)(void *memory, void *to, __u32 bytes, __u64 address);
	/* Reads a string and its NUL; returns the number of bytes, `room` if they do not fit, and 0 if they cannot be read. */
	__u32 (*read_text)(void *memory, char *to, __u32 room, __u64 address);
	void *memory;
	/* The shell that forks, and its child. */
	struct WireTask creator, child;
	/* dash: whether the creator's own call site is read, and whether the child will execute a program at once. */
	__u32 is_own, is_spawn;
	struct script script;
	struct python_scratch python;
};

static struct script *script_of_this_cpu(void)
{
	return &current->script;
}

static struct python_scratch *python_scratch_of_this_cpu(void)
{
	return &current->python;
}

static struct WireTask *current_dash(void)
{
	return &current->creator;
}

static long bpf_probe_read_user(void *to, __u32 bytes, const void *address)
{
	if (current->read(current->memory, to, bytes, (__u64)address))
		return 0;
	memset(to, 0, bytes);
	return -1;
}

static long bpf_probe_read_user_str(char *to, __u32 room, const void *address)
{
	__u32 bytes = current->read_text(current->memory, to, room, (__u64)address);
	return bytes ? (long)bytes : -1;
}

static struct script *begin(struct reader *reader, __u32 interpreter, __u64 bias)
{
	current = reader;
	begin_script_at(&reader->script, interpreter, bias);
	return &reader->script;
}

static const struct WireScriptCalled *result(struct reader *reader, bool is_known)
{
	return is_known ? &reader->script.called : NULL;
}

size_t spawnscope_reader_bytes(void)
{
	return sizeof(struct reader);
}

/* Each of these functions returns the call site as the record that the BPF programs send, with the data behind it; NULL if it is
 * unknown. */

const struct WireScriptCalled *spawnscope_read_bash(struct reader *reader, __u64 bias, const struct WireBash *layout)
{
	struct script *script = begin(reader, INTERPRETER_BASH, bias);
	script->bash.layout = *layout;
	return result(reader, read_bash_call(script, &reader->creator, &reader->child));
}

const struct WireScriptCalled *spawnscope_read_dash(struct reader *reader, __u64 bias, const struct WireDash *layout)
{
	struct script *script = begin(reader, INTERPRETER_DASH, bias);
	script->dash.layout = *layout;
	bool is_known = reader->is_own ? read_own_dash_call(script, &reader->creator) :
					 read_dash_call(script, &reader->creator, &reader->child, reader->is_spawn);
	return result(reader, is_known);
}

const struct WireScriptCalled *spawnscope_read_perl(struct reader *reader, __u64 bias, const struct WirePerl *layout,
						    __u64 thread_pointer)
{
	return result(reader, read_perl_call(begin(reader, INTERPRETER_PERL, bias), layout, thread_pointer));
}

const struct WireScriptCalled *spawnscope_read_make(struct reader *reader, __u64 bias, const struct WireMake *layout,
						    __u64 stack_pointer)
{
	return result(reader, read_make_call(begin(reader, INTERPRETER_MAKE, bias), layout, stack_pointer));
}

const struct WireScriptCalled *spawnscope_read_zsh(struct reader *reader, __u64 bias, const struct WireZsh *layout)
{
	return result(reader, read_zsh_call(begin(reader, INTERPRETER_ZSH, bias), layout));
}

const struct WirePythonCalled *spawnscope_read_python(struct reader *reader, __u64 bias, const struct WirePython *layout, __u64 tid)
{
	current = reader;
	reader->python.layout = *layout;
	return read_python_call(&reader->python, bias, tid) ? &reader->python.called : NULL;
}
