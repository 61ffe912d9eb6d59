/* SPDX-License-Identifier: MIT
 *
 * replay_place.c - memory as it was where a signal ended the recording, for the runtime to recognize the place
 *
 *   a handler: the process's next image goes on there   its start.bin
 *   the signal killed the process                       place.bin
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "replay_in.h"

/* proc-PID.N ─▶ start.bin of the next image of that process. A folder between them is that of what it was forked as, made
 * late: it has none. NULL: there is none */
static char *next_image(const char *dir)
{
	const char *dot = strrchr(dir, '.');
	char *end;
	unsigned long n = dot ? strtoul(dot + 1, &end, 10) : 0;

	if (!dot || end == dot + 1 || end[strspn(end, "/")])
		return NULL;
	for (;;) {
		char *path = xprintf("%.*s.%lu", (int)(dot - dir), dir, ++n),
		     *start = xprintf("%s/start.bin", path);
		bool none = access(path, F_OK), is = !access(start, F_OK);

		free(path);
		if (is)
			return start;
		free(start);
		if (none)
			return NULL;
	}
}

static int take(const char *path, const struct run_start **to, struct ptrace_error *e)
{
	struct start *s = start_open(path, e); /* whole, or refused */
	int fd;

	if (!s)
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		*to = area_map(s->size, PROT_READ, fd, 0, e);
	else
		err_set(e, PTRACE_BAD, "cannot open %s", path);
	start_close(s);
	if (fd >= 0)
		close(fd);
	return *to ? 0 : -1;
}

int place_memory(const char *dir, const struct run_start **s, struct ptrace_error *e)
{
	char *path = xprintf("%s/place.bin", dir);
	int rc = 0;

	*s = NULL;
	if (access(path, F_OK)) {
		free(path);
		path = next_image(dir);
	}
	if (path && !access(path, F_OK))
		rc = take(path, s, e);
	free(path);
	return rc;
}
