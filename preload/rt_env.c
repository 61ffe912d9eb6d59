/* SPDX-License-Identifier: MIT
 *
 * rt_env.c - settings from the environment (libptrace_rt(7))
 *
 * The environment is copied into the arena: programs overwrite theirs (setproctitle), and
 * ptrace-analyze must be started with it at a later dlopen. The program's own stays as it is.
 */
#include "rt.h"

static const char *get(char **envp, const char *name)
{
	for (; *envp; envp++) {
		const char *v = rt_starts(*envp, name);

		if (v && *v == '=')
			return v + 1;
	}
	return NULL;
}

const char *rt_env_get(const char *name)
{
	return get(rt.envp, name);
}

bool rt_env_oracle(char **envp)
{
	const char *v = get(envp, "PTRACE_ORACLE");

	return v && rt_streq(v, "1");
}

static int env_copy(char **envp)
{
	size_t n = 0, bytes = 0;
	char *p;

	while (envp[n])
		bytes += rt_strlen(envp[n++]) + 1;
	rt.envp = rt_alloc((n + 1) * sizeof(char *));
	p = rt_alloc(bytes + 1);
	if (!rt.envp || !p) {
		rt_say("the environment is too large; running untraced", NULL, NULL, NULL);
		return -1;
	}
	for (size_t i = 0; i < n; i++) {
		size_t len = rt_strlen(envp[i]) + 1;

		rt.envp[i] = memcpy(p, envp[i], len);
		p += len;
	}
	return 0;
}

int rt_refuse(const char *name, const char *value, const char *why)
{
	char buf[256];
	struct rt_str s = rt_str(buf, sizeof(buf));

	rt_put(&s, name);
	rt_put(&s, "=");
	rt_put(&s, value);
	rt_say(buf, ": ", why, "; running untraced");
	return -1;
}

int rt_env_bool(const char *name, bool *to)
{
	const char *v = get(rt.envp, name);

	if (!v || !*v)
		return 0;
	if (!rt_streq(v, "0") && !rt_streq(v, "1"))
		return rt_refuse(name, v, "use 0 or 1");
	*to = *v == '1';
	return 0;
}

static int env_mapflag(const char *name, uint32_t flag)
{
	bool on = false;

	if (rt_env_bool(name, &on))
		return -1;
	rt.mapflags |= on ? flag : 0;
	return 0;
}

static int env_ring(void)
{
	const char *v = get(rt.envp, "PTRACE_RING"), *p = v;
	uint32_t n = 0;

	rt.nchunks = 4;
	if (!v || !*v)
		return 0;
	for (; *p >= '0' && *p <= '9' && n < 1000; p++)
		n = n * 10 + (*p - '0');
	if (*p || n < 2 || n > RING_SPARE)
		return rt_refuse("PTRACE_RING", v, "use a number of chunks from 2 to 64");
	rt.nchunks = n;
	return 0;
}

/* bytes, or with K, M or G; handed on in digits */
static int env_spool(void)
{
	const char *v = get(rt.envp, "PTRACE_SPOOL"), *p;
	struct rt_str s = rt_str(rt.spool, sizeof(rt.spool));
	uint64_t n = 0;
	int shift;

	if (!v || !*v)
		v = "4G";
	for (p = v; *p >= '0' && *p <= '9' && n < 1ull << 40; p++)
		n = n * 10 + (*p - '0');
	shift = *p == 'K' ? 10 : *p == 'M' ? 20 : *p == 'G' ? 30 : 0;
	if (p == v || p[shift != 0] || n << shift >> shift != n)
		return rt_refuse("PTRACE_SPOOL", v, "use a number of bytes, or one with K, M or G");
	rt_putu(&s, n << shift);
	return 0;
}

static int env_modes(void)
{
	const char *v = get(rt.envp, "PTRACE_MODE");

	if (v && rt_streq(v, "fast"))
		return rt_refuse("PTRACE_MODE", v, "not available in this version, use hifi");
	if (v && *v && !rt_streq(v, "hifi"))
		return rt_refuse("PTRACE_MODE", v, "unknown mode, use hifi");
	v = get(rt.envp, "PTRACE_COMPRESS");
	if (v && *v && !rt_streq(v, "lz4") && !rt_streq(v, "zstd") && !rt_streq(v, "none"))
		return rt_refuse("PTRACE_COMPRESS", v, "unknown, use lz4, zstd or none");
	rt.compress_opt = v && *v ? v : "lz4";
	return 0;
}

/* Recording for a replay, unless everything is wanted from the start. What a replay logs is asked for when it is made. */
static void env_how(void)
{
	const char *v = get(rt.envp, "PTRACE_CF");

	if (rt.how == RT_REPLAY) {
		rt.mapflags |= MAP_F_NONDET;
		return;
	}
	if (rt.ptwrite || rt.mapflags & MAP_F_PT ||
	    (v && *v && !rt_streq(v, "auto") && !rt_streq(v, "replay")))
		return;
	rt.how = RT_RECORD;
	rt.restorable = true;
	rt.fullflags = rt.mapflags;
	rt.mapflags = MAP_F_NONDET | MAP_F_SPARSE;
}

int rt_env(char **envp)
{
	if (env_copy(envp) || env_modes() || rt_pt_env() || env_ring() || env_spool() ||
	    env_mapflag("PTRACE_VERIFY", MAP_F_VERIFY) || env_mapflag("PTRACE_ORDER", MAP_F_ORDER) ||
	    env_mapflag("PTRACE_TEST_PT_COPIES", MAP_F_PT)) /* with nothing that records control flow */
		return -1;
	env_how();
	rt.dir_opt = get(rt.envp, "PTRACE_DIR");
	if (!rt.dir_opt || !*rt.dir_opt)
		rt.dir_opt = "run.dir";
	rt.run_opt = get(rt.envp, "PTRACE_RUN");
	if (rt.how == RT_REPLAY)
		rt.stream_opt = get(rt.envp, "PTRACE_STREAM");
	rt.analyze_opt = get(rt.envp, "PTRACE_ANALYZE");
	rt.collect_opt = get(rt.envp, "PTRACE_COLLECT");
	rt.home = get(rt.envp, "HOME");
	rt.xdg = get(rt.envp, "XDG_CACHE_HOME");
	return 0;
}
