// Makes system calls through the 32-bit entry, without libc. Creates three children, one by fork and two by clone. Each child makes a failed
// exec and then executes the given program; the parent waits for them by waitpid, wait4 and waitid. Exits with 7.
// Compiled with -m32 -nostdlib, so no 32-bit library is needed.

static long call(long number, long first, long second, long third, long fourth)
{
    long result;
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(number), "b"(first), "c"(second), "d"(third), "S"(fourth), "D"(0)
                     : "memory");
    return result;
}

enum { EXIT_GROUP = 252, FORK = 2, WAITPID = 7, EXECVE = 11, WAIT4 = 114, CLONE = 120, WAITID = 284 };
enum { SIGNAL_OF_CHILD = 17, ANY_PROCESS = 0, ENDED = 4 };

static char *arguments[2];

static void execute(const char *program)
{
    arguments[0] = (char *)program;
    call(EXECVE, (long)"/nowhere/32", (long)arguments, 0, 0);
    call(EXECVE, (long)program, (long)arguments, 0, 0);
    call(EXIT_GROUP, 127, 0, 0, 0);
}

// The kernel enters with the count of arguments and the arguments themselves on the stack.
__attribute__((used)) void begin(long *stack)
{
    const char *program = (const char *)stack[2];
    long child = call(FORK, 0, 0, 0, 0);
    if (child == 0)
        execute(program);
    int failed = call(WAITPID, child, 0, 0, 0) != child;
    child = call(CLONE, SIGNAL_OF_CHILD, 0, 0, 0);
    if (child == 0)
        execute(program);
    failed |= call(WAIT4, -1, 0, 0, 0) != child;
    int info[32];
    child = call(CLONE, SIGNAL_OF_CHILD, 0, 0, 0);
    if (child == 0)
        execute(program);
    failed |= call(WAITID, ANY_PROCESS, 0, (long)info, ENDED) != 0;
    call(EXIT_GROUP, failed ? 1 : 7, 0, 0, 0);
}

__asm__(".globl _start\n_start:\n\tmovl %esp, %eax\n\tpushl $0\n\tpushl %eax\n\tcall begin\n");
