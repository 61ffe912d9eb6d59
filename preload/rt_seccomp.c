/* SPDX-License-Identifier: MIT
 *
 * rt_seccomp.c - programs that restrict their system calls (seccomp(2))
 *
 * The runtime makes some of its own when the program makes one, and a filter that does not list those would
 * kill the program. A filter sees the address of the instruction, so ours is put in front of the program's:
 *
 *   instruction in the runtime, but not where it executes calls of the program? ─▶ allow
 *   else ─▶ the program's filter, as it is
 *
 * Strict mode (read, write, exit and sigreturn only) takes no filter; it becomes a filter that does the same. Filters
 * survive exec, and the addresses in them do not hold for another image: what is executed after one runs
 * untraced.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include "rt.h"

#define PR_SET_SECCOMP 22
#define IP_LOW (offsetof(struct seccomp_data, instruction_pointer))
#define IP_HIGH (IP_LOW + 4)

/* to the next instruction when true, over `skip` more when false; and the other way round */
#define STMT(code, k) ((struct sock_filter){code, 0, 0, (uint32_t)(k)})
#define JUMP(code, k, t, f) ((struct sock_filter){BPF_JMP | (code) | BPF_K, t, f, (uint32_t)(k)})
#define LOAD(off) STMT(BPF_LD | BPF_W | BPF_ABS, off)

/* where the runtime executes calls of the program; an instruction's address is that behind it */
static const char *const calls[] = {rt_sys_after, rt_real_after, rt_clone_after, rt_exit_after,
				    rt_call_after};
#define NCALLS (sizeof(calls) / sizeof(calls[0]))

#define PREFIX (6 + NCALLS)
#define STRICT 9

/* false when the addresses have not their upper halves in common: then the program's filter stays alone */
static bool prefix(struct sock_filter *f)
{
	const struct rt_module *self = rt_mod_at((uint64_t)rt_text_lo);
	uint8_t out = PREFIX;

	if (!self || self->lo >> 32 != self->hi >> 32)
		return false;
	f[0] = LOAD(IP_HIGH);
	f[1] = JUMP(BPF_JEQ, self->lo >> 32, 0, out - 2);
	f[2] = LOAD(IP_LOW);
	f[3] = JUMP(BPF_JGE, self->lo, 0, out - 4);
	f[4] = JUMP(BPF_JGE, self->hi, out - 5, 0);
	for (uint8_t i = 0; i < NCALLS; i++)
		f[5 + i] = JUMP(BPF_JEQ, (uint64_t)calls[i], out - 6 - i, 0);
	f[5 + NCALLS] = STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return true;
}

static void strict(struct sock_filter *f)
{
	f[0] = LOAD(offsetof(struct seccomp_data, arch));
	f[1] = JUMP(BPF_JEQ, 0xc000003e /* AUDIT_ARCH_X86_64 */, 0, 5);
	f[2] = LOAD(offsetof(struct seccomp_data, nr));
	f[3] = JUMP(BPF_JEQ, __NR_read, 4, 0);
	f[4] = JUMP(BPF_JEQ, __NR_write, 3, 0);
	f[5] = JUMP(BPF_JEQ, __NR_exit, 2, 0);
	f[6] = JUMP(BPF_JEQ, __NR_rt_sigreturn, 1, 0);
	f[7] = STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD);
	f[8] = STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
}

static long install(uint64_t flags, const struct sock_fprog *prog)
{
	long r = rt_sc(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, prog);

	if (!rt_err(r))
		rt.seccomp = true;
	return r;
}

/* *done: made, with result; otherwise the call is to be made as it is */
static long filter(uint64_t flags, uint64_t user, bool *done)
{
	struct sock_filter f[BPF_MAXINSNS];
	struct sock_fprog p, mine;

	if (rt_copy_out(&p, user, sizeof(p)) || !p.len || p.len > BPF_MAXINSNS - PREFIX || !prefix(f) ||
	    rt_copy_out(f + PREFIX, (uint64_t)p.filter, p.len * sizeof(*f)))
		return 0; /* the kernel knows what is wrong */
	mine.len = p.len + PREFIX;
	mine.filter = f;
	*done = true;
	return install(flags, &mine);
}

static long strict_mode(bool *done)
{
	struct sock_filter f[PREFIX + STRICT];
	struct sock_fprog p = {PREFIX + STRICT, f};

	/* no_new_privs, which a filter takes of who is not root, means nothing where nothing can be executed */
	if (!prefix(f) || rt_err(rt_sc(__NR_prctl, 38 /* PR_SET_NO_NEW_PRIVS */, 1, 0, 0, 0)))
		return 0;
	strict(f + PREFIX);
	*done = true;
	return install(0, &p);
}

/* prctl and seccomp of the program */
long rt_seccomp(const struct rt_tcb *t, bool *done)
{
	const uint64_t *g = t->sv.gpr;

	*done = false;
	if (t->sv.nr == __NR_seccomp && g[RDI] == SECCOMP_SET_MODE_FILTER)
		return filter(g[RSI], g[RDX], done);
	if (t->sv.nr == __NR_prctl && g[RDI] == PR_SET_SECCOMP && g[RSI] == SECCOMP_MODE_FILTER)
		return filter(0, g[RDX], done);
	if ((t->sv.nr == __NR_seccomp && g[RDI] == SECCOMP_SET_MODE_STRICT && !g[RSI] && !g[RDX]) ||
	    (t->sv.nr == __NR_prctl && g[RDI] == PR_SET_SECCOMP && g[RSI] == SECCOMP_MODE_STRICT))
		return strict_mode(done);
	return 0;
}

/* LD_PRELOAD=… without this library; 0, which ends the environment, where there is no room */
static uint64_t without_us(uint64_t var)
{
	static const char us[] = "libptrace_rt.so";
	char *s = rt_alloc(RT_PATH), *to = s + sizeof("LD_PRELOAD=") - 1, *from = to;
	size_t n = 0;

	while (s && n < RT_PATH - 1 && !rt_copy_out(s + n, var + n, 1) && s[n])
		n++;
	if (!s || s[n])
		return 0;
	while (*from) { /* entries are separated by spaces or colons (ld.so(8)) */
		size_t k = 0;

		while (from[k] && from[k] != ':' && from[k] != ' ')
			k++;
		k += from[k] != 0;
		n = k - (k && (from[k - 1] == ':' || from[k - 1] == ' '));
		if (n < sizeof(us) - 1 || memcmp(from + n - (sizeof(us) - 1), us, sizeof(us) - 1)) {
			memcpy(to, from, k);
			to += k;
		}
		from += k;
	}
	*to = 0;
	return (uint64_t)s;
}

/* What is executed does not get this library. The program's memory stays as it is; what is passed instead is in
 * the arena, which lasts until the exec. */
void rt_exec_alone(struct rt_tcb *t)
{
	uint64_t *arg = &t->sv.gpr[t->sv.nr == __NR_execveat ? R10 : RDX], *env, v = 0;
	size_t n = 0;

	while (*arg && !rt_copy_out(&v, *arg + n * 8, 8) && v)
		n++;
	env = v || !*arg ? NULL : rt_alloc((n + 1) * 8);
	if (!env || rt_copy_out(env, *arg, n * 8))
		return; /* a bad pointer: the kernel says so */
	for (size_t i = 0; i < n; i++) {
		char name[11];

		if (!rt_copy_out(name, env[i], sizeof(name)) && !memcmp(name, "LD_PRELOAD=", sizeof(name)))
			env[i] = without_us(env[i]);
	}
	*arg = (uint64_t)env;
}
