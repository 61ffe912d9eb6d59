/* SPDX-License-Identifier: MIT
 *
 * rt_recfile.c - files that a recorded program maps: what a replay needs to map the same bytes
 *
 *   code, what is installed (/usr), large files ─▶ REC_FILE: the replay maps the file, if it still is what it was
 *   others ─▶ REC_BYTES: an index, a database, a file that is gone tomorrow
 *   memory that others can write to, a file that the program may write itself ─▶ rt_switch.c
 *
 * A mapping shows what happens to its file, be it private, as long as a page has not been written to. So the program
 * must not write to a file that it has mapped: it has no descriptor for that, and opening the file for
 * writing, or cutting it, ends the recording. What other processes do is seen by the times of the file when it is unmapped
 * and at the end: REC_CHANGED, and there is no replay.
 */
#include <elf.h>
#include "rt.h"

#define BYTES (4ull << 20) /* of a file, at most, in the recording */
#define BUFFER 4096u
#define O_ACCESS 3u /* O_ACCMODE */
#define NMAPPING 256
#define NWRITTEN 256

static struct mapping {
	uint64_t lo, hi; /* hi 0: free */
	struct rec_file f;
	char path[512];
} mapping[NMAPPING];
static uint32_t nmapping; /* places that are in use, or have been */
static struct {
	uint64_t dev, ino;
} written[NWRITTEN]; /* files that the program has opened for writing */
static uint32_t nwritten; /* may be more */

static struct rec_file describe(const struct stat *st)
{
	struct rec_file f = {{REC_FILE, sizeof(f)}, st->st_dev, st->st_ino, st->st_size, 0, 0};

	f.mtime_sec = (int64_t)st->st_mtime;
	f.mtime_nsec = (int64_t)st->st_mtime_nsec;
	return f;
}

static void put_file(struct rt_tcb *t, struct rec_file f, uint32_t kind, const char *path)
{
	size_t n = rt_strlen(path) + 1;

	f.head.kind = kind;
	f.head.size += rec_padded(n);
	rt_record_put(t, &f, sizeof(f));
	rt_record_put(t, path, n);
}

/* all at once into a record; false: something is not there to be read, and nothing was put */
static bool put_bytes(struct rt_tcb *t, int fd, uint64_t off, uint64_t len)
{
	struct rec_bytes b = {{REC_BYTES, (uint32_t)(sizeof(b) + rec_padded(len))}, len};
	uint8_t buf[BUFFER];

	if (len && rt_pread(fd, buf, 1, off + len - 1) != 1)
		return false;
	rt_record_put(t, &b, sizeof(b));
	for (uint64_t at = 0; at < len; at += BUFFER) {
		uint64_t n = len - at < BUFFER ? len - at : BUFFER;

		memset(buf, 0,
		       sizeof(buf)); /* it has just been cut by somebody: rt_recfile_end() sees that */
		rt_pread(fd, buf, n, off + at);
		rt_record_put(t, buf, n);
	}
	return true;
}

static bool find_path(int fd, char *path)
{
	char link[40];
	struct rt_str s = rt_str(link, sizeof(link));
	long n;

	rt_put(&s, "/proc/self/fd/");
	rt_putu(&s, (uint32_t)fd);
	n = rt_sc(__NR_readlink, link, path, RT_PATH - 1);
	path[n > 0 ? n : 0] = 0;
	return path[0] == '/';
}

/* the file of that name is this one, and will be asked for by it */
static bool named(const char *path, const struct rec_file *f)
{
	struct stat st;

	return !rt_err(rt_sc(__NR_stat, path, &st)) && st.st_ino == f->ino && st.st_dev == f->dev;
}

static const char nameless[] = "it mapped a file that has no name";

static const char *by_name(struct rt_tcb *t, const struct rec_file *f, const char *path)
{
	if (!named(path, f))
		return nameless;
	put_file(t, *f, REC_FILE, path);
	return NULL;
}

static bool remember(uint64_t lo, uint64_t size, const struct rec_file *f, const char *path)
{
	size_t n = rt_strlen(path) + 1;
	struct mapping *m = mapping;

	while (m < mapping + nmapping && m->hi)
		m++;
	if (m == mapping + NMAPPING || n > sizeof(m->path))
		return false;
	if (m == mapping + nmapping)
		nmapping++;
	m->lo = lo;
	m->hi = lo + size;
	m->f = *f;
	memcpy(m->path, path, n);
	return true;
}

static void note_written(const struct rec_file *f)
{
	for (uint32_t i = 0; i < nwritten && i < NWRITTEN; i++)
		if (written[i].dev == f->dev && written[i].ino == f->ino)
			return;
	if (nwritten < NWRITTEN) {
		written[nwritten].dev = f->dev;
		written[nwritten].ino = f->ino;
	}
	nwritten += nwritten <= NWRITTEN;
}

/* some descriptor may still be for writing to it */
static bool was_written(const struct rec_file *f)
{
	for (uint32_t i = 0; i < nwritten && i < NWRITTEN; i++)
		if (written[i].dev == f->dev && written[i].ino == f->ino)
			return true;
	return nwritten > NWRITTEN;
}

/* what a loader maps: a program or a library. Not an object file, which is a linker's input, and often gone afterwards */
static bool is_module(int fd)
{
	Elf64_Ehdr eh;

	return rt_pread(fd, &eh, sizeof(eh), 0) == sizeof(eh) && !memcmp(eh.e_ident, ELFMAG, SELFMAG) &&
	       eh.e_type != ET_REL;
}

static const char *map_file(struct rt_tcb *t, uint64_t at, const uint64_t *g)
{
	uint64_t size = (g[RSI] + RT_PAGE - 1) & ~(RT_PAGE - 1), off = g[R9], left;
	char path[RT_PATH];
	struct rec_file f;
	struct stat st;
	long mode;

	if (rt_err(rt_fstat((int)g[R8], &st)) || (st.st_mode & 0170000) != 0100000 ||
	    !find_path((int)g[R8], path))
		return nameless;
	f = describe(&st);
	if ((g[RDX] & PROT_EXEC) || is_module((int)g[R8]))
		return by_name(t, &f, path);
	mode = rt_sc(__NR_fcntl, g[R8], F_GETFL);
	if (rt_err(mode) || (mode & O_ACCESS) != O_RDONLY || was_written(&f))
		return "it mapped a file that it may write to";
	if (!remember(at, size, &f, path))
		return "it mapped many files";
	left = f.size > off ? f.size - off : 0;
	left = left < g[RSI] ? left : g[RSI];
	/* what is behind the file's last page is not zero, but a fault */
	if (left <= BYTES && size - left < RT_PAGE && !rt_starts(path, "/usr/") &&
	    put_bytes(t, (int)g[R8], off, left))
		return NULL;
	return by_name(t, &f, path);
}

/* the mmap that t has made */
const char *rt_recfile_map(struct rt_tcb *t, long r)
{
	const uint64_t *g = t->sv.gpr;

	if (rt_err(r))
		return NULL;
	if (g[R10] & MAP_FIXED)
		rt_recfile_unmap(t, (uint64_t)r, g[RSI]);
	if (g[R10] & MAP_ANONYMOUS)
		return NULL; /* shared with children only, of which there are none */
	if ((g[R10] & 15) != MAP_PRIVATE && (g[RDX] & PROT_WRITE))
		return "it mapped memory that others can write to";
	return map_file(t, (uint64_t)r, g);
}

bool rt_recfile_at(uint64_t addr, uint64_t size)
{
	for (uint32_t i = 0; i < nmapping; i++)
		if (mapping[i].lo < addr + size && mapping[i].hi > addr)
			return true;
	return false;
}

/* it has been written to since it was mapped */
static void look(struct rt_tcb *t, const struct mapping *m)
{
	struct rec_file f;
	struct stat st;

	if (rt_err(rt_sc(__NR_stat, m->path, &st)))
		return; /* it has no name any more, and whoever wrote to it all the same did so before */
	f = describe(&st);
	if (f.dev == m->f.dev && f.ino == m->f.ino &&
	    (f.size != m->f.size || f.mtime_sec != m->f.mtime_sec || f.mtime_nsec != m->f.mtime_nsec))
		put_file(t, m->f, REC_CHANGED, m->path);
}

void rt_recfile_unmap(struct rt_tcb *t, uint64_t addr, uint64_t size)
{
	uint64_t end = addr + ((size + RT_PAGE - 1) & ~(RT_PAGE - 1));

	for (uint32_t i = 0; i < nmapping; i++) {
		struct mapping *m = &mapping[i];

		if (m->lo >= end || m->hi <= addr)
			continue;
		look(t, m);
		if (m->lo >= addr && m->hi <= end)
			m->hi = 0;
		else if (m->lo >= addr)
			m->lo = end;
		else if (m->hi <= end)
			m->hi = addr; /* else a hole in it, which stays for one */
	}
}

/* Flags of a call that opens a file */
static uint64_t open_flags(const struct rt_tcb *t)
{
	const uint64_t *g = t->sv.gpr;
	uint64_t how = 0; /* struct open_how begins with them */

	switch (t->sv.nr) {
	case __NR_open:
		return g[RSI];
	case __NR_openat:
		return g[RDX];
	case __NR_creat:
		return O_WRONLY;
	case 437: /* openat2 */
		return rt_copy_out(&how, g[RDX], sizeof(how)) ? O_WRONLY : how;
	}
	return 0;
}

/* t's call let the program write to a file that it has mapped, or cut it */
bool rt_recfile_written(const struct rt_tcb *t, long r)
{
	struct rec_file f;
	struct stat st;
	bool cut = t->sv.nr == __NR_truncate;

	if (rt_err(r) || (!cut && !(open_flags(t) & (O_ACCESS | O_TRUNC))))
		return false;
	if (rt_err(cut ? rt_sc(__NR_stat, t->sv.gpr[RDI], &st) : rt_fstat((int)r, &st)))
		return true;
	f = describe(&st);
	if (!cut)
		note_written(&f);
	for (uint32_t i = 0; i < nmapping; i++)
		if (mapping[i].hi && mapping[i].f.dev == f.dev && mapping[i].f.ino == f.ino)
			return true;
	return false;
}

/* the last record is about to be put */
void rt_recfile_end(struct rt_tcb *t)
{
	for (uint32_t i = 0; i < nmapping; i++)
		if (mapping[i].hi)
			look(t, &mapping[i]);
}
