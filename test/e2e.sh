#!/bin/sh
# SPDX-License-Identifier: MIT
# End to end: is what the decoder reconstructs what the processor did?
#
# usage: test/e2e.sh PROG...                   each PROG is run without arguments
#        test/e2e.sh --one PROG ARGS...        one program with arguments
#
# Programs whose header says `ORACLE: yes` are followed into their threads and children.
#
# For each program: a native run, a run under the oracle, a traced run in the same
# set-up (test/oracle/oracle.c says what that takes), decode, compare record for record.
# The native and the traced run must also agree in output and exit status.
#
# Maps are made once for each build of the analyzer.
#
# Environment: BUILD (build); E2E_JOBS=N runs N programs at a time; E2E_KEEP=1 keeps the files of
# every run; E2E_CACHE=DIR keeps oracle traces between runs; E2E_MAPS=DIR is where maps are;
# E2E_SHOW_OPAQUE=N lists the heaviest opaque pages.
# Exit status: 0 all passed, 1 some failed, 2 something needed is missing.
set -u
export PTRACE_CF="${PTRACE_CF:-soft}" # what the copies log is compared: a replay runs in the same ones
. "$(dirname "$0")/jobs.sh"
build=$(realpath -m "${BUILD:-build}")
oracle=$build/test/oracle
compare=$build/test/compare
rt=$build/libptrace_rt.so
decode=$build/ptrace-decode
work=${TMPDIR:-/tmp}/ptrace-e2e.$$
passed=0 failed=0

for f in "$oracle" "$compare" "$rt" "$decode" "$build/ptrace-analyze"; do
	[ -e "$f" ] || { echo "e2e.sh: $f is not built" >&2; exit 2; }
done
mkdir -p "$work" || exit 2
# Cached maps know the format's version, not that the analyzer changed.
XDG_CACHE_HOME=${E2E_MAPS:-$build/cache/$(cksum < "$build/ptrace-analyze" | tr ' ' '-')}
export XDG_CACHE_HOME
mkdir -p "$XDG_CACHE_HOME" # the runtime makes one level only, and without it an executed image begins a run of its own
[ -n "${E2E_KEEP:-}" ] || trap 'rm -rf "$work"' EXIT

# decode TRACE: a program whose trace stops early says why (in the decoder's words) and how many
# records there must be at least: `STOPS: N WORDS`. Sets detail on failure.
decode() { # DIR STOPS
	timeout 300 "$decode" "$1/run" --format=raw -o "$1/traced.raw" > "$1/decode.out" 2> "$1/decode.err"
	r=$?
	if [ -z "$2" ]; then
		[ $r -eq 0 ] && return
		detail="decode: status $r: $(tail -1 "$1/decode.err")"
		return 1
	fi
	if [ $r -ne 1 ] || ! grep -q "${2#* }" "$1/decode.err"; then
		detail="decode: status $r, expected 1 and '${2#* }': $(tail -1 "$1/decode.err")"
		return 1
	fi
	n=$(($(wc -c < "$1/traced.raw") / 24))
	[ "$n" -ge "${2%% *}" ] && return
	detail="decode: $n records, at least ${2%% *} expected: $(tail -1 "$1/decode.err")"
	return 1
}

# Both runs see environments of the same size and, as far as the program can tell, the
# same contents: -E in the same order, values of the same lengths.
oracle_run() { # DIR CMD...
	d=$1; shift
	key=
	if [ -n "${E2E_CACHE:-}" ]; then
		mkdir -p "$E2E_CACHE"
		key=$E2E_CACHE/$( { sha256sum "$(command -v "$1")" "$rt" "$oracle" \
			"$build"/test/progs/*.so 2>/dev/null; echo "$*"; } | sha256sum | cut -c1-32)
		# Sizes decide where the stack begins.
		key=$key-${#d}-$(env | wc -c)
	fi
	if [ -n "$key" ] && [ -e "$key.raw" ]; then
		cp "$key.raw" "$d/oracle.raw"; cp "$key.out" "$d/oracle.out"
		return "$(cat "$key.status")"
	fi
	timeout 600 "$oracle" -E LD_PRELOAD="$rt" -E PTRACE_ORACLE=1 -E PTRACE_DIR="$d/run" \
		${follow:+--follow} -o "$d/oracle.raw" -- "$@" > "$d/oracle.out" 2> "$d/oracle.err" < /dev/null
	r=$?
	if [ -n "$key" ] && [ $r -ne 125 ]; then
		cp "$d/oracle.out" "$key.out"; echo $r > "$key.status"
		cp "$d/oracle.raw" "$key.raw"
	fi
	return $r
}

# pair DIR: which of the decoder's threads is which of the oracle's? Both by order of creation, which is the order
# of their thread ids (unless the kernel begins them anew: then the comparison fails). The oracle lets go of who
# executes another program, so an image that is not the first of its thread has no counterpart.
pair() {
	timeout 60 "$decode" "$1/run" --list > "$1/list" 2>> "$1/decode.err" ||
		[ $? -eq 1 ] || { detail="decode --list: $(tail -1 "$1/decode.err")"; return 1; }
	if [ -z "$follow" ]; then
		echo 0 > "$1/pairs"
	else
		sed -n 's/^ *thread \([0-9]*\): tid \([0-9]*\).*/\2 \1/p' "$1/list" | sort -n |
			awk '$1 != last { print $2 } { last = $1 }' > "$1/pairs"
	fi
}

# one CMD...: sets result and detail
one() {
	result=FAIL detail=
	d=$work/$(basename "$1")
	rm -rf "$d"; mkdir -p "$d"
	timeout 60 "$@" > "$d/native.out" 2> "$d/native.err" < /dev/null
	native=$?
	want=$(field STATUS "$1")
	want=${want:-0} stops=$(field STOPS "$1") follow=
	[ "$(field ORACLE "$1")" != yes ] || follow=yes
	case $1 in
	*/test/progs/*) [ $native -eq "$want" ] ||
		{ detail="native: exit status $native, documented $want"; return; } ;;
	esac
	if grep -q SKIPPED "$d/native.out"; then
		result=skip detail=$(grep SKIPPED "$d/native.out"); return
	fi
	oracle_run "$d" "$@"
	r=$?
	[ $r -eq $native ] ||
		{ detail="oracle: exit status $r, native $native: $(head -1 "$d/oracle.err" 2>/dev/null)"; return; }
	cmp -s "$d/native.out" "$d/oracle.out" || { detail="oracle: output differs"; return; }
	traced_run "$d" "$@"
	r=$?
	[ $r -eq $native ] ||
		{ detail="traced: exit status $r, native $native: $(tail -1 "$d/traced.err")"; return; }
	cmp -s "$d/native.out" "$d/traced.out" || { detail="traced: output differs"; return; }
	decode "$d" "$stops" || return
	timeout 300 "$decode" "$d/run" --ranges > "$d/ranges" 2>> "$d/decode.err" ||
		{ detail="decode --ranges: status $?: $(tail -1 "$d/decode.err")"; return; }
	pair "$d" || return
	"$compare" "$d/oracle.raw" "$d/traced.raw" --ranges "$d/ranges" --threads "$d/pairs" ${stops:+--prefix} \
		${E2E_SHOW_OPAQUE:+--show-opaque "$E2E_SHOW_OPAQUE"} > "$d/compare.out" 2>&1
	r=$?
	detail=$(tail -1 "$d/compare.out" | sed 's/^compare: //')
	[ $r -eq 0 ] && result=ok
	most=$(field UNTRACED "$1")
	if [ -n "$most" ] && ! echo "$detail" | grep -q " opaque=$most "; then
		result=FAIL detail="untraced accesses: documented $most: $detail"
	fi
	[ -n "${E2E_SHOW_OPAQUE:-}" ] && grep '^opaque:' "$d/compare.out"
	[ $r -eq 1 ] && sed '$d' "$d/compare.out"
}

traced_run() { # DIR CMD...
	d=$1; shift
	timeout -k 5 120 "$oracle" --launch -E LD_PRELOAD="$rt" -E PTRACE_ORACLE=0 \
		-E PTRACE_DIR="$d/run" -- "$@" > "$d/traced.out" 2> "$d/traced.err" < /dev/null
}

report() { # NAME
	printf '%-4s %-28s %s\n' "$result" "$1" "$detail"
	case $result in
	FAIL) failed=$((failed + 1)) ;;
	*) passed=$((passed + 1)) ;;
	esac
	[ -n "${E2E_KEEP:-}" ] || rm -rf "${work:?}/$(basename "$1")"
}

split() { # N PROG...
	n=$1
	shift
	jobs "$n" E2E_JOBS=1 -- "$@"
	sed '/^[0-9]* passed, [0-9]* failed$/d' "$work"/job.*
	passed=$(cat "$work"/job.* | grep -c '^\(ok\|skip\) ')
	failed=$(($# - passed))
}

if [ "${E2E_JOBS:-1}" -gt 1 ]; then
	split "$E2E_JOBS" "$@"
elif [ "${1:-}" = --one ]; then
	shift
	one "$@"
	report "$(basename "$1")"
else
	for p; do
		one "$p"
		report "$(basename "$p")"
	done
fi
echo "$passed passed, $failed failed"
[ -z "${E2E_KEEP:-}" ] || echo "files kept in $work"
[ $failed -eq 0 ]
