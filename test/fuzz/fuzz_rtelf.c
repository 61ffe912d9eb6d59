/* SPDX-License-Identifier: MIT
 *
 * fuzz_rtelf.c - the runtime's own ELF reader; it must name a file by the same key as the analyzer does
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "../../preload/rt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
struct module;
struct module *elf_open(const char *path, char *err, size_t errlen);
void elf_close(struct module *m);
void fuzz_elf_key(const struct module *m, const uint8_t **key, uint32_t *len, uint32_t *kind);

/* instead of rt_place.c: anywhere will do */
uint64_t rt_place_far(uint64_t size, uint64_t align, int fd, int prot, int flags)
{
	void *p = mmap(NULL, size, prot, flags, fd, 0);

	(void)align;
	return p == MAP_FAILED ? 0 : (uint64_t)p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);
	char path[40] = "/proc/self/fd/", err[256];
	struct module *m;
	struct rt_elf e;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	path[14] = '0' + fd / 10;
	path[15] = '0' + fd % 10;
	if (!rt_elf_read(fd, &e) && (m = elf_open(path, err, sizeof(err)))) {
		const uint8_t *key;
		uint32_t len, kind;

		fuzz_elf_key(m, &key, &len, &kind);
		if (len != e.key_len || kind != e.key_kind || memcmp(key, e.key, len))
			abort();
		elf_close(m);
	}
	close(fd);
	return 0;
}
