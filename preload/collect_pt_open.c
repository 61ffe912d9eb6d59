/* SPDX-License-Identifier: MIT
 *
 * collect_pt_open.c - one thread's event, its ring and its AUX area
 *
 * The order of the mappings is the kernel's (perf_mmap in kernel/events/core.c): first the head page and the ring, then,
 * its place and size written into the head page, the AUX area; both a power of two of pages, the ring with one more. Both
 * count against what the user may lock: all of the user's mappings together may have kernel.perf_event_mlock_kb for each
 * online processor; what is beyond that counts against RLIMIT_MEMLOCK of the process that maps. EPERM where that is not enough,
 * unless kernel.perf_event_paranoid is -1 or the process has CAP_IPC_LOCK (perf_mmap, in later ones
 * perf_mmap_calc_limits). So sizes are halved until they fit.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "collect_pt.h"

#define PAGE 4096ull
#define AUX_MIN (64ull << 10)
#define RING_MIN PAGE
/* EBUSY: another event of this PMU on the thread, or one on whole processors (exclusive_event_init and
 * exclusive_event_installable in kernel/events/core.c) */
#define BUSY_MS 300 /* the event of the image that executed this one may be about to go */

static int event(const struct perf_event_attr *attr, uint32_t tid)
{
	return (int)syscall(SYS_perf_event_open, attr, (pid_t)tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* remove_on_exec (Linux 5.13): the image that is executed opens one of its own. Without it this one ends when the exec
 * is noticed. An older kernel refuses bits it does not know with EINVAL */
static int open_event(const struct perf_event_attr *attr, uint32_t tid)
{
	struct perf_event_attr a = *attr;
	struct timespec nap = {0, 5000000};
	int fd;

	a.remove_on_exec = 1;
	for (int ms = 0;; ms += 5) {
		fd = event(&a, tid);
		if (fd < 0 && errno == EINVAL && a.remove_on_exec) {
			a.remove_on_exec = 0;
			fd = event(&a, tid);
		}
		if (fd >= 0 || errno != EBUSY || ms >= BUSY_MS)
			return fd;
		nanosleep(&nap, NULL);
	}
}

static bool too_much(int err)
{
	return err == EPERM || err == ENOMEM || err == EAGAIN;
}

static int map_ring(struct pt_area *a, uint64_t size)
{
	for (;; size /= 2) {
		a->page = mmap(NULL, PAGE + size, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd, 0);
		if (a->page != MAP_FAILED)
			break;
		if (!too_much(errno) || size <= RING_MIN)
			return -1;
	}
	a->ring_size = size;
	return 0;
}

static int map_aux(struct pt_area *a, uint64_t size)
{
	for (;; size /= 2) {
		a->page->aux_offset = PAGE + a->ring_size;
		a->page->aux_size = size;
		a->aux = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, a->fd,
			      (off_t)(PAGE + a->ring_size));
		if (a->aux != MAP_FAILED)
			break;
		if (!too_much(errno) || size <= AUX_MIN)
			return -1;
	}
	a->aux_size = size;
	return 0;
}

int pt_area_open(struct pt_area *a, const struct perf_event_attr *attr, uint32_t tid, uint64_t ring,
		 uint64_t aux, struct pt_fail *f)
{
	memset(a, 0, sizeof(*a));
	f->memory = false;
	a->fd = open_event(attr, tid);
	if (a->fd < 0) {
		f->err = errno;
		return -1;
	}
	f->memory = true;
	if (map_ring(a, ring)) {
		f->err = errno;
		close(a->fd);
		return -1;
	}
	if (map_aux(a, aux)) {
		f->err = errno;
		munmap(a->page, PAGE + a->ring_size);
		close(a->fd);
		return -1;
	}
	return 0;
}

/* Pieces are of the watermark's size, before Linux 5.13 half of the area (max_order in rb_alloc_aux). Where the unit has one buffer
 * at a time it stops at its end, unless the interrupt is in time, and that counts as full (pt_handle_status in
 * arch/x86/events/intel/pt.c). */
void pt_area_pieces(struct pt_area *a, const struct perf_event_attr *attr, bool any)
{
	a->piece = any || attr->aux_watermark > a->aux_size / 4 ? a->aux_size : a->aux_size / 2;
}

int pt_area_enable(struct pt_area *a, bool on)
{
	return ioctl(a->fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) ? errno : 0;
}

void pt_area_close(struct pt_area *a)
{
	munmap(a->aux, a->aux_size);
	munmap(a->page, PAGE + a->ring_size);
	close(a->fd);
	a->fd = -1;
}
