/* SPDX-License-Identifier: MIT
 *
 * rt_limit.c - resource limits under which tracing would change what the program can do
 *
 * The runtime's memory counts against the program's limits. A program with a small one would run out of
 * memory earlier than untraced, so it is left alone.
 */
#include "rt.h"

#define LIMIT_AS 9 /* asm-generic/resource.h; its header and the kernel's rlim types do not mix here */
#define LIMIT_DATA 2
#define LIMIT_FSIZE 1
#define SPACE_MIN (4ull << 30)
#define DATA_MIN (1ull << 30)

static uint64_t limit(int which)
{
	uint64_t lim[2] = {~0ull, ~0ull};

	if (rt_err(rt_sc(__NR_prlimit64, 0, which, 0, lim)))
		return ~0ull;
	return lim[0];
}

uint64_t rt_limit_space(void)
{
	return limit(LIMIT_AS);
}

uint64_t rt_limit_file(void)
{
	return limit(LIMIT_FSIZE);
}

static int refuse(const char *what, uint64_t is, const char *raise)
{
	char buf[64];
	struct rt_str s = rt_str(buf, sizeof(buf));

	rt_put(&s, what);
	rt_putu(&s, is >> 20);
	rt_say(buf, " MiB, too little to trace in; running untraced (raise it: ", raise, ")");
	return -1;
}

int rt_limit(void)
{
	uint64_t space = limit(LIMIT_AS), data = limit(LIMIT_DATA);

	if (space < SPACE_MIN)
		return refuse("the address space is limited to ", space, "ulimit -v 4194304 or more");
	if (data < DATA_MIN)
		return refuse("the data size is limited to ", data, "ulimit -d 1048576 or more");
	return 0;
}
