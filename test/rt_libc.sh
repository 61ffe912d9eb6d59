#!/bin/sh
# SPDX-License-Identifier: MIT
# rt_libc.sh - processes, threads, signals, dlopen through libc with the real analyzer: output,
# exit status and (without ASLR) every address the program is given are as untraced.
set -u
export PTRACE_CF="${PTRACE_CF:-soft}" # log everything: what a replay computes is for replay.sh
here=$(cd "$(dirname "$0")/.." && pwd)
B=$here/build
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
# analysing libc takes a while: the build's cache of maps is shared by all tests
export XDG_CACHE_HOME="$B/cache"
mkdir -p "$B/cache"
pass=0 fail=0
check() { # check NAME COMMAND...
	name=$1; shift
	if "$@"; then pass=$((pass + 1)); else fail=$((fail + 1)); echo "FAIL: $name ($*)"; fi
}
# the same number of variables of the same length, so that the stack is the same too
run() { env "PTRACE_MODE=$1" "PTRACE_DIR=$dir/run.dir" "PTRACE_ANALYZE=$B/ptrace-analyze" \
	LD_PRELOAD="$B/libptrace_rt.so" setarch -R "$B/test/rt_libc" "$2"; }

for c in nothing:none fork:none spawn:none map:none daemon:none thread:none signals:none segv:none; do
	n=${c%%:*}
	rm -rf run.dir
	run fast "$n" >plain 2>/dev/null; a=$?
	run hifi "$n" >trace 2>/dev/null; b=$?
	check "$n: exit status" [ "$a" = "$b" ]
	check "$n: output" cmp -s plain trace
	check "$n: stop reason" grep -q "\"stop_reason\": \"${c#*:}\"" run.dir/proc-*/proc.json
done

echo "$pass passed, $fail failed"
[ $fail = 0 ]
