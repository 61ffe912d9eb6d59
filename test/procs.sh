#!/bin/sh
# SPDX-License-Identifier: MIT
# procs.sh - the thr_, proc_, stk_, ldr_ and sys_ programs, natively and traced: threads, processes, stacks, the
# loader, system calls. Every process of a program is traced, into one run directory.
#
#	test/procs.sh [PROG...]		all of them by default
#
# Each is run natively, traced in full with every address logged (PTRACE_CF=soft PTRACE_VERIFY=1), and traced as users do. Output, of
# whatever process, and exit status must be the same. All addresses must be right, and no thread may end before
# the end. What does not work yet is listed in the programs' headers: a program with STOPS_TODAY: WHY may end its
# trace early, one with FAILS_TODAY: WHY may behave differently when traced. Once it works the driver says so, and
# the line goes. With `ENV: NAME=VALUE` in the header it
# runs once more with that, with `PRELOAD: LIB` twice more, that library preloaded before ours and after it.
# `THREADS: N`: the trace has so many threads, of all its processes; `ACCESSES: N`: at least so many. `KILLED: yes`: a
# signal ends one of its processes, and its threads are decoded as far as they got.
#
# Environment: BUILD (build); PROCS_JOBS=N runs N at a time; PROCS_CF=auto verifies the default mode instead; PROCS_KEEP=1 keeps the files of failed ones.
# Exit status: 0 all passed, 1 some failed, 2 something needed is missing.
set -u
. "$(dirname "$0")/jobs.sh"
build=$(realpath -m "${BUILD:-build}")
rt=$build/libptrace_rt.so
decode=$build/ptrace-decode
work=${PROCS_WORK:-$(mktemp -d)} || exit 2
passed=0 failed=0 skipped=0 early=0 known=0

for f in "$rt" "$decode" "$build/ptrace-analyze"; do
	[ -e "$f" ] || { echo "procs.sh: $f is not built" >&2; exit 2; }
done
[ -n "${PROCS_KEEP:-}${PROCS_WORK:-}" ] || trap 'rm -rf "$work"' EXIT
# Cached maps know the format's version, not that the analyzer changed.
XDG_CACHE_HOME=${PROCS_MAPS:-$build/cache/$(cksum < "$build/ptrace-analyze" | tr ' ' '-')}
export XDG_CACHE_HOME PTRACE_ANALYZE="$build/ptrace-analyze"
mkdir -p "$XDG_CACHE_HOME"

# run FILE NAME=VALUE... PROG: output of all its processes to FILE.out, status to FILE.st. Its output is a pipe
# that is read to its end: a process that outlives the first is part of the program.
run() {
	o=$1; shift
	{ timeout -k 5 40 env "$@" 2> "$o.err" < /dev/null; echo $? > "$o.st"; } | timeout 90 cat > "$o.out"
}

# same KIND: has the traced run done what the native one did?
same() {
	[ "$(cat "$d/$1.st")" = "$(cat "$d/native.st")" ] || {
		detail="$1 run: exit status $(cat "$d/$1.st"), native $(cat "$d/native.st"): $(tail -1 "$d/$1.err")"
		return 1
	}
	cmp -s "$d/$1.out" "$d/native.out" || { detail="$1 run: output differs: $(head -1 "$d/$1.out")"; return 1; }
	sed -i '/^ptrace: analysing /d' "$d/$1.err"
	cmp -s "$d/$1.err" "$d/native.err" || { detail="$1 run: stderr differs: $(head -1 "$d/$1.err")"; return 1; }
	[ -d "$d/run" ] || { detail="$1 run: no run directory: the runtime did not start"; return 1; }
}

# count_threads PROG: has the trace all threads of all processes? One that is not there cannot be wrong.
count_threads() {
	n=$(field THREADS "$1")
	[ -n "$n" ] || return 0
	timeout 60 "$decode" --list "$d/run" > "$d/list" 2> /dev/null
	got=$(grep -c '^ *thread [0-9]*: tid' "$d/list")
	[ "$got" -eq "$n" ] || { detail="the trace has $got threads, not $n"; return 1; }
}

# verdict PROG: the addresses of the run. Sets stopped when a thread ended before the end.
verdict() {
	timeout 120 "$decode" --verify "$d/run" > "$d/verify.out" 2> "$d/verify.err"
	r=$?
	line=$(tail -1 "$d/verify.out")
	accesses='' wrong='' unknown='' missing=''
	for k in accesses wrong unknown missing; do
		v=$(echo "$line" | sed -n "s/^verify: .*\b$k=\([0-9]*\).*/\1/p")
		[ -n "$v" ] || { detail="ptrace-decode --verify: status $r: $(tail -1 "$d/verify.err")"; return 1; }
		eval "$k=$v"
	done
	detail="${line#verify: }"
	if [ "$wrong" != 0 ] || [ "$unknown" != 0 ]; then
		detail="addresses are not exact: $detail: $(head -1 "$d/verify.err")"
		return 1
	elif [ "$accesses" = 0 ]; then
		detail="nothing was verified"
		return 1
	fi
	stopped=
	least=$(field ACCESSES "$1")
	if [ -n "$killed" ] && [ "$accesses" -lt "${least:-0}" ]; then
		detail="$accesses accesses, at least $least were made before it was killed"
		return 1
	elif [ "$missing" != 0 ] || [ $r -ne 0 ]; then
		stopped="$(tail -1 "$d/verify.err")"
	elif [ "$accesses" -lt "${least:-0}" ]; then
		stopped="$accesses accesses, at least $least were made"
	fi
}

# one_env NAME=VALUE... PROG: the three runs in one environment; leaves result and detail
one_env() {
	extra=$1 before=$2 after=$3; shift 3
	rm -rf "${d:?}"; mkdir -p "$d"
	set -f
	# shellcheck disable=SC2086 # NAME=VALUE words
	run "$d/native" $extra LD_PRELOAD="$before$after" "$1"
	[ "$(cat "$d/native.st")" = "$want" ] ||
		{ detail="native: exit status $(cat "$d/native.st"), documented $want"; return 1; }
	if grep -q SKIPPED "$d/native.out"; then
		result=skip detail=$(grep SKIPPED "$d/native.out"); return
	fi
	for kind in verify plain; do
		rm -rf "$d/run"
		verify=
		[ $kind = plain ] || verify="PTRACE_CF=${PROCS_CF:-soft} PTRACE_VERIFY=1"
		# shellcheck disable=SC2086
		run "$d/$kind" $extra $verify PTRACE_DIR="$d/run" LD_PRELOAD="$before${before:+:}$rt${after:+:}$after" "$1"
		same $kind || return 1
		if [ $kind = verify ]; then
			verdict "$1" || return 1
			seen=$detail
		else
			timeout 120 "$decode" --format=null "$d/run" > "$d/plain.dec" 2>&1
			r=$?
			[ $r -le 1 ] || { detail="ptrace-decode: status $r: $(tail -1 "$d/plain.dec")"; return 1; }
			[ $r = 0 ] || stopped=${stopped:-$(tail -1 "$d/plain.dec")}
		fi
		count_threads "$1" || return 1 # now that the run is complete: to decode waits for that
	done
	set +f
	detail=$seen
	if [ -n "$killed" ]; then
		"$decode" --list "$d/run" 2> /dev/null | grep -q '^ *process .*: killed' ||
			{ detail="it was killed, and the decoder does not say so"; return 1; }
		case $stopped in ''|*killed*) return 0 ;; esac # nothing was lost of one that was in a system call
		[ -n "$today" ] && return 0
		detail="it was killed, but the decoder says: $stopped"
		return 1
	fi
	if [ -n "$stopped" ]; then
		result=early
		[ -n "$today" ] || { detail="a thread ends before the end: $stopped"; return 1; }
		detail="$detail ($today)"
	fi
}

one() { # PROG
	d=$work/$(basename "$1") result=ok detail='' kept=
	want=$(field STATUS "$1"); want=${want:-0}
	killed=$(field KILLED "$1") today=$(field STOPS_TODAY "$1") fails=$(field FAILS_TODAY "$1")
	field ENV "$1" > "$work/env.$$"
	lib=$(field PRELOAD "$1")
	if ! one_env '' '' '' "$1"; then
		result=FAIL
		case $fails:$detail in
		[!:]*:verify\ run:*|[!:]*:plain\ run:*) result=known detail="$detail ($fails)" ;;
		esac
		return
	fi
	kept=$detail
	while read -r e; do
		one_env "$e" '' '' "$1" || { result=FAIL detail="with $e: $detail"; return; }
	done < "$work/env.$$"
	if [ -n "$lib" ]; then
		one_env '' "$lib" '' "$1" || { result=FAIL detail="preloaded before: $detail"; return; }
		one_env '' '' "$lib" "$1" || { result=FAIL detail="preloaded after: $detail"; return; }
	fi
	detail=$kept
}

report() {
	case $result in
	early) early=$((early + 1)) passed=$((passed + 1)) ;;
	ok) passed=$((passed + 1))
		# what it documents is not so any more
		[ -z "$today$fails" ] || detail="$detail: drop ${today:+STOPS_TODAY}${fails:+FAILS_TODAY}" ;;
	known) known=$((known + 1)) ;;
	skip) skipped=$((skipped + 1)) ;;
	*) failed=$((failed + 1)) ;;
	esac
	printf '%-5s %-24s %s\n' $result "$1" "$detail" | tee -a "$work/lines.$$"
	[ $result = FAIL ] && [ -n "${PROCS_KEEP:-}" ] || rm -rf "${d:?}"
}

if [ $# -eq 0 ]; then
	# shellcheck disable=SC2046 # names without spaces
	set -- $(OUT=$build/test/progs test/progs/build.sh --list-procs)
fi
if [ "${PROCS_JOBS:-1}" -gt 1 ]; then
	jobs "$PROCS_JOBS" PROCS_JOBS=1 PROCS_WORK="$work" -- "$@"
	sed '/^[0-9]* passed, /d; /^files kept in /d; /^FAIL /d' "$work"/job.[0-9]
	count() { cat "$work"/job.[0-9] | grep -c "^$1 "; }
	early=$(count early) passed=$(($(count ok) + early)) skipped=$(count skip) known=$(count known)
	failed=$(($# - passed - skipped - known))
else
	for p; do
		one "$p"
		report "$(basename "$p")"
	done
fi
# once more, last: who reads only the end of a log sees them
cat "$work"/job.[0-9] "$work/lines.$$" 2> /dev/null | grep '^FAIL ' | sort -u
printf '%d passed, %d failed, %d skipped, %d known to fail; %d of the passed stop early\n' $passed $failed $skipped \
	$known $early
[ -z "${PROCS_KEEP:-}" ] || echo "files kept in $work"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
