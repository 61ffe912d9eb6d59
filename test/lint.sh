#!/bin/sh
# SPDX-License-Identifier: MIT
# make lint: formatting, shell scripts, man pages, and what no file may contain.
set -u
cd "$(dirname "$0")/.." || exit 2
pass=0
fail=0
check() { # check NAME COMMAND...
	name=$1
	shift
	if out=$("$@" 2>&1); then
		pass=$((pass + 1))
	else
		fail=$((fail + 1))
		printf 'lint: %s:\n%s\n' "$name" "$out" | head -20
	fi
}
# shellcheck disable=SC2046 # the lists are words
clang_format() { clang-format --dry-run -Werror $(git ls-files '*.c' '*.h' | grep -v '^test/progs/'); }
# shellcheck disable=SC2046
shell() { shellcheck -S warning -x -e SC1091 $(git ls-files '*.sh'); }
man_pages() {
	for f in man/*.[1-9]; do
		w=$(man --warnings -E UTF-8 -l -Tutf8 -Z "$f" 2>&1 >/dev/null) || :
		[ -z "$w" ] || { echo "$f: $w"; return 1; }
	done
}
options() { # every long option a program prints in --help is in its man page
	for p in analyze record collect decode replay; do
		[ -f man/ptrace-$p.1 ] || { echo "man/ptrace-$p.1 is missing"; return 1; }
		for o in $(build/ptrace-$p --help 2>&1 | grep -oE -- '--[a-z][a-z-]+' | sort -u); do
			grep -qF -- "$(printf '%s' "$o" | sed 's/-/\\-/g')" man/ptrace-$p.1 ||
				grep -qF -- "$o" man/ptrace-$p.1 || { echo "ptrace-$p $o is not in its man page"; return 1; }
		done
	done
}
spdx() {
	bad=$(git ls-files '*.c' '*.h' '*.S' '*.sh' Makefile | while read -r f; do
		head -3 "$f" | grep -q 'SPDX-License-Identifier: MIT' || echo "$f"; done)
	[ -z "$bad" ] || { echo "no SPDX line: $bad"; return 1; }
}
readmes() {
	for d in include analyzer preload decoder test workloads; do
		[ -f $d/README.md ] || { echo "$d/README.md is missing"; return 1; }
	done
}
check format clang_format
check shellcheck shell
check man man_pages
check options options
check spdx spdx
check readme readmes
printf 'lint: %d passed, %d failed\n' $pass $fail
[ $fail = 0 ]
