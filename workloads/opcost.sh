#!/bin/sh
# SPDX-License-Identifier: MIT
# opcost.sh - what a thread, a process, a signal, a system call cost more when traced
#
# usage: workloads/opcost.sh [BUILD]      (make bench-ops)
#
# Runs opcost natively and traced in turn, three times each, and prints a Markdown table of the least of
# each, in microseconds. A second table is how the speed of two threads compares with one's: traced
# speed-up divided by native speed-up, of two loops and of real programs. On two processors the threads share them with
# ptrace-collect, which one thread has a processor to itself for: that ratio is as much about how much is logged. The second one
# is what there is with as many processors a thread in both runs: one thread and the collector on one, two and it on two.
set -u
build=$(realpath "${1:-build}") || exit 2
prog=$build/workloads/opcost
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

pin= # in front of a traced command: on one processor
least() { sort -n | head -1; }
traced() { # OPERATION COUNT
	$pin env PTRACE_CF="${PTRACE_CF:-soft}" PTRACE_DIR="$work/run" LD_PRELOAD="$build/libptrace_rt.so" "$prog" "$@"
	while pgrep -f "ptrace-collect --run $work/run" >/dev/null; do sleep 0.05; done
	rm -rf "$work"/run*
}
pair() { # OPERATION COUNT: sets native, with
	traced "$1" 1 >/dev/null || exit 1 # maps are made
	: >n; : >t
	for _ in 1 2 3; do
		"$prog" "$@" >>n || exit 1
		traced "$@" >>t || exit 1
	done
	native=$(least <n) with=$(least <t)
}

echo '| operation | native µs | traced µs | more µs |'
echo '|---|---|---|---|'
for op in syscall:200000 signal:50000 thread:2000 spawn:500 fork:200; do
	pair "${op%:*}" "${op#*:}"
	echo "$native $with" | awk -v op="${op%:*}" '{ printf "| %s | %.3f | %.3f | %.3f |\n", op, $1, $2, $2 - $1 }'
done

scale() { # NAME: native1, with1, pinned1 are the times of one thread, native, with those of two
	echo "$native1 $with1 $pinned1 $native $with" | awk -v name="$1" '{
		printf "| %s | %.2f | %.2f | %.2f | %.2f | %.2f |\n", name, 2 * $1 / $4, 2 * $2 / $5, $2 / $5 / ($1 / $4),
		       2 * $3 / $5, $3 / $5 / ($1 / $4) }'
}

# the same of commands that share one work among their threads, by wall time
wall() {
	t=$(date +%s%N)
	"$@" >/dev/null 2>err || exit 1
	echo $((($(date +%s%N) - t) / 1000))
}
wall_traced() {
	PTRACE_CF=${PTRACE_CF:-soft} PTRACE_DIR=$work/run wall $pin env LD_PRELOAD="$build/libptrace_rt.so" "$@"
	while pgrep -f "ptrace-collect --run $work/run" >/dev/null; do sleep 0.05; done
	rm -rf "$work"/run*
}
shared() { # NAME PROGRAM ARGS...; %T in them: the number of threads
	name=$1; shift
	command -v "$1" >/dev/null || { echo "opcost.sh: $1 is not installed" >&2; return; }
	for k in 1 pinned 2; do
		pin=
		case $k in
		pinned) native1=$native with1=$with pin="taskset -c 0" k=1 ;;
		2) pinned1=$with ;;
		esac
		: >n; : >t
		for _ in 0 1 2 3; do # the first one makes maps
			[ "$pin" ] || eval "wall $(echo "$*" | sed "s/%T/$k/g")" >>n
			eval "wall_traced $(echo "$*" | sed "s/%T/$k/g")" >>t
		done
		native=$(least <n) with=$(least <t)
	done
	native=$((native * 2)) with=$((with * 2)) # twice the work of one, as in the loops
	scale "$name"
}

printf '\n| two threads | speed-up native | traced | ratio | traced, from one processor to two | ratio |\n|---|---|---|---|---|---|\n'
for loop in grid chase; do
	pair $loop 20000
	native1=$native with1=$with pin="taskset -c 0"
	pair $loop 20000
	pinned1=$with pin=
	pair ${loop}2 20000
	scale "$loop"
done
"$build/workloads/mkinputs" text 16000000 >text || exit 1
shared "zstd -9" zstd -9 -q -c -T%T text
shared "xz -2" xz -2 -c --block-size=4MiB -T%T text
shared "sort" sort --parallel=%T -S 100M text
