#!/bin/sh
# SPDX-License-Identifier: MIT
# rough.sh - threads and processes whose log cannot be kept: a full disk, limits on files and on address space, the collector
# killed at any moment. The program does what it does untraced, and what there is of its trace is right: every address is
# compared with the one that was logged, no thread's decode loses its way, and where something is missing the decoder says so.
#
# usage: test/rough.sh [BUILD]
set -u
build=$(realpath "${1:-build}") || exit 2
work=$(mktemp -d) || exit 2
trap 'umount "$work/small" 2>/dev/null; rm -rf "$work"' EXIT
export XDG_CACHE_HOME="$build/cache" PTRACE_DIR="$work/run" PTRACE_COMPRESS=none
cd "$work" || exit 2
prog=$build/test/rough_prog n=800
pass=0 fail=0
bad() { fail=$((fail + 1)); echo "FAIL: $name: $*"; }
want=$("$prog" $n)
traced() { PTRACE_VERIFY=1 LD_PRELOAD=$build/libptrace_rt.so "$prog" "$@" >out 2>err; }

# verdict STATUS none|all|part REASON [WANT]: the program is through with that status. none: it is not traced, and
# that is said; all: nothing of the trace is missing; part: something is,
# for that reason, one that the decoder gives. `any`: as it comes
verdict() {
	out=${4:-$want}
	if [ "$1 $(cat out)" != "42 $out" ]; then
		bad "status $1, output $(cat out), not 42 and $out: $(head -1 err)"
		return
	fi
	if [ "$2" = none ]; then
		grep -q "$3" err || { bad "does not say '$3'"; return; }
		pass=$((pass + 1))
		return
	fi
	timeout 300 "$build/ptrace-decode" --verify "$PTRACE_DIR" >verify 2>notes
	s=$?
	last=$(tail -1 verify)
	case $last in
	"verify: accesses=0 "*) [ "$2" != all ] || { bad "nothing is there"; return; } ;;
	"verify: "*" wrong=0 unknown=0 "*) ;;
	*) bad "decoder: status $s: ${last:-$(head -1 notes)}"; return ;;
	esac
	if grep -q 'lost the stream' notes; then
		bad "$(grep -m1 'lost the stream' notes)"
	elif [ "$2" = all ] && [ $s -ne 0 ]; then
		bad "incomplete: $(head -1 notes)"
	elif [ "$2" = part ] && ! grep -q "$3" notes; then
		bad "the decoder does not say '$3': $(head -1 notes)"
	else
		pass=$((pass + 1))
	fi
}

# kill_collector SECONDS: so long after it has begun. p is the program just started
kill_collector() {
	p=$!
	i=0
	while [ ! -s run/run.json ] && [ $i -lt 2000 ]; do sleep 0.01; i=$((i + 1)); done
	sleep "$1"
	for c in $(pgrep -f "ptrace-collect --run $work/run"); do kill -9 "$c"; done
}

name=undisturbed
traced $n; verdict $? all

mkdir small
for size in 1m 4m 70m; do # not even the maps; those, and some of the log
	name="full disk, $size"
	if mount -t tmpfs -o size=$size none small 2>/dev/null; then
		PTRACE_DIR=$work/small/run
		traced $n
		s=$?
		if [ $size = 70m ]; then verdict $s part 'no space'; else verdict $s none 'running untraced'; fi
		umount small
	else
		echo "skipped: $name (cannot mount a tmpfs here)"
	fi
done
PTRACE_DIR=$work/run
rm -rf run
name='files of 4 MB: too small for the ring'
(ulimit -f 8000; traced $n); verdict $? none 'raise the limit'
rm -rf run
name='files of 100 MB: room for some forty threads'
(ulimit -f 200000; traced $n); verdict $? any
rm -rf run
name='files of 100 MB, eighty children at a time'
(ulimit -f 200000; PTRACE_CF=soft; export PTRACE_CF; traced 10 idle 80); verdict $? part 'more processes' "$("$prog" 10)"
rm -rf run
name='files of 100 MB, eighty children whose traces end'
(ulimit -f 200000; PTRACE_CF=soft; export PTRACE_CF; traced 10 gs 80); verdict $? part 'gs base' "$("$prog" 10)"
for space in 200000 300000 350000 400000 450000 500000 600000 1500000; do
	rm -rf run
	name="$space KB of address space"
	# shellcheck disable=SC3045 # the shells that are sh have it
	(ulimit -v $space; traced $n)
	s=$?
	if [ -d run ] && [ -n "$(find run -name 'thread-*.log' -size +0)" ]; then
		verdict $s all
	else
		verdict $s none 'running untraced'
	fi
done

for ms in 030 100 170 300; do
	rm -rf run
	name="collector killed after $ms ms"
	traced $n &
	kill_collector 0.$ms
	wait $p
	verdict $? any
done
# processes that end while their threads compute: nobody but the collector frees what those had
for ms in 030 200; do
	rm -rf run
	name="collector killed after $ms ms, with room for sixty threads"
	PTRACE_CF=soft LD_PRELOAD=$build/libptrace_rt.so "$build/test/progs/thr_slots" >out 2>err &
	kill_collector 0.$ms
	wait $p
	s=$?
	if [ "$s $(cat out)" = '4 thr_slots' ]; then pass=$((pass + 1)); else bad "status $s, $(cat out): $(head -1 err)"; fi
done
echo "$pass passed, $fail failed"
[ $fail = 0 ]
