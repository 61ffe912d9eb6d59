#!/bin/sh
# SPDX-License-Identifier: MIT
# Code entered where the analysis expects nobody: the program must not notice, the trace stops there,
# says so, and the next run knows the place.
#
# usage: test/avoid.sh [BUILD]
set -u
build=$(realpath -m "${1:-build}")
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
fail() { echo "FAIL $*"; exit 1; }

cc -o "$tmp/avoid" test/avoid.S || exit 2
XDG_CACHE_HOME=$tmp/cache
export XDG_CACHE_HOME
traced() { # DIR
	PTRACE_DIR=$tmp/$1 LD_PRELOAD=$build/libptrace_rt.so "$tmp/avoid" > "$tmp/out" 2> "$tmp/err"
	r=$?
	[ $r -eq 0 ] || fail "$1: exit status $r: $(tail -1 "$tmp/err")"
	[ "$(cat "$tmp/out")" = "avoid 63" ] || fail "$1: output '$(cat "$tmp/out")'"
	"$build/ptrace-decode" "$tmp/$1" --format=null > /dev/null 2> "$tmp/decode"
}

traced first
r=$?
[ $r -eq 1 ] || fail "the first run decodes with status $r, expected 1: $(tail -1 "$tmp/decode")"
grep -q "code was entered" "$tmp/decode" || fail "the decoder says: $(tail -1 "$tmp/decode")"
avoid=$(echo "$tmp"/cache/ptrace/*.avoid)
[ "$(wc -l < "$avoid")" -eq 1 ] || fail "no avoid list"
traced second || fail "the second run stops too: $(tail -1 "$tmp/decode")"
BUILD=$build E2E_MAPS=$tmp/cache test/e2e.sh --one "$tmp/avoid" > "$tmp/e2e" || fail "$(tail -2 "$tmp/e2e")"
grep -q "opaque=0 " "$tmp/e2e" || fail "opaque code ran: $(tail -2 "$tmp/e2e")"

# an entry in vain: the group stays as it is
again=$(cat "$avoid")
echo "$again" >> "$avoid"
BUILD=$build E2E_MAPS=$tmp/cache test/e2e.sh --one "$tmp/avoid" > "$tmp/e2e" || fail "$(tail -2 "$tmp/e2e")"
grep -q "opaque=0 " "$tmp/e2e" && fail "the group is relocated still"
"$build/ptrace-analyze" --avoid="$avoid" --stats "$tmp/avoid" | grep -q "avoid list" ||
	fail "ptrace-analyze names no avoid list"
echo "not hexadecimal" >> "$avoid"
"$build/ptrace-analyze" --avoid="$avoid" -o "$tmp/map" "$tmp/avoid" 2> "$tmp/err" && fail "a bad list is accepted"
grep -q "line 3 is no address" "$tmp/err" || fail "a bad list: $(cat "$tmp/err")"
echo "ok: stopped once, then traced"
