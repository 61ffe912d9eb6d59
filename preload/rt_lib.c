/* SPDX-License-Identifier: MIT
 *
 * rt_lib.c - the little of a C library that the runtime needs
 */
#include "rt.h"

/* gcc calls these for struct copies; rep movsb is fast on every CPU with ERMS */
void *memcpy(void *d, const void *s, size_t n)
{
	void *r = d;

	__asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
	return r;
}

void *memset(void *d, int c, size_t n)
{
	void *r = d;

	__asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(c) : "memory");
	return r;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const uint8_t *x = a, *y = b;

	for (; n; n--, x++, y++)
		if (*x != *y)
			return *x - *y;
	return 0;
}

size_t rt_strlen(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

bool rt_streq(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

const char *rt_starts(const char *s, const char *prefix)
{
	while (*prefix)
		if (*s++ != *prefix++)
			return NULL;
	return s;
}

struct rt_str rt_str(char *buf, size_t cap)
{
	struct rt_str s = {buf, 0, cap, false};

	buf[0] = 0;
	return s;
}

void rt_put(struct rt_str *s, const char *t)
{
	for (; *t; t++) {
		if (s->n + 1 >= s->cap) {
			s->cut = true;
			break;
		}
		s->p[s->n++] = *t;
	}
	s->p[s->n] = 0;
}

void rt_putu(struct rt_str *s, uint64_t v)
{
	char b[24];
	int i = sizeof(b);

	b[--i] = 0;
	do
		b[--i] = '0' + v % 10;
	while (v /= 10);
	rt_put(s, b + i);
}

void rt_putx(struct rt_str *s, uint64_t v, int digits)
{
	while (digits-- > 0) {
		char c[2] = {"0123456789abcdef"[v >> (digits * 4) & 15], 0};

		rt_put(s, c);
	}
}

void rt_say(const char *a, const char *b, const char *c, const char *d)
{
	char buf[3 * RT_PATH];
	struct rt_str s = rt_str(buf, sizeof(buf) - 1);

	rt_put(&s, "ptrace: ");
	rt_put(&s, a);
	rt_put(&s, b ? b : "");
	rt_put(&s, c ? c : "");
	rt_put(&s, d ? d : "");
	buf[s.n++] = '\n';
	rt_write(2, buf, s.n);
}

const char *rt_strerror(long err)
{
	static char buf[32];
	struct rt_str s;

	switch (err < 0 ? -err : err) {
	case ENOENT:
		return "no such file or directory";
	case EACCES:
		return "permission denied";
	case EPERM:
		return "operation not permitted";
	case ENOSPC:
		return "no space left on device";
	case EROFS:
		return "read-only file system";
	case ENOTDIR:
		return "not a directory";
	case ENOMEM:
		return "out of memory";
	case EMFILE:
		return "too many open files";
	case EEXIST:
		return "it exists";
	case ENAMETOOLONG:
		return "name too long";
	case EDQUOT:
		return "disk quota exceeded";
	case EFBIG:
		return "file size limit exceeded";
	case EIO:
		return "input/output error";
	case EAGAIN:
		return "a limit on processes or memory is reached";
	case EINVAL:
		return "invalid argument";
	case ENFILE:
		return "too many open files in the system";
	case ENOSYS:
		return "the kernel does not have this call";
	case ECHILD:
		return "it ended at once (does it run by itself?)";
	case ETIMEDOUT:
		return "it did not answer";
	case ELOOP:
		return "too many symbolic links";
	case ENOEXEC:
		return "not an executable file";
	case EISDIR:
		return "is a directory";
	default:
		s = rt_str(buf, sizeof(buf));
		rt_put(&s, "error ");
		rt_putu(&s, (uint64_t)(err < 0 ? -err : err));
		return buf;
	}
}

void *rt_alloc(size_t n)
{
	uint64_t p = rt.arena_top;

	n = (n + 63) & ~63ull;
	if (!p || n > rt.arena_end - p)
		return NULL;
	rt.arena_top = p + n;
	return (void *)p;
}

bool rt_dirname(char *path)
{
	size_t n = rt_strlen(path);

	while (n && path[n - 1] != '/')
		n--;
	if (!n)
		return false;
	path[n == 1 ? 1 : n - 1] = 0;
	return true;
}

/* a write beyond RLIMIT_FSIZE: takes the SIGXFSZ, blocked here, before it kills the program */
void rt_take_xfsz(void)
{
	struct __kernel_timespec now = {0, 0};
	uint64_t set = 1ull << (25 - 1);

	rt_sc(__NR_rt_sigtimedwait, &set, 0, &now, 8);
}

/* 0 free, 1 held, 2 held and waited for. Signals are blocked here, so the holder is running and not us */
void rt_lock(void)
{
	uint32_t is = 0;

	if (__atomic_compare_exchange_n(&rt.lock, &is, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	while (__atomic_exchange_n(&rt.lock, 2, __ATOMIC_ACQUIRE))
		rt_futex_wait(&rt.lock, 2, 100);
}

void rt_unlock(void)
{
	if (__atomic_exchange_n(&rt.lock, 0, __ATOMIC_RELEASE) == 2)
		rt_futex_wake(&rt.lock);
}

int rt_write_all(int fd, const void *p, size_t n)
{
	const uint8_t *b = p;

	while (n) {
		long r = rt_write(fd, b, n > (1u << 30) ? 1u << 30 : n);

		if (r == -EINTR)
			continue;
		if (r == -EFBIG)
			rt_take_xfsz();
		if (rt_err(r))
			return (int)r;
		if (r == 0)
			return -EIO;
		b += r;
		n -= r;
	}
	return 0;
}

static int copy_vm(long nr, uint64_t ours, uint64_t theirs, size_t n)
{
	while (n) {
		uint64_t l[2] = {ours, n}, r[2] = {theirs, n};
		long k = rt_sc(nr, rt_gettid(), l, 1, r, 1, 0);

		if (rt_err(k) || k == 0)
			return k ? (int)k : -EIO;
		ours += k;
		theirs += k;
		n -= k;
	}
	return 0;
}

int rt_copy_out(void *to, uint64_t from, size_t n)
{
	return copy_vm(__NR_process_vm_readv, (uint64_t)to, from, n);
}

int rt_copy_in(uint64_t to, const void *from, size_t n)
{
	return copy_vm(__NR_process_vm_writev, (uint64_t)from, to, n);
}
