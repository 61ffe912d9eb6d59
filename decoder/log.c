/* SPDX-License-Identifier: MIT
 *
 * log.c - the stream of one thread: chunks from disk, in order, as contiguous bytes
 *
 *   file ─▶ helper thread (log_disk.c) ─▶ ring of NSLOT buffers ─▶ walker
 *
 * The helper stays at most NSLOT chunks ahead, so memory is bounded. A buffer has LOG_MIN bytes
 * of room in front: what the walker had left of the previous chunk is copied there, and a value
 * is never split. Where very many logs are open at a time (LOG_MANY), there is no helper, the file is only open
 * while a chunk is read, and one chunk is in memory.
 *
 * The stream pauses where a signal interrupted the program (struct run_cut, or the limit of a stream that a
 * signal stopped): log_need gives nothing behind such a place until log_pass.
 *
 * Keyframes (struct run_key) are taken out of the chunks' beginnings and put aside: log_key, log_resync.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "log_in.h"

/* fills the slot at head, which must be free; called without the lock */
static void fill(struct log *l)
{
	bool last = false;
	uint64_t before = l->file_pos;
	struct slot *s = &l->slot[l->head % NSLOT];
	int k = log_chunk(l, s, &last);

	pthread_mutex_lock(&l->lock);
	if (k > 0) {
		if (l->file_pos > l->counted) {
			l->raw += l->slot[l->head % NSLOT].n;
			l->disk_bytes += l->file_pos - before;
			l->counted = l->file_pos;
		}
		l->head++;
	}
	l->clean = last;
	l->done = k <= 0 || last || l->one;
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

bool log_head(int fd, uint64_t *at, struct run_chunk *c)
{
	bool ok = pread(fd, c, sizeof(*c), (off_t)*at) == sizeof(*c) && c->magic == RUN_CHUNK_MAGIC &&
		  c->version == RUN_VERSION;

	*at += sizeof(*c) + c->disk_size;
	return ok;
}

uint64_t log_start(const char *path, uint64_t at)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct run_chunk c;
	bool ok = fd >= 0 && log_head(fd, &at, &c);

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

struct log *log_open(const char *path, uint64_t at, uint32_t pid, uint32_t tid, unsigned flags,
		     struct ptrace_error *e)
{
	struct log *l = log_new(path);

	l->file_pos = l->counted = at;
	l->one = flags & LOG_ONE;
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
	l->head = log_check_cuts(l, s) ? 0 : 1;
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
		c = log_cut(s, l->cut);
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
	free(l->keys);
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

static void note_key(struct log *l, const struct slot *s)
{
	const struct run_key *k = (const void *)s->key;

	if (!s->key_n || (l->nkeys && l->keys[l->nkeys - 1].counter >= k->counter))
		return;
	if (!(l->nkeys & (l->nkeys - 1)))
		l->keys = xrealloc(l->keys, l->nkeys ? 2 * l->nkeys : 1, sizeof(*l->keys));
	l->keys[l->nkeys++] = (struct key_at){s->file_pos, s->seq, s->pos, k->counter};
}

/* s, which comes next, is what is read from here on, in place of the one before */
static void enter(struct log *l, struct slot *s)
{
	if (l->have)
		give_back(l);
	l->have = true;
	l->cut = 0;
	up_to_pause(l);
	note_key(l, s);
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

/* The chunk at k comes next, once more. */
static void go_back(struct log *l, const struct key_at *k)
{
	if (l->threaded) {
		pthread_mutex_lock(&l->lock);
		l->quit = true;
		pthread_cond_broadcast(&l->change);
		pthread_mutex_unlock(&l->lock);
		pthread_join(l->helper, NULL);
	}
	if (l->have)
		give_back(l);
	free(l->why); /* whatever it was is met again */
	l->why = NULL;
	l->tail = l->head;
	l->have = l->quit = l->done = l->clean = false;
	l->file_pos = k->file_pos;
	l->seq = k->seq;
	l->next = k->pos;
	if (l->threaded)
		l->threaded = !pthread_create(&l->helper, NULL, helper, l);
}

uint64_t log_rest(struct log *l, uint64_t *tsc)
{
	struct slot *s;

	while ((s = next_slot(l)))
		enter(l, s);
	*tsc = 0;
	if (!l->have)
		return 0;
	s = &l->slot[l->tail % NSLOT];
	*tsc = s->tsc_close;
	return s->pos + s->all;
}

const struct run_key *log_resync(struct log *l, uint32_t counter, const uint8_t **p, const uint8_t **end)
{
	size_t lo = 0, hi = l->nkeys;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (l->keys[mid].counter < counter)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < l->nkeys && !l->stream)
		go_back(l, &l->keys[lo]);
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
