/* SPDX-License-Identifier: MIT
 *
 * collect_spool.c - chunks that wait on disk to be compressed
 *
 * A file without a name in the process's directory: whatever happens to us, the kernel takes it away.
 * What has been read is given back (fallocate(2), PUNCH_HOLE), mostly before it was ever written to the
 * device. When nothing waits the file starts again from its beginning.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "collect.h"

static struct {
	pthread_mutex_t lock;
	int fd;
	uint64_t limit, used, end; /* bytes: allowed, waiting, where the next chunk goes */
} spool = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

#define SHARE 8 /* of the free space, one part at most */

/* The program's limit on open files is ours, too: two must be left, for a log and a file that is written at the
 * end, or there is no spool. */
static void leave_two(void)
{
	int a = spool.fd < 0 ? -1 : dup(spool.fd), b = a < 0 ? -1 : dup(a);

	if (b < 0 && spool.fd >= 0) {
		close(spool.fd);
		spool.fd = -1;
	}
	if (a >= 0)
		close(a);
	if (b >= 0)
		close(b);
}

void spool_init(int dir_fd, uint64_t limit)
{
	struct statvfs v;

	if (fstatvfs(dir_fd, &v))
		return;
	spool.limit = (uint64_t)v.f_bavail * v.f_frsize / SHARE;
	if (spool.limit > limit)
		spool.limit = limit;
	if (!spool.limit)
		return;
	spool.fd = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (spool.fd < 0) {
		spool.fd = openat(dir_fd, "spool", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
		if (spool.fd >= 0)
			unlinkat(dir_fd, "spool", 0);
	}
	leave_two();
}

bool spool_put(const uint8_t *p, uint64_t n, uint64_t *at)
{
	bool ok;

	pthread_mutex_lock(&spool.lock);
	ok = spool.fd >= 0 && spool.used + n <= spool.limit;
	if (ok) {
		if (!spool.used)
			spool.end = 0;
		*at = spool.end;
		spool.used += n;
		spool.end += n;
	}
	pthread_mutex_unlock(&spool.lock);
	if (!ok || !write_at(spool.fd, p, n, *at))
		return ok;
	pthread_mutex_lock(&spool.lock); /* no room: what is there will be compressed, no more comes */
	spool.used -= n;
	spool.limit = 0;
	pthread_mutex_unlock(&spool.lock);
	return false;
}

int spool_get(uint8_t *to, uint64_t n, uint64_t at)
{
	uint64_t got = 0;
	int err = 0;

	while (got < n && !err) {
		ssize_t r = pread(spool.fd, to + got, n - got, (off_t)(at + got));

		if (r > 0)
			got += r;
		else if (!r || errno != EINTR)
			err = r ? errno : EIO;
	}
	/* where it is not supported the file only stays longer */
	fallocate(spool.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)n);
	pthread_mutex_lock(&spool.lock);
	spool.used -= n;
	pthread_mutex_unlock(&spool.lock);
	return err;
}
