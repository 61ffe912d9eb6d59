// SPDX-License-Identifier: MIT
/* unit_pt_poll.c - ptrace-collect's events of Intel PT: which of them has gone
 *
 * Pipes stand for events: one whose other end is closed hangs up, as an event does when its thread has ended. Whoever drains them waits
 * in a poll(2) of ours, which can be held up between its answer and its caller: meanwhile an event is closed, and the next one opened
 * with the same descriptor. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "collect.h"
#include "collect_pt.h"

static int passed, failed;
static int polls, hold, held; /* calls; one that tells of an event gone is to wait; it does */
static int other_end[3]; /* of each tid's event */
static int ended[3]; /* how often each tid's file was ended */
static struct cproc proc[3];

static void check(bool ok, const char *what)
{
	if (ok) {
		passed++;
		return;
	}
	failed++;
	printf("FAIL: %s\n", what);
}

static int get(int *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void set(int *word, int v)
{
	__atomic_store_n(word, v, __ATOMIC_RELEASE);
}

/* ---- what collect_pt.c calls ---- */

int poll(struct pollfd *fd, nfds_t n, int ms)
{
	int r = (int)syscall(SYS_poll, fd, n, ms);

	for (nfds_t i = 1; i < n; i++)
		if (get(&hold) && fd[i].revents & POLLHUP) {
			set(&held, 1);
			while (get(&hold))
				usleep(1000);
		}
	__atomic_add_fetch(&polls, 1, __ATOMIC_RELEASE);
	return r;
}

int pt_area_open(struct pt_area *a, const struct perf_event_attr *attr, uint32_t tid, uint64_t ring,
		 uint64_t aux, struct pt_fail *f)
{
	static struct perf_event_mmap_page page;
	static int last;
	int end[2];

	(void)attr, (void)ring, (void)aux, (void)f;
	if (pipe(end))
		return -1;
	check(tid == 1 || end[0] == last, "the next event has the same descriptor");
	last = end[0];
	*a = (struct pt_area){.fd = end[0], .page = &page};
	other_end[tid] =
		fcntl(end[1], F_DUPFD, 100); /* so that the next event's descriptor is this one's again */
	close(end[1]);
	return 0;
}

void pt_area_pieces(struct pt_area *a, const struct perf_event_attr *attr, bool any)
{
	(void)a, (void)attr, (void)any;
}

int pt_area_enable(struct pt_area *a, bool on)
{
	(void)a, (void)on;
	return 0;
}

void pt_area_close(struct pt_area *a)
{
	close(a->fd);
}

bool pt_read(struct pt_read *r, const struct pt_area *a, const struct pt_sink *s)
{
	(void)r, (void)a, (void)s;
	return false;
}

void pt_read_rest(struct pt_read *r, const struct pt_area *a, const struct pt_sink *s)
{
	pt_read(r, a, s);
}

int pt_file_open(struct pt_file *f, int dir, uint32_t tid, int codec)
{
	*f = (struct pt_file){.fd = (int)tid, .codec = codec, .start = (uint64_t)dir};
	return 0;
}

void pt_file_info(struct pt_file *f, struct run_pt_info *info)
{
	(void)f, (void)info;
}

int pt_file_data(struct pt_file *f, uint64_t offset, const void *p, size_t n, const void *p2, size_t n2,
		 unsigned flags, bool fast)
{
	(void)f, (void)offset, (void)p, (void)n, (void)p2, (void)n2, (void)flags, (void)fast;
	return 0;
}

int pt_file_note(struct pt_file *f, uint32_t kind, uint64_t value)
{
	if (kind == RUN_PT_END && value == RUN_PT_END_THREAD)
		__atomic_add_fetch(&ended[f->fd], 1, __ATOMIC_RELEASE);
	return 0;
}

void pt_file_close(struct pt_file *f)
{
	f->fd = -1;
}

const char *pt_pmu_dir(void)
{
	return "";
}

int pt_pmu_read(const char *dir, struct pt_pmu *p, char *what, size_t size)
{
	(void)dir, (void)p, (void)what, (void)size;
	return 0;
}

uint64_t pt_config(const struct pt_pmu *p, const struct pt_want *w, struct run_pt_info *info)
{
	(void)p, (void)w, (void)info;
	return 0;
}

void pt_why_open(char *buf, size_t size, const struct pt_fail *f)
{
	snprintf(buf, size, "%s", strerror(f->err));
}

void pt_why_pmu(char *buf, size_t size, int err, const char *what)
{
	snprintf(buf, size, "%s: %s", what, strerror(err));
}

struct cproc *proc_at(uint32_t index)
{
	return &proc[index];
}

uint32_t ns_thread(const struct cproc *p, uint32_t tid)
{
	(void)p;
	return tid;
}

int json_run(struct collect *c, struct cproc *p, enum json_when when)
{
	(void)c, (void)p, (void)when;
	return 0;
}

void futex_wake(uint32_t *word)
{
	(void)word;
}

/* ---- */

/* a thread that asks for an event, process and thread of that number */
static void start(struct collect *c, uint32_t tid)
{
	struct ring_thread *th = ring_thread(c->ring, tid - 1);

	th->proc = th->tid = tid;
	th->uid = tid;
	th->pt = RING_PT_START;
	c->ring->nslots = tid;
	pt_requests(c);
	check(th->pt == RING_PT_ON, "an event is opened");
}

static void looks(int n) /* so many more of them; where there is no event there are none */
{
	for (int from = get(&polls), ms = 0; get(&polls) - from < n && ms < 2000; ms++)
		usleep(1000);
}

int main(void)
{
	struct collect c = {.ring = calloc(1, ring_tcb_off(0, 2))};

	alarm(60);
	c.ring->pt.cf = RING_CF_PT;
	c.ring->pt.key = c.ring->pt.aux = 1 << 20;
	start(&c, 1);
	looks(2);
	check(!get(&ended[1]), "it goes on");
	set(&hold, 1);
	close(other_end[1]);
	while (!get(&held))
		usleep(1000);
	pt_end(&proc[1], true);
	check(get(&ended[1]) == 1, "its process has ended");
	start(&c, 2);
	set(&hold, 0);
	looks(3);
	check(!get(&ended[2]), "another one with its descriptor goes on");
	close(other_end[2]);
	for (int ms = 0; !get(&ended[2]) && ms < 10000; ms++)
		usleep(1000);
	check(get(&ended[2]) == 1, "until its thread ends");
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
