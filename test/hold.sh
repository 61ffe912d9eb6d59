#!/bin/sh
# SPDX-License-Identifier: MIT
# hold.sh - signals at every instruction of the hooks with which a system call is recorded for a replay: none is lost, each
# has its siginfo, the calls have their results, and the replay is that of the whole recording.
# usage: hold.sh [BUILDDIR]
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
B=$(realpath -m "${1:-$here/build}")
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
export XDG_CACHE_HOME="$B/cache" PTRACE_CF=replay
mkdir -p "$B/cache"
pass=0 fail=0
bad() { fail=$((fail + 1)); echo "FAIL: $*"; }

for how in plain alt on-alt rt reset; do
	rm -rf run.dir
	PTRACE_DIR=$dir/run.dir PTRACE_ANALYZE=$B/ptrace-analyze timeout 300 "$B/test/step_sig" hooks \
		/usr/bin/env LD_PRELOAD="$B/libptrace_rt.so" "$B/test/hold_prog" $how > out 2> err 3> sent
	st=$?
	n=$(cut -d' ' -f1 sent)
	timeout 300 "$B/ptrace-decode" --verify run.dir > verify 2> decode.err
	v=$?
	if [ $st != 0 ] || [ "$(cat out)" != "$n" ] || [ "$n" -lt 200 ]; then
		bad "$how: status $st, $n signals sent, $(cat out) taken: $(head -3 err)"
	elif [ $v != 0 ] || ! tail -1 verify | grep -q 'wrong=0 unknown=0 missing=0'; then
		bad "$how: $(tail -1 verify) $(grep -v analysing decode.err | head -3)"
	elif [ "$(echo run.dir/proc-*)" != "$(echo run.dir/proc-*.0)" ]; then
		bad "$how: it did not go on being recorded: $(echo run.dir/proc-*)"
	else
		pass=$((pass + 1))
	fi
done
echo "$pass passed, $fail failed"
[ $fail = 0 ]
