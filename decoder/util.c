/* SPDX-License-Identifier: MIT
 *
 * util.c - errors as values, memory, files
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "dec.h"

void one_line(char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			*s = '?';
}

int err_set(struct ptrace_error *e, int status, const char *fmt, ...)
{
	va_list ap;

	if (!e || e->text[0])
		return -1;
	e->status = status;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	one_line(e->text);
	return -1;
}

/* Memory is bounded by design; when even that is not there nothing useful can be said. */
static void no_memory(void)
{
	static const char msg[] = "ptrace-decode: out of memory: close other programs or lower --memory\n";

	if (write(2, msg, sizeof(msg) - 1) < 0)
		_exit(PTRACE_IO);
	_exit(PTRACE_IO);
}

void *xrealloc(void *p, size_t n, size_t size)
{
	p = reallocarray(p, n ? n : 1, size);
	if (!p)
		no_memory();
	return p;
}

void *xcalloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p)
		no_memory();
	return p;
}

char *xprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		no_memory();
	va_end(ap);
	return s;
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static const uint8_t empty_file[1];

const uint8_t *file_map(const char *path, size_t *size, struct ptrace_error *e)
{
	struct stat st;
	void *p = MAP_FAILED;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	*size = 0;
	if (fd < 0 || fstat(fd, &st) < 0) {
		err_set(e, PTRACE_BAD, "cannot open %s: %s", path, strerror(errno));
	} else if (!S_ISREG(st.st_mode)) {
		err_set(e, PTRACE_BAD, "cannot read %s: not a regular file", path);
	} else if (!st.st_size) {
		close(fd);
		return empty_file;
	} else {
		p = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (p == MAP_FAILED)
			err_set(e, PTRACE_BAD, "cannot map %s: %s", path, strerror(errno));
		else
			*size = st.st_size;
	}
	if (fd >= 0)
		close(fd);
	return p == MAP_FAILED ? NULL : p;
}

void file_unmap(const uint8_t *p, size_t size)
{
	if (p && size)
		munmap((void *)p, size);
}

char *text_read(const char *path)
{
	size_t size;
	const uint8_t *b = file_map(path, &size, NULL);
	char *s;

	if (!b)
		return NULL;
	s = xcalloc(size + 1, 1);
	memcpy(s, b, size);
	file_unmap(b, size);
	return s;
}

bool dir_locked(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool locked = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd); /* with our lock, if we got it */
	return locked;
}
