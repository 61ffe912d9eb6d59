/* SPDX-License-Identifier: MIT
 *
 * pt_code.c - the code that a run's modules had in memory
 *
 *   maps/KEY.text ── patches (map) ──▶ original text, as the runtime left it   (rt_apply.c)
 *   copy text (map) ── fix-ups ──────▶ copy                                     (rt_copy.c)
 *   maps/KEY.text as it is           ▶ modules that were left alone, the runtime itself, the vDSO
 *
 * One file in memory holds all that is not in a file as it was: libipt takes sections from files only, and keeps
 * a section's file by name, size and time of change. So it has its size from the beginning, and its time is put
 * back after each change. What libipt finds out about a section's code is kept with it, and
 * serves all threads and processes that had the module at the same address.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include "pt.h"
#include "sem_eval.h"

#define ROOM (1ull << 40) /* of the file: holes cost nothing */
#define PAGE 4096ull

struct ptcode {
	struct ptrace_run *run;
	struct pt_image_section_cache *cache;
	int fd;
	char name[40];
	uint64_t used;
	struct ptmod **mod;
	uint32_t nmod;
};

struct ptcode *ptcode_of(struct ptrace_run *r)
{
	struct ptcode *c = r->code;

	if (c)
		return c;
	c = xcalloc(1, sizeof(*c));
	c->run = r;
	c->fd = memfd_create("ptrace-code", MFD_CLOEXEC);
	c->cache = pt_iscache_alloc(NULL);
	if (c->fd < 0 || !c->cache || ftruncate(c->fd, (off_t)ROOM) ||
	    pt_iscache_set_limit(c->cache, UINT64_MAX) < 0) {
		ptcode_free(c);
		return NULL;
	}
	snprintf(c->name, sizeof(c->name), "/proc/self/fd/%d", c->fd);
	r->code = c;
	return c;
}

void ptcode_free(struct ptcode *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < c->nmod; i++) {
		free(c->mod[i]->asked);
		free(c->mod[i]->valued);
		free(c->mod[i]);
	}
	free(c->mod);
	pt_iscache_free(c->cache);
	if (c->fd >= 0)
		close(c->fd);
	free(c);
}

static int note_section(struct ptcode *c, struct ptmod *m, const char *path, uint64_t offset, uint64_t lo,
			uint64_t size)
{
	int isid;

	if (!size || m->nsect == NELEM(m->sect) || lo + size - 1 < lo)
		return -1;
	isid = pt_iscache_add_file(c->cache, path, offset, size, lo);
	if (isid <= 0)
		return -1;
	m->sect[m->nsect].isid = isid;
	m->sect[m->nsect].lo = lo;
	m->sect[m->nsect++].hi = lo + size;
	return 0;
}

/* room for size bytes that were at lo, written through *p until memory_done; NULL if there is none */
struct room {
	uint8_t *p;
	uint64_t offset, size;
};
static bool room(struct ptcode *c, struct room *r, uint64_t size)
{
	r->offset = c->used;
	r->size = size;
	r->p = size && size < ROOM - c->used
		       ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, (off_t)c->used)
		       : MAP_FAILED;
	if (r->p == MAP_FAILED)
		return false;
	c->used += (size + PAGE - 1) & ~(PAGE - 1);
	return true;
}

/* libipt takes a section's file for another one when its time of modification, in seconds, is not what it was when the
 * section was noted (check_file_status in its pt_section_posix.c): one time for good */
static void room_done(struct ptcode *c, struct room *r)
{
	static const struct timespec never[2];

	munmap(r->p, r->size);
	futimens(c->fd, never);
}

/* ---- the map's part ------------------------------------------------------------------------------ */

/* a section that the walk does not use, and map.c has not checked; NULL if it is damaged */
static const void *section(const struct map *m, int s, size_t elem, uint64_t *n)
{
	const struct map_sect *h = &m->head->sect[s];

	if (h->off > m->size || h->size > m->size - h->off || h->size % elem || h->off % 4 ||
	    h->xxh3 != XXH3_64bits(m->base + h->off, h->size))
		return NULL;
	*n = h->size / elem;
	return m->base + h->off;
}

static void put32(uint8_t *p, uint32_t v)
{
	memcpy(p, &v, 4);
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v;
}

/* as rt_copy.c does it */
static bool fix(const struct ptmod *m, uint8_t *copy, uint64_t size, const struct map_fixup *f, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		uint32_t width = f[i].kind == MAP_FIX_ABS64 ? 8 : 4;
		uint8_t *p = copy + f[i].copy_off;
		uint64_t v;

		if (size < width || f[i].copy_off > size - width)
			return false;
		switch (f[i].kind) {
		case MAP_FIX_MOD32:
			put32(p, get32(p) + (uint32_t)(m->m.bias - m->m.copy_base));
			break;
		case MAP_FIX_ABS64:
			memcpy(&v, p, 8);
			v += m->m.bias;
			memcpy(p, &v, 8);
			break;
		case MAP_FIX_LO32:
			put32(p, get32(p) + (uint32_t)m->m.bias);
			break;
		case MAP_FIX_HI32:
			put32(p, (uint32_t)((m->m.bias + get32(p)) >> 32));
			break;
		case MAP_FIX_MARK:
			put32(p, get32(p) + (m->m.site_base << RUN_MARK_ID_SHIFT));
			break;
		default:
			return false;
		}
	}
	return true;
}

static bool make_copy(struct ptcode *c, struct ptmod *m, const struct map *map)
{
	uint64_t size, nfix;
	const uint8_t *text = section(map, MAP_COPY, 1, &size);
	const struct map_fixup *f = section(map, MAP_FIXUPS, sizeof(*f), &nfix);
	struct room r;
	bool ok;

	if (!text || !f || !room(c, &r, size))
		return false;
	memcpy(r.p, text, size);
	ok = fix(m, r.p, size, f, nfix);
	room_done(c, &r);
	m->copy_size = size;
	return ok && !note_section(c, m, c->name, r.offset, m->m.copy_base, size);
}

static void make_asked(struct ptmod *m, const struct map *map)
{
	m->asked = xcalloc(m->copy_size / 8 + 1, 1);
	m->valued = map->head->flags & MAP_F_PTW ? xcalloc(m->copy_size / 8 + 1, 1) : NULL;
	for (uint32_t i = 0; i < map->nop; i++) {
		const struct sem_op *o = &map->op[i];
		uint32_t at = SEM_FLOW_AT(o->a, o->b);

		if ((o->op == SEM_FLOW || o->op == SEM_JCC_FLOW) && at < m->copy_size)
			m->asked[at / 8] |= 1 << at % 8;
		else if (m->valued && (o->op == SEM_PTW || o->op == SEM_PTWSX) && at < m->copy_size)
			m->valued[at / 8] |= 1 << at % 8;
		i += sem_has_slot(o->op);
	}
}

/* one patch, as far as it lies in the size bytes that were at vaddr lo */
static void patch(const struct ptmod *m, const struct map_patch *p, uint8_t *text, uint64_t lo, uint64_t size)
{
	uint32_t rel = (uint32_t)(m->m.copy_base + p->arg - (m->m.bias + p->vaddr));
	uint64_t at = p->vaddr - lo;
	uint64_t left = p->vaddr >= lo && at < size ? size - at : 0;

	if (p->kind == MAP_PATCH_JMP && left >= 5) {
		text[at] = 0xe9;
		put32(text + at + 1, rel - 5);
	} else if (p->kind == MAP_PATCH_JMP8 && left >= 2) {
		text[at] = 0xeb;
		text[at + 1] = (uint8_t)(p->arg - p->vaddr - 2);
	} else if (MAP_PATCH_KIND(p->kind) == MAP_PATCH_NEAR && map_near_ok(p->kind) &&
		   left >= MAP_NEAR_BYTES(p->kind)) {
		map_near(p, text + at);
	} else if (p->kind == MAP_PATCH_CALL && left >= 4) {
		put32(text + at, rel - 4);
	} else if (p->kind == MAP_PATCH_INT3 && left >= p->arg) {
		memset(text + at, 0xcc, p->arg);
	}
}

/* ---- the file's part ------------------------------------------------------------------------------- */

static char *text_path(const struct ptcode *c, const struct modrec *rec)
{
	char hex[65];

	if (!strcmp(rec->path, "[vdso]"))
		return xprintf("%s/maps/vdso.so", c->run->dir);
	for (uint32_t i = 0; i < rec->m.key_len; i++)
		sprintf(hex + 2 * i, "%02x", rec->m.key[i]);
	return xprintf("%s/maps/%.*s.text", c->run->dir, (int)(2 * rec->m.key_len), hex);
}

static int one_segment(struct ptcode *c, struct ptmod *m, const char *path, const uint8_t *file,
		       const Elf64_Phdr *ph, const struct map_patch *p, uint64_t np)
{
	uint64_t at = m->m.bias + ph->p_vaddr;
	struct room r;

	if (!np)
		return note_section(c, m, path, ph->p_offset, at, ph->p_filesz);
	if (!room(c, &r, ph->p_filesz))
		return -1;
	memcpy(r.p, file + ph->p_offset, ph->p_filesz);
	for (uint64_t i = 0; i < np; i++)
		patch(m, &p[i], r.p, ph->p_vaddr, ph->p_filesz);
	room_done(c, &r);
	return note_section(c, m, c->name, r.offset, at, ph->p_filesz);
}

static int make_text(struct ptcode *c, struct ptmod *m, const struct modrec *rec, struct ptrace_error *e)
{
	char *path = text_path(c, rec);
	size_t size;
	const uint8_t *b = file_map(path, &size, e);
	const Elf64_Ehdr *h = (const void *)b;
	const struct map_patch *p = NULL;
	uint64_t np = 0;
	bool bad = false;

	if (rec->map)
		p = section(rec->map, MAP_PATCHES, sizeof(*p), &np);
	if (b && (size < sizeof(*h) || memcmp(h->e_ident, ELFMAG, SELFMAG) ||
		  h->e_phentsize != sizeof(Elf64_Phdr) || h->e_phoff % 8 || h->e_phoff > size ||
		  h->e_phnum > (size - h->e_phoff) / sizeof(Elf64_Phdr)))
		bad = true;
	for (uint32_t i = 0; b && !bad && i < h->e_phnum; i++) {
		const Elf64_Phdr *ph = (const Elf64_Phdr *)(const void *)(b + h->e_phoff) + i;

		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X) || !ph->p_filesz)
			continue;
		bad = ph->p_offset > size || ph->p_filesz > size - ph->p_offset ||
		      one_segment(c, m, path, b, ph, p, np);
	}
	if (bad)
		err_set(e, PTRACE_PARTIAL, "%s is damaged", path);
	file_unmap(b, size);
	free(path);
	return b && !bad ? 0 : -1;
}

const struct ptmod *ptcode_module(struct ptcode *c, const struct modrec *rec)
{
	struct ptrace_error e = {0};
	struct ptmod *m;

	for (uint32_t i = 0; i < c->nmod; i++) {
		const struct run_module *k = &c->mod[i]->m;

		if (k->kind == rec->m.kind && k->bias == rec->m.bias && k->copy_base == rec->m.copy_base &&
		    k->site_base == rec->m.site_base && k->map_flags == rec->m.map_flags &&
		    k->key_len == rec->m.key_len && !memcmp(k->key, rec->m.key, sizeof(k->key)))
			return c->mod[i];
	}
	m = xcalloc(1, sizeof(*m));
	m->m = rec->m;
	c->mod = xrealloc(c->mod, c->nmod + 1, sizeof(*c->mod));
	c->mod[c->nmod++] = m;
	if (!rec->m.key_len || rec->m.key_len > sizeof(rec->m.key))
		return m;
	if (make_text(c, m, rec, &e))
		run_note(c->run, "the code of %s is not known: %s", rec->path, e.text);
	if (rec->m.kind == 1 && rec->map) {
		if (!make_copy(c, m, rec->map))
			run_note(c->run, "%s: the copy in it is damaged", rec->map->path);
		else
			make_asked(m, rec->map);
	}
	return m;
}

int ptcode_map(struct ptcode *c, struct pt_image *image, const struct ptmod *m)
{
	int rc = 0;

	for (uint32_t i = 0; i < m->nsect; i++)
		if (pt_image_add_cached(image, c->cache, m->sect[i].isid, NULL) < 0)
			rc = -1;
	return rc;
}
