/* SPDX-License-Identifier: MIT
 *
 * kern_calls.c - system calls about events of the fake PMU, and what makes an event go on and off
 *
 * A call that we answer is either made into another (perf_event_open into memfd_create, poll without our
 * descriptors) or into none (number -1), at its entry; at its exit the registers are what the caller gave, and rax is
 * our answer. Everything else, and perf_event_open of other types, is the kernel's business.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kern.h"

#define POLL_SLICE 3 /* ms: how often a waiting poll looks at our events */
#define MAX_FDS 4096

struct kern_options kern = {
	.cpu =
		{
			.long_tnt = true,
			.tsc_ratio_n = 168,
			.tsc_ratio_d = 2,
			.bus_ratio = 26,
			.tsc_bus_ratio = 20,
		},
};

struct kcall {
	bool answered; /* rax at the exit is result, and the registers are put back */
	long result;
	struct user_regs_struct asked;
	struct perf_event_attr attr; /* perf_event_open under way */
	struct task *target;
	struct event *mapping, *closing; /* mmap, close under way */
	struct pollfd *fds; /* poll under way: as the caller gave them */
	uint64_t nfds;
	bool waits; /* a poll that goes on; till */
	bool untraced; /* a clone with CLONE_UNTRACED */
	struct timespec till;
	bool forever;
};

static struct event *events;
static unsigned opened, refused;
static uint64_t total_bytes, total_cut, total_ovf, total_insns;

static struct event *event_of(struct task *t, uint64_t fd)
{
	for (struct event *e = events; e; e = e->next)
		if (e->owner == t->tgid && e->fd == (int)fd)
			return e;
	return NULL;
}

static void drop(struct event *e)
{
	struct event **p = &events;

	while (*p != e)
		p = &(*p)->next;
	*p = e->next;
	event_out(e);
	total_bytes += e->head;
	total_cut += e->cut;
	total_insns += e->insns;
	total_ovf += e->cpu.n.ovf;
	event_free(e);
}

/* Its descriptor is closed: a thread that it traced goes on untraced. */
static void let_go(struct event *e)
{
	struct task *target = e->t;

	if (target && !sim_stop(target))
		target = NULL;
	drop(e);
	if (target)
		sim_continue(target);
}

static void answer(struct task *t, long result)
{
	t->kcall->answered = true;
	t->kcall->result = result;
	t->regs.orig_rax = (unsigned long long)-1;
	t->dirty = true;
}

/* --- perf_event_open -------------------------------------------------------------------------------- */

static long check_attr(struct task *t, struct kcall *k)
{
	struct perf_event_attr *a = &k->attr;
	/* bits that the format directory names */
	uint64_t known =
		1 | 1 << 1 | 1 << 4 | 1 << 5 | 0xf << 9 | 1 << 13 | 0xf << 14 | 0xf << 19 | 0xf << 24;

	(void)t;
	if (++opened >= kern.open_from && kern.open_errno && opened < kern.open_from + kern.open_count)
		return -kern.open_errno;
	if (a->config & ~known || a->inherit || a->freq || a->sample_period)
		return -EINVAL;
	if (a->config & 1 << 12 && kern.no_ptwrite)
		return -EINVAL;
	if (!a->exclude_kernel) /* perf_event_paranoid 2, and nothing here would record it */
		return -EACCES;
	if ((int)k->asked.rdx != -1)
		return -EINVAL; /* of a processor: not modelled */
	k->target = (int)k->asked.rsi ? sim_task((pid_t)k->asked.rsi) : t;
	if (!k->target || !k->target->mm)
		return -ESRCH;
	if (k->target->event)
		return -EBUSY; /* the unit is one */
	return 0;
}

static void open_begins(struct task *t, struct kcall *k)
{
	uint32_t head[2];
	long r;

	if (!mem_read(t->pid, t->regs.rdi, head, sizeof(head)) || head[0] != KERN_PMU_TYPE)
		return;
	memset(&k->attr, 0, sizeof(k->attr));
	if (head[1] < PERF_ATTR_SIZE_VER5 || /* aux_watermark */
	    !mem_read(t->pid, t->regs.rdi, &k->attr, head[1] < sizeof(k->attr) ? head[1] : sizeof(k->attr))) {
		answer(t, -EINVAL);
		return;
	}
	r = check_attr(t, k);
	if (r) {
		k->target = NULL;
		refused++;
		answer(t, r);
		return;
	}
	t->regs.orig_rax = SYS_memfd_create;
	/* rdi: the attribute begins with the type, 8, 0, 0, 0: a string */
	t->regs.rsi = k->asked.r8 & PERF_FLAG_FD_CLOEXEC ? MFD_CLOEXEC : 0;
	t->dirty = true;
}

static void time_of(struct perf_event_mmap_page *p)
{
	/* ns = zero + (tsc * mult >> shift), linux/perf_event.h */
	uint64_t hz = 25000000ull * kern.cpu.tsc_ratio_n / kern.cpu.tsc_ratio_d;
	struct timespec now;

	p->time_shift = 31;
	p->time_mult = (uint32_t)((unsigned __int128)1000000000 * (1ull << 31) / hz);
	clock_gettime(CLOCK_MONOTONIC, &now);
	p->time_zero = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec -
		       (uint64_t)((unsigned __int128)kern_tsc() * p->time_mult >> 31);
	p->cap_user_time = 1;
	p->cap_user_time_zero = 1;
}

static int open_file(struct task *t, int fd)
{
	char path[64];
	int mine;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", t->pid, fd);
	mine = open(path, O_RDWR | O_CLOEXEC);
	if (mine < 0)
		fail("%s", path);
	return mine;
}

static void open_ends(struct task *t, struct kcall *k)
{
	long fd = (long)t->regs.rax;
	struct event *e;

	if (fd >= 0) {
		e = event_new(k->target, &k->attr);
		e->fd = (int)fd;
		e->owner = t->tgid;
		e->memfd = open_file(t, (int)fd);
		e->next = events;
		events = e;
	}
	k->target = NULL;
	k->answered = true;
	k->result = fd;
}

/* --- mmap -------------------------------------------------------------------------------------------- */

static bool power_of_2(uint64_t n)
{
	return n && !(n & (n - 1));
}

static uint64_t locked(void)
{
	uint64_t kb = 0;

	for (struct event *e = events; e; e = e->next)
		kb += e->locked_kb;
	return kb;
}

/* perf_mmap's checks */
static long check_map(struct event *e, const struct user_regs_struct *r)
{
	uint64_t len = r->rsi, off = r->r9;

	if (!(r->r10 & MAP_SHARED) || len % KERN_PAGE)
		return -EINVAL;
	if (off == 0) {
		if (len < KERN_PAGE || (len > KERN_PAGE && !power_of_2(len - KERN_PAGE)))
			return -EINVAL;
		if (e->page)
			return -EINVAL;
	} else {
		if (!e->page || e->aux)
			return -EINVAL;
		if (off != e->page->aux_offset || len != e->page->aux_size || !power_of_2(len) ||
		    off < KERN_PAGE + e->ring_size)
			return -EINVAL;
		if (!(r->rdx & PROT_WRITE))
			return -EINVAL; /* overwrite mode: not modelled */
	}
	if (kern.mlock_kb && locked() + len / 1024 > kern.mlock_kb)
		return -EPERM;
	return 0;
}

static void map_begins(struct task *t, struct kcall *k)
{
	struct event *e = event_of(t, t->regs.r8);
	uint64_t need = t->regs.r9 + t->regs.rsi;
	long r;

	if (!e || (t->regs.r10 & MAP_ANONYMOUS))
		return;
	r = check_map(e, &t->regs);
	if (r) {
		answer(t, r);
		return;
	}
	if (need > e->size && ftruncate(e->memfd, (off_t)need) < 0)
		fail("cannot make room for a ring");
	if (need > e->size)
		e->size = need;
	k->mapping = e;
}

static void *map_file(struct event *e, uint64_t len, uint64_t off)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, e->memfd, (off_t)off);

	if (p == MAP_FAILED)
		fail("cannot map a ring");
	return p;
}

static void map_ends(struct task *t, struct kcall *k)
{
	struct event *e = k->mapping;
	uint64_t len = k->asked.rsi, off = k->asked.r9;

	k->mapping = NULL;
	if ((long)t->regs.rax < 0 && (long)t->regs.rax > -4096)
		return;
	e->locked_kb += len / 1024;
	if (off) {
		e->aux = map_file(e, len, off);
		e->aux_size = len;
		if (!e->watermark)
			e->watermark = len / 2;
		return;
	}
	e->page = map_file(e, len, 0);
	e->ring_size = len - KERN_PAGE;
	e->ring = e->ring_size ? (uint8_t *)e->page + KERN_PAGE : NULL;
	e->page->size = offsetof(struct perf_event_mmap_page, __reserved);
	e->page->data_offset = KERN_PAGE;
	e->page->data_size = e->ring_size;
	time_of(e->page);
}

/* --- ioctl, read, close, poll -------------------------------------------------------------------------- */

static void on_off(struct event *e, bool on)
{
	struct task *t = e->t;

	if (!t || e->enabled == on) {
		e->enabled = on;
		return;
	}
	if (!sim_stop(t))
		return; /* it has ended over it, and the event knows */
	e->enabled = on;
	if (!on)
		event_out(e);
	sim_continue(t); /* on: goes in when it is in user mode next */
}

static void ioctl_begins(struct task *t)
{
	struct event *e = event_of(t, t->regs.rdi);

	if (!e)
		return;
	switch ((uint32_t)t->regs.rsi) {
	case PERF_EVENT_IOC_ENABLE:
		on_off(e, true);
		answer(t, 0);
		break;
	case PERF_EVENT_IOC_DISABLE:
		on_off(e, false);
		answer(t, 0);
		break;
	case PERF_EVENT_IOC_RESET:
		answer(t, 0);
		break;
	case PERF_EVENT_IOC_ID:
		answer(t, mem_write(t->pid, t->regs.rdx, &e->id, 8) ? 0 : -EFAULT);
		break;
	case PERF_EVENT_IOC_SET_FILTER:
		answer(t, -EOPNOTSUPP); /* not modelled */
		break;
	default:
		answer(t, -ENOTTY);
	}
}

/* The count of an event that counts nothing. */
static void read_begins(struct task *t)
{
	static const uint64_t zero;

	if (!event_of(t, t->regs.rdi))
		return;
	if (t->regs.rdx < 8)
		answer(t, -ENOSPC);
	else
		answer(t, mem_write(t->pid, t->regs.rsi, &zero, 8) ? 8 : -EFAULT);
}

static short revents(struct event *e, short asked)
{
	short r = 0;

	if (e->ready)
		r |= POLLIN;
	if (!e->t)
		r |= POLLHUP;
	return r & (asked | POLLHUP);
}

static long ms_left(struct kcall *k)
{
	struct timespec now;
	long ms;

	if (k->forever)
		return POLL_SLICE;
	clock_gettime(CLOCK_MONOTONIC, &now);
	ms = (k->till.tv_sec - now.tv_sec) * 1000 + (k->till.tv_nsec - now.tv_nsec) / 1000000;
	return ms < 0 ? 0 : ms;
}

static void poll_begins(struct task *t, struct kcall *k)
{
	uint64_t n = t->regs.rsi, addr = t->regs.rdi;
	struct pollfd *native;
	long timeout = (int)t->regs.rdx, ours = 0, ready = 0;

	if (!n || n > MAX_FDS || !events)
		return;
	k->fds = xcalloc(n, sizeof(*k->fds));
	k->nfds = n;
	if (!mem_read(t->pid, addr, k->fds, n * sizeof(*k->fds)))
		n = 0;
	for (uint64_t i = 0; i < n; i++) {
		struct event *e = event_of(t, (uint64_t)k->fds[i].fd);

		ours += e != NULL;
		ready += e && revents(e, k->fds[i].events);
	}
	if (!ours) {
		free(k->fds);
		k->fds = NULL;
		return;
	}
	native = xcalloc(n, sizeof(*native));
	memcpy(native, k->fds, n * sizeof(*native));
	for (uint64_t i = 0; i < n; i++)
		if (event_of(t, (uint64_t)native[i].fd))
			native[i].fd = -1;
	if (!mem_write(t->pid, addr, native, n * sizeof(*native)))
		fail("cannot write a poll's descriptors");
	free(native);
	if (!k->waits) {
		clock_gettime(CLOCK_MONOTONIC, &k->till);
		k->forever = timeout < 0;
		k->till.tv_sec += timeout > 0 ? timeout / 1000 : 0;
		k->till.tv_nsec += timeout > 0 ? timeout % 1000 * 1000000 : 0;
		if (k->till.tv_nsec >= 1000000000) {
			k->till.tv_nsec -= 1000000000;
			k->till.tv_sec++;
		}
	}
	timeout = ms_left(k);
	t->regs.rdx = (unsigned long long)(ready ? 0 : timeout < POLL_SLICE ? timeout : POLL_SLICE);
	t->dirty = true;
}

/* Nothing ready and time left: the call is made once more. */
static void poll_ends(struct task *t, struct kcall *k)
{
	struct user_regs_struct *r = &t->regs;
	long ready = (long)r->rax;
	struct pollfd *now = xcalloc(k->nfds, sizeof(*now));

	if (!mem_read(t->pid, k->asked.rdi, now, k->nfds * sizeof(*now)))
		fail("cannot read a poll's descriptors");
	for (uint64_t i = 0; i < k->nfds; i++) {
		struct event *e = event_of(t, (uint64_t)k->fds[i].fd);

		now[i].fd = k->fds[i].fd;
		if (!e)
			continue;
		now[i].revents = ready < 0 ? 0 : revents(e, now[i].events);
		if (now[i].revents) {
			ready++;
			if (now[i].revents & POLLIN)
				e->ready = false;
		}
	}
	if (!mem_write(t->pid, k->asked.rdi, now, k->nfds * sizeof(*now)))
		fail("cannot write a poll's descriptors");
	free(now);
	free(k->fds);
	k->fds = NULL;
	k->answered = true;
	k->result = ready;
	k->waits = !ready && ms_left(k) > 0;
}

/* --- the loop's hooks -------------------------------------------------------------------------------- */

/* Calls in which a thread most likely sleeps: it leaves the processor, and so does its event. */
static bool sleeps(uint64_t nr)
{
	switch (nr) {
	case SYS_futex:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_poll:
	case SYS_ppoll:
	case SYS_select:
	case SYS_pselect6:
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_pause:
	case SYS_rt_sigsuspend:
	case SYS_rt_sigtimedwait:
	case SYS_sched_yield:
	case SYS_accept4:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_vfork:
	case SYS_exit:
	case SYS_exit_group:
		return true;
	default:
		return false;
	}
}

static void call_begins(struct task *t)
{
	struct kcall *k = t->kcall;

	if (t->event && t->event->active && (sleeps(t->regs.orig_rax) || rnd(&sim_seed) % 8 == 0))
		event_out(t->event);
	if (!k)
		k = t->kcall = xcalloc(1, sizeof(*k));
	k->answered = false;
	k->asked = t->regs;
	switch (t->regs.orig_rax) {
	case SYS_perf_event_open:
		open_begins(t, k);
		break;
	case SYS_mmap:
		map_begins(t, k);
		break;
	case SYS_ioctl:
		ioctl_begins(t);
		break;
	case SYS_read:
		read_begins(t);
		break;
	case SYS_clone: /* who is not shown to a debugger is here all the same: the tracer's collector opens events */
		k->untraced = t->regs.rdi & CLONE_UNTRACED;
		t->regs.rdi &= ~(unsigned long long)CLONE_UNTRACED;
		t->dirty |= k->untraced;
		break;
	case SYS_close:
		k->closing = event_of(t, t->regs.rdi);
		break;
	case SYS_poll:
		poll_begins(t, k);
		break;
	}
}

static void call_ends(struct task *t)
{
	struct kcall *k = t->kcall;

	if (!k)
		return;
	if (k->target)
		open_ends(t, k);
	if (k->mapping)
		map_ends(t, k);
	if (k->fds)
		poll_ends(t, k);
	if (k->closing && !(long)t->regs.rax) {
		let_go(k->closing);
	}
	k->closing = NULL;
	if (k->untraced) {
		k->untraced = false;
		t->regs.rdi |= CLONE_UNTRACED;
		t->dirty = true;
	}
	if (!k->answered)
		return;
	k->answered = false;
	k->asked.rcx = t->regs.rcx;
	k->asked.r11 = t->regs.r11;
	k->asked.rip = t->regs.rip;
	k->asked.eflags = t->regs.eflags;
	if (k->waits) { /* once more */
		k->asked.rip -= 2;
		k->asked.rax = k->asked.orig_rax;
	} else {
		k->asked.rax = (unsigned long long)k->result;
	}
	k->asked.orig_rax = t->regs.orig_rax;
	t->regs = k->asked;
	t->restarts = false;
	t->dirty = true;
}

void kern_retired(struct task *t, uint64_t ip)
{
	if (t->event)
		t->event->insns++;
	event_retired(t, ip);
	truth_retired(t, ip);
}

static void task_call(struct task *t, bool begins)
{
	if (begins)
		call_begins(t);
	else
		call_ends(t);
}

static void task_user(struct task *t)
{
	if (t->event)
		event_in(t->event);
}

/* The thread's end, and its event's (perf_event_exit_task). */
static void task_exit(struct task *t)
{
	struct event *e = t->event;

	if (!e)
		return;
	event_out(e);
	e->t = NULL;
	t->event = NULL;
}

static void forget(struct kcall *k)
{
	if (k)
		free(k->fds);
	free(k);
}

static void task_exec(struct task *t, struct task *by)
{
	if (by) {
		task_exit(t);
		forget(t->kcall); /* the one that the leader was in */
		t->kcall = NULL;
		t->event = by->event;
		t->cpu = by->cpu;
		by->event = NULL;
		by->cpu = NULL;
		if (t->event)
			t->event->t = t;
	}
	if (t->event && t->event->remove_on_exec)
		task_exit(t);
}

static void task_gone(struct task *t)
{
	task_exit(t);
	for (struct event *e = events, *next; e; e = next) {
		next = e->next;
		if (t->pid == t->tgid && e->owner == t->tgid) /* its descriptors are closed */
			let_go(e);
	}
	forget(t->kcall);
}

const struct sim_hooks kern_hooks = {task_call, task_user, task_exec, task_exit, task_gone, event_pmi};

void kern_figures(void)
{
	fprintf(stderr, "ptsim: events=%u refused=%u instructions=%lu bytes=%lu cut=%lu ovf=%lu\n",
		opened - refused, refused, total_insns, total_bytes, total_cut, total_ovf);
}
