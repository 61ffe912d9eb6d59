#!/bin/sh
# SPDX-License-Identifier: MIT
# pt.sh PROG... | --one PROG ARGS | --real | --long - is the trace of a run with Intel PT the trace of the same run without?
#
# Each PROG runs twice in the same set-up: its control flow recorded by the copies (PTRACE_CF=soft), and under the
# simulator (ptsim --kernel) by Intel PT. Output and exit status must be equal, and the decoded traces record for record.
# Of programs whose header says `ORACLE: yes`, all threads are compared, else the first.
# `PT_ENV: NAME=VALUE` is in the environment of both.
# Programs whose header says `PT_TODAY: WHY` may fail: that does not work yet. `PT_NO: WHY`: cannot be run by any ptrace(2)
# tracer, so not in the simulator. PTSIM=1 is in the environment of all: some do less then.
# PT_VERIFY=1, for programs that are not the same in every run: one run, with PTRACE_VERIFY=1; every address must be right.
# `PT_ACCESSES: N` must be there then at least. `KILLED: yes`, as in procs.sh: a signal ends one of its processes.
# --one PROG ARGS: a program with arguments. --real: real programs on small inputs; --long: those that take minutes each. PT_OPTIONS: the simulator's. PT_LOSSES=N: control flow may be lost (faults are
# injected): what is decoded must be in the soft trace in the same order, N percent of it at least, and the decoder must say what
# is lost. With PT_VERIFY=1: every address that is there must be right, and every loss is told.
#
# `PT_UNTRACED: N`: so many accesses run untraced with PT that do not without (0).
#
# PT_SET='NAME=VALUE …' is in the environment of both, in place of PT_ENV's.
# PT_PTWRITE=BUDGET: values by ptwrite, PTRACE_PTWRITE=1 and PTRACE_PTWRITE_BUDGET=BUDGET.
#
# Environment: BUILD (build); PT_JOBS=N programs at a time; PT_KEEP=1 keeps the files.
# Exit status: 0 all passed, 1 some failed, 2 something needed is missing.
set -u
. "$(dirname "$0")/jobs.sh"
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
mkdir -p "$XDG_CACHE_HOME" # the runtime makes one level only, and without it an executed image begins a run of its own
[ -n "${PT_KEEP:-}" ] || trap 'rm -rf "$work"' EXIT

# both runs see environments of the same size: the values have the same lengths
pmu=/tmp/ptsim-pmu-XXXXXX
ptw=
[ -z "${PT_PTWRITE:-}" ] || ptw="-E PTRACE_PTWRITE_BUDGET=$PT_PTWRITE -E PTRACE_PTWRITE"
soft() { # DIR CMD...
	d=$1
	shift
	# shellcheck disable=SC2086 # options
	timeout -k 5 120 "$oracle" --launch -E PTSIM=1 -E LD_PRELOAD="$rt" -E PTRACE_CF=soft -E PTRACE_DIR="$d/run.soft" \
		${ptw:+$ptw=0} $env -E PTRACE_PMU_DIR=$pmu -- "$@" >"$d/soft.out" 2>"$d/soft.err" </dev/null
}
pt() { # DIR CMD...
	d=$1
	shift
	# shellcheck disable=SC2086 # options
	timeout -k 5 "${PT_TIMEOUT:-300}" "$ptsim" --kernel -v -E PTSIM=1 -E LD_PRELOAD="$rt" -E PTRACE_CF=full -E PTRACE_DIR="$d/run.test" \
		${ptw:+$ptw=1} $env ${PT_OPTIONS:-} -- "$@" >"$d/pt.out" 2>"$d/pt.err" </dev/null
}

# decoded DIR NAME: the raw trace, the threads in order of creation
# shellcheck disable=SC2086 # no option, or one
decoded() {
	timeout 300 "$decode" "$1/run.$2" $only --format=raw -o "$1/$2.raw" >"$1/$2.decode" 2>&1
	r=$?
	[ "$all" = yes ] || return $r
	timeout 60 "$decode" "$1/run.$2" --list >"$1/$2.list" 2>>"$1/$2.decode"
	sed -n 's/^ *thread \([0-9]*\): tid \([0-9]*\).*/\2 \1/p' "$1/$2.list" | sort -n | cut -d' ' -f2 >"$1/$2.threads"
	return $r
}

# The addresses of a run with PT against those that it logged. Of what a signal ended (KILLED), the last bytes may not be
# there, which the decoder says; all else of it is, and right.
verified() { # CMD...
	PTSIM=1 timeout 120 "$@" >"$d/soft.out" 2>"$d/soft.err" </dev/null
	want=$?
	if grep -q SKIPPED "$d/soft.out"; then
		result=skip detail=$(grep SKIPPED "$d/soft.out")
		return
	fi
	PT_OPTIONS="${PT_OPTIONS:-} -E PTRACE_VERIFY=1" pt "$d" "$@"
	r=$?
	[ $r -eq $want ] || { detail="exit status $r, $want without PT: $(tail -1 "$d/pt.err")"; return; }
	cmp -s "$d/soft.out" "$d/pt.out" || { detail="output differs"; return; }
	timeout 300 "$decode" --verify "$d/run.test" >"$d/verify" 2>"$d/verify.err"
	r=$?
	detail="$(tail -1 "$d/verify") $(sed -n 's/^ptsim: events=\([0-9]*\).*instructions=\([0-9]*\).*/pt_threads=\1 instructions=\2/p' "$d/pt.err")"
	n=$(echo "$detail" | sed -n 's/^verify: .* wrong=0 unknown=0 missing=\([0-9]*\).*/\1/p')
	if [ "${n:-1}" -eq 0 ]; then
		[ $r -ne 0 ] || result=ok
	elif [ -n "$n" ] && [ -n "$(field STOPS_TODAY "$1")" ]; then # as in procs.sh
		result=open
	elif [ -n "${PT_LOSSES:-}" ] && [ -n "$n" ]; then
		# each loss
		told=$(awk '/: control flow was lost [0-9]+ times/ { sub(/.* was lost /, ""); n += $1 }
			/the rest of this thread is missing$|: the stream ends at its last / { n++ } END { print n + 0 }' "$d/verify.err")
		[ "$told" -eq "$n" ] && result=ok
	elif [ -n "$(field KILLED "$1")" ] && [ -n "$n" ]; then
		"$decode" --list "$d/run.test" 2>/dev/null | grep -q '^ *process .*: killed' ||
			{ detail="it was killed, and the decoder does not say so: $detail"; return; }
		# as many threads as are not complete, each for that reason
		[ "$(grep -c 'the stream ends at its last complete chunk .*: killed' "$d/verify.err")" -eq "$n" ] && result=ok
	fi
	[ "$result" = ok ] || detail="$detail: $(head -1 "$d/verify.err")"
	grep -q '"cf": *"pt"' "$d/run.test/run.json" || result=FAIL detail="not with PT: $(grep cf_reason "$d/run.test/run.json")"
	least=$(field PT_ACCESSES "$1")
	[ -z "${PT_LOSSES:-}" ] || return
	[ "$(echo "$detail" | sed -n 's/.*accesses=\([0-9]*\).*/\1/p')" -ge "${least:-1}" ] ||
		result=FAIL detail="at least ${least:-1} accesses were made: $detail"
}

# Whether a lock inside libc is contended is not the same in every run of a program with threads: a difference that is
# there by chance is not there twice.
one() { # CMD...: sets result and detail
	once "$@"
	[ "$result" != FAIL ] || [ -z "${all:-}" ] || [ -n "${PT_VERIFY:-}${PT_LOSSES:-}" ] || once "$@"
}

once() { # CMD...
	env=
	for e in ${PT_SET:-$(field PT_ENV "$1")}; do
		env="$env -E $e"
	done
	result=FAIL detail='' all=''
	d=$work/$(basename "$1")
	rm -rf "$d"
	mkdir -p "$d"
	no=$(field PT_NO "$1")
	[ -z "$no" ] || { result=none detail=$no; return; }
	[ -z "${PT_VERIFY:-}" ] || { verified "$@"; return; }
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
	all=$(field ORACLE "$1") only=--threads=0
	[ "$all" != yes ] || only=
	decoded "$d" soft
	want=$?
	decoded "$d" test
	r=$?
	[ $r -eq $want ] || [ -n "${PT_LOSSES:-}" ] ||
		{ detail="decode: status $r, $want without PT: $(tail -1 "$d/test.decode")"; return; }
	timeout 60 "$decode" "$d/run.test" --ranges >"$d/ranges" 2>>"$d/test.decode"
	if [ "$all" = yes ]; then
		paste "$d/soft.threads" "$d/test.threads" | sort -n | cut -f2 >"$d/pairs"
	else
		echo 0 >"$d/pairs"
	fi
	"$compare" "$d/soft.raw" "$d/test.raw" --ranges "$d/ranges" --threads "$d/pairs" ${PT_LOSSES:+--lossy} \
		>"$d/compare.out" 2>&1
	r=$?
	detail=$(tail -1 "$d/compare.out" | sed 's/^compare: //')" $(sed -n 's/^ptsim: events=\([0-9]*\).*instructions=\([0-9]*\).*/pt_threads=\1 instructions=\2/p' "$d/pt.err")"
	[ $r -eq 0 ] && result=ok
	[ $r -eq 1 ] && sed '$d' "$d/compare.out"
	more=$(field PT_UNTRACED "$1")
	if [ -n "${PT_LOSSES:-}" ]; then
		losses
	elif ! echo "$detail" | grep -q " opaque=${more:-0} "; then
		result=FAIL detail="accesses that are not traced with PT, ${more:-0} expected: $detail"
	fi
}

# Something was lost, it is said, and so much is there.
losses() {
	n=$(sed -n 's/.*oracle=\([0-9]*\) traced=\([0-9]*\).*/\1 \2/p' "$d/compare.out")
	want=${n% *} have=${n#* }
	if [ "${want:-0}" = "${have:-0}" ]; then
		result=FAIL detail="nothing was lost: $detail"
	elif ! grep -q -e 'control flow' -e 'lost the stream' "$d/test.decode"; then
		result=FAIL detail="the decoder says nothing of what is lost: $detail"
	elif [ $((have * 100)) -lt $((want * PT_LOSSES)) ]; then
		result=FAIL detail="less than $PT_LOSSES percent are there: $detail"
	fi
}

report() { # NAME
	today=$(field PT_TODAY "$1")
	if [ -n "$today" ]; then
		case $result in
		FAIL) result=open detail="$today: $detail" ;;
		ok) detail="no longer needs PT_TODAY: $detail" ;;
		esac
	fi
	printf '%-4s %-20s %s\n' "$result" "$1" "$detail"
	case $result in
	FAIL) failed=$((failed + 1)) ;;
	*) passed=$((passed + 1)) ;;
	esac
	[ -n "${PT_KEEP:-}" ] || rm -rf "${work:?}/$(basename "$1")"
}

split() { # N PROG...
	n=$1
	shift
	jobs "$n" PT_JOBS=1 -- "$@"
	sed '/^[0-9]* passed, [0-9]* failed$/d' "$work"/job.*
	passed=$(cat "$work"/job.* | grep -c '^\(ok\|skip\|open\|none\) ')
	failed=$(($# - passed))
}

text() {
	head -c 20000 /usr/share/common-licenses/GPL-3 >"$work/text"
}

# 30 million instructions of an interpreter, which looks at the clock; two threads that compress: not the same in every run
long() {
	text
	PT_VERIFY=1 PT_TIMEOUT=1200
	one /usr/bin/python3 -S -c 'print(sum(i * i for i in range(1000)))'
	report python3
	one /usr/bin/xz -0 -T2 --block-size=8KiB -kc "$work/text"
	report xz
}

# gzip of 20 KB, sqlite3 with 200 rows, a shell pipeline
real() {
	text
	{
		echo 'create table t(a integer, b text); begin;'
		i=0
		while [ $i -lt 200 ]; do
			echo "insert into t values($((i * 7919 % 1009)), 'row $i');"
			i=$((i + 1))
		done
		echo 'commit; select count(*), sum(a), max(b) from t; select a from t order by a limit 5;'
	} >"$work/rows.sql"
	one /usr/bin/gzip -c "$work/text"
	report gzip
	one /usr/bin/sqlite3 -init "$work/rows.sql" :memory: 'select avg(a) from t;'
	report sqlite3
	PT_VERIFY=1 # process ids are not the same in every run
	one /bin/sh -c "sort $work/text | uniq -c | tail -2"
	report pipeline
}

if [ "${1:-}" = --real ]; then
	real
elif [ "${1:-}" = --long ]; then
	long
elif [ "${PT_JOBS:-1}" -gt 1 ]; then
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
