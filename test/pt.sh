#!/bin/sh
# SPDX-License-Identifier: MIT
# pt.sh [--one] PROG... - is the trace of a run with Intel PT the trace of the same run without?
#
# Each PROG runs twice in the same set-up: its control flow recorded by the copies (PTRACE_CF=soft), and under the
# simulator (ptsim --kernel) by Intel PT. Output and exit status must be equal, and the decoded traces record for record.
# --one PROG ARGS: a program with arguments. PT_OPTIONS: the simulator's. PT_LOSSES=1: control flow may be lost (faults are
# injected): what is decoded must be in the soft trace in the same order, and the decoder must say what is lost.
#
# Environment: BUILD (build); PT_JOBS=N programs at a time; PT_KEEP=1 keeps the files.
# Exit status: 0 all passed, 1 some failed, 2 something needed is missing.
set -u
build=$(realpath -m "${BUILD:-build}")
ptsim=$build/test/ptsim
oracle=$build/test/oracle
compare=$build/test/compare
rt=$build/libptrace_rt.so
decode=$build/ptrace-decode
work=${TMPDIR:-/tmp}/ptrace-pt.$$
passed=0 failed=0
for f in "$ptsim" "$oracle" "$compare" "$rt" "$decode" "$build/ptrace-analyze"; do
	[ -e "$f" ] || { echo "pt.sh: $f is not built" >&2; exit 2; }
done
mkdir -p "$work" || exit 2
# Cached maps know the format's version, not that the analyzer changed.
XDG_CACHE_HOME=${E2E_MAPS:-$build/cache/$(cksum <"$build/ptrace-analyze" | tr ' ' '-')}
export XDG_CACHE_HOME
[ -n "${PT_KEEP:-}" ] || trap 'rm -rf "$work"' EXIT

# both runs see environments of the same size: the values have the same lengths
pmu=/tmp/ptsim-pmu-XXXXXX
soft() { # DIR CMD...
	d=$1
	shift
	timeout -k 5 120 "$oracle" --launch -E LD_PRELOAD="$rt" -E PTRACE_CF=soft -E PTRACE_DIR="$d/run.soft" \
		-E PTRACE_PMU_DIR=$pmu -- "$@" >"$d/soft.out" 2>"$d/soft.err" </dev/null
}
pt() { # DIR CMD...
	d=$1
	shift
	# shellcheck disable=SC2086 # options
	timeout -k 5 "${PT_TIMEOUT:-300}" "$ptsim" --kernel -v -E LD_PRELOAD="$rt" -E PTRACE_CF=auto -E PTRACE_DIR="$d/run.test" \
		${PT_OPTIONS:-} -- "$@" >"$d/pt.out" 2>"$d/pt.err" </dev/null
}

# decode RUN: the raw trace, the threads in order of creation
decoded() { # DIR NAME
	timeout 300 "$decode" "$1/run.$2" --format=raw -o "$1/$2.raw" >"$1/$2.decode" 2>&1
	r=$?
	timeout 60 "$decode" "$1/run.$2" --list >"$1/$2.list" 2>>"$1/$2.decode"
	sed -n 's/^ *thread \([0-9]*\): tid \([0-9]*\).*/\2 \1/p' "$1/$2.list" | sort -n | cut -d' ' -f2 >"$1/$2.threads"
	return $r
}

one() { # CMD...: sets result and detail
	result=FAIL detail=
	d=$work/$(basename "$1")
	rm -rf "$d"
	mkdir -p "$d"
	soft "$d" "$@"
	want=$?
	if grep -q SKIPPED "$d/soft.out"; then
		result=skip detail=$(grep SKIPPED "$d/soft.out")
		return
	fi
	pt "$d" "$@"
	r=$?
	[ $r -eq $want ] || { detail="exit status $r, $want without PT: $(tail -1 "$d/pt.err")"; return; }
	cmp -s "$d/soft.out" "$d/pt.out" || { detail="output differs"; return; }
	grep -q '"cf": *"pt"' "$d/run.test/run.json" || { detail="not with PT: $(grep cf_reason "$d/run.test/run.json")"; return; }
	decoded "$d" soft
	want=$?
	decoded "$d" test
	r=$?
	[ $r -eq $want ] || [ -n "${PT_LOSSES:-}" ] ||
		{ detail="decode: status $r, $want without PT: $(tail -1 "$d/test.decode")"; return; }
	timeout 60 "$decode" "$d/run.soft" --ranges >"$d/ranges" 2>>"$d/soft.decode"
	paste "$d/soft.threads" "$d/test.threads" | sort -n | cut -f2 >"$d/pairs"
	"$compare" "$d/soft.raw" "$d/test.raw" --ranges "$d/ranges" --threads "$d/pairs" ${PT_LOSSES:+--lossy} \
		>"$d/compare.out" 2>&1
	r=$?
	detail=$(tail -1 "$d/compare.out" | sed 's/^compare: //')" $(sed -n 's/^ptsim: events=\([0-9]*\).*instructions=\([0-9]*\).*/pt_threads=\1 instructions=\2/p' "$d/pt.err")"
	[ $r -eq 0 ] && result=ok
	[ $r -eq 1 ] && sed '$d' "$d/compare.out"
}

report() { # NAME
	printf '%-4s %-20s %s\n' "$result" "$1" "$detail"
	case $result in
	FAIL) failed=$((failed + 1)) ;;
	*) passed=$((passed + 1)) ;;
	esac
	[ -n "${PT_KEEP:-}" ] || rm -rf "${work:?}/$(basename "$1")"
}

# each of the jobs takes every n-th program
split() { # N PROG...
	n=$1 k=0
	shift
	while [ $k -lt "$n" ]; do
		i=0 list=
		for p; do
			[ $((i % n)) -eq $k ] && list="$list $p"
			i=$((i + 1))
		done
		# shellcheck disable=SC2086 # paths of test programs have no spaces
		[ -z "$list" ] || PT_JOBS=1 sh "$0" $list >"$work/job.$k" 2>&1 &
		k=$((k + 1))
	done
	wait
	sed '/^[0-9]* passed, [0-9]* failed$/d' "$work"/job.*
	passed=$(cat "$work"/job.* | grep -c '^\(ok\|skip\) ')
	failed=$(($# - passed))
}

if [ "${PT_JOBS:-1}" -gt 1 ]; then
	split "$PT_JOBS" "$@"
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
[ -z "${PT_KEEP:-}" ] || echo "files kept in $work"
[ $failed -eq 0 ]
