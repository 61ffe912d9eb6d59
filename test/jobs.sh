# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# jobs.sh - sourced by the drivers that take programs as arguments: several at a time; what a program's header says

# jobs N NAME=VALUE... -- PROG...: the driver once more, N times side by side, each for every n-th program, its output in
# $work/job.0 … . NAME=VALUE: what it is told on top, first that it is one of them.
jobs() {
	n=$1 k=0 told=
	shift
	while [ "$1" != -- ]; do
		told="$told $1"
		shift
	done
	shift
	while [ $k -lt "$n" ]; do
		i=0 list=
		for p; do
			[ $((i % n)) -eq $k ] && list="$list $p"
			i=$((i + 1))
		done
		# shellcheck disable=SC2086,SC2154 # paths of test programs have no spaces; work is the driver's
		[ -z "$list" ] || env $told sh "$0" $list > "$work/job.$k" 2>&1 &
		k=$((k + 1))
	done
	wait
}

# field FIELD PROG: what the program's source says in its first lines, `// FIELD: …`, one a line. Without a process: each program is
# asked for several.
field() {
	field_of=${2##*/} field_n=0
	for field_of in test/progs/"${field_of%%.*}".c test/progs/"${field_of%%.*}".cc test/progs/"${field_of%%.*}".S; do
		[ ! -f "$field_of" ] || break
	done
	[ -f "$field_of" ] || return 0
	while [ $field_n -lt 10 ] && IFS= read -r field_line; do
		field_n=$((field_n + 1))
		case $field_line in
		"// $1: "*) field_line=${field_line#"// $1: "} ;;
		*) continue ;;
		esac
		# shellcheck disable=SC2154,SC2016 # build is the driver's; $OUT is what stands there
		case $field_line in
		*'$OUT'*) field_line=${field_line%%'$OUT'*}$build/test/progs${field_line#*'$OUT'} ;;
		esac
		printf '%s\n' "$field_line"
	done <"$field_of"
}
