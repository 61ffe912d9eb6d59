#!/bin/sh
# SPDX-License-Identifier: MIT
# pt_selftest.sh - workloads/pt-selftest gives its verdict: under the simulator Intel PT works; not where no event opens, nor
# where a trace is another
#
# usage: test/pt_selftest.sh [BUILD]
set -u
cd "$(dirname "$0")/.." || exit 2
build=$(realpath "${1:-build}") || exit 2
export XDG_CACHE_HOME="$build/cache"
out=$(mktemp) || exit 2
mine=$(mktemp -d) || exit 2
trap 'rm -rf "$out" "$mine"' EXIT
pass=0 fail=0

# verdict NAME STATUS WORDS [--OPTION...] BUILD
verdict() {
	name=$1 want=$2 words=$3
	shift 3
	b=$1
	shift
	timeout 300 "$build/test/ptsim" --kernel "$@" -- workloads/pt-selftest --small "$b" >"$out" 2>&1
	r=$?
	if [ $r = "$want" ] && tail -1 "$out" | grep -q "^VERDICT: $words"; then
		pass=$((pass + 1))
	else
		fail=$((fail + 1))
		echo "FAIL: $name: exit status $r"
		tail -3 "$out"
	fi
}

verdict works 0 'Intel PT works, nothing was lost' "$build"
[ "$(grep -c 'wrong=0 unknown=0 missing=0' "$out")" = 2 ] && [ "$(grep -c ' accesses, equal' "$out")" = 3 ] ||
	{ fail=$((fail + 1)); echo "FAIL: it has left something out"; cat "$out"; }
verdict busy 1 'Intel PT does not work here: .*in use by another' "$build" --open-errno 16,1,100000

# a decoder whose 1,000th record is another where Intel PT recorded
for f in "$build"/* ; do ln -s "$f" "$mine/"; done
rm "$mine/ptrace-decode"
cat >"$mine/ptrace-decode" <<EOF
#!/bin/sh
"$build/ptrace-decode" "\$@" | case "\$*" in *.b) sed '1000s/ [RWP] / X /' ;; *) cat ;; esac
EOF
chmod +x "$mine/ptrace-decode"
verdict different 1 'Intel PT does not work here: small: the traces differ' "$mine"
echo "$pass passed, $fail failed"
[ $fail = 0 ]
