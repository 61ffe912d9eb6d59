/* SPDX-License-Identifier: MIT
 *
 * kern.h - the kernel's side of Intel PT: a fake PMU and its events
 *
 *	kern_pmu.c	the event source directory (/sys/bus/event_source/devices/intel_pt of such a machine)
 *	kern_event.c	an event: ring, AUX area, when which record is written (kernel/events/ring_buffer.c,
 *			arch/x86/events/intel/pt.c)
 *	truth.c		what was really executed, in files
 *	kern_calls.c	perf_event_open, mmap, ioctl, poll, read, close of who opens such events
 *
 * The descriptor that the opener has is a memory file, which the simulator maps, too: what it writes there is
 * what the kernel would write. An event belongs to a thread and follows no child (inherit is refused).
 */
#ifndef KERN_H
#define KERN_H

#include <linux/perf_event.h>

#include "sim.h"
#include "sim_tasks.h"

#define KERN_PMU_TYPE 8
#define KERN_PAGE 4096ull

struct kern_options {
	struct pt_cpu_config cpu; /* the ratios; the rest is the event's */
	bool no_ptwrite; /* a processor without it */
	uint64_t mlock_kb; /* what may be mapped, of all events together, 0: no limit */
	int open_errno; /* perf_event_open fails so, from the open_from-th on, open_count times */
	unsigned open_from, open_count;
	uint64_t ovf; /* an internal buffer overflow every so many instructions, 0: none */
	unsigned ring_lost; /* every n-th record finds the ring full */
	unsigned truncate; /* every n-th time the AUX area is full after a page */
	bool verbose;
};
extern struct kern_options kern;

struct event {
	int fd;
	pid_t owner; /* thread group whose descriptor it is */
	struct task *t; /* NULL: it has ended */
	bool enabled, active; /* active: the unit is on, or would be if there were room */
	bool started; /* PERF_RECORD_ITRACE_START is written */
	bool remove_on_exec;
	int memfd;
	uint64_t size; /* of the file */
	struct perf_event_mmap_page *page;
	uint8_t *ring, *aux;
	uint64_t ring_size, aux_size, watermark, locked_kb;
	uint64_t ring_head, ring_lost;
	uint64_t head, begin, limit, wakeup_at; /* bytes ever written to the AUX area; of this session */
	uint64_t aux_wakeup;
	uint64_t cut; /* bytes that found no room */
	bool full; /* the unit has stopped: RTIT_STATUS.Stopped */
	bool ready; /* poll says POLLIN, once */
	uint64_t id, insns;
	struct pt_cpu cpu;
	uint64_t until_ovf, ovf_left; /* instructions */
	unsigned records, sessions;
	uint64_t seen_psb, seen_ovf; /* by truth.c */
	void *truth;
	struct event *next;
};

/* kern_pmu.c */
void kern_pmu_make(const char *dir);

/* kern_event.c */
struct event *event_new(struct task *t, const struct perf_event_attr *attr);
void event_free(struct event *e);
void event_in(struct event *e); /* the thread is scheduled in, or the event enabled */
void event_out(struct event *e); /* out, or disabled */
void event_pmi(struct task *t, uint64_t ip);
void event_retired(struct task *t, uint64_t ip); /* faults on request */
uint64_t kern_tsc(void);

/* truth.c: what was really executed, for tests */
void truth_open(const char *dir);
void truth_close(void);
void truth_retired(struct task *t, uint64_t ip);
void truth_ends(struct event *e);

/* kern_calls.c */
void kern_retired(struct task *t, uint64_t ip);
extern const struct sim_hooks kern_hooks;
void kern_figures(void);

#endif
