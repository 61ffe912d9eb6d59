/* SPDX-License-Identifier: MIT
 *
 * map_write.c - the rounds over a module's groups, and the map file
 *
 *   patch_plan ─▶ live_module ─▶ plan_rounds ─▶ each group: plan_group, emit_group
 *        ▲                                                        │ cannot be emitted
 *        └──────────────── group becomes opaque ◀─────────────────┘
 *   then: place the copies, number the sites, resolve what crosses groups, write.
 *
 * The file gets its name when it is complete: an analysis that is killed leaves nothing.
 */
#define _GNU_SOURCE /* O_TMPFILE */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "emit.h"
#include "map_out.h"
#include "map_sect.h"

struct map_stats map_stats;

static void round2_free(struct mw *w)
{
	for (uint32_t gi = 0; gi < w->m->ngroup; gi++) {
		emitted_free(w->em[gi]);
		if (w->plan[gi])
			plan_free(w->plan[gi]);
	}
	memset(w->em, 0, w->m->ngroup * sizeof(*w->em));
	memset(w->plan, 0, w->m->ngroup * sizeof(*w->plan));
}

static void one_group(void *arg, uint32_t gi)
{
	struct mw *w = arg;
	struct an_group *g = &w->m->group[gi];

	if (g->reason != MAP_OK)
		return;
	if (!w->plan[gi])
		w->plan[gi] = plan_group(w->m, g, w->flags);
	if (!w->plan[gi]) {
		w->why[gi] = "it cannot be planned";
		return;
	}
	w->em[gi] = emit_group(w->m, g, w->plan[gi], &w->why[gi]);
	live_drop(g); /* other groups' copies do not ask for it */
	free(w->plan[gi]->log); /* the copy has it */
	w->plan[gi]->log = NULL;
	w->plan[gi]->nlog = 0;
}

/* groups that some stage gave up; how many */
static uint32_t given_up(struct mw *w, uint8_t *bad, const uint8_t *was)
{
	struct module *m = w->m;
	uint32_t n = 0;

	for (uint32_t gi = 0; gi < m->ngroup; gi++) {
		bad[gi] = MAP_OK;
		if (was[gi] == MAP_OK && m->group[gi].reason != MAP_OK)
			bad[gi] = m->group[gi].reason;
		else if (w->why[gi])
			bad[gi] = MAP_R_LIMIT;
		n += bad[gi] != MAP_OK;
		if (bad[gi] && getenv("PTRACE_ANALYZE_DEBUG"))
			fprintf(stderr, "%s: group at %x: %s\n", m->path, m->group[gi].insn[0].vaddr,
				w->why[gi] ? w->why[gi] : "the planner cannot represent it");
	}
	return n;
}

/* the rounds; 1 when some group became opaque and all has to be done again */
static int rounds(struct mw *w, int jobs, char *err, size_t errlen)
{
	struct module *m = w->m;
	uint8_t *bad = malloc(2 * (size_t)m->ngroup + 2), *was = bad + m->ngroup + 1;
	int r = bad ? patch_plan(m, &w->ps, jobs) : -1;

	memset(w->why, 0, (m->ngroup + 1) * sizeof(*w->why));
	for (uint32_t gi = 0; gi < m->ngroup && !r; gi++)
		was[gi] = m->group[gi].reason;
	if (!r)
		r = live_module(m, jobs) || plan_rounds(m, w->flags, jobs, w->plan) ? -1 : 0;
	if (!r && !given_up(w, bad, was)) {
		keep_find(m);
		par_for(m->ngroup, jobs, one_group, w);
	}
	if (!r && given_up(w, bad, was)) {
		round2_free(w);
		r = groups_demote(m, bad, &w->ps) ? -1 : 1;
	}
	if (r < 0)
		snprintf(err, errlen, "out of memory");
	free(bad);
	return r;
}

/* ---- placing ---- */

static int place(struct mw *w, char *err, size_t errlen)
{
	struct module *m = w->m;
	uint64_t at = 0;
	uint32_t op = 0, block = 0, insn = 0, site = 0;

	for (uint32_t gi = 0; gi < m->ngroup; gi++) {
		w->base[gi] = at;
		w->opbase[gi] = op;
		w->blockbase[gi] = block;
		w->sitebase[gi] = site;
		if (m->group[gi].reason != MAP_OK)
			continue;
		at = (at + w->em[gi]->ntext + 15) & ~15ull;
		op += w->plan[gi]->nop;
		block += m->group[gi].nblock;
		insn += m->group[gi].ninsn;
		site += w->em[gi]->nsite;
		map_stats.logbytes += w->em[gi]->logbytes;
	}
	if (at > 0x60000000) {
		snprintf(err, errlen, "the copy would be %llu bytes: too large", (unsigned long long)at);
		return -1;
	}
	w->ncopy = at;
	w->nop = op;
	w->nblock = block;
	w->ninsn = insn;
	w->nsite = site;
	return 0;
}

/* ---- the file ---- */

static void fill_head(const struct mw *w, struct map_head *h)
{
	const struct module *m = w->m;

	memset(h, 0, sizeof(*h));
	h->magic = MAP_MAGIC;
	h->version = MAP_VERSION;
	h->flags = w->flags | (m->hidden && w->flags & MAP_F_SPARSE ? MAP_F_HIDDEN : 0) |
		   (m->bases ? MAP_F_BASES : 0);
	memcpy(h->key, m->key, sizeof(h->key));
	h->key_len = m->key_len;
	h->key_kind = m->key_kind;
	h->file_size = m->file_size;
	h->vaddr_lo = m->vaddr_lo;
	h->vaddr_hi = m->vaddr_hi;
	h->nsites = w->nsite;
	h->ninsns = w->ninsn;
}

static int put_file(struct mw *w, const char *path, char *err, size_t errlen)
{
	struct map_head h;
	int r;

	fill_head(w, &h);
	w->out = out_open(path, &h);
	if (!w->out)
		return -1;
	r = sect_all(w, err, errlen);
	h.name = w->name;
	return out_close(w->out, !r) || r ? -1 : 0;
}

/* A file without a name, which gets `path` when it is complete. 1: there are none here */
static int put_unnamed(struct mw *w, const char *path, char *err, size_t errlen)
{
	char in[32], *copy = strdup(path);
	int fd = copy ? open(dirname(copy), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666) : -1, r = 1;

	free(copy);
	if (fd < 0)
		return 1;
	snprintf(in, sizeof(in), "/proc/self/fd/%d", fd);
	if (!access(in, W_OK)) {
		r = put_file(w, in, err, errlen);
		if (!r && linkat(AT_FDCWD, in, AT_FDCWD, path, AT_SYMLINK_FOLLOW))
			r = -1;
	}
	close(fd);
	return r;
}

/* Under a temporary name and renamed, so that a reader never sees half a map and two analyses of the same
 * module do not disturb each other. A device or a pipe is written to: a rename would replace it. */
static int write_file(struct mw *w, const char *path, char *err, size_t errlen)
{
	size_t n = strlen(path) + 24;
	char *tmp = malloc(n);
	struct stat st;
	int r = -1;

	if (tmp) {
		snprintf(tmp, n, "%s.%d.tmp", path, (int)getpid());
		if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
			r = put_file(w, path, err, errlen);
		} else {
			r = put_unnamed(w, tmp, err, errlen);
			if (r > 0)
				r = put_file(w, tmp, err, errlen);
			r = r || rename(tmp, path) ? -1 : 0;
		}
	}
	if (r && !*err)
		snprintf(err, errlen, "%s: %s", path, strerror(errno));
	if (r && tmp)
		unlink(tmp);
	free(tmp);
	return r;
}

static void note_stats(struct mw *w)
{
	map_stats.copy = w->ncopy;
	map_stats.sites = w->nsite;
	map_stats.emulated = w->ps.nemul;
	map_stats.islands = w->ps.nisland;
	map_stats.jmps = w->ps.njmp;
	map_stats.demoted = w->ps.ndemoted;
	map_stats.xlat = w->nxlat;
	map_stats.ops = w->nop;
}

static void *zero(size_t n)
{
	void *p = calloc(n + 1, 1);

	if (!p)
		abort();
	return p;
}

int map_write(struct module *m, const char *path, uint32_t flags, int jobs, char *err, size_t errlen)
{
	struct mw w = {.m = m, .flags = flags};
	size_t n = m->ngroup + 1;
	int r = 1;

	memset(&map_stats, 0, sizeof(map_stats));
	w.plan = zero(n * sizeof(*w.plan));
	w.em = zero(n * sizeof(*w.em));
	w.why = zero(n * sizeof(*w.why));
	w.base = zero(n * 4 * 4);
	w.opbase = w.base + n;
	w.blockbase = w.base + 2 * n;
	w.sitebase = w.base + 3 * n;
	while (r == 1)
		r = rounds(&w, jobs, err, errlen);
	if (!r)
		r = place(&w, err, errlen);
	if (!r)
		r = write_file(&w, path, err, errlen);
	note_stats(&w);
	round2_free(&w);
	free(w.strings.p);
	free(w.buf.p);
	free(w.site_of);
	for (uint32_t gi = 0; gi < m->ngroup; gi++)
		live_free(&m->group[gi]);
	patch_free(&w.ps);
	free(w.plan);
	free(w.em);
	free(w.why);
	free(w.base);
	return r ? -1 : 0;
}
