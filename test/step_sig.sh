#!/bin/sh
# SPDX-License-Identifier: MIT
# step_sig.sh - a signal at every single instruction of calls through PLTs, in the copy, in its stubs and
# in the runtime: the program must see its own registers and positions and end as ever; the trace must be
# the beginning of the trace of an undisturbed run, and grow from one instruction to the next.
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
B=$(realpath -m "${B:-$here/build}")
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
export XDG_CACHE_HOME="$B/cache"
mkdir -p "$B/cache"
pass=0 fail=0
bad() { fail=$((fail + 1)); [ $fail -gt 10 ] || echo "FAIL: $*"; }

run() { # run N: status of step_sig, trace in text
	rm -rf run.dir
	PTRACE_DIR=$dir/run.dir PTRACE_ANALYZE=$B/ptrace-analyze "$B/test/step_sig" "$1" \
		/usr/bin/env LD_PRELOAD="$B/libptrace_rt.so" "$B/test/step_prog" >out 2>&1
	st=$?
	"$B/ptrace-decode" run.dir --format=text -o text >log 2>&1 || grep -q 'a signal arrived$' log || st=decode
}

run 0
[ "$st" = 0 ] || { echo "FAIL: undisturbed: $st: $(cat out log)"; exit 1; }
mv text full
first=0
most=0 n=1
while run $n; [ "$st" != 100 ] && [ $n -lt 1000 ]; do
	lines=$(wc -l < text)
	if [ "$st" != 1 ]; then # the number of signals
		bad "after $n instructions: status $st: $(cat out log)"
	elif ! head -n "$lines" full | cmp -s - text; then
		bad "after $n instructions: not what the undisturbed run has"
	elif [ $((lines + 4)) -lt "$most" ]; then # what follows the log's last byte may be missing
		bad "after $n instructions: $lines records, some instructions earlier $most"
	else
		pass=$((pass + 1))
	fi
	[ "$lines" -le "$most" ] || most=$lines
	[ $n != 1 ] || first=$lines
	n=$((n + 1))
done
[ $n -gt 60 ] && [ "$most" -gt $((first + 10)) ] || bad "$n instructions, $first to $most records: too few"
echo "$pass passed, $fail failed"
[ $fail = 0 ]
