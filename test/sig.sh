#!/bin/sh
# SPDX-License-Identifier: MIT
# sig.sh - signals at times that nothing determines (test/sig/*.c), and siglongjmp out of handlers 100,000 times:
# the same output as untraced, and every address of the trace the one that was logged (PTRACE_VERIFY)
#
# usage: test/sig.sh [BUILD]
set -u
export PTRACE_CF="${PTRACE_CF:-soft}" # log everything: what a replay computes is for replay.sh
build=$(realpath -m "${1:-build}")
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
export XDG_CACHE_HOME="$build/cache"
mkdir -p "$XDG_CACHE_HOME"
pass=0 fail=0

one() { # PROGRAM ARGS...
	rm -rf "$tmp/run"
	timeout 60 "$@" > "$tmp/native" 2>&1
	n=$?
	PTRACE_VERIFY=1 PTRACE_DIR=$tmp/run PTRACE_ANALYZE=$build/ptrace-analyze timeout 120 \
		env LD_PRELOAD="$build/libptrace_rt.so" "$@" 2>&1 | grep -v '^ptrace: analysing' > "$tmp/traced"
	if ! cmp -s "$tmp/native" "$tmp/traced" || [ $n -ne 0 ]; then
		why="status $n; $(diff "$tmp/native" "$tmp/traced" | head -3 | tr '\n' ' ')"
	elif timeout 120 "$build/ptrace-decode" --verify "$tmp/run" > "$tmp/out" 2>&1 &&
		tail -1 "$tmp/out" | grep -q 'wrong=0 unknown=0 missing=0'; then
		pass=$((pass + 1))
		return
	else
		why=$(tail -2 "$tmp/out" | tr '\n' ' ')
	fi
	echo "FAIL: $*: $why"
	fail=$((fail + 1))
}

for f in test/sig/*.c; do
	one "$build/test/$(basename "$f" .c)"
done
one "$build/test/progs/sig_longjmp" 100000
echo "$pass passed, $fail failed"
[ $fail = 0 ]
