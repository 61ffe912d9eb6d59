// SPDX-License-Identifier: MIT
// BREAKS: syscall() with every number of arguments, results that are pointers, errno as libc sets it, calls
// that pass structures both ways.
// BUILD: cc -O2
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>

#include "check.h"

static int fails(long r, int e)
{
	return r == -1 && errno == e;
}

int main(void)
{
	char buf[64], path[] = "/tmp/sys_byhand.XXXXXX", *m;
	struct iovec iov[3] = { { "ab", 2 }, { "cde", 3 }, { "f", 1 } };
	struct timespec ts = { 0, 1000 };
	struct utsname un;
	struct stat st;
	int fd = mkstemp(path);
	unsigned s = 0;

	CHECK(fd >= 0);
	CHECK(syscall(SYS_writev, fd, iov, 3) == 6);
	CHECK(syscall(SYS_pread64, fd, buf, sizeof(buf), 2l) == 4 && !memcmp(buf, "cdef", 4));
	CHECK(syscall(SYS_fstat, fd, &st) == 0 && st.st_size == 6);
	m = (char *)syscall(SYS_mmap, NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK(m != MAP_FAILED && !memcmp(m, "abcdef", 6));
	m[3] = 'X';
	for (int i = 0; i < 6; i++)
		s = s * 31 + m[i];
	m = (char *)syscall(SYS_mremap, m, 8192, 65536, MREMAP_MAYMOVE, 0);
	CHECK(m != MAP_FAILED && m[3] == 'X');
	CHECK(syscall(SYS_munmap, m, 65536) == 0);
	CHECK(syscall(SYS_uname, &un) == 0 && !strcmp(un.sysname, "Linux"));
	CHECK(syscall(SYS_nanosleep, &ts, NULL) == 0);
	CHECK(fails(syscall(SYS_read, 9999, buf, 1), EBADF));
	CHECK(fails(syscall(SYS_openat, AT_FDCWD, "/nonexistent", O_RDONLY), ENOENT));
	CHECK(fails(syscall(5000), ENOSYS) && fails(syscall(-1l), ENOSYS));
	CHECK(syscall(SYS_lseek, fd, 2l, SEEK_SET) == 2 && syscall(SYS_read, fd, buf, 2) == 2);
	s = s * 31 + buf[1];
	CHECK(syscall(SYS_unlink, path) == 0 && syscall(SYS_close, fd) == 0);
	CHECK(syscall(SYS_getrandom, buf, 16, 0) == 16);
	printf("sys_byhand %x\n", s);
	return 0;
}
