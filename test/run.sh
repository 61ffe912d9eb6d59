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
said() { # NAME STATUS SECONDS
	if [ "$2" = 0 ]; then
		pass=$((pass + 1))
		r=ok
	else
		fail=$((fail + 1))
		bad="$bad $1"
		r=FAILED
	fi
	printf '%-24s %-7s %3ds  %s\n' "$1" "$r" "$3" "$(tail -1 "$log/$1")"
	[ $r = ok ] || tail -40 "$log/$1" | sed 's/^/    /'
}
timed() { # NAME COMMAND...: status and seconds
	name=$1
	shift
	start=$(date +%s)
	"$@" >"$log/$name" 2>&1
	echo $? $(($(date +%s) - start))
}
beside='' pid=''
run_beside() { # as run, but while the next one runs: for those that use one processor
	beside=$1
	timed "$@" >"$log/beside" &
	pid=$!
}
run() { # run NAME COMMAND...: a test is a command that exits 0
	# shellcheck disable=SC2046 # two words
	said "$1" $(timed "$@")
	[ -n "$beside" ] || return 0
	wait $pid
	# shellcheck disable=SC2046
	said "$beside" $(cat "$log/beside")
	beside=''
}
# shellcheck source=test/tests.sh
. test/tests.sh
for name in $bad; do
	printf '%s FAILED:\n' "$name"
	{ grep -E '^(FAIL|not ok)|: FAIL|FAILED' "$log/$name" || tail -3 "$log/$name"; } | tail -8 | cut -c1-300 | sed 's/^/    /'
done
printf '%d passed, %d failed\n' $pass $fail
[ $fail = 0 ]
