// SPDX-License-Identifier: MIT
// BREAKS: userfaultfd: a page fault of one thread is answered by another, which fills the page; the faulting
// instruction waits in the middle, and must not hold anything of ours.
// BUILD: cc -O2 -pthread
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "check.h"

#define PAGES 8

static int uffd;
static unsigned char *area;

static void *serve(void *arg)
{
	static _Alignas(4096) unsigned char page[4096];
	unsigned long n = 0;

	for (int i = 0; i < PAGES; i++) {
		struct uffd_msg m;
		struct uffdio_copy c = { 0 };

		CHECK(read(uffd, &m, sizeof(m)) == sizeof(m) && m.event == UFFD_EVENT_PAGEFAULT);
		c.dst = m.arg.pagefault.address & ~4095ull;
		for (int k = 0; k < 4096; k++)
			page[k] = k * 7 + (c.dst - (unsigned long)area) / 4096;
		c.src = (unsigned long)page;
		c.len = 4096;
		CHECK(!ioctl(uffd, UFFDIO_COPY, &c));
		n++;
	}
	(void)arg;
	return (void *)n;
}

int main(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { 0 };
	unsigned s = 0;
	pthread_t t;
	void *r;

	uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (uffd < 0)
		uffd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (uffd < 0)
		SKIP("sys_uffd", "no userfaultfd");
	CHECK(!ioctl(uffd, UFFDIO_API, &api));
	area = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(area != MAP_FAILED);
	reg.range.start = (unsigned long)area;
	reg.range.len = PAGES * 4096;
	reg.mode = UFFDIO_REGISTER_MODE_MISSING;
	CHECK(!ioctl(uffd, UFFDIO_REGISTER, &reg));
	CHECK(!pthread_create(&t, NULL, serve, NULL));
	for (int i = 0; i < PAGES * 4; i++) {
		int page = i * 5 % PAGES, at = work(i, 3) & 4095;

		s = s * 31 + area[page * 4096 + at];
		area[page * 4096 + at]++;
	}
	CHECK(!pthread_join(t, &r));
	printf("sys_uffd %x %lu\n", s, (unsigned long)r);
	return 0;
}
