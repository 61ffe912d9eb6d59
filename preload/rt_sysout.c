/* SPDX-License-Identifier: MIT
 *
 * rt_sysout.c - which memory of the program a system call wrote: the way through the table
 *
 *   rt_sysout ─▶ so_table (rt_sysout_tab.c) ─▶ ranges that follow from arguments and result
 *                                           ├▶ rt_sysout_fn.c     that need a look at memory
 *                                           ├▶ rt_sysout_sock.c   iovec, msghdr, socket addresses
 *                                           ├▶ rt_sysout_ctl.c    by command: fcntl, prctl, ptrace, ...
 *                                           └▶ rt_sysout_ioctl.c  by request
 *
 * Sources: the kernel's arch/x86/entry/syscalls/syscall_64.tbl, and the SYSCALL_DEFINE of each call.
 */
#include "rt_sysout_in.h"
#include "rt_sysout_nr.h"
#include <linux/errno.h>

#define PAGE 4096ull
#define MUCH (1ull << 40)

uint32_t so_u32(uint64_t addr)
{
	uint32_t v;

	return rt_copy_out(&v, addr, sizeof(v)) ? 0 : v;
}

uint64_t so_u64(uint64_t addr)
{
	uint64_t v;

	return rt_copy_out(&v, addr, sizeof(v)) ? 0 : v;
}

/* Pages that could be read: asking the kernel takes longer than most calls. Only rt_sysout() takes them to be there, and
 * any call that may change that makes it forget them. */
static uint64_t known[64];

void rt_sysout_forget(void)
{
	for (int i = 0; i < 64; i++)
		known[i] = 0;
}

static bool page_there(uint64_t addr)
{
	uint64_t page = addr | (PAGE - 1), *k = &known[addr / PAGE % 64];
	uint8_t byte;

	if (*k == page)
		return true;
	if (rt_copy_out(&byte, addr, 1))
		return false;
	*k = page;
	return true;
}

/* the part of a range up to the first page that cannot be read */
static uint64_t there(uint64_t addr, uint64_t len)
{
	uint64_t at = addr;

	if (len > ~addr)
		len = ~addr;
	while (at < addr + len && page_there(at))
		at = (at | (PAGE - 1)) + 1;
	return so_min(at - addr, len);
}

void so_add(struct so *s, uint64_t addr, uint64_t len)
{
	struct out_range *last = s->n ? &s->out[s->n - 1] : NULL;

	if (addr && len && s->clip)
		len = there(addr, len);
	if (!addr || !len)
		return;
	if (last && last->addr + last->len == addr) {
		last->len += len;
		return;
	}
	if (s->n == s->max) {
		s->stop = true;
		return;
	}
	s->out[s->n++] = (struct out_range){addr, len};
}

void so_loose(struct so *s, uint64_t addr, uint64_t len)
{
	bool clip = s->clip;

	s->clip = true;
	so_add(s, addr, len);
	s->clip = clip;
}

void so_rest(struct so *s, uint64_t addr, uint64_t done, uint64_t room)
{
	uint64_t last = addr + room - 1;

	if (!addr || s->ret < 0 || done >= room || ((addr + done) ^ last) < PAGE || page_there(last))
		return;
	so_loose(s, addr + done, room - done);
}

static uint64_t length(struct so *s, const struct so_out *o)
{
	uint64_t ret = s->ret < 0 ? 0 : s->ret, j = s->arg[(o->how >> 4) % 6];

	switch (o->how & 15) {
	case SO_FIX:
		return o->size;
	case SO_RET:
		s->stop |= s->fault;
		return ret * o->size;
	case SO_RETI:
		j &= 0xffffffff;
		/* fall through */
	case SO_RETL:
		return so_min(s->fault ? MUCH : ret, j) * o->size;
	case SO_CNT:
		return (j & 0xffffffff) * o->size;
	}
	return 0;
}

static void list(struct so *s, const struct so_desc *d)
{
	for (int i = 0; i < 3 && d->out[i].how; i++) {
		const struct so_out *o = &d->out[i];
		uint64_t addr = s->arg[o->arg], len = length(s, o), room = s->arg[(o->how >> 4) % 6];

		so_add(s, addr, len);
		if ((o->how & 15) == SO_RETL)
			so_rest(s, addr, len, so_min(room, MUCH) * o->size);
		if ((o->how & 15) == SO_RETI)
			so_rest(s, addr, len, (room & 0xffffffff) * o->size);
	}
}

/* Which failures say that nothing was written. With EFAULT it may be what there was room for. */
static bool clean(const struct so *s, const struct so_desc *d)
{
	if (s->ret >= 0)
		return false;
	if (s->ret == -ENOSYS || s->ret == -EBADF)
		return true;
	if (s->fault)
		return d->class == SO_NONE || d->class == SO_MAP || d->class == SO_SPECIAL;
	return !(d->flags & SO_FAIL);
}

static void more(struct so *s, uint8_t class)
{
	switch (class) {
	case SO_FN:
	case SO_SPECIAL:
		so_fn(s);
		break;
	case SO_SOCK:
		so_sock(s);
		break;
	case SO_CTL:
		so_ctl(s);
		break;
	case SO_IOCTL:
		so_ioctl(s);
		break;
	}
}

int rt_sysout(long nr, const uint64_t arg[6], long ret, const struct sys_before *before,
	      struct out_range *out, int max, int *n)
{
	struct so s = {.nr = (uint32_t)nr, .arg = arg, .ret = ret, .before = before, .out = out, .max = max};
	const struct so_desc *d;

	s.fault = ret == -EFAULT;
	s.stop = before->odd;
	*n = 0;
	if (s.nr >= so_ncalls || so_table[s.nr].class == SO_UNKNOWN)
		return ret == -ENOSYS ? OUT_NONE : OUT_STOP;
	d = &so_table[s.nr];
	if (d->class == SO_MAP || d->class == SO_SPECIAL || d->class == SO_STOP)
		rt_sysout_forget();
	if (!clean(&s, d)) {
		s.clip = ret < 0 || (d->flags & SO_CLIP);
		s.stop |= d->class == SO_STOP;
		list(&s, d);
		more(&s, d->class);
	}
	if (s.map) /* madvise */
		rt_sysout_forget();
	*n = s.n;
	if (s.stop)
		return OUT_STOP;
	if (s.map || d->class == SO_MAP)
		return OUT_MAP;
	if (d->class == SO_SPECIAL)
		return OUT_SPECIAL;
	return s.n ? OUT_LIST : OUT_NONE;
}

void rt_sysin(long nr, const uint64_t arg[6], struct sys_before *before)
{
	uint32_t call = (uint32_t)nr;
	uint8_t class = call < so_ncalls ? so_table[call].class : SO_UNKNOWN;

	*before = (struct sys_before){{0}, 0};
	if (class == SO_SOCK)
		so_sock_before(call, arg, before);
	else if (class == SO_IOCTL)
		so_ioctl_before(arg, before);
}
