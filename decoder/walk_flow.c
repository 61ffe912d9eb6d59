/* SPDX-License-Identifier: MIT
 *
 * walk_flow.c - control flow from a recording (flow.h): where it is lost
 */
#include "walk.h"

/* ---- a thread that has no recording ---- */

static int none_branch(struct flow *f, uint64_t ip, uint64_t *next)
{
	(void)f;
	(void)ip;
	(void)next;
	return FLOW_END;
}

static int none_value(struct flow *f, uint64_t ip, uint64_t *v)
{
	return none_branch(f, ip, v);
}

static bool none_stops(struct flow *f, uint64_t ip, bool back)
{
	(void)back;
	(void)f;
	(void)ip;
	return false;
}

static bool none_more(struct flow *f)
{
	(void)f;
	return false;
}

static int none_resync(struct flow *f, uint32_t *counter)
{
	(void)f;
	(void)counter;
	return FLOW_END;
}

static void none_entered(struct flow *f, uint64_t at)
{
	(void)f;
	(void)at;
}

static void none_module(struct flow *f, const struct modrec *rec)
{
	(void)f;
	(void)rec;
}

static const struct flow_ops none_ops = {none_branch, none_value,   none_stops,	 none_more,
					 none_resync, none_entered, none_module, NULL};

struct flow *flow_none(void)
{
	static struct flow none = {
		.ops = &none_ops,
		.why = "the program's copies leave control flow to Intel PT, and it was not recorded"};

	return &none;
}

/* log and recording are not at the same keyframe */
struct flow *flow_astray(void)
{
	static struct flow astray = {
		.ops = &none_ops, .why = "the recording of control flow is at another keyframe than the log"};

	return &astray;
}

/* What was found without the recording's help: the next question about a signal is not about this one. */
void walk_flow_signal(struct walker *w, uint64_t ip)
{
	if (ip)
		w->flow->ops->stops(w->flow, ip, false);
}

int walk_flow_time(struct walker *w)
{
	w->flow_time = w->ask->tsc;
	return walk_time(w, w->flow_time);
}

int walk_flow_gone(struct walker *w, int status)
{
	w->asked = w->m->copy + SEM_FLOW_AT(w->pc->a, w->pc->b);
	return lost(w, "%s%s", status == FLOW_END ? "" : "control flow: ", w->ask->why);
}
