/* SPDX-License-Identifier: MIT
 *
 * run_mod.c - the maps of a run, and the modules of its processes
 *
 * Maps are matched by the key in their head, not by their file name, and opened when a module needs them. A
 * record that is damaged costs itself and all behind it. A file of code may have several maps in a run: that of a
 * replay (MAP_F_NONDET) is in the replay's directory, the recording's own (MAP_F_SPARSE) is no matter here.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>
#include "dec.h"

/* ---- maps --------------------------------------------------------------------------------- */

/* a map in the run's directory, by the key in its head; not opened before it is needed */
struct mapfile {
	char *path;
	uint8_t key[32];
	uint32_t key_len, flags;
};

/* is a map with these MAP_F_* for a module of a process that is replayed, or for one that is not? */
static bool of_kind(uint32_t flags, bool replay)
{
	return !(flags & MAP_F_SPARSE) && !(flags & MAP_F_NONDET) == !replay;
}

void run_forget_maps(struct ptrace_run *r)
{
	for (uint32_t i = 0; i < r->nmapfile; i++)
		free(r->mapfile[i].path);
	r->nmapfile = 0;
}

/* Reads the directory, if it is not as it was when it was read last: a program that runs may add to it. */
static bool read_mapfiles(struct ptrace_run *r, const char *dir)
{
	struct dirent *d;
	struct stat st;
	DIR *h;

	if (stat(dir, &st) ||
	    (r->maps_time.tv_sec == st.st_mtim.tv_sec && r->maps_time.tv_nsec == st.st_mtim.tv_nsec))
		return false;
	r->maps_time = st.st_mtim;
	run_forget_maps(r);
	h = opendir(dir);
	while (h && (d = readdir(h))) {
		struct map_head head;
		struct mapfile *m;
		char *path;
		FILE *f;

		if (!strstr(d->d_name, ".ptmap"))
			continue;
		path = xprintf("%s/%s", dir, d->d_name);
		f = fopen(path, "rb");
		if (f && fread(&head, sizeof(head), 1, f) == 1) {
			r->mapfile = xrealloc(r->mapfile, r->nmapfile + 1, sizeof(*r->mapfile));
			m = &r->mapfile[r->nmapfile++];
			m->path = path;
			m->key_len = head.key_len;
			m->flags = head.flags;
			memcpy(m->key, head.key, sizeof(m->key));
		} else {
			free(path);
		}
		if (f)
			fclose(f);
	}
	if (h)
		closedir(h);
	return true;
}

/* the run may have several of a file's maps: one that leaves control flow to Intel PT, one that leaves values to it,
 * too, and one that does neither */
static bool is_for(const struct run_module *m, const uint8_t *key, uint32_t key_len, uint32_t flags)
{
	return key_len == m->key_len && !memcmp(key, m->key, 32) &&
	       !((flags ^ m->map_flags) & (MAP_F_PT | MAP_F_PTW));
}

static struct map *map_in_dir(struct ptrace_run *r, const struct run_module *m, bool replay,
			      struct ptrace_error *e)
{
	struct map *found = NULL;

	for (uint32_t i = 0; i < r->nmapfile && !found; i++)
		if (is_for(m, r->mapfile[i].key, r->mapfile[i].key_len, r->mapfile[i].flags) &&
		    of_kind(r->mapfile[i].flags, replay))
			found = map_open(r->mapfile[i].path, e);
	return found;
}

/* run: the run directory with the map; it is that of a replay, or r's own */
static struct map *map_for(struct ptrace_run *r, const struct run_module *m, const char *run, char **lost)
{
	bool replay = run != r->dir;
	struct ptrace_error e = {0};
	struct map *found;
	char *dir;

	for (uint32_t i = 0; i < r->nmap; i++)
		if (is_for(m, r->map[i]->head->key, r->map[i]->head->key_len, r->map[i]->head->flags) &&
		    of_kind(r->map[i]->head->flags, replay))
			return r->map[i];
	dir = xprintf("%s/maps", run);
	found = map_in_dir(r, m, replay, &e);
	if (!found && read_mapfiles(r, dir))
		found = map_in_dir(r, m, replay, &e);
	if (found) {
		r->map = xrealloc(r->map, r->nmap + 1, sizeof(*r->map));
		r->map[r->nmap++] = found;
	} else {
		*lost = e.text[0] ? xprintf("%s", e.text) : xprintf("no map with its key in %s", dir);
	}
	free(dir);
	return found;
}

/* ---- modules.bin -------------------------------------------------------------------------- */

static bool modrec_ok(const struct run_module *m, size_t left, uint32_t index)
{
	struct run_module copy = *m;
	XXH3_state_t *x;
	uint64_t h;

	if (m->magic != RUN_MODULE_MAGIC || m->size < sizeof(*m) || m->size > left || m->size % 8 ||
	    m->path_len > m->size - sizeof(*m) || m->index != index || m->kind > 2 || m->key_len > 32)
		return false;
	copy.xxh3 = 0;
	x = XXH3_createState();
	if (!x)
		return false;
	XXH3_64bits_reset(x);
	XXH3_64bits_update(x, &copy, sizeof(copy));
	XXH3_64bits_update(x, m + 1, m->size - sizeof(*m));
	h = XXH3_64bits_digest(x);
	XXH3_freeState(x);
	return h == m->xxh3;
}

/* run: where its map is, NULL: it needs none */
static void add_module(struct proc *p, const struct run_module *m, const char *run)
{
	struct modrec *r;
	size_t n = m->path_len;

	if (!p->replay)
		p->mod = xrealloc(p->mod, p->nmod + 1, sizeof(*p->mod));
	r = &p->mod[p->nmod++];
	memset(r, 0, sizeof(*r));
	r->m = *m;
	r->path = xcalloc(n + 1, 1);
	memcpy(r->path, m + 1, n);
	if (m->kind != 1 || !run)
		return;
	r->map = map_for(p->run, m, run, &r->lost);
	if (!r->map && !p->untraced)
		run_note(p->run, "%s: module %s cannot be decoded: %s", p->dir, r->path, r->lost);
}

/* the records that were not read yet */
static void read_modules(struct proc *p, const char *path, const char *run)
{
	struct ptrace_error e = {0};
	size_t size;
	const uint8_t *b = file_map(path, &size, &e);

	if (!b || !size)
		run_note(p->run,
			 "%s: no module is known, nothing of this process can be decoded: record again",
			 b ? path : e.text);
	while (b && size >= p->mod_at && size - p->mod_at >= sizeof(struct run_module) &&
	       (!p->replay || p->nmod < REPLAY_MODULES)) {
		const struct run_module *m = (const void *)(b + p->mod_at);

		if (!modrec_ok(m, size - p->mod_at, p->nmod)) {
			run_note(
				p->run,
				"%s: record %u at byte %zu is damaged or cut; modules from there on are lost",
				path, p->nmod, p->mod_at);
			p->mod_at = size;
			break;
		}
		add_module(p, m, run);
		p->mod_at += m->size;
	}
	if (b && p->mod_at < size)
		run_note(p->run, "%s: record %u at byte %zu is cut; modules from there on are lost", path,
			 p->nmod, p->mod_at);
	file_unmap(b, size);
}

void run_open_modules(struct proc *p)
{
	char *path = xprintf("%s/modules.bin", p->dir);

	read_modules(p, path, p->recorded ? NULL : p->run->dir);
	free(path);
}

bool run_module_known(const struct proc *p, const struct modrec *m)
{
	for (uint32_t i = 0; i < p->nmod; i++)
		if (p->mod[i].m.kind && p->mod[i].m.lo == m->m.lo && p->mod[i].m.hi == m->m.hi &&
		    !strcmp(p->mod[i].path, m->path))
			return true;
	return false;
}

void run_replay_modules(struct proc *p, const char *run, const char *dir)
{
	char *path = xprintf("%s/modules.bin", dir);

	read_modules(p, path, run);
	free(path);
}
