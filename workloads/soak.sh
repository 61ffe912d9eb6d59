#!/bin/sh
# SPDX-License-Identifier: MIT
# soak.sh - a random mix of the small programs for some minutes, under the address-space randomiser
#
#	workloads/soak.sh [BUILD]
#
# Each turn takes one of test/procs.sh's programs, in full or in the default mode. It runs natively, verified and plain, as procs.sh does, or its
# collector is killed at a random moment, which it must not notice, or all of its processes are (SIGKILL). The run must
# decode then, up to the last complete record of each thread, with every address right; the decoder must say that it is
# not all, never that it lost its way.
#
# Environment: SOAK_MINUTES (30); SOAK_JOBS (2) turns at a time; SOAK_SEED makes the same choices again (timing stays
# what it is). Prints failed turns, a sum at the end. The files of failed turns stay. Exit status: 0 none failed, 1 some.
set -u
. test/jobs.sh
build=$(realpath -m "${1:-build}")
minutes=${SOAK_MINUTES:-30} jobs=${SOAK_JOBS:-2} seed=${SOAK_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
work=$(mktemp -d) || exit 2
XDG_CACHE_HOME=$build/cache/$(cksum < "$build/ptrace-analyze" | tr ' ' '-')
export XDG_CACHE_HOME PTRACE_ANALYZE="$build/ptrace-analyze"
progs=$(OUT=$build/test/progs test/progs/build.sh --list-procs)
[ "$(cat /proc/sys/kernel/randomize_va_space)" != 0 ] || echo "soak.sh: addresses are not randomised here" >&2

random() { # N: 0 to N - 1, into $r. The generator of POSIX rand(3)
	state=$(((state * 1103515245 + 12345) % 2147483648))
	r=$((state / 65536 % $1))
}

# killed PROG MS: run it and kill it after so many ms; why is set on failure, "" otherwise
killed() {
	rm -rf "$d"; mkdir -p "$d"
	PTRACE_CF=$cf PTRACE_VERIFY=1 PTRACE_DIR=$d/run LD_PRELOAD=$build/libptrace_rt.so setsid "$1" \
		> "$d/out" 2> "$d/err" < /dev/null &
	pid=$!
	sleep "$(printf '0.%03d' "$2")"
	kill -9 -- -$pid 2> /dev/null
	wait $pid 2> /dev/null
	why=
	# killed before it had recorded anything
	[ -n "$(find "$d/run" -name 'thread-*.log' -size +0 2> /dev/null)" ] || return
	judge "$1"
}

# judge PROG: what there is of the run must be right; sets why if not
judge() {
	timeout 300 "$build/ptrace-decode" --verify "$d/run" > "$d/verify.out" 2> "$d/verify.err"
	s=$?
	last=$(tail -1 "$d/verify.out")
	case $last in
	"verify: "*" wrong=0 unknown=0 "*) ;;
	"verify: accesses=0 "*) ;; # nothing complete yet
	*) why="status $s: ${last:-no verdict}: $(head -1 "$d/verify.err")" ;;
	esac
	# a process without a start state, because the collector was killed that early, is followed as far as that goes
	lost=$(grep 'lost the stream' "$d/verify.err")
	for lacks in $(sed -n 's|.*cannot open .*/proc-\([0-9]*\)\.[0-9]*/start.bin: .*|\1|p' "$d/verify.err"); do
		lost=$(echo "$lost" | grep -v "pid $lacks ")
	done
	[ -z "$lost" ] || [ -n "$(field STOPS_TODAY "$1")" ] || why=$(echo "$lost" | head -1)
}

# orphaned PROG MS: its collector is killed after so many ms: the program must not notice
orphaned() {
	rm -rf "$d"; mkdir -p "$d"
	timeout -k 5 60 "$1" > "$d/native" 2> "$d/native.err" < /dev/null
	want=$?
	! grep -q SKIPPED "$d/native" || return
	PTRACE_CF=$cf PTRACE_VERIFY=1 PTRACE_DIR=$d/run LD_PRELOAD=$build/libptrace_rt.so timeout -k 5 120 "$1" \
		> "$d/out" 2> "$d/err" < /dev/null &
	pid=$!
	sleep "$(printf '0.%03d' "$2")"
	for c in $(pgrep -f "ptrace-collect --run $d/run "); do kill -9 "$c"; done
	wait $pid 2> /dev/null
	s=$?
	if [ $s -ne $want ]; then
		why="status $s, not $want: $(tail -1 "$d/err")"
	elif ! cmp -s "$d/native" "$d/out"; then
		why="output differs: $(head -1 "$d/out")"
	elif [ -n "$(find "$d/run" -name 'thread-*.log' -size +0 2> /dev/null)" ]; then
		judge "$1"
	fi
}

job() { # NUMBER
	state=$(((seed + $1 * 7919) % 2147483648)) turns=0 kills=0 failed=0
	# shellcheck disable=SC2086 # names without spaces
	set -- "$1" $progs
	me=$1; shift
	while [ "$(date +%s)" -lt $end ]; do
		d=$work/$me-$turns
		random $#; k=$((r + 1))
		p=; eval "p=\${$k}"
		random 4; how=$r
		random 300; ms=$r
		cf=soft
		random 2; [ "$r" = 0 ] || cf=auto
		turns=$((turns + 1))
		if [ "$how" = 0 ]; then
			kills=$((kills + 1))
			killed "$p" "$ms"
		elif [ "$how" = 1 ]; then
			why=
			orphaned "$p" "$ms"
		else
			mkdir "$d"
			why=
			BUILD=$build PROCS_CF=$cf PROCS_WORK=$d PROCS_KEEP=1 test/procs.sh "$p" > "$d.log" 2>&1 || why=$(head -1 "$d.log")
			rm -f "$d.log"
		fi
		if [ -n "$why" ]; then
			failed=$((failed + 1))
			echo "FAIL $(basename "$p") $cf $([ "$how" -gt 1 ] || echo "$([ "$how" = 0 ] || echo "collector ")killed after $ms ms"): $why (files: $d)"
		else
			rm -rf "$d"
		fi
	done
	echo "$turns $kills $failed" > "$work/job.$me"
}

end=$(($(date +%s) + minutes * 60))
echo "soak: $minutes minutes, seed $seed"
i=0
while [ $i -lt "$jobs" ]; do
	job $i &
	i=$((i + 1))
done
wait
awk '{ t += $1; k += $2; f += $3 } END { printf "soak: %d turns, %d of them killed, %d failed\n", t, k, f; exit f > 0 || !t }' \
	"$work"/job.*
status=$?
[ $status -ne 0 ] || rm -rf "$work"
exit $status
