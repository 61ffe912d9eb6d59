/* SPDX-License-Identifier: MIT
 *
 * kern_pmu.c - what /sys/bus/event_source/devices/intel_pt has on a machine with Intel PT
 *
 * Names and formats: arch/x86/events/intel/pt.c (PMU_FORMAT_ATTR, pt_caps, pt_timing_attr_group). The capabilities are
 * those of a processor with cycle-accurate mode, MTC and PTWRITE.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "kern.h"

static void file(const char *dir, const char *name, const char *text)
{
	char path[4300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	if (!f || fprintf(f, "%s\n", text) < 0 || fclose(f))
		fail("%s", path);
}

static void folder(const char *dir, const char *name)
{
	char path[4300];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		fail("%s", path);
}

void kern_pmu_make(const char *dir)
{
	static const char *const files[][2] = {
		{"format/pt", "config:0"},
		{"format/cyc", "config:1"},
		{"format/pwr_evt", "config:4"},
		{"format/fup_on_ptw", "config:5"},
		{"format/mtc", "config:9"},
		{"format/tsc", "config:10"},
		{"format/noretcomp", "config:11"},
		{"format/ptw", "config:12"},
		{"format/branch", "config:13"},
		{"format/mtc_period", "config:14-17"},
		{"format/cyc_thresh", "config:19-22"},
		{"format/psb_period", "config:24-27"},
		{"caps/max_subleaf", "1"},
		{"caps/cr3_filtering", "1"},
		{"caps/psb_cyc", "1"},
		{"caps/ip_filtering", "1"},
		{"caps/mtc", "1"},
		{"caps/power_event_trace", "0"},
		{"caps/topa_output", "1"},
		{"caps/single_range_output", "1"},
		{"caps/payloads_lip", "0"},
		{"caps/num_address_ranges", "2"},
		{"caps/mtc_periods", "249"},
		{"caps/cycle_thresholds", "3f"},
		{"caps/psb_periods", "3f"},
		{"nr_addr_filters", "2"},
	};
	char text[64];

	folder(dir, "");
	folder(dir, "format");
	folder(dir, "caps");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		file(dir, files[i][0], files[i][1]);
	file(dir, "caps/ptwrite", kern.no_ptwrite ? "0" : "1");
	/* else it is never full before it is */
	file(dir, "caps/topa_multiple_entries", kern.truncate ? "0" : "1");
	snprintf(text, sizeof(text), "%d", KERN_PMU_TYPE);
	file(dir, "type", text);
	snprintf(text, sizeof(text), "%u", kern.cpu.tsc_bus_ratio);
	file(dir, "max_nonturbo_ratio", text);
	/* CPUID.15H:EBX:EAX */
	snprintf(text, sizeof(text), "%u:%u", kern.cpu.tsc_ratio_n, kern.cpu.tsc_ratio_d);
	file(dir, "tsc_art_ratio", text);
}
