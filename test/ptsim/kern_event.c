/* SPDX-License-Identifier: MIT
 *
 * kern_event.c - a PT event as the kernel runs it
 *
 * The AUX area is written by the unit; its head is told only when the kernel looks: when the event goes off the processor
 * (scheduled out, disabled, its thread ends) and at the unit's interrupts, one a watermark. When the area is full,
 * less what does not make a page, the unit stops, what follows is lost, the record says TRUNCATED and the event is disabled:
 * who drains it enables it again. (perf_aux_output_begin, perf_aux_output_end in kernel/events/ring_buffer.c;
 * pt_buffer_reset_markers, intel_pt_interrupt, pt_event_start, pt_event_stop in arch/x86/events/intel/pt.c)
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <x86intrin.h>

#include "kern.h"

static uint64_t ids = 1000;

uint64_t kern_tsc(void)
{
	return __rdtsc();
}

/* --- the ring ------------------------------------------------------------------------------------ */

static void ring_bytes(struct event *e, uint64_t at, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		e->ring[(at + i) & (e->ring_size - 1)] = ((const uint8_t *)bytes)[i];
}

static bool ring_put(struct event *e, uint32_t type, const uint64_t *payload, unsigned words)
{
	struct perf_event_header h = {type, 0, (uint16_t)(sizeof(h) + words * 8)};
	uint64_t tail = __atomic_load_n(&e->page->data_tail, __ATOMIC_ACQUIRE);

	/* perf_output_begin keeps a byte free (CIRC_SPACE) */
	if (e->ring_head + h.size - tail >= e->ring_size)
		return false;
	ring_bytes(e, e->ring_head, &h, sizeof(h));
	ring_bytes(e, e->ring_head + sizeof(h), payload, words * 8);
	e->ring_head += h.size;
	__atomic_store_n(&e->page->data_head, e->ring_head, __ATOMIC_RELEASE);
	return true;
}

/* A record that finds no room is counted; the next that does is preceded by a PERF_RECORD_LOST. */
static void record(struct event *e, uint32_t type, const uint64_t *payload, unsigned words)
{
	if (!e->ring)
		return;
	e->records++;
	if (kern.ring_lost && e->records % kern.ring_lost == 0) {
		e->ring_lost++;
		return;
	}
	if (e->ring_lost) {
		uint64_t lost[2] = {e->id, e->ring_lost};

		if (!ring_put(e, PERF_RECORD_LOST, lost, 2)) {
			e->ring_lost++;
			return;
		}
		e->ring_lost = 0;
	}
	if (!ring_put(e, type, payload, words))
		e->ring_lost++;
	/* half full: ring_buffer_init's default watermark */
	if (e->ring_head - __atomic_load_n(&e->page->data_tail, __ATOMIC_RELAXED) >= e->ring_size / 2)
		e->ready = true;
}

/* --- the AUX area --------------------------------------------------------------------------------- */

static void aux_put(void *arg, const uint8_t *bytes, size_t n)
{
	struct event *e = arg;

	for (size_t i = 0; i < n; i++) {
		if (e->full || e->head >= e->limit) {
			e->full = true;
			e->cut++;
			continue;
		}
		e->aux[e->head++ & (e->aux_size - 1)] = bytes[i];
	}
	if (e->t && (e->full || e->head >= e->wakeup_at))
		e->t->pmi = true;
}

static void aux_record(struct event *e, uint64_t flags)
{
	uint64_t r[3] = {e->begin, e->head - e->begin, flags};
	bool wakeup = flags & PERF_AUX_FLAG_TRUNCATED;

	if (r[1] || flags)
		record(e, PERF_RECORD_AUX, r, 3);
	__atomic_store_n(&e->page->aux_head, e->head, __ATOMIC_RELEASE);
	if (e->head - e->aux_wakeup >= e->watermark) {
		e->aux_wakeup = e->head - e->head % e->watermark;
		wakeup = true;
	}
	e->begin = e->head;
	if (wakeup) {
		e->ready = true;
		if (flags & PERF_AUX_FLAG_TRUNCATED)
			e->enabled = false;
	}
}

/* Room for the unit. False: none, and the event is disabled. */
static bool aux_begin(struct event *e)
{
	uint64_t tail = __atomic_load_n(&e->page->aux_tail, __ATOMIC_ACQUIRE), used = e->head - tail, size,
		 pages, mark;

	e->begin = e->head;
	e->full = false;
	size = used < e->aux_size ? e->aux_size - 1 - used : 0;
	if (kern.truncate && ++e->sessions % kern.truncate == 0 && size > 2 * KERN_PAGE)
		size = 2 * KERN_PAGE;
	if (!size) {
		e->ready = true;
		e->enabled = false;
		return false;
	}
	if (e->head % KERN_PAGE + size + 1 < KERN_PAGE) {
		aux_record(e, PERF_AUX_FLAG_TRUNCATED);
		return false;
	}
	pages = (size + 1) / KERN_PAGE;
	e->limit = e->head / KERN_PAGE * KERN_PAGE + pages * KERN_PAGE;
	mark = (e->aux_wakeup + e->watermark) / KERN_PAGE;
	if (mark > e->head / KERN_PAGE + pages - 1)
		mark = e->head / KERN_PAGE + pages - 1;
	e->wakeup_at = (mark + 1) * KERN_PAGE;
	if (e->wakeup_at <= e->head)
		e->wakeup_at = e->head + KERN_PAGE;
	return true;
}

/* --- on and off the processor ----------------------------------------------------------------------- */

void event_in(struct event *e)
{
	uint64_t now = kern_tsc();

	if (!e->t || !e->enabled || e->active || !e->ring)
		return;
	if (!e->started) {
		uint64_t who = (uint32_t)e->t->tgid | (uint64_t)e->t->pid << 32;

		record(e, PERF_RECORD_ITRACE_START, &who, 1);
		e->started = true;
	}
	if (!e->aux || !aux_begin(e))
		return;
	e->active = true;
	e->t->pmi = false;
	e->t->cpu = &e->cpu;
	if (now > pt_cpu_tsc(&e->cpu)) /* the unit's clock stood still meanwhile */
		e->cpu.tsc_base += now - pt_cpu_tsc(&e->cpu);
	pt_cpu_on(&e->cpu);
}

void event_out(struct event *e)
{
	if (!e->active)
		return;
	pt_cpu_off(&e->cpu, e->t->regs.rip);
	e->t->cpu = NULL;
	e->t->pmi = false;
	e->active = false;
	aux_record(e, e->full ? PERF_AUX_FLAG_TRUNCATED : 0);
}

/* The unit's interrupt, taken before the instruction at ip: as out and in again, but the time goes on. */
void event_pmi(struct task *t, uint64_t ip)
{
	struct event *e = t->event;

	t->pmi = false;
	if (!e || !e->active)
		return;
	if (e->cpu.in_user)
		pt_cpu_async_exit(&e->cpu, ip);
	event_out(e);
	event_in(e);
}

static uint64_t nonzero(uint64_t mean)
{
	return 1 + rnd(&sim_seed) % (2 * mean);
}

/* Each instruction of the thread: overflows on request. */
void event_retired(struct task *t, uint64_t ip)
{
	struct event *e = t->event;

	if (!e || !kern.ovf)
		return;
	if (e->ovf_left) {
		if (!--e->ovf_left)
			pt_cpu_resolve(&e->cpu, ip);
		return;
	}
	if (!e->until_ovf)
		e->until_ovf = nonzero(kern.ovf);
	if (!--e->until_ovf) {
		pt_cpu_overflow(&e->cpu);
		e->ovf_left = nonzero(200);
	}
}

/* --- made and gone ------------------------------------------------------------------------------------ */

static unsigned bits(uint64_t config, unsigned lo, unsigned n)
{
	return (unsigned)(config >> lo & ((1u << n) - 1));
}

struct event *event_new(struct task *t, const struct perf_event_attr *attr)
{
	struct event *e = xcalloc(1, sizeof(*e));
	struct pt_cpu_config c = kern.cpu;
	uint64_t cfg = attr->config;

	c.tsc = bits(cfg, 10, 1);
	c.mtc = bits(cfg, 9, 1);
	c.cyc = bits(cfg, 1, 1);
	c.no_retc = bits(cfg, 11, 1);
	c.ptw = bits(cfg, 12, 1);
	c.fup_on_ptw = bits(cfg, 5, 1);
	c.mtc_period = bits(cfg, 14, 4);
	c.cyc_thresh = bits(cfg, 19, 4) ? 1u << (bits(cfg, 19, 4) - 1) : 0;
	c.psb_period = 2048u << bits(cfg, 24, 4);
	e->t = t;
	e->enabled = !attr->disabled;
	e->remove_on_exec = attr->remove_on_exec;
	e->watermark = attr->aux_watermark;
	e->memfd = -1;
	e->id = ids++;
	pt_cpu_init(&e->cpu, &c, aux_put, e, kern_tsc());
	t->event = e;
	return e;
}

void event_free(struct event *e)
{
	event_out(e);
	truth_ends(e);
	if (e->t)
		e->t->event = NULL;
	if (e->page)
		munmap(e->page, KERN_PAGE + e->ring_size);
	if (e->aux)
		munmap(e->aux, e->aux_size);
	if (e->memfd >= 0)
		close(e->memfd);
	free(e);
}
