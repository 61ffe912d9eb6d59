/* SPDX-License-Identifier: MIT
 *
 * collect_write.c - writes all of what it is given at a place of a file (chunks: collect_chunk.c; Intel PT packets:
 * collect_pt_file.c)
 */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>
#include "collect.h"

int writev_at(int fd, struct iovec *v, int n, uint64_t at)
{
	while (n) {
		ssize_t r = pwritev(fd, v, n, (off_t)at);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return errno;
		if (r == 0)
			return EIO;
		at += (uint64_t)r;
		for (; n && (size_t)r >= v->iov_len; n--)
			r -= (ssize_t)v++->iov_len;
		if (n) {
			v->iov_base = (char *)v->iov_base + r;
			v->iov_len -= (size_t)r;
		}
	}
	return 0;
}

int write_at(int fd, const void *p, size_t n, uint64_t at)
{
	struct iovec v = {(void *)p, n};

	return n ? writev_at(fd, &v, 1, at) : 0;
}
