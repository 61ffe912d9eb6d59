// SPDX-License-Identifier: MIT
// BREAKS: io_uring: rings shared with the kernel, which writes results and data into memory while the program
// runs, without a system call of its own; the data are addresses next.
// BUILD: cc -O2
#define _GNU_SOURCE
#include <linux/io_uring.h>
#include <sys/mman.h>

#include "check.h"

#define AT(base, off) ((unsigned *)((char *)(base) + (off)))

static struct io_uring_params p;
static char *sq, *cq;
static struct io_uring_sqe *sqe;
static int ring;

static int submit(int op, int fd, const void *buf, unsigned len, unsigned long user)
{
	unsigned tail = *AT(sq, p.sq_off.tail), mask = *AT(sq, p.sq_off.ring_mask), i = tail & mask, head;
	struct io_uring_cqe *c;
	int res;

	memset(&sqe[i], 0, sizeof(sqe[i]));
	sqe[i].opcode = op;
	sqe[i].fd = fd;
	sqe[i].addr = (unsigned long)buf;
	sqe[i].len = len;
	sqe[i].user_data = user;
	AT(sq, p.sq_off.array)[i] = i;
	__atomic_store_n(AT(sq, p.sq_off.tail), tail + 1, __ATOMIC_RELEASE);
	CHECK(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1);
	head = *AT(cq, p.cq_off.head);
	CHECK(head != __atomic_load_n(AT(cq, p.cq_off.tail), __ATOMIC_ACQUIRE));
	c = (struct io_uring_cqe *)(cq + p.cq_off.cqes) + (head & *AT(cq, p.cq_off.ring_mask));
	CHECK(c->user_data == user);
	res = c->res;
	__atomic_store_n(AT(cq, p.cq_off.head), head + 1, __ATOMIC_RELEASE);
	return res;
}

int main(void)
{
	static unsigned char buf[64];
	unsigned t[256] = { 0 }, s = 0;
	int fd[2];

	ring = syscall(SYS_io_uring_setup, 4, &p);
	if (ring < 0)
		SKIP("sys_uring", "no io_uring");
	sq = mmap(NULL, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring,
		  IORING_OFF_SQ_RING);
	cq = mmap(NULL, p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_CQ_RING);
	sqe = mmap(NULL, p.sq_entries * sizeof(*sqe), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring,
		   IORING_OFF_SQES);
	CHECK(sq != MAP_FAILED && cq != MAP_FAILED && sqe != MAP_FAILED);
	CHECK(!pipe(fd));
	for (int i = 0; i < 10; i++) {
		unsigned char out[16];

		for (int k = 0; k < 16; k++)
			out[k] = work(i * 16 + k, 3);
		CHECK(submit(IORING_OP_NOP, 0, NULL, 0, i) == 0);
		CHECK(submit(IORING_OP_WRITE, fd[1], out, 16, 100 + i) == 16);
		CHECK(submit(IORING_OP_READ, fd[0], buf, 64, 200 + i) == 16);
		for (int k = 0; k < 16; k++)
			s = s * 31 + t[buf[k]]++ + buf[k];
	}
	CHECK(submit(IORING_OP_READ, 9999, buf, 64, 1) == -EBADF);
	printf("sys_uring %x\n", s);
	return 0;
}
