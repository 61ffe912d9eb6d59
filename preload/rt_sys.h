/* SPDX-License-Identifier: MIT
 *
 * rt_sys.h - the system calls of the runtime, raw
 *
 * The only C file of the runtime that contains a system call instruction. No errno: a result
 * between -4095 and -1 is an error number (Linux x86-64 convention, psABI A.2.1).
 */
#ifndef RT_SYS_H
#define RT_SYS_H

#include <stddef.h>
#include <stdint.h>
#include <asm/unistd.h>
#include <asm/stat.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/futex.h>
#include <linux/mman.h>
#include <linux/sched.h>
#include <linux/time_types.h>

#ifndef MAP_FIXED_NOREPLACE /* Linux 4.17 */
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MADV_DONTNEED
#define MADV_DONTNEED 4
#endif
#ifndef MADV_HUGEPAGE
#define MADV_HUGEPAGE 14
#endif
#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#define RT_HUGE (2ull << 20) /* a huge page: what one entry of the third level of page tables maps */

static inline long rt_sc6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long r;

	__asm__ volatile("syscall"
			 : "=a"(r)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return r;
}

#define RT_SC_PICK(_0, _1, _2, _3, _4, _5, _6, name, ...) name
#define rt_sc(...)                                                                                           \
	RT_SC_PICK(__VA_ARGS__, rt_sc_6, rt_sc_5, rt_sc_4, rt_sc_3, rt_sc_2, rt_sc_1, rt_sc_0)(__VA_ARGS__)
#define rt_sc_0(n) rt_sc6(n, 0, 0, 0, 0, 0, 0)
#define rt_sc_1(n, a) rt_sc6(n, (long)(a), 0, 0, 0, 0, 0)
#define rt_sc_2(n, a, b) rt_sc6(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define rt_sc_3(n, a, b, c) rt_sc6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define rt_sc_4(n, a, b, c, d) rt_sc6(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define rt_sc_5(n, a, b, c, d, e) rt_sc6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define rt_sc_6(n, a, b, c, d, e, f)                                                                         \
	rt_sc6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static inline int rt_err(long r)
{
	return (unsigned long)r > -4096ul;
}

static inline long rt_open(const char *path, int flags, int mode)
{
	return rt_sc(__NR_open, path, flags | O_CLOEXEC, mode);
}
static inline long rt_close(int fd)
{
	return rt_sc(__NR_close, fd);
}
static inline long rt_read(int fd, void *p, size_t n)
{
	return rt_sc(__NR_read, fd, p, n);
}
static inline long rt_pread(int fd, void *p, size_t n, uint64_t off)
{
	return rt_sc(__NR_pread64, fd, p, n, off);
}
static inline long rt_write(int fd, const void *p, size_t n)
{
	return rt_sc(__NR_write, fd, p, n);
}
static inline long rt_fstat(int fd, struct stat *st)
{
	return rt_sc(__NR_fstat, fd, st);
}
static inline long rt_mmap(uint64_t addr, size_t n, int prot, int flags, int fd, uint64_t off)
{
	return rt_sc(__NR_mmap, addr, n, prot, flags, fd, off);
}
static inline long rt_munmap(uint64_t addr, size_t n)
{
	return rt_sc(__NR_munmap, addr, n);
}
static inline long rt_mprotect(uint64_t addr, size_t n, int prot)
{
	return rt_sc(__NR_mprotect, addr, n, prot);
}
static inline long rt_getpid(void)
{
	return rt_sc(__NR_getpid);
}
/* Our own memory, for process_vm_readv: by the pid it is not found once the first thread has ended. */
static inline long rt_gettid(void)
{
	return rt_sc(__NR_gettid);
}

static inline long rt_futex_wait(uint32_t *word, uint32_t val, long msec)
{
	struct __kernel_timespec ts = {msec / 1000, (msec % 1000) * 1000000};

	return rt_sc(__NR_futex, word, FUTEX_WAIT, val, &ts, 0, 0);
}
static inline void rt_futex_wake(uint32_t *word)
{
	rt_sc(__NR_futex, word, FUTEX_WAKE, 64, 0, 0, 0);
}

static inline uint64_t rt_cpu_nsec(void)
{
	struct __kernel_timespec ts = {0, 0};

	rt_sc(__NR_clock_gettime, 2 /* CLOCK_PROCESS_CPUTIME_ID */, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static inline uint64_t rt_msec(void)
{
	struct __kernel_timespec ts = {0, 0};

	rt_sc(__NR_clock_gettime, 1 /* CLOCK_MONOTONIC */, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

#endif
