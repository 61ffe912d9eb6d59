# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# jobs.sh - several programs at a time; sourced by the drivers that take programs as arguments

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
