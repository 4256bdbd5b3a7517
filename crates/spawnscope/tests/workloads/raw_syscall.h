// System calls without libc, for code that runs without libc or before libc is initialized.
#pragma once
#include <sys/syscall.h>

static inline long raw_syscall(long number, long first, long second)
{
#if defined(__x86_64__)
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(first), "S"(second) : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = first;
    register long x1 __asm__("x1") = second;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1) : "memory");
    return x0;
#else
#error "raw_syscall: not written for this architecture"
#endif
}
