/* SPDX-License-Identifier: MIT
 *
 * collect_pt_pmu.c - what the kernel says of the intel_pt PMU, made into an event's configuration
 *
 * /sys/bus/event_source/devices/intel_pt: `type`; `format/NAME`, which bits of perf_event_attr.config a setting has;
 * `caps/NAME`, what the processor can do (arch/x86/events/intel/pt.c, Documentation/ABI/testing/
 * sysfs-bus-event_source-devices-format). Masks of periods have bit n set where the exponent n is allowed (SDM
 * Vol. 3, "Intel Processor Trace", CPUID leaf 14H sub-leaf 1); caps are hexadecimal without 0x (pt_cap_show), the
 * ratios decimal (pt_timing_attr_show). There is one intel_pt for all processors, whatever the kinds of their cores: perf's
 * cpu_core and cpu_atom are of counters. Its capabilities are those of the one that initialized it (pt_pmu_hw_init).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "collect_pt.h"

#define PMU_DIR "/sys/bus/event_source/devices/intel_pt"

const char *pt_pmu_dir(void)
{
	const char *d = getenv("PTRACE_PMU_DIR");

	return d && *d ? d : PMU_DIR;
}

/* the first line of a file; 0 or errno */
static int line_of(const char *dir, const char *file, char *buf, size_t size)
{
	char path[4200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	f = fopen(path, "re");
	if (!f)
		return errno;
	errno = 0;
	if (!fgets(buf, (int)size, f))
		buf[0] = 0;
	fclose(f);
	buf[strcspn(buf, "\n")] = 0;
	return 0;
}

/* "config:14-17" or "config:10"; anything else is a field that there is not */
static struct pt_field field_of(const char *dir, const char *name)
{
	struct pt_field f = {0, -1};
	char file[64], text[128], end;
	int lo, hi, n;

	snprintf(file, sizeof(file), "format/%s", name);
	if (line_of(dir, file, text, sizeof(text)))
		return f;
	n = sscanf(text, "config:%d-%d%c", &lo, &hi, &end);
	if (n == 1)
		hi = lo;
	if ((n != 1 && n != 2) || lo < 0 || hi < lo || hi > 63)
		return f;
	return (struct pt_field){lo, hi};
}

static uint64_t cap_of(const char *dir, const char *name) /* in hexadecimal, 0 if there is none */
{
	char file[64], text[128];

	snprintf(file, sizeof(file), "caps/%s", name);
	return line_of(dir, file, text, sizeof(text)) ? 0 : strtoull(text, NULL, 16);
}

int pt_pmu_read(const char *dir, struct pt_pmu *p, char *what, size_t size)
{
	char text[128], *end;
	int err;

	memset(p, 0, sizeof(*p));
	snprintf(what, size, "%s/type", dir);
	err = line_of(dir, "type", text, sizeof(text));
	if (err)
		return err;
	p->type = (uint32_t)strtoul(text, &end, 10);
	if (end == text || *end)
		return EPROTO;
	p->tsc = field_of(dir, "tsc");
	p->mtc = field_of(dir, "mtc");
	p->mtc_period = field_of(dir, "mtc_period");
	p->noretcomp = field_of(dir, "noretcomp");
	p->cyc = field_of(dir, "cyc");
	p->cyc_thresh = field_of(dir, "cyc_thresh");
	p->psb_period = field_of(dir, "psb_period");
	p->ptw = field_of(dir, "ptw");
	p->fup_on_ptw = field_of(dir, "fup_on_ptw");
	p->psb_cyc = cap_of(dir, "psb_cyc");
	p->psb_periods = cap_of(dir, "psb_periods");
	p->mtc_cap = cap_of(dir, "mtc");
	p->mtc_periods = cap_of(dir, "mtc_periods");
	p->cyc_thresholds = cap_of(dir, "cycle_thresholds");
	p->ptwrite = cap_of(dir, "ptwrite");
	p->topa_multiple = cap_of(dir, "topa_multiple_entries");
	/* TSC to crystal clock as CPUID.15H has it, EBX:EAX (pt_timing_attr_show) */
	if (line_of(dir, "tsc_art_ratio", text, sizeof(text)) ||
	    sscanf(text, "%u:%u", &p->tsc_ratio_ebx, &p->tsc_ratio_eax) != 2)
		p->tsc_ratio_ebx = p->tsc_ratio_eax = 0;
	if (!line_of(dir, "max_nonturbo_ratio", text, sizeof(text)))
		p->nom_freq = (uint32_t)strtoul(text, NULL, 10);
	return 0;
}

int pt_nearest(uint64_t mask, int want)
{
	int best = -1;

	for (int i = 0; i < 16; i++)
		if ((mask >> i & 1) && (best < 0 || abs(i - want) < abs(best - want)))
			best = i;
	return best;
}

uint64_t pt_put(struct pt_field f, uint64_t value)
{
	int bits = f.hi - f.lo + 1;

	if (bits <= 0)
		return 0;
	return (bits < 64 ? value & ((1ull << bits) - 1) : value) << f.lo;
}

static bool has(struct pt_field f)
{
	return f.hi >= f.lo;
}

uint64_t pt_config(const struct pt_pmu *p, const struct pt_want *w, struct run_pt_info *info)
{
	uint64_t config = 0;
	int psb = pt_nearest(p->psb_periods, w->psb),
	    mtc = w->mtc < 0 ? -1 : pt_nearest(p->mtc_periods, w->mtc);

	info->flags = 0;
	if (w->noretc && has(p->noretcomp))
		config |= pt_put(p->noretcomp, 1);
	else
		info->flags |= RUN_PT_RETC;
	info->counter = RUN_PT_BRANCHES;
	if (has(p->tsc)) {
		config |= pt_put(p->tsc, 1);
		info->flags |= RUN_PT_TSC;
	}
	if (p->mtc_cap && has(p->mtc) && has(p->mtc_period) && mtc >= 0) {
		config |= pt_put(p->mtc, 1) | pt_put(p->mtc_period, (uint64_t)mtc);
		info->flags |= RUN_PT_MTC;
		info->mtc_freq = (uint8_t)mtc;
	}
	/* both are there or none: caps/psb_cyc is CPUID.14H:EBX[1], "Configurable PSB and Cycle-Accurate Mode" */
	if (p->psb_cyc && has(p->psb_period) && psb >= 0) {
		config |= pt_put(p->psb_period, (uint64_t)psb);
		info->psb_freq = (uint8_t)psb;
	}
	if (w->cyc && p->psb_cyc && has(p->cyc)) {
		config |= pt_put(p->cyc, 1);
		info->flags |= RUN_PT_CYC;
	}
	if (p->ptwrite && has(p->ptw) && has(p->fup_on_ptw)) {
		config |= pt_put(p->ptw, 1) | pt_put(p->fup_on_ptw, 1);
		info->flags |= RUN_PT_PTW;
		info->counter = RUN_PT_PTWRITE;
	}
	return config;
}
