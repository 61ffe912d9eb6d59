// SPDX-License-Identifier: MIT
// BREAKS: inline syscall instructions: rcx and r11 after them, every other register kept, flags kept, a
// buffer filled by the kernel whose contents become addresses.
// BUILD: cc -O2
// SIGS: sees in r11 that it is stepped
// VARIANTS: clang
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static long sys3(long nr, long a, long b, long c, long *rcx, long *r11)
{
	long ret = nr, cx;
	register long r11v __asm__("r11");

	__asm__ volatile("syscall" : "+a"(ret), "=c"(cx), "=r"(r11v) : "D"(a), "S"(b), "d"(c) : "memory");
	*rcx = cx;
	*r11 = r11v;
	return ret;
}

int main(void)
{
	int fds[2], table[256] = { 0 };
	unsigned char buf[16] = { 0 };
	long rcx, r11, s = 0;

	if (pipe(fds))
		return 1;
	s += sys3(SYS_write, fds[1], (long)"\x07\x80\xff\x01", 4, &rcx, &r11);
	s += sys3(SYS_read, fds[0], (long)buf, sizeof(buf), &rcx, &r11);
	for (int i = 0; i < 4; i++)
		s += table[buf[i]]++;
	s += sys3(SYS_close, 1234, 0, 0, &rcx, &r11);
	printf("syscalls %ld %d %d\n", s, rcx != 0, (int)(r11 >> 8 & 1));
	return 0;
}
