/* SPDX-License-Identifier: MIT
 *
 * replay_mod.c - are the files of the program's modules what they were?
 *
 * By the key that is in modules.bin and names their maps: the build-id, else the hash of the file (rt_elf.c).
 */
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>
#include "replay_in.h"

static bool same_build_id(int fd, const struct run_module *m, bool *has)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	const void *id;
	ssize_t n = elf ? dwelf_elf_gnu_build_id(elf, &id) : -1;
	bool same = false;

	*has = n >= 8;
	if (*has)
		same = m->key_len == (n > 32 ? 32 : n) && !memcmp(id, m->key, m->key_len);
	elf_end(elf);
	return same;
}

static bool same_hash(const char *path, const struct run_module *m)
{
	size_t size;
	const uint8_t *b = file_map(path, &size, NULL);
	XXH128_canonical_t c;

	if (!b)
		return false;
	XXH128_canonicalFromHash(&c, XXH3_128bits(b, size));
	file_unmap(b, size);
	return m->key_len == sizeof(c) && !memcmp(&c, m->key, sizeof(c));
}

static int check(const struct run_module *m, const char *path, struct ptrace_error *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool has, same;

	if (fd < 0)
		return err_set(e, PTRACE_BAD, "%s, which was recorded, cannot be opened: %s", path,
			       strerror(errno));
	same = same_build_id(fd, m, &has);
	if (!has)
		same = same_hash(path, m);
	close(fd);
	return same ? 0
		    : err_set(e, PTRACE_BAD, "%s is another file than when it was recorded: record again",
			      path);
}

/* those that have a key: traced ones, and opaque ones that could be read */
int modules_check(const char *dir, struct ptrace_error *e)
{
	char *file = xprintf("%s/modules.bin", dir);
	size_t size, at = 0;
	const uint8_t *b = file_map(file, &size, e);
	int rc = b ? 0 : -1;

	elf_version(EV_CURRENT);
	while (!rc && size - at >= sizeof(struct run_module)) {
		const struct run_module *m = (const void *)(b + at);
		const char *path = (const char *)(m + 1);

		if (m->magic != RUN_MODULE_MAGIC || m->size < sizeof(*m) || m->size > size - at ||
		    m->size % 8 || m->key_len > 32 || !memchr(path, 0, m->size - sizeof(*m)))
			break;
		if (m->kind && m->key_len && path[0] == '/' && m->reason != RUN_MOD_SELF)
			rc = check(m, path, e);
		at += m->size;
	}
	if (!rc && at != size)
		rc = err_set(e, PTRACE_BAD, "%s is damaged or cut", file);
	file_unmap(b, size);
	free(file);
	return rc;
}
