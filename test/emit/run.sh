#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Golden test of the emitter, and the executed copies.
#   run.sh BUILD_DIR          compare
#   run.sh BUILD_DIR --update write golden*.txt anew (look at the difference!)
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
for cf in soft pt; do
	g=golden.txt
	[ $cf = soft ] || g=golden_$cf.txt
	"$b/ptrace-analyze" --cf=$cf -o "$t/golden.ptmap" "$b/test/emit/golden.so" || bad "analyze golden.so"
	"$b/test/emit_dump" "$t/golden.ptmap" >"$t/$g" || bad "dump"
	if [ "$2" = --update ]; then
		cp "$t/$g" "$here/$g"
	fi
	if diff -u "$here/$g" "$t/$g"; then ok; else bad "$g: copy or patches changed"; fi
done

for v in "" --verify --cf=pt "--cf=pt --verify"; do
	# shellcheck disable=SC2086 # options
	"$b/ptrace-analyze" $v -o "$t/funcs.ptmap" "$b/test/emit/funcs.so" || bad "analyze funcs.so $v"
	if "$b/test/unit_emit" "$b/test/emit/funcs.so" "$t/funcs.ptmap"; then ok; else bad "unit_emit $v"; fi
done
if "$b/test/unit_r15"; then ok; else bad "unit_r15"; fi
if "$b/test/unit_r15" 200 selftest >/dev/null; then ok; else bad "unit_r15 cannot fail"; fi

echo "$pass passed, $fail failed"
[ $fail -eq 0 ]
