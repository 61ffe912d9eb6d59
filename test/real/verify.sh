#!/bin/bash
# SPDX-License-Identifier: MIT
# verify.sh - every address of real programs, checked: each case of workloads/cases.sh is run
# natively, then traced in full with every effective address logged as well (PTRACE_CF=soft PTRACE_VERIFY=1); output and
# exit status must be the same, and the decoder must reconstruct every address exactly. Once more as users run it,
# recorded for a replay: the same output, and the replay has every address that it logs.
#
#	verify.sh [--build DIR] [--size small|bench] [--timeout SECONDS] [--keep] [CASE|kernels|real]...
#
# A line a case, then "N passed, N failed" (and ", N skipped": program not installed). Exit
# status: 0; 1 a case failed; 2 wrong use or something is missing. PTRACE_* variables of the
# caller apply to the traced runs. --keep leaves the run directories of failed cases in
# DIR/verify. Files: DIR/verify/NAME/.
set -u

here=$(cd "$(dirname "$0")" && pwd)
cases=$here/../../workloads/cases.sh
build=build size=small timeout=300 keep=0 names=()

usage() {
	echo "usage: verify.sh [--build DIR] [--size small|bench] [--timeout SECONDS] [--keep]" \
		"[CASE|kernels|real]..." >&2
	exit 2
}

while (($#)); do
	case $1 in
	--build|--size|--timeout)
		(($# > 1)) || usage
		printf -v "${1#--}" %s "$2"
		shift ;;
	--keep)
		keep=1 ;;
	kernels|real)
		mapfile -t -O "${#names[@]}" names < <("$cases" list "$1") ;;
	-*)
		usage ;;
	*)
		names+=("$1") ;;
	esac
	shift
done
((${#names[@]})) || mapfile -t names < <("$cases" list)

build=$(realpath -m "$build")
for tool in workloads/launch libptrace_rt.so ptrace-analyze ptrace-decode; do
	[[ -e $build/$tool ]] && continue
	echo "verify.sh: $build/$tool is missing: run make first" >&2
	exit 2
done

# cached maps know the format's version, not that the analyzer changed
maps=$build/cache/$(cksum < "$build/ptrace-analyze" | tr ' ' '-')

# traced_env - the variables of the traced run as launch options, in traced
traced_env() {
	local name
	traced=(-E "LD_PRELOAD=$build/libptrace_rt.so")
	[[ -n ${PTRACE_ANALYZE-} ]] || traced+=(-E "PTRACE_ANALYZE=$build/ptrace-analyze")
	for name in $(compgen -e PTRACE_); do
		case $name in
		PTRACE_DIR|PTRACE_VERIFY) ;;
		*) traced+=(-E "$name=${!name}") ;;
		esac
	done
	traced+=(-E "PTRACE_DIR=$work/run")
}

# run KIND OPTION... - run the case with further launch options; its files go to $work/KIND
run() {
	local kind=$1 status timeout_hit rest
	shift
	rm -rf "$work/files" "${work:?}/$kind"
	mkdir -p "$work/files"
	"$build/workloads/launch" -i "$stdin" -o "$work/stdout" -e "$work/stderr" \
		-r "$work/report" -t "$timeout" "${env[@]}" "$@" -- "${argv[@]}" || return
	mkdir "$work/$kind"
	mv "$work/files" "$work/stdout" "$work/stderr" "$work/$kind"
	status=$(sed -n 's/^status=//p' "$work/report")
	timeout_hit=$(sed -n 's/^timeout=//p' "$work/report")
	rest=$(sed -n 's/^rest_timeout=//p' "$work/report")
	echo "$status" > "$work/$kind/status"
	((timeout_hit)) && why="$kind run timed out after $timeout s" && return 1
	((rest)) && why="the collector did not end within $timeout s" && return 1
	return 0
}

# last_words FILE - its last line, for a message
last_words() {
	local line
	line=$(tail -n 1 "$1" 2> /dev/null)
	echo "${line:-no message}"
}

# compare - is what the traced run left the same as what the native one left?
compare() {
	local native traced_status
	native=$(< "$work/native/status")
	traced_status=$(< "$work/traced/status")
	if [[ $native != "$traced_status" ]]; then
		why="exit status $traced_status instead of $native: $(last_words "$work/traced/stderr")"
	elif ! cmp -s "$work/native/stdout" "$work/traced/stdout"; then
		why="stdout differs from the native run"
	elif ! diff -rq "$work/native/files" "$work/traced/files" > /dev/null; then
		why="output files differ from the native run"
	else
		return 0
	fi
	return 1
}

# check_addresses - decode and judge the verdict; leaves the numbers in detail
check_addresses() {
	local line status word
	local -A got=()
	if [[ ! -d $work/run ]]; then
		why="no run directory: the runtime did not start"
		return 1
	fi
	timeout $((timeout * 10)) "$build/ptrace-decode" "$work/run" --verify \
		> "$work/verify.out" 2> "$work/verify.err"
	status=$?
	line=$(last_words "$work/verify.out")
	detail=${line#verify: }
	for word in $detail; do
		[[ $word == *=* ]] && got[${word%%=*}]=${word#*=}
	done
	for word in accesses wrong unknown missing opaque; do
		[[ ${got[$word]-} =~ ^[0-9]+$ ]] && continue
		detail=
		why="ptrace-decode --verify: status $status, no verdict: $(last_words "$work/verify.err")"
		return 1
	done
	if ((got[wrong] || got[unknown] || got[missing])); then
		why="addresses are not exact"
	elif ((got[accesses] == 0)); then
		why="nothing was verified"
	elif ((status)); then
		why="ptrace-decode --verify: status $status: $(last_words "$work/verify.err")"
	else
		return 0
	fi
	return 1
}

# check_plain - a run without PTRACE_VERIFY decodes to its end; what is computed by a replay is compared there
check_plain() {
	if grep -q '"cf": "replay"' "$work/run/run.json"; then
		check_addresses && return
		why="plain run: $why"
		return 1
	fi
	timeout $((timeout * 10)) "$build/ptrace-decode" "$work/run" --format=null \
		> "$work/plain.out" 2> "$work/plain.err" && return
	why="plain run, ptrace-decode: status $?: $(last_words "$work/plain.err")"
	return 1
}

# load NAME - the case as cases.sh describes it; returns its exit status
load() {
	local text status key value
	text=$("$cases" show "$1" "$size" "$build" "$work/files" 2> "$work/why")
	status=$?
	why=$(last_words "$work/why")
	((status)) && return "$status"
	env=(-E "XDG_CACHE_HOME=$maps") argv=() stdin=/dev/null
	while IFS='=' read -r key value; do
		case $key in
		env) env+=(-E "$value") ;;
		arg) argv+=("$value") ;;
		stdin) stdin=$value ;;
		esac
	done <<< "$text"
}

# known_output - the kernels' small checksums are on record: is the native run right?
known_output() {
	local known=$here/../../workloads/kernels.expected line
	[[ $size == small ]] && line=$(grep "^$name " "$known") || return 0
	[[ $line == "$(< "$work/native/stdout")" ]] && return
	why="the native run printed something else than workloads/kernels.expected"
	return 1
}

one() {
	why='' detail=''
	run native || return
	if [[ $(< "$work/native/status") != 0 ]]; then
		why="the native run failed: $(last_words "$work/native/stderr")"
		return 1
	fi
	known_output || return
	traced_env
	run traced -E PTRACE_CF=soft -E PTRACE_VERIFY=1 "${traced[@]}" && compare && check_addresses || return
	rm -rf "$work/run"
	if ! run traced "${traced[@]}" || ! compare; then
		why="plain run: $why"
		return 1
	fi
	check_plain
}

passed=0 failed=0 skipped=0
for name in "${names[@]}"; do
	work=$build/verify/$name
	rm -rf "$work"
	mkdir -p "$work" || exit 2
	load "$name"
	case $? in
	0)
		if one; then
			printf 'ok      %-16s %s\n' "$name" "$detail"
			((passed++))
			rm -rf "$work"
		else
			printf 'FAILED  %-16s %s%s\n' "$name" "$why" "${detail:+: $detail}"
			((failed++))
			((keep)) || rm -rf "$work"
		fi ;;
	3)
		printf 'skipped %-16s %s\n' "$name" "$why"
		((skipped++))
		rm -rf "$work" ;;
	*)
		rm -rf "$work"
		echo "verify.sh: $why" >&2
		exit 2 ;;
	esac
done
if ((skipped)); then
	echo "$passed passed, $failed failed, $skipped skipped"
else
	echo "$passed passed, $failed failed"
fi
((failed == 0 && passed > 0))
