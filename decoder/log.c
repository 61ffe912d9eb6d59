/* SPDX-License-Identifier: MIT
 *
 * log.c - the stream of one thread: chunks from disk, in order, as contiguous bytes
 *
 *   file ─▶ helper thread: head, checksum, decompress ─▶ ring of NSLOT buffers ─▶ walker
 *
 * The helper stays at most NSLOT chunks ahead, so memory is bounded. A buffer has LOG_MIN bytes
 * of room in front: what the walker had left of the previous chunk is copied there, and a value
 * is never split. Where very many logs are open at a time (LOG_MANY), there is no helper, the file is only open
 * while a chunk is read, and one chunk is in memory. Chunks carry their position in the stream; a gap, a bad checksum or a cut ends
 * the stream there, with the reason: what comes after cannot be trusted to line up.
 *
 * The stream pauses where a signal interrupted the program (struct run_cut, or the limit of a stream that a
 * signal stopped): log_need gives nothing behind such a place until log_pass.
 *
 * Keyframes (struct run_key) are taken out of the chunks' beginnings and put aside: log_key, log_resync.
 */
#include <errno.h>
#include <fcntl.h>
#include <lz4.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>
#include "dec.h"

#define NSLOT 4
#define POLL_US 2000
#define MAX_CHUNK (64u << 20) /* no writer makes larger ones; bounds what a damaged head can ask for */

struct slot {
	uint8_t *buf; /* LOG_MIN bytes of room, then the payload: stream, cuts */
	size_t cap, n, all; /* of the stream: bytes up to the next pause, and all */
	uint64_t pos; /* of its first byte in the stream */
	uint32_t ncut;
	uint64_t tsc_open, tsc_close;
	uint8_t *key; /* keyframe that stands before it, key_n bytes; 0: none */
	size_t key_n, key_cap;
};

struct log {
	char *path;
	int fd;
	uint32_t pid, tid;
	/* helper's */
	uint8_t *disk;
	size_t disk_cap;
	uint64_t file_pos, seq, next;
	bool ended; /* the process */
	bool many; /* LOG_MANY */
	bool stream; /* log_stream: of a replay, read once, in order, from a pipe */
	/* shared, under lock */
	pthread_mutex_t lock;
	pthread_cond_t change;
	struct slot slot[NSLOT];
	uint64_t head, tail; /* slots filled, slots given back */
	bool done, quit, clean;
	char *why;
	uint64_t raw, disk_bytes;
	/* walker's */
	bool threaded, have;
	pthread_t helper;
	uint64_t end_pos; /* stream position of the current buffer's last pause, or its end */
	uint32_t cut; /* next one of the current buffer */
	uint64_t limit; /* UINT64_MAX: none */
	uint32_t limit_bytes;
	struct log_times times; /* of the current chunk, with LOG_MANY */
};

static int bad(struct log *l, const char *fmt, uint64_t a, uint64_t b)
{
	char what[200];

	snprintf(what, sizeof(what), fmt, (unsigned long long)a, (unsigned long long)b);
	l->why = xprintf("%s: chunk %llu at byte %llu %s", l->path, (unsigned long long)l->seq,
			 (unsigned long long)l->file_pos, what);
	return -1;
}

/* Has the program ended, and is ptrace-collect still at it? */
static bool more_to_come(struct log *l)
{
	char *slash = strrchr(l->path, '/'),
	     *dir = slash ? xprintf("%.*s", (int)(slash - l->path), l->path) : NULL;
	bool locked = dir_locked(dir ? dir : ".");

	free(dir);
	if (!locked)
		return false;
	return l->ended || (kill((pid_t)l->pid, 0) && errno == ESRCH);
}

/* reads n bytes at pos; 1 done, 0 the file ends before, -1 error */
static int read_at(struct log *l, uint64_t pos, void *buf, size_t n)
{
	bool more = !l->stream;
	size_t got = 0;

	while (got < n) {
		ssize_t k = l->stream ? read(l->fd, (char *)buf + got, n - got)
				      : pread(l->fd, (char *)buf + got, n - got, pos + got);

		if (k < 0 && errno == EINTR)
			continue;
		if (!k && more) { /* once more after it has gone: it may have written meanwhile */
			more = more_to_come(l);
			if (more)
				usleep(POLL_US);
			if (!__atomic_load_n(&l->quit, __ATOMIC_RELAXED))
				continue;
		}
		if (k < 0) {
			char what[100];

			snprintf(what, sizeof(what), "cannot be read: %s", strerror(errno));
			return bad(l, what, 0, 0);
		}
		if (!k)
			return 0;
		got += k;
	}
	return 1;
}

static int check_chunk(struct log *l, const struct run_chunk *c)
{
	if (c->magic != RUN_CHUNK_MAGIC)
		return bad(l, "is damaged (no chunk head there)", 0, 0);
	if (c->version != RUN_VERSION)
		return bad(l,
			   "has version %llu, this decoder reads %llu: use the ptrace-decode of the "
			   "version that made the run",
			   c->version, RUN_VERSION);
	if (c->raw_size > MAX_CHUNK || c->disk_size > MAX_CHUNK || c->codec > 2 ||
	    c->ncut > c->raw_size / sizeof(struct run_cut) ||
	    c->key > c->raw_size - c->ncut * sizeof(struct run_cut) ||
	    (c->key && c->key < sizeof(struct run_key)))
		return bad(l, "is damaged (impossible size or codec)", 0, 0);
	if (!l->stream && (c->pid != l->pid || c->tid != l->tid))
		return bad(l, "belongs to another thread (pid %llu, tid %llu)", c->pid, c->tid);
	if (c->seq != l->seq || c->first != l->next)
		return bad(l, "is not the next one (number %llu, stream position %llu)", c->seq, c->first);
	return 0;
}

static int unpack(struct log *l, const struct run_chunk *c, uint8_t *to)
{
	size_t n = c->disk_size;

	if (c->codec == 0 && n == c->raw_size)
		memcpy(to, l->disk, n);
	else if (c->codec == 1)
		n = LZ4_decompress_safe((char *)l->disk, (char *)to, n, c->raw_size);
	else if (c->codec == 2)
		n = ZSTD_decompress(to, c->raw_size, l->disk, n);
	if (n != c->raw_size)
		return bad(l, "does not decompress to its size", 0, 0);
	return 0;
}

static struct run_cut cut_of(const struct slot *s, uint32_t i)
{
	struct run_cut c;

	memcpy(&c, s->buf + LOG_MIN + s->all + i * sizeof(c), sizeof(c));
	return c;
}

/* Ascending, within the chunk; pauses (at + bytes) ascending, too. */
static int check_cuts(struct log *l, const struct slot *s)
{
	struct run_cut last = {0, 0};

	for (uint32_t i = 0; i < s->ncut; i++) {
		struct run_cut c = cut_of(s, i);

		if (c.at > s->all || c.bytes > s->all - c.at || c.at < last.at ||
		    (i && c.at + c.bytes <= last.at + last.bytes))
			return bad(l, "is damaged (an impossible cut)", 0, 0);
		last = c;
	}
	return 0;
}

/* The keyframe at the front of what was unpacked goes aside; cuts count from what is left. */
static int take_key(struct log *l, struct slot *s, const struct run_chunk *c)
{
	uint8_t *b = s->buf + LOG_MIN;
	struct run_key k;

	s->key_n = c->key;
	if (!c->key)
		return 0;
	memcpy(&k, b, sizeof(k));
	if (k.stack_size != c->key - sizeof(k))
		return bad(l, "is damaged (an impossible keyframe)", 0, 0);
	if (s->key_cap < c->key) {
		s->key = xrealloc(s->key, c->key, 1);
		s->key_cap = c->key;
	}
	memcpy(s->key, b, c->key);
	memmove(b, b + c->key, c->raw_size - c->key);
	for (uint32_t i = 0; i < c->ncut; i++) {
		struct run_cut cut = cut_of(s, i);

		cut.at -= c->key; /* one that stood in the keyframe is an impossible one now */
		memcpy(b + s->all + i * sizeof(cut), &cut, sizeof(cut));
	}
	return 0;
}

/* next chunk into s: 1 got one, 0 end, -1 damage (l->why) */
static int next_chunk(struct log *l, struct slot *s, bool *last)
{
	struct run_chunk c;
	int k = read_at(l, l->file_pos, &c, sizeof(c));

	if (k <= 0)
		return k;
	if (check_chunk(l, &c))
		return -1;
	if (!l->disk || l->disk_cap < c.disk_size) {
		l->disk = xrealloc(l->disk, c.disk_size, 1);
		l->disk_cap = c.disk_size;
	}
	k = read_at(l, l->file_pos + sizeof(c), l->disk, c.disk_size);
	if (k <= 0)
		return k;
	if (XXH3_64bits(l->disk, c.disk_size) != c.xxh3)
		return bad(l, "is damaged (checksum)", 0, 0);
	if (!s->buf || s->cap < c.raw_size) {
		s->buf = xrealloc(s->buf, LOG_MIN + (size_t)c.raw_size, 1);
		s->cap = c.raw_size;
	}
	if (unpack(l, &c, s->buf + LOG_MIN))
		return -1;
	s->ncut = c.ncut;
	s->n = s->all = c.raw_size - c.key - (size_t)c.ncut * sizeof(struct run_cut);
	s->pos = l->next;
	if (take_key(l, s, &c) || check_cuts(l, s))
		return -1;
	s->tsc_open = c.tsc_open;
	s->tsc_close = c.tsc_close;
	*last = c.kind == 1;
	l->file_pos += sizeof(c) + c.disk_size;
	l->seq++;
	l->next += s->all;
	return 1;
}

/* the same, with the file open for no longer than that, and no memory kept but the chunk's */
static int next_chunk_many(struct log *l, struct slot *s, bool *last)
{
	int k;

	if (!l->stream)
		l->fd = open(l->path, O_RDONLY | O_CLOEXEC);
	if (l->fd < 0) {
		char what[100];

		snprintf(what, sizeof(what), "cannot be read: %s", strerror(errno));
		return bad(l, what, 0, 0);
	}
	k = next_chunk(l, s, last);
	if (!l->stream) {
		close(l->fd);
		l->fd = -1;
	}
	free(l->disk);
	l->disk = NULL;
	return k;
}

/* fills the slot at head, which must be free; called without the lock */
static void fill(struct log *l)
{
	bool last = false;
	uint64_t before = l->file_pos;
	struct slot *s = &l->slot[l->head % NSLOT];
	int k = l->many ? next_chunk_many(l, s, &last) : next_chunk(l, s, &last);

	pthread_mutex_lock(&l->lock);
	if (k > 0) {
		l->raw += l->slot[l->head % NSLOT].n;
		l->disk_bytes += l->file_pos - before;
		l->head++;
	}
	l->clean = last;
	l->done = k <= 0 || last;
	pthread_cond_broadcast(&l->change);
	pthread_mutex_unlock(&l->lock);
}

static void *helper(void *arg)
{
	struct log *l = arg;

	for (;;) {
		pthread_mutex_lock(&l->lock);
		while (l->head - l->tail == NSLOT && !l->quit)
			pthread_cond_wait(&l->change, &l->lock);
		if (l->quit || l->done) {
			pthread_mutex_unlock(&l->lock);
			return NULL;
		}
		pthread_mutex_unlock(&l->lock);
		fill(l);
	}
}

uint64_t log_start(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct run_chunk c;
	bool ok = fd >= 0 && pread(fd, &c, sizeof(c), 0) == sizeof(c) && c.magic == RUN_CHUNK_MAGIC &&
		  c.version == RUN_VERSION;

	if (fd >= 0)
		close(fd);
	return ok ? c.tsc_open : UINT64_MAX;
}

static struct log *log_new(const char *name)
{
	struct log *l = xcalloc(1, sizeof(*l));

	l->fd = -1;
	l->limit = UINT64_MAX;
	l->path = xprintf("%s", name);
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->change, NULL);
	return l;
}

struct log *log_open(const char *path, uint32_t pid, uint32_t tid, unsigned flags, struct ptrace_error *e)
{
	struct log *l = log_new(path);

	l->pid = pid;
	l->tid = tid;
	l->ended = flags & LOG_ENDED;
	l->many = flags & LOG_MANY;
	l->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (l->fd < 0) {
		err_set(e, PTRACE_BAD, "cannot open %s: %s", path, strerror(errno));
		log_close(l);
		return NULL;
	}
	if (l->many) {
		close(l->fd);
		l->fd = -1;
		return l;
	}
	/* without a helper everything still works, one chunk at a time */
	l->threaded = !pthread_create(&l->helper, NULL, helper, l);
	return l;
}

struct log *log_stream(int fd, const char *name, unsigned flags)
{
	struct log *l = log_new(name);

	l->fd = fd;
	l->stream = l->ended = true;
	l->many = flags & LOG_MANY;
	l->threaded = !l->many && !pthread_create(&l->helper, NULL, helper, l);
	return l;
}

struct log *log_mem(const uint8_t *bytes, size_t n, const struct run_cut *cut, uint32_t ncut, bool clean)
{
	struct log *l = log_new("memory");
	struct slot *s = &l->slot[0];

	s->buf = xrealloc(NULL, LOG_MIN + n + ncut * sizeof(*cut), 1);
	memcpy(s->buf + LOG_MIN, bytes, n);
	if (ncut)
		memcpy(s->buf + LOG_MIN + n, cut, ncut * sizeof(*cut));
	s->n = s->all = n;
	s->ncut = ncut;
	l->head = check_cuts(l, s) ? 0 : 1;
	l->raw = l->disk_bytes = n;
	l->done = true;
	l->clean = clean;
	return l;
}

void log_limit(struct log *l, uint64_t pos, uint32_t bytes)
{
	l->limit = pos + bytes;
	l->limit_bytes = bytes;
}

bool log_pause(const struct log *l, struct log_pause *p)
{
	const struct slot *s = &l->slot[l->tail % NSLOT];
	struct run_cut c = {0, 0};
	bool cut = l->have && l->cut < s->ncut;

	if (cut)
		c = cut_of(s, l->cut);
	if (cut && s->pos + c.at + c.bytes <= l->limit) {
		*p = (struct log_pause){s->pos + c.at + c.bytes, c.bytes, false};
		return true;
	}
	*p = (struct log_pause){l->limit, l->limit_bytes, true};
	return l->have && l->limit <= s->pos + s->all;
}

/* the current buffer's bytes up to the next pause */
static void up_to_pause(struct log *l)
{
	struct slot *s = &l->slot[l->tail % NSLOT];
	struct log_pause p;

	s->n = s->all;
	if (log_pause(l, &p))
		s->n = p.pos > s->pos ? p.pos - s->pos : 0;
	l->end_pos = s->pos + s->n;
}

void log_pass(struct log *l, const uint8_t **end)
{
	struct slot *s = &l->slot[l->tail % NSLOT];
	struct log_pause p;

	if (!log_pause(l, &p))
		return;
	if (p.stop)
		l->limit = UINT64_MAX;
	else
		l->cut++;
	up_to_pause(l);
	*end = s->buf + LOG_MIN + s->n;
}

void log_close(struct log *l)
{
	if (!l)
		return;
	if (l->threaded) {
		pthread_mutex_lock(&l->lock);
		l->quit = true;
		pthread_cond_broadcast(&l->change);
		pthread_mutex_unlock(&l->lock);
		pthread_join(l->helper, NULL);
	}
	if (l->fd >= 0)
		close(l->fd);
	for (int i = 0; i < NSLOT; i++) {
		free(l->slot[i].buf);
		free(l->slot[i].key);
	}
	free(l->times.at);
	free(l->disk);
	free(l->why);
	free(l->path);
	free(l);
}

/* waits for the next slot after the current one; NULL at the end */
static struct slot *next_slot(struct log *l)
{
	struct slot *s = NULL;
	uint64_t want = l->tail + l->have;

	if (!l->threaded && !l->done && l->head == want) {
		if (l->head - l->tail == NSLOT)
			return NULL;
		fill(l);
	}
	pthread_mutex_lock(&l->lock);
	while (l->head == want && !l->done)
		pthread_cond_wait(&l->change, &l->lock);
	if (l->head > want)
		s = &l->slot[want % NSLOT];
	pthread_mutex_unlock(&l->lock);
	return s;
}

static void give_back(struct log *l)
{
	struct slot *s = &l->slot[l->tail % NSLOT];

	if (l->many) {
		free(s->buf);
		s->buf = NULL;
	}
	pthread_mutex_lock(&l->lock);
	l->tail++;
	pthread_cond_broadcast(&l->change);
	pthread_mutex_unlock(&l->lock);
}

/* s, which comes next, is what is read from here on, in place of the one before */
static void enter(struct log *l, struct slot *s)
{
	if (l->have)
		give_back(l);
	l->have = true;
	l->cut = 0;
	up_to_pause(l);
	if (l->many)
		times_scan(&l->times, s->buf + LOG_MIN, s->all, s->pos, s->tsc_open, s->tsc_close);
}

bool log_need(struct log *l, const uint8_t **p, const uint8_t **end, size_t n)
{
	while (!l->have || (size_t)(*end - *p) < n) {
		struct log_pause pause;
		struct slot *s = log_pause(l, &pause) ? NULL : next_slot(l);
		size_t left = l->have ? *end - *p : 0;

		if (!s)
			return false;
		if (left)
			memcpy(s->buf + LOG_MIN - left, *p, left);
		enter(l, s);
		*p = s->buf + LOG_MIN - left;
		*end = s->buf + LOG_MIN + s->n;
	}
	return true;
}

const struct run_key *log_key(const struct log *l, uint64_t *pos)
{
	const struct slot *s = &l->slot[l->tail % NSLOT];

	if (!l->have || !s->key_n)
		return NULL;
	*pos = s->pos;
	return (const void *)s->key;
}

const struct run_key *log_resync(struct log *l, uint32_t counter, const uint8_t **p, const uint8_t **end)
{
	for (;;) {
		struct slot *s = next_slot(l);
		const struct run_key *k;
		uint64_t pos;

		if (!s)
			return NULL;
		enter(l, s);
		*p = s->buf + LOG_MIN;
		*end = s->buf + LOG_MIN + s->n;
		k = log_key(l, &pos);
		if (k && k->counter >= counter)
			return k;
	}
}

bool log_peek(struct log *l, uint64_t pos, void *buf, size_t n)
{
	struct slot *s = &l->slot[l->tail % NSLOT];

	if (l->have && pos == s->pos + s->all)
		s = next_slot(l);
	if (!l->have || !s || pos < s->pos || pos - s->pos > s->all || n > s->all - (pos - s->pos))
		return false;
	memcpy(buf, s->buf + LOG_MIN + (pos - s->pos), n);
	return true;
}

void log_unread(struct log *l, const uint8_t **p, const void *bytes, size_t n)
{
	struct slot *s = &l->slot[l->tail % NSLOT];
	uint8_t *to = s->buf + (*p - s->buf) - n;

	memcpy(to, bytes, n);
	*p = to;
}

/* The walker's end pointer is that of the current slot. */
uint64_t log_pos(const struct log *l, const uint8_t *p)
{
	const struct slot *s = &l->slot[l->tail % NSLOT];

	return l->have ? l->end_pos - (s->buf + LOG_MIN + s->n - p) : 0;
}

uint64_t log_time(struct log *l, const uint8_t *p)
{
	return times_at(&l->times, log_pos(l, p));
}

bool log_clean(const struct log *l)
{
	return l->clean && l->head == l->tail + l->have;
}

const char *log_why(const struct log *l)
{
	return l->why;
}

void log_sizes(const struct log *l, uint64_t *raw, uint64_t *disk)
{
	*raw = l->raw;
	*disk = l->disk_bytes;
}
