#!/bin/sh
# SPDX-License-Identifier: MIT
# make check: every test in turn, one line each, the failing ones' output at length; which failed, and what their last
# lines say, once more at the very end.
set -u
b=${1:-build}
log=$b/test/log
mkdir -p "$log"
pass=0
fail=0
bad=
run() { # run NAME COMMAND...: a test is a command that exits 0
	name=$1
	shift
	start=$(date +%s)
	if "$@" >"$log/$name" 2>&1; then
		pass=$((pass + 1))
		r=ok
	else
		fail=$((fail + 1))
		bad="$bad $name"
		r=FAILED
	fi
	printf '%-24s %-7s %3ds  %s\n' "$name" "$r" $(($(date +%s) - start)) "$(tail -1 "$log/$name")"
	[ $r = ok ] || tail -40 "$log/$name" | sed 's/^/    /'
}
# shellcheck source=test/tests.sh
. test/tests.sh
for name in $bad; do
	printf '%s FAILED:\n' "$name"
	{ grep -E '^(FAIL|not ok)|: FAIL|FAILED' "$log/$name" || tail -3 "$log/$name"; } | tail -8 | cut -c1-300 | sed 's/^/    /'
done
printf '%d passed, %d failed\n' $pass $fail
[ $fail = 0 ]
