/* SPDX-License-Identifier: MIT
 *
 * fuzz_elf.c - an ELF file through the whole analyzer; what it writes must satisfy the decoder's reader
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "an.h"
#include "fuzz.h"
#include "ptrace_decode.h"

int map_write(struct module *m, const char *path, uint32_t flags, int jobs, char *err, size_t errlen);
struct map *map_open(const char *path, struct ptrace_error *e); /* decoder/map.c */
void map_close(struct map *m);

static char out[64];

static void clean(void)
{
	unlink(out);
}

static void write_map(struct module *m, uint32_t flags)
{
	struct ptrace_error e = {0};
	char err[256] = "";
	struct map *map;

	if (!out[0]) {
		snprintf(out, sizeof(out), "%s/ptrace-fuzz-%d.ptmap",
			 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", (int)getpid());
		atexit(clean);
	}
	if (map_write(m, out, flags, 1, err, sizeof(err))) {
		if (!err[0])
			abort(); /* a failure says why */
		return;
	}
	map = map_open(out, &e);
	if (!map) {
		fprintf(stderr, "the analyzer's map is refused: %s\n", e.text);
		abort();
	}
	map_close(map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);
	char path[40], err[256] = "";
	struct module *m;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	m = elf_open(path, err, sizeof(err));
	if (!m && !err[0])
		abort();
	if (m && !discover(m, 1, err, sizeof(err)))
		write_map(m, size & 1 ? MAP_F_VERIFY : 0);
	else if (m && !err[0])
		abort();
	if (m)
		elf_close(m);
	close(fd);
	return 0;
}
