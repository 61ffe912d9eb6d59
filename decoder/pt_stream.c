/* SPDX-License-Identifier: MIT
 *
 * pt_stream.c - pt-TID.bin: a thread's Intel PT packets, put together
 *
 * Up to the first record that is damaged or cut. Where something may be missing (RUN_PT_GAP) a new piece
 * begins.
 */
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <xxhash.h>
#include <zstd.h>
#include "pt.h"

static bool info_ok(const struct run_pt_info *i, size_t size)
{
	return size >= sizeof(*i) && i->magic == RUN_PT_MAGIC && i->version == RUN_PT_VERSION &&
	       i->size == sizeof(*i) && i->xxh3 == XXH3_64bits(i, offsetof(struct run_pt_info, xxh3));
}

/* the record at *at, which is moved behind it; false if it is damaged or cut */
static bool record(const uint8_t *b, size_t size, size_t *at, struct run_pt_rec *r, bool check)
{
	const uint8_t *p = b + *at;
	uint64_t h;

	if (size - *at < sizeof(*r))
		return false;
	memcpy(r, p, sizeof(*r)); /* they stand behind payloads of any size */
	if (r->magic != RUN_PT_REC_MAGIC || r->size > size - *at - sizeof(*r) || r->raw > RUN_PT_BLOCK ||
	    !r->raw != !(r->flags & (RUN_PT_F_LZ4 | RUN_PT_F_ZSTD)))
		return false;
	if (check) {
		h = XXH3_64bits(r, offsetof(struct run_pt_rec, xxh3));
		if (r->size)
			h ^= XXH3_64bits(p + sizeof(*r), r->size);
		if (h != r->xxh3)
			return false;
	}
	*at += sizeof(*r) + r->size;
	return true;
}

/* of packets */
static size_t bytes(const struct run_pt_rec *r)
{
	return r->raw ? r->raw : r->size;
}

static bool begins_piece(const struct ptstream *s, const struct run_pt_rec *r)
{
	return !s->nseg || (r->flags & RUN_PT_GAP && s->seg[s->nseg - 1].size);
}

/* How big the pieces are. Returns where the good records end. */
static size_t measure(struct ptstream *s, const uint8_t *b, size_t size)
{
	size_t at = sizeof(struct run_pt_info), good = at;
	struct run_pt_rec r;

	snprintf(s->why, sizeof(s->why), "its file does not say that it is complete");
	while (at < size) {
		if (!record(b, size, &at, &r, true)) {
			snprintf(s->why, sizeof(s->why), "its file is damaged or cut at byte %zu", at);
			break;
		}
		good = at;
		if (r.kind == RUN_PT_OPEN_FAILED) {
			s->failed = (int)r.value;
		} else if (r.kind == RUN_PT_END) {
			s->why[0] = 0;
			if (r.value == RUN_PT_END_WRITE)
				snprintf(s->why, sizeof(s->why), "it could not be written any more");
			break;
		} else if (r.kind == RUN_PT_DATA) {
			if (begins_piece(s, &r)) {
				s->seg = xrealloc(s->seg, s->nseg + 1, sizeof(*s->seg));
				s->seg[s->nseg++] = (struct ptseg){NULL, 0};
			}
			s->seg[s->nseg - 1].size += bytes(&r);
		}
	}
	return good;
}

/* the packets of a record, whose payload is at p; false if that is not what it says */
static bool unpack(const struct run_pt_rec *r, const uint8_t *p, uint8_t *to)
{
	if (r->flags & RUN_PT_F_LZ4)
		return LZ4_decompress_safe((const char *)p, (char *)to, (int)r->size, (int)r->raw) ==
		       (int)r->raw;
	if (r->flags & RUN_PT_F_ZSTD)
		return ZSTD_decompress(to, r->raw, p, r->size) == r->raw;
	memcpy(to, p, r->size);
	return !r->raw;
}

static int fill(struct ptstream *s, const uint8_t *b, size_t size, struct ptrace_error *e)
{
	size_t at = sizeof(struct run_pt_info), n = 0;
	struct run_pt_rec r;
	uint32_t g = 0;

	for (uint32_t i = 0; i < s->nseg; i++) {
		void *p = mmap(NULL, PTD_HEAD + s->seg[i].size, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (p == MAP_FAILED)
			return err_set(e, PTRACE_IO, "no memory for %zu bytes of packets", s->seg[i].size);
		s->seg[i].buf = p;
	}
	while (at < size && record(b, size, &at, &r, false)) {
		if (r.kind != RUN_PT_DATA || !r.size)
			continue;
		if (n == s->seg[g].size) {
			g++;
			n = 0;
		}
		if (!unpack(&r, b + at - r.size, s->seg[g].buf + PTD_HEAD + n))
			return err_set(e, PTRACE_BAD, "its packets are damaged before byte %zu", at);
		n += bytes(&r);
	}
	return 0;
}

int ptstream_open(struct ptstream *s, const char *path, struct ptrace_error *e)
{
	size_t size, mapped;
	const uint8_t *b = file_map(path, &size, e);
	int rc = -1;

	*s = (struct ptstream){0};
	mapped = size;
	if (!b)
		return -1;
	if (!info_ok((const void *)b, size)) {
		err_set(e, PTRACE_BAD,
			"%s is not a file of Intel PT packets, or damaged, or of another version", path);
	} else {
		memcpy(&s->info, b, sizeof(s->info));
		size = measure(s, b, size);
		if (s->failed)
			err_set(e, PTRACE_BAD,
				"the processor's tracing could not be begun for this thread: %s",
				strerror(s->failed));
		else if (!s->nseg)
			err_set(e, PTRACE_BAD, "%s holds no packets%s%s", path, s->why[0] ? ": " : "",
				s->why);
		else
			rc = fill(s, b, size, e);
	}
	file_unmap(b, mapped);
	if (rc)
		ptstream_close(s);
	return rc;
}

void ptstream_drop(struct ptstream *s, uint32_t seg)
{
	if (s->seg[seg].buf)
		munmap(s->seg[seg].buf, PTD_HEAD + s->seg[seg].size);
	s->seg[seg].buf = NULL;
}

void ptstream_close(struct ptstream *s)
{
	for (uint32_t i = 0; i < s->nseg; i++)
		ptstream_drop(s, i);
	free(s->seg);
	s->seg = NULL;
	s->nseg = 0;
}

void ptstream_config(const struct ptstream *s, struct pt_config *c)
{
	const struct run_pt_info *i = &s->info;

	pt_config_init(c);
	if (!memcmp(i->vendor, "GenuineIntel", 12))
		c->cpu.vendor = pcv_intel;
	c->cpu.family = i->family;
	c->cpu.model = i->model;
	c->cpu.stepping = i->stepping;
	pt_cpu_errata(&c->errata, &c->cpu); /* of a processor it does not know it knows no errata */
	c->cpuid_0x15_eax = i->tsc_ratio_eax;
	c->cpuid_0x15_ebx = i->tsc_ratio_ebx;
	c->mtc_freq = i->mtc_freq;
	c->nom_freq = (uint8_t)(i->nom_freq < 256 ? i->nom_freq : 0);
}
