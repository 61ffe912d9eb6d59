#!/bin/sh
# SPDX-License-Identifier: MIT
# sigs.sh - the small programs under signals they know nothing of (sigs_plug.c): output and exit status as ever, no thread
# that ends early, and every address of the trace the one that was logged
#
#	test/sigs.sh PROG...		at every instruction of what runs of the first thread, a few times each (step_sig any)
#	test/sigs.sh --usec N PROG...	every N microseconds, whichever thread is running then
#
# Each runs twice: with every address logged, and without. Left out are programs whose header says `SIGS: WHY`, as what they do
# is another thing with signals, or when it is stepped, and those whose trace ends early.
#
# Environment: BUILD (build); SIGS_JOBS=N runs N at a time; SIGS_KEEP=1 keeps the files of failed ones; PTRACE_CF (soft).
# Exit status: 0 all passed, 1 some failed, 2 something needed is missing.
set -u
export PTRACE_CF="${PTRACE_CF:-soft}" # log everything: what a replay computes is for replay.sh
. "$(dirname "$0")/jobs.sh"
build=$(realpath -m "${BUILD:-build}")
rt=$build/libptrace_rt.so plug=$build/test/sigs_plug.so decode=$build/ptrace-decode
work=$(mktemp -d) || exit 2
passed=0 failed=0 skipped=0
for f in "$rt" "$plug" "$decode" "$build/test/step_sig" "$build/ptrace-analyze"; do
	[ -e "$f" ] || { echo "sigs.sh: $f is not built" >&2; exit 2; }
done
[ -n "${SIGS_KEEP:-}" ] || trap 'rm -rf "$work"' EXIT
XDG_CACHE_HOME=$build/cache/$(cksum < "$build/ptrace-analyze" | tr ' ' '-')
export XDG_CACHE_HOME PTRACE_ANALYZE="$build/ptrace-analyze"
mkdir -p "$XDG_CACHE_HOME"
[ "${1:-}" != --usec ] || { export SIGS_USEC="$2"; shift 2; }

# traced VERIFY PROG: sets why on failure
traced() {
	rm -rf "$d/run"
	step="$build/test/step_sig any"
	[ -z "${SIGS_USEC:-}" ] || step=
	# shellcheck disable=SC2086 # words
	PTRACE_DIR=$d/run PTRACE_VERIFY=$1 timeout -k 5 120 $step /usr/bin/env LD_PRELOAD="$rt:$plug" "$2" \
		> "$d/out" 2> "$d/err" 3> "$d/sent" < /dev/null
	s=$?
	if [ $s -ne "$want" ]; then
		why="status $s, not $want: $(tail -1 "$d/err")"
	elif ! cmp -s "$d/native" "$d/out"; then
		why="output differs: $(diff "$d/native" "$d/out" | sed -n 2,4p | tr '\n' ' ')"
	elif [ -n "$step" ] && [ "$(cut -d' ' -f1 "$d/sent")" -lt 1000 ]; then
		why="$(cut -d' ' -f1 "$d/sent") signals were sent: too few"
	elif [ "$1" = 1 ]; then
		timeout 300 "$decode" --verify "$d/run" > "$d/verify" 2> "$d/why" || why=$(head -1 "$d/why")
		detail=$(tail -1 "$d/verify" | sed 's/^verify: //')
		case $detail in
		accesses=[1-9]*\ wrong=0\ unknown=0\ missing=0\ *) ;;
		*) why="$detail $(head -1 "$d/why")" ;;
		esac
	else
		timeout 300 "$decode" --format=null "$d/run" > "$d/null" 2> "$d/why" || why=$(head -1 "$d/why")
	fi
	[ -z "$why" ] || why="PTRACE_VERIFY=$1: $why"
}

one() { # PROG
	d=$work/$(basename "$1") why='' detail=''
	result=skip
	for f in SIGS KILLED STOPS STOPS_TODAY FAILS_TODAY; do
		detail=$(field $f "$1")
		[ -z "$detail" ] || { detail="$f: $detail"; return; }
	done
	mkdir "$d"
	# as it is with the signals, but for what interrupts it at every instruction
	timeout -k 5 60 env LD_PRELOAD="$plug" "$1" > "$d/native" 2> "$d/native.err" 3> "$d/sent" \
		< /dev/null
	want=$?
	if grep -q SKIPPED "$d/native"; then
		detail=$(grep SKIPPED "$d/native"); return
	fi
	traced 1 "$1"
	[ -n "$why" ] || traced 0 "$1"
	result=ok
	[ -z "$why" ] || { result=FAIL detail=$why; }
}

if [ "${SIGS_JOBS:-1}" -gt 1 ]; then
	jobs "$SIGS_JOBS" SIGS_JOBS=1 -- "$@"
	sed '/^[0-9]* passed, /d; /^files kept in /d' "$work"/job.[0-9]
	passed=$(cat "$work"/job.[0-9] | grep -c '^ok ') skipped=$(cat "$work"/job.[0-9] | grep -c '^skip ')
	failed=$(($# - passed - skipped))
else
	for p; do
		one "$p"
		printf '%-5s %-24s %s\n' $result "$(basename "$p")" "$detail"
		case $result in
		ok) passed=$((passed + 1)) ;;
		skip) skipped=$((skipped + 1)) ;;
		*) failed=$((failed + 1)) ;;
		esac
		[ $result = FAIL ] && [ -n "${SIGS_KEEP:-}" ] || rm -rf "${d:?}"
	done
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ -z "${SIGS_KEEP:-}" ] || echo "files kept in $work"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
