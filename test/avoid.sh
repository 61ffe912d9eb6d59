#!/bin/sh
# SPDX-License-Identifier: MIT
# Code entered where the analysis expects nobody (avoid.S), or at a function whose callers were all known
# (keep.S): the program must not notice, the next run knows the place. The trace goes on in the first case; in
# the second it stops there and says so.
#
# usage: test/avoid.sh [BUILD]
set -u
export PTRACE_CF="${PTRACE_CF:-soft}" # log everything: what a replay computes is for replay.sh
build=$(realpath -m "${1:-build}")
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
fail() { echo "FAIL $*"; exit 1; }

cc -o "$tmp/avoid" test/avoid.S && cc -o "$tmp/keep" test/keep.S || exit 2
XDG_CACHE_HOME=$tmp/cache
export XDG_CACHE_HOME
traced() { # PROGRAM OUTPUT DIR
	PTRACE_DIR=$tmp/$1.$3 LD_PRELOAD=$build/libptrace_rt.so "$tmp/$1" > "$tmp/out" 2> "$tmp/err"
	r=$?
	[ $r -eq 0 ] || fail "$1, $3: exit status $r: $(tail -1 "$tmp/err")"
	[ "$(cat "$tmp/out")" = "$2" ] || fail "$1, $3: output '$(cat "$tmp/out")'"
	"$build/ptrace-decode" "$tmp/$1.$3" --format=null > /dev/null 2> "$tmp/decode"
}
twice() { # PROGRAM OUTPUT PLACES [STOPS]
	traced "$1" "$2" first
	r=$?
	[ $r -eq "$(($# > 3))" ] || fail "$1: the first run decodes with status $r: $(tail -1 "$tmp/decode")"
	[ $r -eq 0 ] || grep -q "code was entered" "$tmp/decode" || fail "$1: the decoder says: $(tail -1 "$tmp/decode")"
	avoid=$(ls -t "$tmp"/cache/ptrace/*.avoid | head -1)
	[ "$(sort -u "$avoid" | wc -l)" -eq "$3" ] || fail "$1: avoid list: $(cat "$avoid")"
	traced "$1" "$2" second || fail "$1: the second run stops too: $(tail -1 "$tmp/decode")"
	BUILD=$build E2E_MAPS=$tmp/cache test/e2e.sh --one "$tmp/$1" > "$tmp/e2e" || fail "$(tail -2 "$tmp/e2e")"
	grep -q "opaque=0 " "$tmp/e2e" || fail "$1: opaque code ran: $(tail -2 "$tmp/e2e")"
}

twice keep "keep 230" 1 stops
twice avoid "avoid 63" 1

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
echo "ok: seen once, then known"
