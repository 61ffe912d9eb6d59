/* SPDX-License-Identifier: MIT
 *
 * collect_pt_why.c - why Intel PT cannot be had, and what an administrator can do about it, in one line
 *
 * Who may open an event: Documentation/admin-guide/perf-security.rst and sysctl/kernel.rst (perf_event_paranoid,
 * perf_event_mlock_kb) of the kernel. An event without exclude_kernel needs more rights; ours excludes it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "collect_pt.h"

/* a number in /proc/sys/kernel; false if it is not there */
static bool sysctl_of(const char *name, long *v)
{
	char path[128];
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	f = fopen(path, "re");
	if (!f)
		return false;
	ok = fscanf(f, "%ld", v) == 1;
	fclose(f);
	return ok;
}

static void why_memory(char *buf, size_t size, int err)
{
	struct rlimit l = {0, 0};
	long kb = 0;

	if (err == ENOMEM) {
		snprintf(buf, size,
			 "the kernel has no memory for the trace buffer; make PTRACE_PT_AUX smaller");
		return;
	}
	sysctl_of("perf_event_mlock_kb", &kb);
	getrlimit(RLIMIT_MEMLOCK, &l);
	if (err != EPERM && err != EAGAIN) {
		snprintf(buf, size, "the trace buffer cannot be mapped: %s", strerror(err));
		return;
	}
	snprintf(buf, size,
		 "not even a 64 KiB trace buffer fits what this user may lock: "
		 "kernel.perf_event_mlock_kb=%ld for each of "
		 "%ld processors, of all this user's, and 'ulimit -l' of %lld KiB beyond; raise one of them "
		 "(each "
		 "thread: PTRACE_PT_AUX + "
		 "PTRACE_PT_RING + 4 KiB)",
		 kb, sysconf(_SC_NPROCESSORS_ONLN),
		 l.rlim_cur == RLIM_INFINITY ? -1ll : (long long)l.rlim_cur / 1024);
}

static void why_rights(char *buf, size_t size, int err)
{
	long level;

	if (!sysctl_of("perf_event_paranoid", &level))
		snprintf(buf, size,
			 "perf_event_open: %s, and there is no /proc/sys/kernel/perf_event_paranoid: the "
			 "kernel is built "
			 "without CONFIG_PERF_EVENTS, or a container hides it",
			 strerror(err));
	else if (level > 2 && geteuid())
		snprintf(buf, size,
			 "kernel.perf_event_paranoid is %ld; as root: sysctl kernel.perf_event_paranoid=2 "
			 "(or give "
			 "ptrace-collect CAP_PERFMON)",
			 level);
	else
		snprintf(buf, size,
			 "perf_event_open: %s though kernel.perf_event_paranoid=%ld allows it: a container's "
			 "seccomp filter "
			 "or a security module forbids it (docker: --cap-add PERFMON and a seccomp profile "
			 "with "
			 "perf_event_open)",
			 strerror(err), level);
}

void pt_why_open(char *buf, size_t size, const struct pt_fail *f)
{
	if (f->memory) {
		why_memory(buf, size, f->err);
		return;
	}
	switch (f->err) {
	case EACCES:
	case EPERM:
		why_rights(buf, size, f->err);
		break;
	case ENOSYS:
		snprintf(buf, size,
			 "perf_event_open does not exist here: a container's seccomp filter, a sandbox "
			 "(gVisor), or a kernel "
			 "without CONFIG_PERF_EVENTS");
		break;
	case EBUSY: /* x86_add_exclusive in arch/x86/events/core.c; lbr_pt_coexist */
		snprintf(buf, size,
			 "Intel PT is in use by another (perf record -e intel_pt, a debugger; on processors "
			 "before Ice Lake "
			 "also branch records: perf record -b, --call-graph=lbr); end that first");
		break;
	case ENOENT:
	case ENODEV:
	case EOPNOTSUPP:
		snprintf(buf, size, "the kernel's intel_pt PMU takes no events of a thread: %s",
			 strerror(f->err));
		break;
	case EINVAL:
		snprintf(buf, size,
			 "the kernel does not take the settings (EINVAL); see 'dmesg', and try "
			 "PTRACE_PT_CYC=0, PTRACE_PT_MTC=off");
		break;
	case EMFILE:
	case ENFILE:
		snprintf(buf, size,
			 "no file descriptors are left for events (two a thread): raise 'ulimit -Hn'");
		break;
	case ESRCH:
		snprintf(buf, size, "the thread is not visible to ptrace-collect (another pid namespace?)");
		break;
	default:
		snprintf(buf, size, "perf_event_open: %s", strerror(f->err));
	}
}

void pt_why_pmu(char *buf, size_t size, int err, const char *what)
{
	if (err == EPROTO)
		snprintf(buf, size, "%s makes no sense", what);
	else
		snprintf(buf, size, "%s: %s", what, strerror(err));
}
