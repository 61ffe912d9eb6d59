#!/bin/sh
# SPDX-License-Identifier: MIT
# rt_hook.sh - the runtime's hooks on rt_prog with a hand-made map: every case must print and
# return what it does untraced, and leave the run directory in the expected state.
set -u
export PTRACE_CF="${PTRACE_CF:-soft}" # log everything: what a replay computes is for replay.sh
here=$(cd "$(dirname "$0")/.." && pwd)
B=$here/build
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
export XDG_CACHE_HOME="$dir/cache" PTRACE_ANALYZE="$B/test/rt_mkmap"
mkdir cache
pass=0 fail=0
ok() {
	if [ "$1" = 0 ]; then pass=$((pass + 1)); else fail=$((fail + 1)); echo "FAIL: $2"; fi
}
traced() { env LD_PRELOAD="$B/libptrace_rt.so" "$@"; }
ended() { # how the (first) process of the run ended
	sed -n 's/.*"end": "\([a-z]*\)".*/\1/p' run.dir/run.json
}
reason() { sed -n 's/.*"stop_reason": "\([a-z-]*\)".*/\1/p' run.dir/run.json; }

# libc is opaque here, so a return from main ends without an exit mark: killed
for c in log:exit:none big:exit:none signal:stopped:signal eintr:stopped:signal fork:killed:none vfork:killed:none \
	 thread:killed:none exec:exec:none fds:killed:none mem:stopped:unsupported gs:stopped:gs \
	 trap:stopped:unexpected; do
	n=${c%%:*} want=${c#*:}
	rm -rf run.dir
	timeout 20 "$B/test/rt_prog" "$n" >plain.out 2>plain.err; a=$?
	traced timeout 20 "$B/test/rt_prog" "$n" >trace.out 2>trace.err; b=$?
	ok $((a != b)) "$n: exit status $b, untraced $a"
	cmp -s plain.out trace.out; ok $? "$n: output differs: $(diff plain.out trace.out | head -5)"
	rm -rf run.dir
	traced "$B/test/rt_prog" "$n" >/dev/null 2>trace.err
	i=0 # a run that ends without an exit mark is finished by the collector a moment later
	while [ "$(ended)" = "" ] && [ $i -lt 100 ]; do sleep 0.05; i=$((i + 1)); done
	got=$(ended):$(reason)
	[ "$got" = "$want" ]; ok $? "$n: run ended $got, expected $want"
	sed -i "/no module could be analysed/d" trace.err # sh, in children
	[ ! -s trace.err ]; ok $? "$n: said $(head -1 trace.err)"
done

echo "$pass passed, $fail failed"
[ $fail = 0 ]
