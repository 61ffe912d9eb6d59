/* SPDX-License-Identifier: MIT
 *
 * collect.c - ptrace-collect: takes the log of one traced process image to disk
 *
 * Started by libptrace_rt.so with the shared memory (ring.h) as file descriptor 3. It waits
 * for chunks, compresses and appends them, and finishes when the process exits, stops tracing,
 * execs or dies; then it saves the rest of the current chunk up to the published log pointer.
 *
 *   traced thread ── head++ ──▶ ring ──▶ work_drain() ── tail++ ──▶ traced thread may reuse it
 *
 * When everything is out of the ring and it takes longer to compress what still waits, the process is
 * let go (`done`) and that goes on behind it. A lock on the log (flock(2)) tells readers that more is
 * coming.
 *
 * When a write fails it says so in the ring, and goes on freeing chunks so that the program
 * never hangs; the runtime stops tracing at its next slow path.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "collect.h"

#define RING_FD 3
#define POLL_MS 50
#define PATIENCE_MS 5 /* a process that ends waits so long for its log to be complete */

/* the kernel walks this when the process dies (set_robust_list(2)) */
static struct robust_list_head robust;
static struct {
	struct robust_list list;
} robust_entry;

void futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, 64, NULL, NULL, 0);
}

void futex_wait(uint32_t *word, uint32_t val, long ms)
{
	struct timespec ts = {ms / 1000, ms % 1000 * 1000000};

	syscall(SYS_futex, word, FUTEX_WAIT, val, &ts, NULL, 0);
}

static int ring_open(struct collect *c)
{
	struct stat st;

	if (fstat(RING_FD, &st))
		return errno;
	c->ring_size = st.st_size;
	c->ring = mmap(NULL, c->ring_size, PROT_READ | PROT_WRITE, MAP_SHARED, RING_FD, 0);
	if (c->ring == MAP_FAILED)
		return errno;
	close(RING_FD);
	if (c->ring->magic != RING_MAGIC || c->ring->version != RING_VERSION || c->ring->nchunks > RING_MAX ||
	    c->ring_size < (1ull + c->ring->nchunks) * RUN_CHUNK_SPAN)
		return EPROTO;
	return 0;
}

/* from here on the traced process can tell when this one dies */
static void own(struct collect *c)
{
	robust_entry.list.next = &robust.list;
	robust.list.next = &robust_entry.list;
	robust.futex_offset = (char *)&c->ring->owner - (char *)&robust_entry;
	c->ring->owner = (uint32_t)syscall(SYS_gettid);
	syscall(SYS_set_robust_list, &robust, sizeof(robust));
}

/* the current chunk, up to the published log pointer */
static void drain_last(struct collect *c, bool salvage)
{
	struct ring_head *h = c->ring;
	const struct tcb *t = (const void *)((const char *)h + RING_TCB_OFF);
	struct ring_desc d = h->desc[h->head % h->nchunks];
	uint64_t base = h->base + (1ull + h->head % h->nchunks) * RUN_CHUNK_SPAN;
	uint64_t n = __atomic_load_n(&t->lp, __ATOMIC_ACQUIRE) - base;

	if (n > RUN_CHUNK_SIZE + RUN_CHUNK_SLACK)
		n = 0; /* the log pointer still lies in a chunk that was handed over */
	if (h->state == RING_STOP && h->extra <= RUN_CHUNK_SLACK)
		n += h->extra;
	d.tsc_close = d.tsc_open;
	c->salvaged = salvage;
	work_last(c, n, &d, salvage ? 2 : 1);
}

/* until the process has nothing more to say */
static enum fate follow(struct collect *c)
{
	struct ring_head *h = c->ring;
	enum fate fate;

	for (;;) {
		uint32_t wake = __atomic_load_n(&h->wake, __ATOMIC_ACQUIRE);
		uint32_t state = __atomic_load_n(&h->state, __ATOMIC_ACQUIRE);

		if (work_drain(c))
			continue;
		if (state == RING_EXIT || state == RING_STOP)
			return FATE_ALIVE;
		fate = watch(c);
		if (fate != FATE_ALIVE) {
			work_drain(c);
			return fate;
		}
		futex_wait(&h->wake, wake, state == RING_EXEC ? 2 : POLL_MS);
	}
}

static int codec_of(const char *name)
{
	if (!strcmp(name, "lz4"))
		return 1;
	if (!strcmp(name, "zstd"))
		return 2;
	return strcmp(name, "none") ? -1 : 0;
}

static int usage(FILE *f, int status)
{
	fputs("usage: ptrace-collect --run DIR --proc DIR --live DIR --compress lz4|zstd|none\n"
	      "       [--spool BYTES] [--root]\n"
	      "Started by libptrace_rt.so; takes its log to disk. See ptrace-collect(1).\n",
	      f);
	return status;
}

static int options(struct collect *c, int argc, char **argv)
{
	static const struct option opt[] = {
		{"run", 1, NULL, 'r'},	 {"proc", 1, NULL, 'p'},
		{"live", 1, NULL, 'l'},	 {"compress", 1, NULL, 'c'},
		{"spool", 1, NULL, 's'}, {"root", 0, NULL, 'R'},
		{"help", 0, NULL, 'h'},	 {0},
	};
	const char *proc = NULL;
	int o;

	c->codec = 1;
	c->live = "";
	while ((o = getopt_long(argc, argv, "h", opt, NULL)) != -1) {
		switch (o) {
		case 'r':
			c->run = optarg;
			break;
		case 'p':
			proc = optarg;
			break;
		case 'l':
			c->live = optarg;
			break;
		case 'c':
			c->codec = codec_of(optarg);
			break;
		case 's':
			c->spool = strtoull(optarg, NULL, 10);
			break;
		case 'R':
			c->root = true;
			break;
		case 'h':
			exit(usage(stdout, 0));
		default:
			return EINVAL;
		}
	}
	if (!c->run || !proc || c->codec < 0)
		return EINVAL;
	c->run_fd = open(c->run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	c->proc_fd = open(proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return c->run_fd < 0 || c->proc_fd < 0 ? errno : 0;
}

static void let_go(struct collect *c)
{
	__atomic_store_n(&c->ring->done, 1, __ATOMIC_RELEASE);
	futex_wake(&c->ring->done);
}

static void finish(struct collect *c, enum fate fate)
{
	drain_last(c, fate == FATE_GONE && c->ring->state != RING_EXIT);
	if (c->ring->state == RING_STOP && c->ring->stop.magic == RUN_STOP_MAGIC)
		json_stop(c);
	json_proc(c, JSON_ENDED);
	if (!work_finish(PATIENCE_MS)) {
		let_go(c);
		while (!work_finish(1000))
			;
	}
	json_proc(c, JSON_FINAL);
	json_run(c, JSON_FINAL);
	close(c->log_fd); /* and with it the lock */
	let_go(c);
	watch_exit(c, 2000); /* it is about to go: take its registry entry along */
	live_clean(c);
}

int main(int argc, char **argv)
{
	struct collect c = {0};
	int err = options(&c, argc, argv);

	if (err == EINVAL)
		return usage(stderr, 2);
	if (err || ring_open(&c))
		return 1;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (chdir("/"))
		return 1;
	own(&c);
	err = watch_open(&c);
	if (!err)
		err = chunk_init(&c);
	if (!err)
		err = work_init(&c);
	if (!err)
		spool_init(&c, c.spool);
	if (!err) {
		json_describe(&c);
		err = json_proc(&c, JSON_RUNNING);
	}
	if (!err)
		err = json_run(&c, JSON_RUNNING);
	if (err)
		c.ring->error = err;
	__atomic_store_n(&c.ring->ready, err ? 2 : 1, __ATOMIC_RELEASE);
	futex_wake(&c.ring->ready);
	if (err)
		return 1;
	work_populate(&c);
	finish(&c, follow(&c));
	return 0;
}
