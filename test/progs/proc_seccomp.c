// SPDX-License-Identifier: MIT
// BREAKS: a program that allows itself three system calls, with death for any other: none may come from a
// tracer. Enough work behind it that logs fill up.
// BUILD: cc -O2
// PT_LONG: yes
// KILLED: yes
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "check.h"

#define ALLOW(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void filter(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_write),
		ALLOW(SYS_getppid),
		ALLOW(SYS_exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog p = { sizeof(f) / sizeof(f[0]), f };

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p));
}

int main(void)
{
	char out[64];
	unsigned s = 0;
	int st, n;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) { /* and the filter is what it says */
		filter();
		getuid();
		_exit(0);
	}
	CHECK(waitpid(pid, &st, 0) == pid && WIFSIGNALED(st) && WTERMSIG(st) == SIGSYS);
	filter();
	for (int i = 0; i < 300; i++) {
		s = s * 31 + work(i, 2000);
		CHECK(syscall(SYS_getppid) > 0);
	}
	n = snprintf(out, sizeof(out), "proc_seccomp %x\n", s);
	CHECK(write(1, out, n) == n);
	_exit(0);
}
