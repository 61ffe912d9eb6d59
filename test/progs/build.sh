#!/bin/sh
# SPDX-License-Identifier: MIT
# Build the test programs into build/test/progs. Each source says how in its first lines:
#
#	BUILD: COMPILER FLAGS...    $OUT is the output folder
#	VARIANTS: NAME...           also as PROG.NAME, see variant() for what the names mean
#	LIB: libX.so SOURCE FLAGS   a shared object it needs, built first
#	HELPER: NAME SOURCE FLAGS   a program it needs, likewise
#	STATUS: N                   the exit status it ends with (default 0)
#
# What the drivers make of the rest of the header: test/README.md.
#
# usage: build.sh [--list | --list-base | --list-procs | --list-procs-short | --list-procs-all | SOURCE...]; run from the
# project root. What is newer than its sources is not built again. Short: without PT_LONG; all: with variants.
# Flags are words, and an empty list of them is none:
# shellcheck disable=SC2086,SC2046
set -u
src=test/progs
out=${OUT:-build/test/progs}
status=0
headers=$(echo "$src"/*.h)

field() { sed -n "1,10s|^// $1: ||p" "$2"; }

sources() {
	for f in "$src"/*.c "$src"/*.cc "$src"/*.S; do
		[ -n "$(field BUILD "$f")" ] && echo "$f"
	done
}

# variant NAME COMPILER: prints "COMPILER FLAGS" that replace or follow the BUILD line's
variant() {
	case $1 in
	O0|O1|O2|O3|Os) echo "$2 -$1" ;;
	clang) case $2 in *++) echo clang++ ;; *) echo clang ;; esac ;;
	cet) echo "$2 -fcf-protection=full" ;;
	nopie) echo "$2 -no-pie -fno-pie" ;;
	stripped) echo "$2 -s" ;;
	*) echo "build.sh: unknown variant $1" >&2; exit 2 ;;
	esac
}

newer() { # newer TARGET SOURCES...: is the target up to date?
	target=$1; shift
	[ -e "$target" ] && [ -z "$(find "$@" -newer "$target")" ]
}

compile() { # compile TARGET SOURCE LIBS COMPILER FLAGS...
	t=$1 s=$2 libs=$3; shift 3
	newer "$t" "$s" "$src/build.sh" $headers && return
	# Libraries after the source, so that the linker resolves them.
	cc=$1; shift
	if ! "$cc" -g -Wall -Wno-parentheses -o "$t" "$@" "$s" $libs; then
		echo "build.sh: $t failed" >&2
		status=1
	fi
}

build() {
	f=$1
	base=$(basename "$f"); base=${base%.*}
	libs=
	line=$(field BUILD "$f" | sed "s|\$OUT|$out|g")
	set -f
	field LIB "$f" > "$out/.libs.$$"
	while read -r lib lsrc lflags; do
		case $lsrc in *.cc) lc=c++ ;; *) lc=cc ;; esac
		compile "$out/$lib" "$src/$lsrc" "" $lc -O2 -fPIC -shared $lflags
	done < "$out/.libs.$$"
	field HELPER "$f" > "$out/.libs.$$"
	while read -r helper hsrc hflags; do
		compile "$out/$helper" "$src/$hsrc" "" cc -O2 $hflags
	done < "$out/.libs.$$"
	rm -f "$out/.libs.$$"
	case $line in
	*-l*) libs=$(echo "$line" | tr ' ' '\n' | grep '^-l') ;;
	esac
	line=$(echo "$line" | tr ' ' '\n' | grep -v '^-l' | tr '\n' ' ')
	compile "$out/$base" "$f" "$libs" $line
	for v in $(field VARIANTS "$f"); do
		cc=${line%% *} flags=
		case $line in *' '*) flags=${line#* } ;; esac
		set -- $(variant "$v" "$cc")
		vc=$1; shift
		compile "$out/$base.$v" "$f" "$libs" "$vc" $flags "$@"
	done
	set +f
}

# The programs that procs.sh runs; e2e.sh runs the others, and those of these that ask for it by name.
is_procs() { case $1 in thr_*|proc_*|stk_*|ldr_*|sys_*) ;; *) return 1 ;; esac; }

list() {
	for f in $(sources); do
		base=$(basename "$f"); base=${base%.*}
		case $1 in
		--list-procs*)
			is_procs "$base" || continue
			[ "$1" != --list-procs-short ] || [ -z "$(field PT_LONG "$f")" ] || continue
			echo "$out/$base"
			[ "$1" != --list-procs-all ] || for v in $(field VARIANTS "$f"); do echo "$out/$base.$v"; done
			continue ;;
		*) is_procs "$base" && continue ;;
		esac
		echo "$out/$base"
		[ "$1" = --list-base ] && continue
		for v in $(field VARIANTS "$f"); do echo "$out/$base.$v"; done
	done
}

case ${1:-} in
--list|--list-base|--list-procs|--list-procs-short|--list-procs-all) list "$1"; exit 0 ;;
esac
mkdir -p "$out"
[ $# -gt 0 ] || set -- $(sources)
for f; do build "$f"; done
exit $status
