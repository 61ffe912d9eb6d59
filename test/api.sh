#!/bin/bash
# SPDX-License-Identifier: MIT
# api.sh - the library as a stranger uses it: installed, found through pkg-config, linked with a program
# whose own names are those of the library's inner parts; what it reads from a trace file and decodes from
# a run directory is what ptrace-decode says, also when it can have little address space.
#
#	api.sh BUILD
set -u
b=$(realpath "${1:-build}")
here=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
pass=0 fail=0
check() { # check NAME COMMAND...: passes when the command does
	name=$1; shift
	if "$@"; then pass=$((pass + 1)); else fail=$((fail + 1)); echo "FAIL: $name ($*)"; fi
}
make -s --no-print-directory -C "$here" B="$(realpath --relative-to="$here" "$b")" PREFIX="$dir/inst" install >"$dir/install.log" 2>&1 ||
	{ tail -5 "$dir/install.log"; echo "FAIL: install"; exit 1; }
cat >"$dir/app.c" <<'C'
#include <ptrace_decode.h>
#include <stdio.h>

/* names the library uses inside */
int flush, lost, here, need, now, place, walk_loop, map_open, err_set;

static int count(void *ctx, const struct ptrace_rec *rec, size_t n)
{
	(void)rec;
	*(uint64_t *)ctx += n;
	return 0;
}

int main(int argc, char **argv)
{
	struct ptrace_error e = {0};
	struct ptrace_stats st;
	static struct ptrace_rec rec[1000];
	ptrace_trace *t = argc == 3 ? ptrace_trace_open(argv[2], &e) : NULL;
	ptrace_run *r = t ? ptrace_run_open(argv[1], NULL, NULL, &e) : NULL;
	const struct ptrace_process *proc;
	const uint32_t first = 0;
	uint64_t read = 0, decoded = 0, merged = 0;
	long n = -1;
	int rc;

	while (r && (n = ptrace_trace_read(t, rec, 1000, &e)) > 0)
		read += n;
	rc = n ? e.status : ptrace_run_decode(r, -1, count, &decoded, &st, &e);
	if (!rc)
		rc = ptrace_run_decode_threads(r, &first, 1, PTRACE_BY_TIME, count, &merged, NULL, &e);
	if (!rc && (merged != decoded || ptrace_run_processes(r, &proc) != 1 || proc->threads != 1 || proc->forked ||
		    proc->parent != UINT32_MAX))
		return 100;
	if (n || rc)
		fprintf(stderr, "%d %s\n", rc, e.text);
	else
		printf("%llu %llu %llu\n", (unsigned long long)read, (unsigned long long)decoded,
		       (unsigned long long)st.accesses);
	ptrace_trace_close(t);
	ptrace_run_close(r);
	return rc || flush + lost + here + need + now + place + walk_loop + map_open + err_set;
}
C
flags=$(PKG_CONFIG_PATH=$dir/inst/lib/pkgconfig pkg-config --static --cflags --libs libptrace_decode)
check "pkg-config" test -n "$flags"
# shellcheck disable=SC2086 # flags are words
check "links with names of its own" ${CC:-cc} -Wall -Werror -o "$dir/app" "$dir/app.c" $flags
record() { # DIR CF
	XDG_CACHE_HOME=$b/cache PTRACE_ANALYZE=$b/ptrace-analyze PTRACE_DIR=$1 PTRACE_CF=$2 \
		LD_PRELOAD=$b/libptrace_rt.so /bin/true 2>"$dir/err"
}
record "$dir/run" soft
record "$dir/rec" auto
decode=$b/ptrace-decode
check "writes a trace file" "$decode" --format=bin -o "$dir/trace" "$dir/run"
n=$("$decode" --json "$dir/run" | sed -n 's/.*"accesses": \([0-9]*\).*/\1/p')
check "some accesses" test "${n:-0}" -gt 1000
check "the same number, three ways" test "$("$dir/app" "$dir/run" "$dir/trace")" = "$n $n $n"
little() { # 300 MiB of address space, most of it for the maps, which are files
	(ulimit -v 307200 && "$decode" --summary "$@" "$dir/run" >"$dir/little" 2>&1) &&
		grep -q "^accesses  *$n " "$dir/little"
}
check "in little address space" little
check "with a bound on shadow memory" little --memory=8M
head -c "$(($(stat -c %s "$dir/trace") / 2))" "$dir/trace" >"$dir/cut"
check "a replay's trace file" "$decode" --format=bin -o "$dir/trace2" "$dir/rec"
m=$("$decode" --json "$dir/rec" | sed -n 's/.*"accesses": \([0-9]*\).*/\1/p')
check "a replay, three ways" test "$(PTRACE_REPLAY=$b/ptrace-replay "$dir/app" "$dir/rec" "$dir/trace2")" = "$m $m $m"
check "a cut trace file is an error" test "$("$dir/app" "$dir/run" "$dir/cut" 2>&1)" != "$n $n $n"
echo "$pass passed, $fail failed"
[ $fail = 0 ]
