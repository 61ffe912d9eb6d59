#!/bin/sh
# SPDX-License-Identifier: MIT
# Control flow that is not in the log: is the trace what it is when it is in the log?
#
# usage: test/flow/flow.sh PROG...
#
# Each program runs with copies for Intel PT (PTRACE_TEST_PT_COPIES=1), stepped: flow_step writes down what its first
# thread executes. flow_decode walks with that list in place of a recording, compares every address (PTRACE_VERIFY=1)
# and writes the trace, which must be that of an ordinary run in the same set-up, byte for byte.
#
# Environment: BUILD (build); FLOW_KEEP=1 keeps the files. Exit status: 0 all passed, 1 some failed.
set -u
export PTRACE_CF="${PTRACE_CF:-soft}" # log everything: what a replay computes is for replay.sh
build=$(realpath -m "${BUILD:-build}")
work=${TMPDIR:-/tmp}/ptrace-flow.$$
passed=0 failed=0

mkdir -p "$work" || exit 2
[ -n "${FLOW_KEEP:-}" ] || trap 'rm -rf "$work"' EXIT
# Cached maps know the format's version, not that the analyzer changed.
XDG_CACHE_HOME=$build/cache/$(cksum < "$build/ptrace-analyze" | tr ' ' '-')
export XDG_CACHE_HOME

# run DIR PT TOOL... - -E in the same order, values of the same lengths
run() {
	to=$d/run$1 pt=$2; shift 2
	timeout -k 5 300 "$@" -E LD_PRELOAD="$build/libptrace_rt.so" -E PTRACE_TEST_PT_COPIES="$pt" \
		-E PTRACE_VERIFY="$pt" -E PTRACE_DIR="$to" -- "$prog" > "$d/out$pt" 2> "$d/err$pt" < /dev/null
}

one() {
	run 0 0 "$build/test/oracle" --launch
	soft=$?
	# makes the maps of what it loads later: ptrace-analyze cannot be started by a program that is stepped
	run 2 1 "$build/test/oracle" --launch
	run 1 1 "$build/test/flow_step" -o "$d/list"
	status=$?
	why="exit status $status, soft $soft: $(tail -1 "$d/err1")"
	[ $status -eq $soft ] || return
	why="output differs"
	cmp -s "$d/out0" "$d/out1" || return
	why=$("$build/test/flow_decode" "$d/run1" "$d/list" "$d/pt.raw" 2>&1 | tail -2 | tr '\n' ' ')
	case $why in
	*" checked=0 "*) return ;;
	*" wrong=0 unknown=0 missing=0 ") ;;
	*) return ;;
	esac
	detail=$why
	why="soft run: $(timeout 300 "$build/ptrace-decode" "$d/run0" --threads=0 --format=raw -o "$d/soft.raw" 2>&1 |
		tail -1)"
	[ -s "$d/soft.raw" ] || return
	why="differs from the ordinary run: $(cmp "$d/soft.raw" "$d/pt.raw" 2>&1)"
	cmp -s "$d/soft.raw" "$d/pt.raw" && why=
}

for prog; do
	d=$work/$(basename "$prog") detail=
	mkdir -p "$d"
	one
	if [ -z "$why" ]; then
		printf 'ok   %-24s %s\n' "$(basename "$prog")" "$detail"
		passed=$((passed + 1))
	else
		printf 'FAIL %-24s %s\n' "$(basename "$prog")" "$why"
		failed=$((failed + 1))
	fi
	[ -n "${FLOW_KEEP:-}" ] || rm -rf "$d"
done
echo "$passed passed, $failed failed"
[ -z "${FLOW_KEEP:-}" ] || echo "files kept in $work"
[ $failed -eq 0 ]
