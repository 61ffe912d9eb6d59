/* SPDX-License-Identifier: MIT
 *
 * collect_watch.c - is a traced process still there, and still the same image?
 *
 * Death: its pidfd becomes readable. A successful exec leaves the pid alive but drops the
 * memory, so the ring is no longer in /proc/PID/maps (another one may be, at the same address); that is
 * only read after the process announced an exec.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "collect.h"

void watch_open(struct cproc *p)
{
	p->pid_fd = p->host ? (int)syscall(SYS_pidfd_open, p->host, 0) : -1;
}

bool watch_gone(const struct cproc *p)
{
	struct pollfd f = {.fd = p->pid_fd, .events = POLLIN};

	if (!p->host)
		return true;
	if (p->pid_fd >= 0)
		return poll(&f, 1, 0) > 0;
	return kill((pid_t)p->host, 0) < 0 && errno == ESRCH;
}

bool watch_ring(const struct collect *c, uint32_t pid, bool if_hidden)
{
	char name[64], line[4096], want[32];
	unsigned long ino;
	bool found = false;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%u/maps", pid);
	f = fopen(name, "re");
	if (!f)
		return if_hidden && (errno == EACCES || errno == EPERM);
	snprintf(want, sizeof(want), "%lx-", (unsigned long)c->ring->base);
	while (!found && fgets(line, sizeof(line), f))
		found = !strncmp(line, want, strlen(want)) && strstr(line, "ptrace-ring") &&
			sscanf(line, "%*s %*s %*s %*s %lu", &ino) == 1 && ino == c->ring_ino;
	fclose(f);
	return found;
}

enum fate watch(struct collect *c, struct cproc *p)
{
	if (watch_gone(p))
		return FATE_GONE;
	if (__atomic_load_n(&p->p->state, __ATOMIC_ACQUIRE) == RING_EXEC && !watch_ring(c, p->host, true) &&
	    __atomic_load_n(&p->p->state, __ATOMIC_ACQUIRE) == RING_EXEC)
		return watch_gone(p) ? FATE_GONE : FATE_EXECED;
	return FATE_ALIVE;
}

void watch_exit(struct cproc *p, int ms)
{
	struct pollfd f = {.fd = p->pid_fd, .events = POLLIN};

	if (p->state == RING_EXIT && p->pid_fd >= 0)
		poll(&f, 1, ms);
}
