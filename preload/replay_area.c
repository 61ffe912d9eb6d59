/* SPDX-License-Identifier: MIT
 *
 * replay_area.c - memory of ptrace-replay that the restored process keeps
 *
 * The stub, the plan, the runtime, the recording: mapped here before the fork, at addresses where neither the
 * program (in its start state or at any time that was recorded) nor the runtime (RT_BASE in rt_place.c,
 * upwards) has anything. Whatever lies elsewhere the child unmaps.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "replay_in.h"

#define PAGE 4096ull
#define AREA                                                                                                 \
	0x550000000000ull /* where sanitizers expect memory of a program; else from there on down, a step at a time */
#define STEP REC_SLOT
#define TRIES 96

static uint64_t base, next, end;

static bool taken(const struct start *s, const struct rec_stream *rec, uint64_t lo, uint64_t hi)
{
	for (uint32_t i = 0; i < s->nregion; i++)
		if (s->region[i].addr < hi && s->region[i].addr + s->region[i].size > lo)
			return true;
	return rec->slot[lo / STEP / 64] >> lo / STEP % 64 & 1;
}

int area_open(const struct start *s, const struct rec_stream *rec, struct ptrace_error *e)
{
	for (uint64_t at = AREA, i = 0; i < TRIES; i++, at -= STEP) {
		void *p;

		if (taken(s, rec, at, at + STEP))
			continue;
		p = mmap((void *)at, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
			 0);
		if (p != (void *)at)
			continue;
		base = at;
		next = at + PAGE;
		end = at + STEP;
		return 0;
	}
	return err_set(e, PTRACE_BAD, "the program has memory wherever ptrace-replay could have its own");
}

void *area_map(uint64_t size, int prot, int fd, uint64_t off, struct ptrace_error *e)
{
	uint64_t n = (size + PAGE - 1) & ~(PAGE - 1);
	int flags = MAP_PRIVATE | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0);
	void *p;

	if (!n || n < size || n > end - next) {
		err_set(e, PTRACE_IO, "no address space for %llu bytes", (unsigned long long)size);
		return NULL;
	}
	p = mmap((void *)next, n, prot, flags, fd, (off_t)off);
	if (p == MAP_FAILED) {
		err_set(e, PTRACE_IO, "cannot map %llu bytes: %s", (unsigned long long)size, strerror(errno));
		return NULL;
	}
	next += n;
	return p;
}

void *area_copy(const void *from, size_t n, struct ptrace_error *e)
{
	void *p = area_map(n, PROT_READ | PROT_WRITE, -1, 0, e);

	return p ? memcpy(p, from, n) : NULL;
}

uint64_t area_lo(void)
{
	return base;
}

uint64_t area_hi(void)
{
	return next;
}
