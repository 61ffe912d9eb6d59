#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Golden test of the emitter, and the executed copies.
#   run.sh BUILD_DIR          compare
#   run.sh BUILD_DIR --update write golden.txt anew (look at the difference!)
here=$(dirname "$0")
b=$1
pass=0
fail=0

ok() {
	pass=$((pass + 1))
}
bad() {
	echo "FAIL $*"
	fail=$((fail + 1))
}

t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
"$b/ptrace-analyze" -o "$t/golden.ptmap" "$b/test/emit/golden.so" || bad "analyze golden.so"
"$b/test/emit_dump" "$t/golden.ptmap" >"$t/golden.txt" || bad "dump"
if [ "$2" = --update ]; then
	cp "$t/golden.txt" "$here/golden.txt"
fi
if diff -u "$here/golden.txt" "$t/golden.txt"; then ok; else bad "copy or patches changed"; fi

for v in "" --verify; do
	"$b/ptrace-analyze" $v -o "$t/funcs.ptmap" "$b/test/emit/funcs.so" || bad "analyze funcs.so $v"
	if "$b/test/unit_emit" "$b/test/emit/funcs.so" "$t/funcs.ptmap"; then ok; else bad "unit_emit $v"; fi
done
if "$b/test/unit_r15"; then ok; else bad "unit_r15"; fi
if "$b/test/unit_r15" 200 selftest >/dev/null; then ok; else bad "unit_r15 cannot fail"; fi

echo "$pass passed, $fail failed"
[ $fail -eq 0 ]
