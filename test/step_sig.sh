#!/bin/sh
# SPDX-License-Identifier: MIT
# step_sig.sh - a signal at every single instruction of one of every kind of code that the tracer changes: in
# the copy, in its stubs, in the original text and in the runtime's hooks; some of them on the way into another's
# handler. The program must see its own registers and positions and end as ever; its trace must be that of an
# undisturbed run, and the handlers' in between.
set -u
export PTRACE_CF="${PTRACE_CF:-soft}" # log everything: what a replay computes is for replay.sh
here=$(cd "$(dirname "$0")/.." && pwd)
B=$(realpath -m "${B:-$here/build}")
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
export XDG_CACHE_HOME="$B/cache"
mkdir -p "$B/cache"
pass=0 fail=0
bad() { fail=$((fail + 1)); [ $fail -gt 10 ] || echo "FAIL: $*"; }

export PTRACE_VERIFY=0 # then 1: every address is logged, too, and compared
# run WHEN ARGS...: status of step_sig in st, trace in text, how many signals were sent in sent
run() {
	rm -rf run.dir
	when=$1; shift
	PTRACE_DIR=$dir/run.dir PTRACE_ANALYZE=$B/ptrace-analyze timeout 120 "$B/test/step_sig" "$when" \
		/usr/bin/env LD_PRELOAD="$B/libptrace_rt.so" "$B/test/step_prog" "$@" >out 2>&1 3>sent
	st=$?
	timeout 120 "$B/ptrace-decode" run.dir --format=text -o text >log 2>&1 || st="$st, decode: $(tail -1 log)"
	[ $PTRACE_VERIFY = 0 ] || timeout 120 "$B/ptrace-decode" --verify run.dir >log 2>&1 || st="$st, verify: $(tail -1 log)"
}

# the handler's own instructions; addresses are not random
# shellcheck disable=SC2046 # two numbers
set -- $(nm -S "$B/test/step_prog" | sed -n 's/^0*\([0-9a-f]*\) 0*\([0-9a-f]*\) t handler$/\1 \2/p')
lo=$(printf %x $((0x555555554000 + 0x$1))) hi=$(printf %x $((0x555555554000 + 0x$1 + 0x$2)))
program() { awk -v lo="$lo" -v hi="$hi" '!(length($2) == length(lo) && $2 "" >= lo "" && $2 "" < hi "")' text; }

for args in "" "full 400" "full 300" "full 200" "full 100" "full 40" verify; do
	[ "$args" != verify ] || args='' PTRACE_VERIFY=1
	# shellcheck disable=SC2086 # words
	run 0 $args
	[ "$st" = 0 ] || { bad "undisturbed, $args: $st: $(cat out)"; continue; }
	# but for what is made at run time all of it is traced, or nothing is shown by this
	[ -n "$args" ] || "$B/ptrace-decode" --summary run.dir | grep -q '^untraced code ran 3 times ' ||
		bad "what untraced code ran: $("$B/ptrace-decode" --summary run.dir | tail -2 | tr '\n' ' ')"
	mv text full
	# shellcheck disable=SC2086
	run every $args
	program > without
	n=$(cut -d' ' -f1 sent) k=$(cut -d' ' -f2 sent)
	if [ "$st" != 0 ]; then
		bad "$args: status $st: $(cat out)"
	elif ! cmp -s full without; then
		bad "$args: not what the undisturbed run has: $(diff full without | head -3 | tr '\n' ' ')"
	elif [ "$n" -lt 500 ] || [ "$k" -lt 30 ] ||
		[ $(($(wc -l < text) - $(wc -l < full))) -lt $((n * 5)) ]; then
		bad "$args: $n signals, $k of them nested, $(wc -l < text) records of $(wc -l < full): too few"
	else
		pass=$((pass + 1))
	fi
done
echo "$pass passed, $fail failed"
[ $fail = 0 ]
