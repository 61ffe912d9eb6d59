/* SPDX-License-Identifier: MIT
 *
 * collect.c - ptrace-collect: takes the logs of traced processes to disk
 *
 * Started by libptrace_rt.so of an exec'd image, for it and all that it forks, with the shared memory
 * (ring.h) as file descriptor 3. It waits for chunks, compresses and appends them; when a process exits,
 * stops tracing, execs or dies, it saves what is left in its threads' chunks up to the published log
 * pointers. When the last one is gone it finishes.
 *
 *   traced threads ── full chunks ──▶ work_drain() ── free ones ──▶ traced threads
 *
 * When everything of a process is out of the ring and it takes longer to compress what still waits, it is
 * let go (`done`) and that goes on behind it. A lock on its directory (flock(2)) tells readers that more is
 * coming.
 *
 * When a write fails it says so in the ring, and goes on freeing chunks so that no program
 * ever hangs; the runtime stops tracing at its next slow path.
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "collect.h"

#define RING_FD 3
#define POLL_MS 50

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
	c->ring_ino = st.st_ino;
	if (c->ring->magic != RING_MAGIC || c->ring->version != RING_VERSION ||
	    c->ring_size < ring_size(c->ring))
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

/* until no process has anything more to say */
static void follow(struct collect *c)
{
	struct ring_head *h = c->ring;
	bool soon;

	for (;;) {
		uint32_t wake = __atomic_load_n(&h->wake, __ATOMIC_ACQUIRE);

		if (!proc_look(c, &soon))
			return;
		pt_requests(c);
		if (work_drain(c))
			continue;
		__atomic_store_n(&h->asleep, 1, __ATOMIC_SEQ_CST);
		futex_wait(&h->wake, wake, soon ? 2 : POLL_MS);
		__atomic_store_n(&h->asleep, 0, __ATOMIC_SEQ_CST);
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
	      "       [--spool BYTES] [--stream FIFO] [--root]\n"
	      "Started by libptrace_rt.so; takes its log to disk. See ptrace-collect(1).\n",
	      f);
	return status;
}

static int options(struct collect *c, const char **proc, int argc, char **argv)
{
	static const struct option opt[] = {
		{"run", 1, NULL, 'r'},	    {"proc", 1, NULL, 'p'},  {"live", 1, NULL, 'l'},
		{"compress", 1, NULL, 'c'}, {"spool", 1, NULL, 's'}, {"root", 0, NULL, 'R'},
		{"stream", 1, NULL, 'f'},   {"help", 0, NULL, 'h'},  {0},
	};
	int o;

	c->codec = 1;
	c->live = "";
	while ((o = getopt_long(argc, argv, "h", opt, NULL)) != -1) {
		switch (o) {
		case 'r':
			c->run = optarg;
			break;
		case 'p':
			*proc = optarg;
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
		case 'f':
			c->stream = optarg;
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
	if (!c->run || !*proc || c->codec < 0)
		return EINVAL;
	c->run_fd = open(c->run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return c->run_fd < 0 ? errno : 0;
}

/* everything that can fail, before the program is let on */
static int start(struct collect *c, const char *proc)
{
	int err = work_init(c);

	if (!err)
		err = proc_first(c, proc);
	if (!err) {
		struct cproc *p = proc_at(0);

		spool_init(p->dir_fd, c->spool);
		err = json_run(c, p, JSON_RUNNING);
	}
	return err;
}

/* each process takes two descriptors */
static void more_files(void)
{
	struct rlimit l;

	if (!getrlimit(RLIMIT_NOFILE, &l) && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

int main(int argc, char **argv)
{
	struct collect c = {0};
	const char *proc = NULL;
	int err = options(&c, &proc, argc, argv);

	if (err == EINVAL)
		return usage(stderr, 2);
	if (err || ring_open(&c))
		return 1;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (chdir("/"))
		return 1;
	own(&c);
	more_files();
	proc = strrchr(proc, '/') ? strrchr(proc, '/') + 1 : proc;
	err = start(&c, proc);
	if (err)
		c.ring->error = err;
	__atomic_store_n(&c.ring->ready, err ? 2 : 1, __ATOMIC_RELEASE);
	futex_wake(&c.ring->ready);
	if (err)
		return 1;
	work_populate(&c);
	follow(&c);
	live_clean(&c);
	return 0;
}
