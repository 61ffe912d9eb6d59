/* SPDX-License-Identifier: MIT
 *
 * collect_ns.c - processes and threads by the numbers that they have here
 *
 * A process says what its pid is, and its threads' tids are: in a pid namespace of its own (pid_namespaces(7)) these are
 * others than the collector's, and name other processes here, or none. NSpid in /proc/PID/status has all of a thread's
 * numbers, from this namespace's to its own. Its parent is known, and is PPid there, unless that has ended.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "collect.h"

struct status {
	uint32_t tgid, ppid;
	uint32_t last; /* its number in its own namespace */
	uint32_t depth; /* how many it has */
};

static bool read_status(const char *path, struct status *s)
{
	char line[256];
	FILE *f = fopen(path, "re");

	memset(s, 0, sizeof(*s));
	while (f && fgets(line, sizeof(line), f)) {
		char *at = line + 6, *end;

		if (!strncmp(line, "Tgid:", 5))
			s->tgid = (uint32_t)strtoul(line + 5, NULL, 10);
		else if (!strncmp(line, "PPid:", 5))
			s->ppid = (uint32_t)strtoul(line + 5, NULL, 10);
		else if (!strncmp(line, "NSpid:", 6))
			for (uint32_t n; (n = (uint32_t)strtoul(at, &end, 10), end != at); at = end) {
				s->last = n;
				s->depth++;
			}
	}
	if (f)
		fclose(f);
	return s->depth;
}

static bool status_of(uint32_t pid, struct status *s)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	return read_status(path, s);
}

/* The first of the numbers in a directory of /proc for which right() is; 0: none */
static uint32_t among(const char *dir, bool (*right)(const struct status *, const void *), const void *arg)
{
	DIR *d = opendir(dir);
	uint32_t n = 0;

	for (struct dirent *e; d && !n && (e = readdir(d));) {
		char path[320];
		struct status s;

		if (e->d_name[0] < '1' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "%s/%s/status", dir, e->d_name);
		if (read_status(path, &s) && right(&s, arg))
			n = (uint32_t)strtoul(e->d_name, NULL, 10);
	}
	if (d)
		closedir(d);
	return n;
}

struct child {
	const struct collect *c;
	uint32_t pid, parent;
};

static bool is_child(const struct status *s, const void *arg)
{
	const struct child *c = arg;

	return s->depth > 1 && s->last == c->pid && s->ppid == c->parent;
}

/* Its parent has ended, and it has another. */
static bool is_orphan(const struct status *s, const void *arg)
{
	const struct child *c = arg;

	return s->depth > 1 && s->last == c->pid && watch_ring(c->c, s->tgid, false);
}

static bool is_last(const struct status *s, const void *arg)
{
	return s->last == *(const uint32_t *)arg;
}

/* is /proc this namespace's? Its numbers are no use otherwise. */
static bool proc_is_ours(void)
{
	static int ours = -1;
	char self[32];

	if (ours < 0) {
		ssize_t n = readlink("/proc/self", self, sizeof(self) - 1);

		self[n < 0 ? 0 : n] = 0;
		ours = strtol(self, NULL, 10) == getpid();
	}
	return ours;
}

void ns_find(const struct collect *run, struct cproc *p, const struct cproc *from)
{
	struct child c = {run, p->pid, from ? from->host : 0};
	struct status s;

	p->host = p->pid;
	p->inner = false;
	if (!from || !proc_is_ours())
		return;
	if (status_of(p->pid, &s) && s.ppid == from->host && s.tgid == p->pid) {
		p->inner = s.depth > 1; /* its parent's word */
		return;
	}
	if (p->pid != 1 && !from->inner)
		return; /* its parent has ended, or it has itself */
	p->host = among("/proc", is_child, &c);
	if (!p->host)
		p->host = among("/proc", is_orphan, &c);
	p->inner = true;
}

uint32_t ns_thread(const struct cproc *p, uint32_t tid)
{
	char dir[64], path[128];
	struct status s;

	snprintf(dir, sizeof(dir), "/proc/%u/task", p->host);
	snprintf(path, sizeof(path), "%s/%u/status", dir, tid);
	if (read_status(path, &s) && s.last == tid)
		return tid;
	return p->inner ? among(dir, is_last, &tid) : 0;
}
