/* SPDX-License-Identifier: MIT
 *
 * fuzz_bin.c - a compressed trace (--format=bin), through the public reader
 *
 * In the input payloads are plain (disk_size bytes); they are compressed here, so that mutations reach
 * the columns and the tables. An odd last byte leaves the file as it is.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>
#include "../../decoder/out.h"
#include "fuzz.h"

static size_t compress(uint8_t *to, size_t room, const uint8_t *data, size_t size)
{
	size_t at = sizeof(struct bin_head), n = at;

	memcpy(to, data, at);
	((struct bin_head *)to)->magic = BIN_MAGIC;
	((struct bin_head *)to)->version = BIN_VERSION;
	while (size - at >= sizeof(struct bin_chunk)) {
		struct bin_chunk c;
		size_t left, k = 0;

		memcpy(&c, data + at, sizeof(c));
		at += sizeof(c);
		left = size - at;
		c.magic = BIN_CHUNK_MAGIC;
		if (c.disk_size > left)
			c.disk_size = left;
		c.raw_size = c.disk_size;
		if (c.disk_size)
			k = ZSTD_compress(to + n + sizeof(c), room - n - sizeof(c), data + at, c.disk_size,
					  1);
		if (ZSTD_isError(k))
			abort();
		at += c.disk_size;
		c.disk_size = k;
		c.xxh3 = XXH3_64bits(to + n + sizeof(c), k);
		memcpy(to + n, &c, sizeof(c));
		n += sizeof(c) + k;
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t room = 4096 + size * 64;
	uint8_t *b = calloc(1, room);
	struct ptrace_rec rec[1000];
	struct ptrace_error e = {0};
	char path[40];
	ptrace_trace *t;
	int fd;

	if (size < sizeof(struct bin_head)) {
		free(b);
		return 0;
	}
	fd = memfd_create("trace", MFD_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (data[size - 1] & 1) {
		if (write(fd, data, size) < 0)
			abort();
	} else if (write(fd, b, compress(b, room, data, size)) < 0) {
		abort();
	}
	t = ptrace_trace_open(path, &e);
	if (!t && !e.text[0])
		abort();
	if (t) {
		const struct ptrace_thread *th;
		const struct ptrace_module *mo;
		volatile size_t sum = 0;
		long n;

		for (uint32_t i = ptrace_trace_modules(t, &mo); i--;)
			sum += strlen(mo[i].path);
		for (uint32_t i = ptrace_trace_threads(t, &th); i--;)
			sum += th[i].records;
		while ((n = ptrace_trace_read(t, rec, NELEM(rec), &e)) > 0)
			sum += rec[n - 1].addr;
		if (n < 0 && !e.text[0])
			abort();
		ptrace_trace_close(t);
	}
	close(fd);
	free(b);
	return 0;
}
