/* SPDX-License-Identifier: MIT
 *
 * rt_init.c - the constructor's C part: everything between ld.so's call and its return
 *
 * Whatever fails, the program runs, untraced, after one line that says why. The order makes
 * that possible: patched text is the last thing that is put in place but for start.bin, and
 * is taken out again when that cannot be written.
 */
#include "rt.h"

struct rt rt;

static bool find_self(const struct rt_vma *v, void *arg)
{
	(void)arg;
	if ((uint64_t)rt_text_lo < v->lo || (uint64_t)rt_text_lo >= v->hi)
		return true;
	rt_dir_path(rt.self, v->path, "");
	return false;
}

/* a tool next to the library, or in the bin directory of the same installation */
static bool find_tool(char *to, const char *opt, const char *name)
{
	static const char *const where[] = {"", "../bin/", "../../bin/", "../../../bin/"};

	if (opt && *opt) {
		rt_dir_path(to, opt, "");
		return true;
	}
	for (size_t i = 0; i < sizeof(where) / sizeof(where[0]); i++) {
		struct rt_str s = rt_str(to, RT_PATH);

		rt_put(&s, rt.self);
		rt_put(&s, "/");
		rt_put(&s, where[i]);
		rt_put(&s, name);
		if (!s.cut && !rt_err(rt_sc(__NR_access, to, 1)))
			return true;
	}
	to[0] = 0;
	return false;
}

static int find_tools(void)
{
	int r = rt_maps(find_self, NULL);

	if (r) {
		rt_say("cannot read /proc/self/maps: ", rt_strerror(r),
		       r == -EMFILE ? "; running untraced (raise the limit: ulimit -n)"
				    : "; running untraced (is /proc mounted?)",
		       NULL);
		return -1;
	}
	if (!rt_dirname(rt.self)) {
		rt_say("cannot find the path of libptrace_rt.so in /proc/self/maps; running untraced "
		       "(name it with its full path in LD_PRELOAD)",
		       NULL, NULL, NULL);
		return -1;
	}
	if (!find_tool(rt.collect, rt.collect_opt, "ptrace-collect")) {
		rt_say("cannot find ptrace-collect next to ", rt.self,
		       "/libptrace_rt.so (set PTRACE_COLLECT); running untraced", NULL);
		return -1;
	}
	if (!rt.analyze_opt || !rt_streq(rt.analyze_opt, "never"))
		find_tool(rt.analyze, rt.analyze_opt, "ptrace-analyze");
	return 0;
}

/* the run directory is there, so what is wrong is in it */
#define LATER "; running untraced (set PTRACE_DIR to a place with room)"

static void give_up(uint32_t reason, const char *what, const char *why, const char *then)
{
	rt_unapply_all();
	rt.stopped = true;
	rt_proc(rt.main)->stop_reason = reason;
	__atomic_store_n(&rt_proc(rt.main)->state, RING_STOP, __ATOMIC_RELEASE);
	rt_ring_wait_done(rt_proc(rt.main));
	if (what)
		rt_say(what, why, then, NULL);
}

/* rt_mod_start(). Where a recording would not see all that the kernel says, once more with everything */
static int modules(void)
{
	char path[RT_PATH];
	int r = rt_mod_start();

	if (r == -EADDRINUSE || rt.how != RT_RECORD || !(r || rt.blind))
		return r;
	rt_unapply_all();
	rt_record_not("a module's system calls would not be seen");
	rt.ring->record = 0;
	rt.nmod = rt.nindex = rt.next_id = 0;
	rt_dir_path(path, rt.proc, "modules.bin");
	rt_sc(__NR_unlink, path);
	if (rt_pt_look())
		return -EPERM;
	rt.ring->pt = rt.pt_set;
	if (rt_pt_open())
		return -EPERM;
	return rt_mod_start();
}

static int begin(const uint64_t *regs)
{
	uint64_t gs = 0;
	int r;

	rt_sc(__NR_arch_prctl, 0x1004 /* ARCH_GET_GS */, &gs);
	if (gs) {
		rt_say("the program uses %gs, which tracing needs; running untraced", NULL, NULL, NULL);
		return -1;
	}
	if (rt.how == RT_RECORD && rt_record_prepare()) {
		rt_record_not("the vDSO cannot be changed");
		if (rt_pt_look())
			return -1;
	}
	if (rt_dir_open() || rt_ring_open())
		return -1;
	if (rt_pt_open()) {
		give_up(RUN_STOP_UNSUPPORTED, NULL, NULL, NULL);
		return -1;
	}
	r = modules();
	if (rt_ring_ready()) {
		rt_unapply_all();
		rt.stopped = true;
		return -1;
	}
	if (r) {
		if (r == -EPERM) /* said: Intel PT or nothing */
			give_up(RUN_STOP_UNSUPPORTED, NULL, NULL, NULL);
		else if (r == -ENOENT)
			give_up(RUN_STOP_UNSUPPORTED, "no module could be analysed; running untraced (see ",
				rt.run, "/analyze.log)");
		else if (r == -EADDRINUSE)
			give_up(RUN_STOP_GS,
				"the program changes the fs or gs base by itself, which tracing needs; "
				"running untraced",
				"", "");
		else if (r == -ELIBACC)
			give_up(RUN_STOP_UNSUPPORTED,
				"the C library cannot be traced: no room for its map (PTRACE_DIR, ulimit "
				"-v), or see ",
				rt.run, "/analyze.log; running untraced");
		else
			give_up(RUN_STOP_UNSUPPORTED, "cannot record the modules: ", rt_strerror(r), LATER);
		return -1;
	}
	r = rt_start_write("start.bin", regs,
			   0x246); /* after xor of a register with itself: ZF and PF, and IF, bit 1 */
	if (r) {
		give_up(RUN_STOP_UNSUPPORTED, "cannot write the start state: ", rt_strerror(r), LATER);
		return -1;
	}
	return 0;
}

extern const char __ehdr_start[],
	_end[] __attribute__((visibility("hidden"))); /* the linker's: this library */

/* Under an emulator of user code (Valgrind) the memory has its code, too, which is not the program's to change, and
 * copies would run in neither. The kernel knows where a system call was really made (proc_pid_syscall(5)); where it
 * does not say, nothing emulates. */
static bool emulated(void)
{
	char buf[256]; /* number, six arguments, stack pointer, instruction pointer */
	long fd = rt_open("/proc/thread-self/syscall", O_RDONLY, 0), n;
	uint64_t at = 0;

	if (rt_err(fd))
		return false;
	n = rt_sc(__NR_read, fd, buf, sizeof(buf));
	rt_close((int)fd);
	while (n > 0 && buf[n - 1] == '\n')
		n--;
	for (unsigned shift = 0; n > 0 && buf[n - 1] != 'x'; shift += 4) {
		char c = buf[--n];
		unsigned v = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
			     : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
						    : 16;

		if (v == 16 || shift == 64)
			return false; /* "running": not said */
		at |= (uint64_t)v << shift;
	}
	return n > 0 && at - (uint64_t)__ehdr_start >= (uint64_t)(_end - __ehdr_start);
}

void rt_start(char **envp, const uint64_t *regs)
{
	int r;

	if (emulated()) {
		rt_say("the program runs under an emulator; running untraced (trace it without)", NULL, NULL,
		       NULL);
		return;
	}
	if (rt_limit())
		return;
	if (rt_place_init()) {
		rt_say("no address space for the runtime; running untraced (see ulimit -v, "
		       "vm.overcommit_memory)",
		       NULL, NULL, NULL);
		return;
	}
	if (rt_env(envp))
		return;
	if (rt.how == RT_RECORD && !rt_record_alone())
		rt_record_not("there were threads or shared memory at the start");
	if (rt_pt_look() || find_tools() || begin(regs))
		return;
	rt_sig_init();
	rt.main->t.r15 = regs[R15];
	if (rt_err(rt_sc(__NR_arch_prctl, 0x1001 /* ARCH_SET_GS */, rt.main))) {
		give_up(RUN_STOP_UNSUPPORTED, "cannot set the gs base: ", rt_strerror(-EPERM),
			"; running untraced");
		rt_sig_restore(rt.sig);
		return;
	}
	r = rt_pt_start();
	if (r) { /* the copies record no control flow */
		rt_sc(__NR_arch_prctl, 0x1001 /* ARCH_SET_GS */, 0);
		give_up(RUN_STOP_UNSUPPORTED, "cannot start Intel PT: ", rt_strerror(r),
			"; running untraced (PTRACE_CF=soft does without)");
		rt_sig_restore(rt.sig);
		return;
	}
	rt_slow_all = rt.how != RT_FULL;
	if (rt.how == RT_RECORD)
		rt_record_start(rt.main);
	rt.active = true;
}

/* regs: hardware order, then rip; what rt_ctor returns with. 1: the oracle's marker is wanted */
int rt_init(char **envp, const uint64_t *regs)
{
	uint64_t all = ~0ull, mask = 0;

	if (rt_env_oracle(envp))
		return 1;
	rt.pid = (uint32_t)rt_getpid();
	rt_sc(__NR_rt_sigprocmask, 2, &all, &mask, 8);
	rt_start(envp, regs);
	if (rt.exit)
		for (;;)
			rt_sc(__NR_exit_group, rt.exit);
	rt_sc(__NR_rt_sigprocmask, 2, &mask, 0, 8);
	return 0;
}
