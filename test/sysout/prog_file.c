/* SPDX-License-Identifier: MIT
 *
 * prog_file.c - calls on files, names and descriptors
 */
#include "prog.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>

/* three buffers, with gaps */
static struct iovec *iov3(void)
{
	static struct iovec v[3];

	v[0] = (struct iovec){out[0] + 8, 5};
	v[1] = (struct iovec){out[1] + 1, 0};
	v[2] = (struct iovec){out[2] + 3, 100};
	return v;
}

static void reads(int fd)
{
	C(read, fd, out[0] + 3, 10);
	C(read, fd, out[0], 0);
	C(read, fd, BAD, 10);
	C(read, -1, out[0], 10);
	C(pread64, fd, out[0], 5000, 2);
	C(pread64, fd, out[0], 10, 1 << 30);
	C(lseek, fd, 0, SEEK_SET);
	C(readv, fd, iov3(), 3);
	C(readv, fd, iov3(), 2000);
	C(preadv, fd, iov3(), 3, 1, 0);
	C(preadv2, fd, iov3(), 3, 1, 0, 0);
	C(preadv2, fd, iov3(), 3, -1, 0, 0x4000);
	/* an array that is overwritten by what is read */
	struct iovec *v = (struct iovec *)out[3];

	fill();
	v[0] = (struct iovec){&v[1], 16};
	v[1] = (struct iovec){out[0], 16};
	RAW(preadv, fd, v, 2, 0);
}

static void between(int fd)
{
	int p[2], q[2];
	int64_t *off = (int64_t *)(out[1] + 8), *off2 = (int64_t *)(out[2] + 8);
	int to = (int)C(openat, AT_FDCWD, "copy", O_RDWR | O_CREAT, 0600);

	C(pipe, out[0]);
	memcpy(p, out[0], sizeof(p));
	C(pipe2, out[0], O_CLOEXEC);
	memcpy(q, out[0], sizeof(q));
	C(pipe2, out[0], 0x12345);
	C(pipe, BAD);
	fill(), *off = 5, RAW(sendfile, to, fd, off, 100);
	fill(), *off = -5, RAW(sendfile, to, fd, off, 100);
	C(sendfile, to, fd, NULL, 10);
	fill(), *off = 0, *off2 = 3, RAW(copy_file_range, fd, off, to, off2, 50, 0);
	C(copy_file_range, fd, NULL, to, NULL, 10, 0);
	fill(), *off = 2, RAW(splice, fd, off, p[1], NULL, 60, 0);
	C(tee, p[0], q[1], 20, 0);
	C(vmsplice, q[0], (&(struct iovec){out[0], 15}), 1, 0);
	C(vmsplice, p[1], (&(struct iovec){"text", 4}), 1, 0);
	fill(), *off2 = 1, RAW(splice, p[0], NULL, to, off2, 30, 0);
	C(fcntl, p[0], F_SETFL, O_NONBLOCK);
	C(read, p[0], out[0], 4096);
	C(read, p[0], out[0], 4096); /* EAGAIN */
	for (int i = 0; i < 2; i++) {
		C(close, p[i]);
		C(close, q[i]);
	}
	C(close, to);
	C(unlink, "copy");
}

static void locks(int fd)
{
	struct flock *l = (struct flock *)out[0];
	static const int cmds[] = {F_GETLK, F_SETLK, F_OFD_GETLK};

	for (int i = 0; i < 3; i++) {
		fill();
		*l = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 3, .l_len = 4};
		RAW(fcntl, fd, cmds[i], l);
	}
	fill(), RAW(fcntl, fd, F_GETLK, l); /* not a lock */
	C(fcntl, fd, F_SETOWN, getpid());
	C(fcntl, fd, F_GETOWN_EX, out[0]);
	C(fcntl, fd, 17 /* F_GETOWNER_UIDS */, out[0]);
	for (int cmd = 0; cmd < 20; cmd++)
		if (cmd != F_DUPFD && cmd != F_SETLKW && cmd != F_SETFD && cmd != F_SETFL)
			C(fcntl, fd, cmd, out[0]);
	for (int cmd = 1024; cmd < 1045; cmd++)
		if (cmd != F_DUPFD_CLOEXEC && cmd != F_NOTIFY)
			C(fcntl, fd, cmd, out[0]);
	C(flock, fd, LOCK_EX | LOCK_NB);
}

void files(void)
{
	int fd = (int)C(open, "file", O_RDWR | O_CREAT, 0600), d;

	for (int i = 0; i < 100; i++)
		C(write, fd, "some text, and more", 19);
	C(pwrite64, fd, "xyz", 3, 1);
	C(writev, fd, (&(struct iovec){"abc", 3}), 1);
	C(pwritev, fd, (&(struct iovec){"abc", 3}), 1, 0, 0);
	C(pwritev2, fd, (&(struct iovec){"abc", 3}), 1, 0, 0, 0);
	C(lseek, fd, 0, SEEK_SET);
	reads(fd);
	between(fd);
	locks(fd);
	C(fallocate, fd, 0, 0, 4096);
	C(fadvise64, fd, 0, 0, 3);
	C(readahead, fd, 0, 4096);
	C(sync_file_range, fd, 0, 0, 0);
	C(fsync, fd);
	C(fdatasync, fd);
	C(cachestat, fd, (&(uint64_t[2]){0, 4096}), out[0], 0);
	C(cachestat, fd, (&(uint64_t[2]){0, 4096}), out[0], 9);
	d = (int)C(dup, fd);
	C(dup2, d, d);
	C(dup3, fd, d, O_CLOEXEC);
	C(close_range, d, d, 0);
	C(ftruncate, fd, 10);
	C(truncate, "file", 20);
	d = (int)C(memfd_create, "m", 0);
	C(close, d);
	C(close, -1);
	C(close, fd);
	C(unlink, "file");
}

static void attributes(void)
{
	struct {
		uint64_t value;
		uint32_t size, flags;
	} *a = (void *)out[1];
	int fd = (int)C(openat, AT_FDCWD, "f", O_RDWR, 0);

	C(setxattr, "f", "user.one", "value", 5, 0);
	C(lsetxattr, "f", "user.two", "other", 5, 0);
	C(fsetxattr, fd, "user.three", "x", 1, 0);
	C(getxattr, "f", "user.one", out[0], 100);
	C(getxattr, "f", "user.one", out[0], 2);
	C(getxattr, "f", "user.one", out[0], 0);
	C(getxattr, "f", "user.one", BAD, 0);
	C(lgetxattr, "f", "user.two", out[0], 100);
	C(fgetxattr, fd, "user.none", out[0], 100);
	C(listxattr, "f", out[0], 100);
	C(listxattr, "f", out[0], 0);
	C(llistxattr, "f", out[0], 3);
	C(flistxattr, fd, out[0], 100);
	C(listxattrat, AT_FDCWD, "f", 0, out[0], 100);
	fill(), a->value = (uint64_t)out[2], a->size = 50, a->flags = 0;
	RAW(getxattrat, AT_FDCWD, "f", 0, "user.one", a, 16);
	fill(), a->value = (uint64_t) "v", a->size = 1, a->flags = 0;
	RAW(setxattrat, AT_FDCWD, "f", 0, "user.four", a, 16);
	C(removexattrat, AT_FDCWD, "f", 0, "user.four");
	C(removexattr, "f", "user.one");
	C(lremovexattr, "f", "user.two");
	C(fremovexattr, fd, "user.three");
	C(file_getattr, AT_FDCWD, "f", out[0], 24, 0);
	C(file_setattr, AT_FDCWD, "none", out[0], 24, 0);
	C(close, fd);
}

static void handles(void)
{
	uint32_t *h = (uint32_t *)out[0];

	for (uint32_t room = 0; room <= 128; room += 64) {
		fill(), h[0] = room, RAW(name_to_handle_at, AT_FDCWD, "f", out[0], out[1], 0);
		fill(), h[0] = room, RAW(name_to_handle_at, AT_FDCWD, "f", out[0], out[1], 1);
		fill(), h[0] = room, RAW(name_to_handle_at, AT_FDCWD, "none", out[0], out[1], 0);
	}
	fill(), h[0] = 128, RAW(name_to_handle_at, AT_FDCWD, "f", out[0], out[1], 0);
	RAW(open_by_handle_at, AT_FDCWD, out[0], O_RDONLY);
}

static void mounts(void)
{
	struct {
		uint32_t size, spare;
		uint64_t mnt, param;
	} r = {24, 0, ~0ull, 0}, m = {24, 0, 0, 0x7f};

	C(listmount, &r, out[0], 100, 0);
	fill(), RAW(listmount, &r, out[0], 2, 0);
	memcpy(&m.mnt, out[0], 8);
	C(statmount, &m, out[0], 4096, 0);
	C(statmount, &m, out[0], 10, 0);
	C(listns, &r, out[0], 10, 0);
	C(mount, "none", "none", "none", 0, NULL);
	C(umount2, "none", 0);
	C(mount_setattr, -1, "none", 0, out[0], 32);
	C(open_tree, AT_FDCWD, "none", 0);
	C(open_tree_attr, AT_FDCWD, "none", 0, NULL, 0);
	C(move_mount, -1, "none", -1, "none", 0);
	C(fsopen, "none", 0);
	C(fsconfig, -1, 0, NULL, NULL, 0);
	C(fsmount, -1, 0, 0);
	C(fspick, AT_FDCWD, "none", 0);
	C(pivot_root, "none", "none");
	C(swapon, "none", 0);
	C(swapoff, "none");
	C(acct, "none");
	C(quotactl, 0x80000701, "none", 0, out[0]);
	C(quotactl_fd, -1, 0x80000701, 0, out[0]);
	C(sysfs, 1, "proc", 0);
	C(sysfs, 2, 0, out[0]);
	C(sysfs, 3, 0, 0);
}

static void directories(void)
{
	int fd = (int)C(open, ".", O_RDONLY | O_DIRECTORY);

	C(getdents64, fd, out[0], 4096);
	C(getdents64, fd, out[0], 4096);
	C(lseek, fd, 0, SEEK_SET);
	C(getdents64, fd, out[0], 10);
	C(getdents, fd, out[0], 30);
	C(getdents, fd, out[0], 4096);
	C(lseek, fd, 0, SEEK_SET);
	C(getdents64, fd, BAD, 4096);
	C(fchdir, fd);
	C(getcwd, out[0], 4096);
	C(getcwd, out[0], 2);
	C(getcwd, BAD, 4096);
	C(close, fd);
}

void names(void)
{
	int fd = (int)C(creat, "f", 0600);

	C(close, fd);
	C(mkdir, "d", 0700);
	C(mkdirat, AT_FDCWD, "e", 0700);
	C(rename, "d", "d2");
	C(renameat, AT_FDCWD, "d2", AT_FDCWD, "d");
	C(renameat2, AT_FDCWD, "d", AT_FDCWD, "d2", 0);
	C(rmdir, "d2");
	C(unlinkat, AT_FDCWD, "e", AT_REMOVEDIR);
	C(link, "f", "g");
	C(linkat, AT_FDCWD, "f", AT_FDCWD, "h", 0);
	C(symlink, "target", "s");
	C(symlinkat, "target", AT_FDCWD, "s2");
	C(readlink, "s", out[0], 100);
	C(readlink, "s", out[0], 3);
	C(readlink, "f", out[0], 100);
	C(readlink, "s", BAD, 100);
	C(readlinkat, AT_FDCWD, "s2", out[0], 100);
	C(mknod, "p", S_IFIFO | 0600, 0);
	C(mknodat, AT_FDCWD, "q", S_IFIFO | 0600, 0);
	for (const char *n = "gh"; *n; n++)
		C(unlink, ((char[2]){*n, 0}));
	C(unlink, "p");
	C(unlink, "q");
	C(unlink, "s");
	C(unlink, "s2");
	C(stat, "f", out[0]);
	C(stat, "none", out[0]);
	C(stat, "f", BAD);
	C(lstat, "f", out[0]);
	C(fstat, 0, out[0]);
	C(fstat, -1, out[0]);
	C(newfstatat, AT_FDCWD, "f", out[0], 0);
	C(newfstatat, 0, "", out[0], 0x1000);
	C(statx, AT_FDCWD, "f", 0, 0xfff, out[0]);
	C(statx, AT_FDCWD, "none", 0, 0xfff, out[0]);
	C(statfs, "f", out[0]);
	C(fstatfs, 0, out[0]);
	fill();
	struct stat st;

	if (!stat("f", &st))
		RAW(ustat, st.st_dev, out[0]);
	C(access, "f", 0);
	C(faccessat, AT_FDCWD, "f", 0);
	C(faccessat2, AT_FDCWD, "f", 0, 0);
	C(openat2, AT_FDCWD, "none", (&(uint64_t[3]){0, 0, 0}), 24);
	C(chmod, "f", 0600);
	C(fchmod, -1, 0600);
	C(fchmodat, AT_FDCWD, "f", 0600);
	C(fchmodat2, AT_FDCWD, "f", 0600, 0);
	C(chown, "f", -1, -1);
	C(lchown, "f", -1, -1);
	C(fchown, -1, -1, -1);
	C(fchownat, AT_FDCWD, "f", -1, -1, 0);
	C(umask, 022);
	C(utime, "f", NULL);
	C(utimes, "f", NULL);
	C(futimesat, AT_FDCWD, "f", NULL);
	C(utimensat, AT_FDCWD, "f", NULL, 0);
	C(chdir, ".");
	C(chroot, "none");
	C(lookup_dcookie, 1, out[0], 100);
	C(uselib, "none");
	attributes();
	handles();
	mounts();
	directories();
	C(unlink, "f");
}

void polls(void)
{
	int p[2], ep, fd;
	struct pollfd *f = (struct pollfd *)out[0];
	struct timespec *t = (struct timespec *)out[4];

	if (pipe(p))
		return;
	for (int ready = 0; ready < 2; ready++) {
		fill();
		f[0] = (struct pollfd){p[0], POLLIN, 0};
		f[1] = (struct pollfd){-1, POLLIN, 77};
		f[2] = (struct pollfd){p[1], POLLOUT, 0};
		RAW(poll, f, 3, 0);
		fill();
		f[0] = (struct pollfd){p[0], POLLIN, 77};
		*t = (struct timespec){0, 2000000};
		RAW(ppoll, f, 1, t, NULL, 8);
		for (int i = 0; i < 2; i++) {
			fill();
			for (int k = 0; k < 3; k++)
				memset(out[k], 0, 128);
			out[0][0] = out[1][0] = 0x7;
			*t = (struct timespec){0, 2000};
			if (i)
				RAW(select, p[1] + 1, out[0], out[1], out[2], t);
			else
				RAW(pselect6, 70, out[0], out[1], NULL, t, NULL);
		}
		C(write, p[1], "x", 1);
	}
	C(poll, BAD, 1, 0);
	C(select, 3, out[0], NULL, NULL, BAD);
	C(select, -1, out[0], NULL, NULL, NULL);
	ep = (int)C(epoll_create, 1);
	C(close, ep);
	ep = (int)C(epoll_create1, 0);
	for (int i = 0; i < 2; i++) {
		struct epoll_event e = {EPOLLIN | EPOLLOUT, {.u64 = 0x1122334455667788}};

		C(epoll_ctl, ep, EPOLL_CTL_ADD, p[i], &e);
	}
	C(epoll_wait, ep, out[0], 5, 0);
	C(epoll_wait, ep, out[0] + 1, 1, 0);
	C(epoll_wait, ep, out[0], 0, 0);
	C(epoll_pwait, ep, out[0], 5, 0, NULL, 8);
	fill(), *t = (struct timespec){0, 0}, RAW(epoll_pwait2, ep, out[0], 5, t, NULL, 8);
	C(close, ep);
	fd = (int)C(eventfd, 3);
	C(read, fd, out[0], 8);
	C(close, fd);
	fd = (int)C(eventfd2, 0, EFD_NONBLOCK);
	C(read, fd, out[0], 8);
	C(close, fd);
	C(close, C0(inotify_init));
	fd = (int)C(inotify_init1, IN_NONBLOCK);
	C(inotify_add_watch, fd, ".", IN_ALL_EVENTS);
	C(close, C(creat, "watched", 0600));
	C(unlink, "watched");
	C(ioctl, fd, 0x541b, out[0]);
	C(read, fd, out[0], 4096);
	C(inotify_rm_watch, fd, 1);
	C(close, fd);
	C(fanotify_mark, -1, 0, 0, -1, NULL);
	C(close, C(fanotify_init, 0, 0));
	C(close, p[0]);
	C(close, p[1]);
}

/* buffers that end in the middle of what a call would write */
void edges(void)
{
	uint8_t *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		*e = p + 4096;
	int fd = open("/proc/self/maps", O_RDONLY), d = open("/proc/self", O_RDONLY), ep = epoll_create1(0),
	    sv[2], pp[2];
	struct epoll_event any = {EPOLLIN | EPOLLOUT, {.u64 = 77}};
	struct iovec v[2];
	struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};

	if (p == MAP_FAILED || mprotect(e, 4096, PROT_NONE) || socketpair(AF_UNIX, SOCK_DGRAM, 0, sv))
		return;
	for (unsigned room = 0; room < 41; room += 8) {
		uint8_t *at = e - room;

		v[0] = (struct iovec){out[0], 3};
		v[1] = (struct iovec){at, 100};
		memset(p, room & 8 ? 0x33 : 0x44, 4096);
		C(lseek, fd, 0, SEEK_SET);
		C(read, fd, at, 100);
		C(readv, fd, v, 2);
		C(process_vm_readv, getpid(), v, 2, (&(struct iovec){out[1], 90}), 1, 0);
		C(getrandom, at, 100, 0);
		C(stat, "/", at);
		C(statx, AT_FDCWD, "/", 0, 0xfff, at);
		C(getdents64, d, at, 4096);
		C(getcwd, at, 4096);
		C(uname, at);
		C(times, at);
		C(getresuid, at, at - 100, at + 4);
		C(getitimer, 0, at);
		C(rt_sigaction, SIGUSR2, NULL, at, 8);
		C(prctl, 0x41555856, at, 4096, 0, 0);
		C(ioctl, fd, 0x541b, at);
		C(sched_getaffinity, 0, 128, at);
		if (!pipe2(pp, O_NONBLOCK)) { /* two pieces, of which the second has no room */
			C(write, pp[1], "piece1", 6);
			fcntl(pp[1], F_SETFL, O_DIRECT | O_NONBLOCK);
			C(write, pp[1], "piece2 is longer than there is room", 35);
			C(read, pp[0], at, 60);
			C(read, pp[0], at, 60);
			C(close, pp[0]), C(close, pp[1]);
		}
		C(poll, at, 20, 0);
		memset(at, 0, room);
		C(select, 70, at, NULL, NULL, e);
		C(mincore, p, 100 * 4096, at);
		for (int i = 0; i < 2; i++) {
			C(epoll_ctl, ep, EPOLL_CTL_ADD, sv[i], &any);
			C(sendto, sv[0], "a message of some length that has no room", 41, 0, NULL, 0);
		}
		C(epoll_wait, ep, at, 10, 0);
		C(recvfrom, sv[1], at, 100, MSG_DONTWAIT, NULL, NULL);
		C(recvmsg, sv[1], &m, MSG_DONTWAIT);
		C(getsockname, sv[0], at, e);
		C(waitid, 0, 0, at, 4, NULL);
		for (int i = 0; i < 2; i++)
			C(recvfrom, sv[1], out[0], 100, MSG_DONTWAIT, NULL, NULL);
	}
	C(munmap, p, 8192);
	C(close, fd), C(close, d), C(close, ep), C(close, sv[0]), C(close, sv[1]);
}
