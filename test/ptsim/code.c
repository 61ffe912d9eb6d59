/* SPDX-License-Identifier: MIT
 *
 * code.c - blocks of an address space, and the int3s at their ends (code.h)
 */
#define _GNU_SOURCE
#include "code.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "emu.h"
#include "sim.h"

#define PAGE 4096ull
#define HASH (1u << 14)
#define BLOCK_MAX 256 /* instructions */

bool code_step, code_tsc;
void (*sim_page)(uint64_t addr, const uint8_t *bytes, size_t n);

struct page {
	uint64_t addr;
	bool watch; /* no int3 may be put here ... */
	bool changes; /* ... and what is read may be something else next time */
	uint8_t orig[PAGE]; /* what the program has there */
	bool ours[PAGE]; /* an int3 of ours */
	bool inside[PAGE]; /* in an instruction that runs natively, not its first byte */
	struct page *next;
};

struct range {
	uint64_t lo, hi;
	bool changes;
};

struct sequence { /* rseq(2) */
	uint64_t start, abort;
};

struct mm {
	int users;
	struct page *pages[HASH];
	struct block *blocks[HASH];
	struct block once; /* of code that changes: good for one look */
	struct range *ranges; /* executable mappings */
	size_t nranges, max;
	bool ranges_valid;
	struct sequence *sequences;
	size_t nsequences;
};

bool mem_read(pid_t pid, uint64_t addr, void *buf, size_t n)
{
	struct iovec l = {buf, n}, r = {(void *)addr, n};

	return process_vm_readv(pid, &l, 1, &r, 1, 0) == (ssize_t)n;
}

bool mem_write(pid_t pid, uint64_t addr, const void *buf, size_t n)
{
	struct iovec l = {(void *)buf, n}, r = {(void *)addr, n};

	return process_vm_writev(pid, &l, 1, &r, 1, 0) == (ssize_t)n;
}

static unsigned hash(uint64_t v)
{
	return (unsigned)(v * 0x9e3779b97f4a7c15ull >> 50);
}

struct mm *mm_new(pid_t pid)
{
	struct mm *m = xcalloc(1, sizeof(*m));

	(void)pid;
	m->users = 1;
	return m;
}

struct mm *mm_hold(struct mm *m)
{
	m->users++;
	return m;
}

static void block_free(struct block *b)
{
	free(b->len);
	free(b->emu);
	free(b);
}

void mm_drop(struct mm *m)
{
	if (--m->users)
		return;
	for (unsigned i = 0; i < HASH; i++) {
		for (struct page *p = m->pages[i], *n; p; p = n) {
			n = p->next;
			free(p);
		}
		for (struct block *b = m->blocks[i], *n; b; b = n) {
			n = b->next;
			block_free(b);
		}
	}
	free(m->ranges);
	free(m->sequences);
	free(m);
}

struct mm *mm_copy(struct mm *of, pid_t pid)
{
	struct mm *m = mm_new(pid);

	for (unsigned i = 0; i < HASH; i++) {
		for (struct page *p = of->pages[i]; p; p = p->next) {
			struct page *q = xcalloc(1, sizeof(*q));

			*q = *p;
			q->next = m->pages[i];
			m->pages[i] = q;
		}
	}
	m->nsequences = of->nsequences;
	m->sequences = xrealloc(NULL, (of->nsequences + 1) * sizeof(*m->sequences));
	memcpy(m->sequences, of->sequences, of->nsequences * sizeof(*m->sequences));
	return m; /* blocks are found again */
}

void mm_maps_changed(struct mm *m)
{
	m->ranges_valid = false;
}

/* A shared mapping may have a writable twin elsewhere: it may change, and it cannot have an int3 of its own. */
static void read_ranges(struct mm *m, pid_t pid)
{
	char line[4352], path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "re");
	if (!f)
		return;
	m->nranges = 0;
	while (fgets(line, sizeof(line), f)) {
		unsigned long lo, hi;
		char prot[8];

		if (sscanf(line, "%lx-%lx %7s", &lo, &hi, prot) != 3 || prot[2] != 'x')
			continue;
		if (m->nranges == m->max) {
			m->max = m->max ? 2 * m->max : 64;
			m->ranges = xrealloc(m->ranges, m->max * sizeof(*m->ranges));
		}
		m->ranges[m->nranges++] = (struct range){lo, hi, prot[1] == 'w' || prot[3] == 's'};
	}
	fclose(f);
	m->ranges_valid = true;
}

static bool changes(struct mm *m, pid_t pid, uint64_t addr)
{
	if (!m->ranges_valid)
		read_ranges(m, pid);
	for (size_t i = 0; i < m->nranges; i++)
		if (addr >= m->ranges[i].lo && addr < m->ranges[i].hi)
			return m->ranges[i].changes;
	return true;
}

static struct page *known(struct mm *m, uint64_t addr)
{
	addr &= ~(PAGE - 1);
	for (struct page *p = m->pages[hash(addr)]; p; p = p->next)
		if (p->addr == addr)
			return p;
	return NULL;
}

static struct page *page(struct mm *m, pid_t pid, uint64_t addr)
{
	struct page *p = known(m, addr);

	if (p)
		return p;
	addr &= ~(PAGE - 1);
	p = xcalloc(1, sizeof(*p));
	p->addr = addr;
	p->changes = changes(m, pid, addr);
	p->watch = code_step || p->changes;
	if (!mem_read(pid, addr, p->orig, PAGE)) {
		free(p);
		return NULL;
	}
	p->next = m->pages[hash(addr)];
	m->pages[hash(addr)] = p;
	if (sim_page)
		sim_page(addr, p->orig, PAGE);
	return p;
}

/* The program's bytes at ip. */
static size_t fetch(struct mm *m, pid_t pid, uint64_t ip, uint8_t *buf, size_t n)
{
	size_t got = 0;

	while (got < n) {
		struct page *p = page(m, pid, ip + got);
		uint64_t off = (ip + got) & (PAGE - 1);
		size_t some = n - got < PAGE - off ? n - got : PAGE - off;

		if (!p)
			break;
		if (p->changes && !mem_read(pid, ip + got, p->orig + off, some))
			break;
		memcpy(buf + got, p->orig + off, some);
		got += some;
	}
	return got;
}

bool mm_insn(struct mm *m, pid_t pid, uint64_t ip, struct insn *in)
{
	uint8_t bytes[15];

	return insn_decode(in, ip, bytes, fetch(m, pid, ip, bytes, sizeof(bytes)));
}

bool mem_poke(pid_t pid, uint64_t addr, uint8_t byte, uint8_t *old)
{
	long word;

	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, pid, addr, 0);
	if (errno)
		return false;
	if (old)
		*old = (uint8_t)word;
	return !ptrace(PTRACE_POKETEXT, pid, addr, (word & ~0xffl) | byte);
}

/* Who is being killed cannot be written. */
static void poke(pid_t pid, uint64_t ip, uint8_t byte)
{
	if (!mem_poke(pid, ip, byte, NULL) && errno != ESRCH)
		fail("cannot write code at %#lx", ip);
}

static bool place(struct mm *m, pid_t pid, uint64_t ip)
{
	struct page *p = page(m, pid, ip);

	if (!p || p->watch || p->inside[ip & (PAGE - 1)])
		return false;
	if (p->ours[ip & (PAGE - 1)])
		return true;
	poke(pid, ip, 0xcc);
	p->ours[ip & (PAGE - 1)] = true;
	return true;
}

bool mm_alone(struct mm *m)
{
	return m->users == 1;
}

bool mm_is_ours(struct mm *m, uint64_t ip)
{
	struct page *p = known(m, ip);

	return p && p->ours[ip & (PAGE - 1)];
}

bool mm_under(struct mm *m, pid_t pid, uint64_t ip, struct insn *in)
{
	return mm_is_ours(m, ip) && mm_insn(m, pid, ip, in);
}

void mm_lift(struct mm *m, pid_t pid, uint64_t ip)
{
	if (mm_is_ours(m, ip))
		poke(pid, ip, known(m, ip)->orig[ip & (PAGE - 1)]);
}

void mm_put_back(struct mm *m, pid_t pid, uint64_t ip)
{
	if (mm_is_ours(m, ip))
		poke(pid, ip, 0xcc);
}

/* Its bytes run natively: none but the first may be an int3 of ours, now or later. */
static bool claim(struct mm *m, pid_t pid, const struct insn *in)
{
	for (uint64_t a = in->ip + 1; a < in->ip + in->len; a++)
		if (mm_is_ours(m, a))
			return false;
	for (uint64_t a = in->ip + 1; a < in->ip + in->len; a++)
		page(m, pid, a)->inside[a & (PAGE - 1)] = true;
	return true;
}

/* Instructions from b->start on that may run natively, in front of the one that may not. */
static void extend(struct mm *m, pid_t pid, struct block *b, uint16_t *len)
{
	uint64_t at = b->start;

	while (mm_insn(m, pid, at, &b->end) && b->end.kind == I_PLAIN) {
		struct page *next = page(m, pid, at + b->end.len);

		if (b->n == BLOCK_MAX || mm_is_ours(m, at) || !next || next->watch || !claim(m, pid, &b->end))
			return; /* a plain instruction at the end: natively, but alone */
		len[b->n++] = b->end.len;
		at += b->end.len;
	}
}

static struct block *find(struct mm *m, pid_t pid, uint64_t ip)
{
	struct page *p = page(m, pid, ip);
	struct block *b;
	uint16_t len[BLOCK_MAX];

	if (!p || p->changes) {
		m->once = (struct block){.start = ip, .watch = true};
		mm_insn(m, pid, ip, &m->once.end);
		return &m->once;
	}
	b = xcalloc(1, sizeof(*b));
	b->start = ip;
	b->watch = p->watch;
	if (b->watch)
		mm_insn(m, pid, ip, &b->end);
	else
		extend(m, pid, b, len);
	/* system calls stop by themselves, as does what faults */
	if (!b->watch && b->end.kind != I_SYSCALL && b->end.kind != I_INT3 && !place(m, pid, b->end.ip)) {
		b->watch = true; /* no int3 can be there: step by step up to it */
		b->n = 0;
		mm_insn(m, pid, ip, &b->end);
	}
	b->len = xcalloc(b->n + 1, sizeof(*b->len));
	memcpy(b->len, len, b->n * sizeof(*len));
	b->emu = xcalloc(b->n + 1, sizeof(*b->emu));
	for (uint32_t i = 0; i <= b->n; ip += len[i++]) {
		uint8_t bytes[15];

		if (!emu_decode(&b->emu[i], ip, bytes, fetch(m, pid, ip, bytes, sizeof(bytes))))
			b->emu[i].op = E_NONE;
		if (i == b->n)
			break;
	}
	return b;
}

const struct block *mm_block(struct mm *m, pid_t pid, uint64_t ip)
{
	struct block **slot = &m->blocks[hash(ip)], *b;

	for (b = *slot; b; b = b->next)
		if (b->start == ip)
			return b;
	b = find(m, pid, ip);
	if (b == &m->once)
		return b;
	b->next = *slot;
	*slot = b;
	return b;
}

bool mm_knows(struct mm *m, uint64_t lo, uint64_t hi)
{
	if ((hi - lo) / PAGE < HASH) {
		for (uint64_t a = lo & ~(PAGE - 1); a < hi; a += PAGE)
			if (known(m, a))
				return true;
		return false;
	}
	for (unsigned i = 0; i < HASH; i++)
		for (struct page *p = m->pages[i]; p; p = p->next)
			if (p->addr + PAGE > lo && p->addr < hi)
				return true;
	return false;
}

/* A block may begin a page before and end a page behind what it shares with another. */
void mm_forget(struct mm *m, pid_t pid, uint64_t lo, uint64_t hi)
{
	m->ranges_valid = false;
	if (!mm_knows(m, lo, hi))
		return;
	for (unsigned i = 0; i < HASH; i++) {
		for (struct block **b = &m->blocks[i]; *b;) {
			struct block *x = *b;

			if (x->start < hi + PAGE && x->end.ip + 16 + PAGE > lo) {
				*b = x->next;
				block_free(x);
			} else {
				b = &x->next;
			}
		}
	}
	for (size_t i = 0; i < m->nsequences;) {
		if ((m->sequences[i].abort & ~(PAGE - 1)) < hi && m->sequences[i].abort + PAGE > lo)
			m->sequences[i] = m->sequences[--m->nsequences];
		else
			i++;
	}
	for (unsigned i = 0; i < HASH; i++) {
		for (struct page **p = &m->pages[i]; *p;) {
			struct page *x = *p;

			if (x->addr + PAGE <= lo || x->addr >= hi) {
				p = &x->next;
				continue;
			}
			for (unsigned k = 0; k < PAGE; k++)
				if (x->ours[k])
					poke(pid, x->addr + k, x->orig[k]);
			*p = x->next;
			free(x);
		}
	}
}

bool mm_aborts(struct mm *m, uint64_t ip, uint64_t *at)
{
	for (size_t i = 0; i < m->nsequences; i++)
		if (m->sequences[i].abort == ip) {
			*at = m->sequences[i].start;
			return true;
		}
	return false;
}

void mm_sequence(struct mm *m, pid_t pid, uint64_t start, uint64_t abort)
{
	mm_forget(m, pid, abort, abort + 1); /* blocks that go on over it */
	if (!place(m, pid, abort))
		return;
	m->sequences = xrealloc(m->sequences, (m->nsequences + 1) * sizeof(*m->sequences));
	m->sequences[m->nsequences++] = (struct sequence){start, abort};
}
