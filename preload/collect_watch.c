/* SPDX-License-Identifier: MIT
 *
 * collect_watch.c - is the traced process still there, and still the same image?
 *
 * Death: its pidfd becomes readable. A successful exec leaves the pid alive but drops the
 * memory, so the ring is no longer in /proc/PID/maps; that is only read after the process
 * announced an exec.
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

int watch_open(struct collect *c)
{
	c->pid_fd = (int)syscall(SYS_pidfd_open, c->ring->pid, 0);
	return c->pid_fd < 0 && errno == ESRCH ? ESRCH : 0;
}

static bool gone(struct collect *c)
{
	struct pollfd p = {.fd = c->pid_fd, .events = POLLIN};

	if (c->pid_fd >= 0)
		return poll(&p, 1, 0) > 0;
	return kill(c->ring->pid, 0) < 0 && errno == ESRCH;
}

static bool has_ring(struct collect *c)
{
	char name[64], line[4096], want[32];
	bool found = false;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%u/maps", c->ring->pid);
	f = fopen(name, "re");
	if (!f)
		return errno == EACCES || errno == EPERM; /* cannot tell: go on until it dies */
	snprintf(want, sizeof(want), "%lx-", (unsigned long)c->ring->base);
	while (!found && fgets(line, sizeof(line), f))
		found = !strncmp(line, want, strlen(want)) && strstr(line, "ptrace-ring");
	fclose(f);
	return found;
}

enum fate watch(struct collect *c)
{
	if (gone(c))
		return FATE_GONE;
	if (__atomic_load_n(&c->ring->state, __ATOMIC_ACQUIRE) == RING_EXEC && !has_ring(c) &&
	    __atomic_load_n(&c->ring->state, __ATOMIC_ACQUIRE) == RING_EXEC)
		return gone(c) ? FATE_GONE : FATE_EXECED;
	return FATE_ALIVE;
}

void watch_exit(struct collect *c, int ms)
{
	struct pollfd p = {.fd = c->pid_fd, .events = POLLIN};

	if (c->ring->state == RING_EXIT && c->pid_fd >= 0)
		poll(&p, 1, ms);
}
