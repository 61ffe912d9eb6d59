/* SPDX-License-Identifier: MIT
 *
 * replay_rec.c - the record stream of an image: out of its chunks, checked, into one file
 *
 * The runtime walks it without looking twice, so every size in it is checked here. A stream that ends in the middle
 * of a record is one whose process was killed: it ends before that record.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "replay_in.h"

typedef unsigned long long ull;

static int write_all(int fd, const uint8_t *p, size_t n)
{
	while (n) {
		ssize_t k = write(fd, p, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return -1;
		p += k;
		n -= (size_t)k;
	}
	return 0;
}

/* the chunks' payloads, one behind the other; *size bytes of them. *whole: their process said, or was in a system call,
 * so that it said all that there was to say */
static int unpack(int fd, const char *path, uint32_t pid, uint32_t tid, uint64_t *size, bool *whole,
		  struct ptrace_error *e)
{
	struct log *l = log_open(path, 0, pid, tid, LOG_ENDED, e);
	const uint8_t *p = NULL, *end = NULL;

	*size = 0;
	if (!l)
		return -1;
	while (log_need(l, &p, &end, 1) && !e->text[0]) {
		if (write_all(fd, p, (size_t)(end - p)))
			err_set(e, PTRACE_IO, "cannot unpack %s: %s", path, strerror(errno));
		*size += (uint64_t)(end - p);
		p = end;
	}
	if (log_why(l))
		err_set(e, PTRACE_BAD, "%s", log_why(l));
	*whole = log_clean(l);
	log_close(l);
	return e->text[0] ? -1 : 0;
}

/* ---- what is in it ---- */

#define BETWEEN (1ull << 20) /* what is less apart is one range */

static int by_address(const void *a, const void *b)
{
	const struct replay_range *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static void merge(struct rec_stream *r)
{
	uint64_t n = 0;

	if (r->nrange)
		qsort(r->range, r->nrange, sizeof(*r->range), by_address);
	for (uint64_t i = 0; i < r->nrange; i++) {
		struct replay_range *to = n ? &r->range[n - 1] : NULL;

		if (!to || r->range[i].lo > to->hi + BETWEEN)
			r->range[n++] = r->range[i];
		else if (r->range[i].hi > to->hi)
			to->hi = r->range[i].hi;
	}
	r->nrange = n;
}

/* the program gets n bytes there */
static void gets(struct rec_stream *r, uint64_t at, uint64_t n)
{
	struct replay_range *last = r->nrange ? &r->range[r->nrange - 1] : NULL;

	for (uint64_t i = at / REC_SLOT; i <= (at + n - 1) / REC_SLOT && i < REC_SLOTS; i++)
		r->slot[i / 64] |= 1ull << i % 64;
	if (last && at >= last->lo && at + n <= last->hi)
		return;
	if (r->nrange == r->caprange) {
		merge(r);
		if (r->nrange * 2 >= r->caprange) {
			r->caprange = r->caprange ? r->caprange * 2 : 1024;
			r->range = xrealloc(r->range, r->caprange, sizeof(*r->range));
		}
	}
	r->range[r->nrange++] = (struct replay_range){at, at + n};
}

static bool call_ok(struct rec_stream *r, const struct rec_call *c, uint64_t size)
{
	const uint8_t *at = (const uint8_t *)(c + 1), *end = (const uint8_t *)c + size;
	uint64_t n;

	if (size < sizeof(*c))
		return false;
	for (uint32_t i = 0; i < c->nout; i++) {
		struct rec_out o;

		if ((uint64_t)(end - at) < sizeof(o))
			return false;
		memcpy(&o, at, sizeof(o));
		at += sizeof(o);
		if (o.len > size || rec_padded(o.len) > (uint64_t)(end - at))
			return false;
		at += rec_padded(o.len);
	}
	r->calls++;
	n = c->nr == SYS_mmap ? c->arg[1] : c->nr == SYS_mremap ? c->arg[2] : 0;
	if (n && c->ret > 0 && n < 1ull << 47)
		gets(r, (uint64_t)c->ret, n);
	if (c->nr == SYS_brk && !r->brk)
		r->brk = (uint64_t)c->ret;
	if (c->nr == SYS_brk && (uint64_t)c->ret > r->brk)
		gets(r, r->brk, (uint64_t)c->ret - r->brk);
	return at == end;
}

static bool record_ok(struct rec_stream *r, const struct rec_head *h)
{
	switch (h->kind) {
	case REC_CALL:
		return call_ok(r, (const void *)h, h->size);
	case REC_BYTES:
		return h->size >= sizeof(struct rec_bytes) &&
		       ((const struct rec_bytes *)h)->len <= h->size - sizeof(struct rec_bytes);
	case REC_FILE:
	case REC_CHANGED:
		return h->size > sizeof(struct rec_file) &&
		       memchr((const struct rec_file *)h + 1, 0, h->size - sizeof(struct rec_file));
	case REC_NONDET:
		return h->size == sizeof(struct rec_nondet);
	case REC_SIGNAL:
		return h->size == sizeof(struct rec_signal) && ((const struct rec_signal *)h)->signo - 1 < 64;
	case REC_XSTATE:
		return h->size == sizeof(struct rec_xstate);
	case REC_CPU:
		return h->size == sizeof(struct rec_cpu);
	case REC_PLACE:
		return h->size == sizeof(struct rec_place);
	case REC_END:
		return h->size == sizeof(struct rec_end);
	default:
		return false;
	}
}

/* of a process that has come to its last record, which this may be */
static void how_it_ends(struct rec_stream *r, const struct rec_head *h)
{
	const struct rec_end *e = (const void *)h;

	r->ended = h->kind == REC_END;
	r->why = r->ended ? e->why : 0;
	r->status = r->ended && e->why == REC_EXIT ? e->value & 0xff : 0;
	r->signal = r->ended && e->why == REC_FAULT ? e->value : 0;
}

/* What was mapped of it cannot be known any more, then. Another machine may number devices and files as it likes. */
static int file_changed(const struct rec_file *f, struct ptrace_error *e)
{
	const char *path = (const char *)(f + 1);
	struct stat st;

	if (f->head.kind == REC_CHANGED)
		return err_set(
			e, PTRACE_BAD,
			"%s changed while the program had it mapped: record again, when nobody does that",
			path);
	if (stat(path, &st))
		return err_set(e, PTRACE_BAD, "%s, which the program had mapped, cannot be opened: %s", path,
			       strerror(errno));
	if ((uint64_t)st.st_size != f->size || st.st_mtim.tv_sec != f->mtime_sec ||
	    st.st_mtim.tv_nsec != f->mtime_nsec)
		return err_set(
			e, PTRACE_BAD,
			"%s, which the program had mapped, has changed since it was recorded: record again",
			path);
	return 0;
}

/* An instruction that is not there ends the replay somewhere; another size of state would be stored over something. */
static int other_cpu(const struct rec_cpu *was, struct ptrace_error *e)
{
	struct rec_cpu is;

	rec_cpu_get(&is);
	for (int i = 0; i < REC_CPU_WORDS; i++)
		if (was->has[i] & ~is.has[i])
			return err_set(e, PTRACE_BAD,
				       "this processor has not all that the program was recorded on (CPUID: "
				       "%#x, word %d)",
				       was->has[i] & ~is.has[i], i);
	if (was->xcr0 != is.xcr0)
		return err_set(e, PTRACE_BAD,
			       "this processor has other state components than the program was recorded on "
			       "(XCR0: %#llx, not %#llx)",
			       (ull)is.xcr0, (ull)was->xcr0);
	return 0;
}

static int check(struct rec_stream *r, const uint8_t *b, uint64_t size, const char *path,
		 struct ptrace_error *e)
{
	while (size - r->size >= sizeof(struct rec_head)) {
		const struct rec_head *h = (const void *)(b + r->size);

		if (h->size < sizeof(*h) || h->size % 8)
			return err_set(e, PTRACE_BAD, "%s: the record at byte %llu of the stream is damaged",
				       path, (ull)r->size);
		if (h->size > size - r->size)
			break;
		if (!record_ok(r, h))
			return err_set(
				e, PTRACE_BAD,
				"%s: the record at byte %llu of the stream (kind %u, %u bytes) is damaged",
				path, (ull)r->size, h->kind, h->size);
		if ((h->kind == REC_FILE || h->kind == REC_CHANGED) && file_changed((const void *)h, e))
			return -1;
		if (h->kind == REC_CPU && other_cpu((const void *)h, e))
			return -1;
		r->size += h->size;
		r->placed = h->kind == REC_PLACE || (r->placed && h->kind == REC_END);
		how_it_ends(r, h);
	}
	if (!r->size)
		return err_set(e, PTRACE_BAD, "%s holds no recording", path);
	merge(r);
	return 0;
}

static int read_it(struct rec_stream *r, const char *path, uint32_t pid, uint32_t tid, struct ptrace_error *e)
{
	uint64_t size;
	bool whole;
	void *b;
	int rc;

	if (unpack(r->fd, path, pid, tid, &size, &whole, e))
		return -1;
	if (!size)
		return err_set(e, PTRACE_BAD, "%s holds no recording", path);
	b = mmap(NULL, size, PROT_READ, MAP_SHARED, r->fd, 0);
	if (b == MAP_FAILED)
		return err_set(e, PTRACE_IO, "cannot map the recording: %s", strerror(errno));
	rc = check(r, b, size, path, e);
	r->killed = !r->ended && (!whole || r->size < size);
	munmap(b, size);
	return rc;
}

int rec_open(struct rec_stream *r, const char *dir, uint32_t pid, uint32_t tid, const char *tmp,
	     struct ptrace_error *e)
{
	char *path = xprintf("%s/thread-%u.log", dir, tid);
	int rc;

	memset(r, 0, sizeof(*r));
	r->fd = open(tmp, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (r->fd < 0) /* not every file system has that */
		r->fd = (int)syscall(SYS_memfd_create, "recording", 1 /* MFD_CLOEXEC */);
	if (r->fd < 0)
		rc = err_set(e, PTRACE_IO, "no room for the recording in %s: %s", tmp, strerror(errno));
	else
		rc = read_it(r, path, pid, tid, e);
	free(path);
	return rc;
}
