/* SPDX-License-Identifier: MIT
 *
 * report_plan.c - what the copy would log: sites by kind, and their bytes weighted by loop depth
 *
 * Runs the planning half of the pipeline without emitting anything. The weight of a site is ten for
 * each loop around it: a guess at how often it runs, good for comparing two analyses, not a forecast.
 */
#include "emit.h"
#include "report.h"

/* all that planning a group rests on; 0 or -1 */
static int prepare(struct module *m, uint32_t flags, int jobs)
{
	struct patches ps = {0};
	int r = patch_plan(m, &ps, jobs) || live_module(m, jobs) || plan_summaries(m, flags, jobs) ? -1 : 0;

	patch_free(&ps);
	return r;
}

int report_plan(struct module *m, uint32_t flags, int jobs, FILE *f)
{
	static const char *const what[PLAN_NWHAT] = {
		[LOG_REG] = "register",
		[LOG_SETCC] = "branch outcome",
		[LOG_EA] = "address",
		[LOG_KMASK] = "mask register",
		[LOG_VEC] = "vector register",
		[LOG_HOP] = "counter test",
		[LOG_TARGET] = "jump target",
		[LOG_POPF] = "flags",
		[LOG_TSC] = "time",
		[LOG_PTW] = "register, by ptwrite",
	};
	struct plan_stats s = {0};
	uint32_t demoted[MAP_R_NREASONS] = {0}, strays = 0;

	if (prepare(m, flags, jobs))
		return -1;
	for (uint32_t i = 0; i < m->ngroup; i++) {
		struct plan *p = m->group[i].reason == MAP_OK ? plan_group(m, &m->group[i], flags) : NULL;

		if (!p) {
			demoted[m->group[i].reason]++;
			continue;
		}
		plan_count(p, &m->group[i], &s);
		strays += m->group[i].sum->strays;
		plan_free(p);
	}
	for (int r = 0; r < MAP_R_NREASONS; r++)
		if (demoted[r])
			fprintf(f, "made opaque later %u groups: %s\n", demoted[r],
				r == MAP_OK ? "not plannable" : report_reason(r));
	if (strays)
		fprintf(f, "calls             that may come back with any rsp: of %u groups\n", strays);
	if (flags & MAP_F_PT) {
		fprintf(f, "from Intel PT     branches %llu, targets %llu\n", (unsigned long long)s.jcc_flow,
			(unsigned long long)s.targets_flow);
	} else {
		fprintf(f, "branches          computed %llu, logged %llu\n",
			(unsigned long long)s.jcc_computed, (unsigned long long)s.jcc_logged);
		fprintf(f, "jumps in tables   computed %llu, logged %llu\n",
			(unsigned long long)s.ijmp_computed, (unsigned long long)s.ijmp_logged);
	}
	for (int k = 0; k < PLAN_NWHAT; k++)
		if (s.sites[k])
			fprintf(f, "logged            %llu sites, weight %.4g bytes: %s\n",
				(unsigned long long)s.sites[k], s.bytes[k], what[k]);
	return 0;
}

int report_plan_explain(struct module *m, const char *where, uint32_t flags, int jobs, FILE *f)
{
	uint32_t v = report_where(m, where);
	int r = prepare(m, flags, jobs);

	for (uint32_t i = 0; r == 0 && i < m->ngroup; i++) {
		const struct an_group *g = &m->group[i];
		bool in = false;

		for (uint32_t k = 0; k < g->nrange; k++)
			in |= v >= g->range[k].start && v < g->range[k].end;
		if (in && g->reason != MAP_OK)
			fprintf(f, "opaque: %s\n", report_reason(g->reason));
		else if (in)
			r = plan_explain(f, m, g, flags);
	}
	return r;
}
