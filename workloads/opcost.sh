#!/bin/sh
# SPDX-License-Identifier: MIT
# opcost.sh - what a thread, a process, a signal, a system call cost more when traced
#
# usage: workloads/opcost.sh [BUILD]      (make bench-ops)
#
# Runs opcost natively and traced in turn, three times each, and prints a Markdown table of the least of
# each, in microseconds. The last line is how the speed of two threads compares with one's: traced
# speed-up divided by native speed-up.
set -u
build=$(realpath "${1:-build}") || exit 2
prog=$build/workloads/opcost
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

least() { sort -n | head -1; }
traced() { # OPERATION COUNT
	PTRACE_CF=${PTRACE_CF:-soft} PTRACE_DIR=$work/run LD_PRELOAD=$build/libptrace_rt.so "$prog" "$@"
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
pair work 20000; n1=$native t1=$with
pair work2 20000
echo "$n1 $native $t1 $with" | awk '{ printf "\ntwo threads: %.2f (speed-up traced %.2f, native %.2f)\n", ($3 / $4) / ($1 / $2), 2 * $3 / $4, 2 * $1 / $2 }'
