/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * Finds the call site in a Python program: reads the frames of the forking thread at its fork, while they cannot change. Each
 * frame is reported with the line table of its code, which the collector decodes. If the memory of a process does not match the
 * layout of its interpreter, nothing is reported. */
#pragma once

/* Bits of PyASCIIObject.state. The two lowest bits are for interning, the next three are the character width. */
#define TEXT_COMPACT 0x20
#define TEXT_ASCII 0x40
/* enum _frameowner. With these two owners, the entry is not a frame of the program: it marks where C code entered the interpreter. */
#define OWNED_BY_INTERPRETER 3
#define OWNED_BY_C_STACK 4
/* Lengths, character width and type address have the same offsets in all versions with a global interpreter lock. */
#define OBJECT_TYPE 8
#define OBJECT_SIZE 16
#define BYTES_DATA 32

/* One buffer per CPU, like `scratches`. It is a plain array, because a per-CPU map cannot have values of this size. The
 * collector sets the number of its entries to that of CPUs before loading. Beyond the bytes of a record, there is room for one more frame with its names and its
 * line table. */
struct python_scratch {
	struct WirePythonCalled called;
	char data[PYTHON_DATA_BYTES + PYTHON_FRAME_BYTES];
	/* Parts of the process's memory, with room for the last field that can begin in them. */
	char frame[PYTHON_PIECE_BYTES + 8], code[PYTHON_PIECE_BYTES + 8];
	/* The thread state that was found, the thread id that is searched for, the next thread state or frame, and PyCode_Type's address. */
	__u64 thread, tid, next, code_type;
	/* The bytes and frames in `data`, and the character width of the last string. */
	__u32 used, frames, width;
	struct WirePython layout;
};
#ifdef __bpf__
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct python_scratch);
} python_scratches SEC(".maps");

static __always_inline struct python_scratch *python_scratch_of_this_cpu(void)
{
	__u32 cpu = bpf_get_smp_processor_id();
	return bpf_map_lookup_elem(&python_scratches, &cpu);
}
#else
static struct python_scratch *python_scratch_of_this_cpu(void);
#endif

/* Whether `pointer` is the thread pointer of the thread with this pthread_t. On aarch64, the pthread_t is slightly lower: by 1856 bytes in
 * glibc 2.36. */
#if defined(__TARGET_ARCH_arm64) || defined(__aarch64__)
#define IS_PTHREAD(pthread, pointer) ((pointer) - (pthread) - 1 < 4096)
#else
#define IS_PTHREAD(pthread, pointer) ((pthread) == (pointer))
#endif

/* A field in a piece of memory that was read. The offset comes from the layout, so the verifier needs the mask. */
#define FIELD(type, piece, offset) (*(type *)&(piece)[(offset) & (PYTHON_PIECE_BYTES - 1)])

static __always_inline __u64 user_pointer(__u64 address)
{
	__u64 value = 0;
	return bpf_probe_read_user(&value, sizeof(value), (void *)address) ? 0 : value;
}

/* Appends the characters of a string to the data. Returns their number of bytes; 0 if the string is inconsistent or longer than
 * `max_bytes`. Not static: see `step_up` in path.h. */
__noinline int add_python_text(__u64 object, __u32 max_bytes)
{
	struct {
		__u64 length, hash;
		__u32 state;
	} head;
	struct python_scratch *scratch = python_scratch_of_this_cpu();
	if (!scratch || max_bytes > PYTHON_FILE_BYTES)
		return 0;
	const struct WirePython *layout = &scratch->layout;
	__u32 used = scratch->used;
	if (used > PYTHON_DATA_BYTES + PYTHON_HEAD_BYTES ||
	    bpf_probe_read_user(&head, sizeof(head), (void *)object + OBJECT_SIZE))
		return 0;
	scratch->width = head.state >> 2 & 7;
	if (!(head.state & TEXT_COMPACT) || head.length > max_bytes)
		return 0;
	__u64 bytes = head.length * scratch->width;
	__u32 start = head.state & TEXT_ASCII ? layout->ascii_text : layout->other_text;
	if (bytes > max_bytes || bpf_probe_read_user(&scratch->data[at_most(used, PYTHON_DATA_BYTES + PYTHON_HEAD_BYTES)],
						at_most(bytes, PYTHON_FILE_BYTES), (void *)object + start))
		return 0;
	scratch->used = used + bytes;
	return bytes;
}

/* Appends the line table, truncated to PYTHON_TABLE_BYTES; returns false if it cannot be read.
 * The table is sent with every launch, because an address does not identify a code object: a
 * program may drop one, and the next one may have the same addresses. */
static __always_inline bool add_table(struct python_scratch *scratch, struct WirePythonFrame *frame, __u64 object)
{
	__u64 bytes;
	__u32 used = scratch->used;
	if (bpf_probe_read_user(&bytes, sizeof(bytes), (void *)object + OBJECT_SIZE))
		return false;
	if (bytes > PYTHON_TABLE_BYTES)
		bytes = PYTHON_TABLE_BYTES;
	if (used > PYTHON_DATA_BYTES + PYTHON_HEAD_BYTES ||
	    bpf_probe_read_user(&scratch->data[used], bytes, (void *)object + BYTES_DATA))
		return false;
	scratch->used = used + bytes;
	frame->table_bytes = bytes;
	return true;
}

/* Returns the offset of a frame's current instruction in its code, in bytes; UNKNOWN_COUNT if it is not within the code. Up to 3.10,
 * the frame stores the offset itself: in 3.9 in bytes, in 3.10 in instructions. */
static __always_inline __u32 code_offset(struct python_scratch *scratch, const struct WirePython *layout, __u64 code)
{
	__u64 offset, bytes;
	if (layout->line_format == PYTHON_LINES_LOCATIONS) {
		offset = FIELD(__u64, scratch->frame, layout->frame_instruction) - (code + layout->code_instructions);
		bytes = FIELD(__u64, scratch->code, OBJECT_SIZE) * 2;
	} else {
		offset = FIELD(__u32, scratch->frame, layout->frame_instruction);
		offset *= layout->line_format == PYTHON_LINES_RANGES ? 2 : 1;
		bytes = user_pointer(FIELD(__u64, scratch->code, layout->code_bytes) + OBJECT_SIZE);
	}
	return offset < bytes ? offset : UNKNOWN_COUNT;
}

/* Adds the frame that executes this code object. */
static __always_inline bool add_frame(struct python_scratch *scratch, const struct WirePython *layout, __u64 code)
{
	__u32 start = (scratch->used + 7) & ~7;
	if (start > PYTHON_DATA_BYTES ||
	    bpf_probe_read_user(scratch->code, layout->code_instructions & (PYTHON_PIECE_BYTES - 1), (void *)code) ||
	    FIELD(__u64, scratch->code, OBJECT_TYPE) != scratch->code_type)
		return false;
	struct WirePythonFrame *frame = (void *)&scratch->data[start];
	scratch->used = start + sizeof(*frame);
	frame->first_line = FIELD(__u32, scratch->code, layout->code_first_line);
	frame->code_offset = code_offset(scratch, layout, code);
	__u64 file = FIELD(__u64, scratch->code, layout->code_file), name = FIELD(__u64, scratch->code, layout->code_function);
	frame->file_bytes = add_python_text(file, PYTHON_FILE_BYTES);
	frame->file_width = scratch->width;
	frame->function_bytes = add_python_text(name, PYTHON_FUNCTION_BYTES);
	frame->function_width = scratch->width;
	frame->line_format = layout->line_format;
	frame->table_bytes = 0;
	if (!add_table(scratch, frame, FIELD(__u64, scratch->code, layout->code_lines)))
		frame->code_offset = UNKNOWN_COUNT;
	return true;
}

/* Adds one frame and moves to its caller. Returns 0 if the frame cannot be read, or if there are PYTHON_FRAMES already. Not static: see
 * `step_up` in path.h. */
__noinline int add_python_frame(void)
{
	struct python_scratch *scratch = python_scratch_of_this_cpu();
	if (!scratch)
		return 0;
	const struct WirePython *layout = &scratch->layout;
	__u32 bytes = layout->frame_owner ? layout->frame_owner + 1 : layout->frame_instruction + sizeof(__u32);
	if (bpf_probe_read_user(scratch->frame, bytes & (PYTHON_PIECE_BYTES - 1), (void *)scratch->next))
		return 0;
	__u8 owner = layout->frame_owner ? FIELD(__u8, scratch->frame, layout->frame_owner) : 0;
	if (owner > OWNED_BY_C_STACK)
		return 0;
	if (owner < OWNED_BY_INTERPRETER) {
		/* The lowest bits are flags for reference counting (3.14). */
		__u64 code = FIELD(__u64, scratch->frame, layout->frame_code) & ~7ULL;
		if (scratch->frames == PYTHON_FRAMES || !add_frame(scratch, layout, code))
			return 0;
		scratch->frames++;
	}
	scratch->next = FIELD(__u64, scratch->frame, layout->frame_caller);
	return 1;
}

/* Determines the bias that must be added to addresses in the file that contains the interpreter; returns false if it is unknown. A
 * program that is linked with a library keeps the address of one of its functions in a slot, which is filled no later than at the first
 * call. */
static __always_inline bool python_bias(const struct WirePython *layout, __u64 program_bias, __u64 *bias)
{
	if (!layout->slot) {
		*bias = program_bias;
		return true;
	}
	__u64 function = user_pointer(layout->slot + program_bias);
	*bias = function - layout->slot_function;
	return function && !(*bias & 0xfff);
}

/* Checks whether the next thread in the interpreter's list is the one being searched for, and if not, moves on. Returns 0 if it was
 * found, or at the end of the list. Not static: see `step_up` in path.h. */
__noinline int check_python_thread(void)
{
	struct python_scratch *scratch = python_scratch_of_this_cpu();
	if (!scratch)
		return 0;
	const struct WirePython *layout = &scratch->layout;
	__u64 thread = scratch->next;
	if (!thread)
		return 0;
	__u64 id = user_pointer(thread + layout->thread_id);
	if (layout->line_format == PYTHON_LINES_LOCATIONS ? id == scratch->tid : IS_PTHREAD(id, scratch->tid)) {
		scratch->thread = thread;
		return 0;
	}
	scratch->next = user_pointer(thread + layout->thread_next);
	return 1;
}

/* Returns the interpreter's newest thread; 0 if it is not found. Gives up if the process has several interpreters, because a thread
 * may then be in several lists. */
static __always_inline __u64 newest_python_thread(const struct WirePython *layout, __u64 bias)
{
	__u64 interpreter = user_pointer(layout->runtime + bias + layout->runtime_interpreters);
	if (!interpreter || user_pointer(interpreter + layout->interpreter_next))
		return 0;
	return user_pointer(interpreter + layout->interpreter_threads);
}

/* Moves to the innermost frame of the thread with this id in the interpreter's list; returns false if it is not found. */
static __always_inline bool begin_python(struct python_scratch *scratch, __u64 program_bias, __u64 tid)
{
	const struct WirePython *layout = &scratch->layout;
	__u64 bias;
	if (!python_bias(layout, program_bias, &bias))
		return false;
	scratch->tid = tid;
	scratch->thread = 0;
	scratch->next = newest_python_thread(layout, bias);
	for (int i = 0; i < PYTHON_THREADS; i++)
		if (!check_python_thread())
			break;
	__u64 thread = scratch->thread;
	if (!thread)
		return false;
	__u64 holder = layout->thread_c_frame ? user_pointer(thread + layout->thread_c_frame) : thread;
	scratch->next = user_pointer(holder + layout->holder_frame);
	scratch->code_type = layout->code_type + bias;
	scratch->used = scratch->frames = 0;
	return scratch->next;
}

/* Reads the call chain of the thread with this id; returns its bytes, or 0 if no frame is known. */
static __always_inline __u32 read_python_call(struct python_scratch *scratch, __u64 program_bias, __u64 tid)
{
	if (!begin_python(scratch, program_bias, tid))
		return 0;
	/* There may be an entry for C code between any two frames. */
	for (int i = 0; i < 2 * PYTHON_FRAMES && scratch->next; i++)
		if (!add_python_frame())
			break;
	scratch->called.is_truncated = scratch->next != 0;
	scratch->called.bytes = scratch->used;
	return scratch->frames ? scratch->used : 0;
}

#ifdef __bpf__
LAYOUT_MAP(python_layouts, WirePython);

/* Returns the id that this thread has in the interpreter's list. */
static __always_inline __u64 python_thread_id(struct task_struct *p, const struct WirePython *layout)
{
	struct pid *pid = BPF_CORE_READ(p, thread_pid);
	__u32 namespace;
	if (layout->line_format != PYTHON_LINES_LOCATIONS)
		return THREAD_POINTER(p);
	return pid_at_level(pid, BPF_CORE_READ(pid, level), &namespace);
}

/* Reports the call site in the parent, which runs a Python interpreter with this layout. */
static __always_inline void emit_python_call(struct task_struct *parent, __u32 layout_index, struct WireTask *child,
					     __u64 now)
{
	struct WirePython *layout = bpf_map_lookup_elem(&python_layouts, &layout_index);
	struct python_scratch *scratch = python_scratch_of_this_cpu();
	if (!layout || !scratch)
		return;
	scratch->layout = *layout;
	__u64 bias = BPF_CORE_READ(parent, mm, start_code) - layout->code_start;
	__u32 used = read_python_call(scratch, bias, python_thread_id(parent, layout));
	if (!used || used > PYTHON_DATA_BYTES + PYTHON_FRAME_BYTES)
		return;
	fill_header(&scratch->called.header, KIND_PYTHON_CALLED, now, child);
	if (bpf_ringbuf_output(&events, scratch, sizeof(scratch->called) + used, wakeup_flag()))
		count_lost(KIND_PYTHON_CALLED);
}
#endif
