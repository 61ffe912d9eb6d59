#!/bin/bash
# SPDX-License-Identifier: MIT
# trees.sh - real programs with threads, processes and signals (tree_cases.sh), as users trace them: each is run natively
# and traced, with every address logged (PTRACE_VERIFY=1) where something is recorded in full, and by the replay of what is
# not. Traced it must print the same, to stderr as well, leave the same files and no process, and the decoder
# must reconstruct every address of every thread of every process.
#
#	trees.sh [--build DIR] [--timeout SECONDS] [--cold] [--plain] [--keep] [CASE|quick|slow|more|all]...
#	trees.sh --list
#
# --cold: traced twice, first with no map cached, then with the maps of the first time. --plain: without the logged
# addresses; what is replayed is compared with the recording only. PTRACE_CF (default: the tracer's) applies. A line a case,
# then "N passed, N failed" (and ", N skipped": not installed). Exit status: 0; 1 a case failed; 2 wrong use or
# something is missing. Files: DIR/trees/CASE/; --keep leaves those of failed cases there.
set -u
# shellcheck source=test/real/tree_cases.sh
. "$(dirname "$0")/tree_cases.sh"
build=build timeout=300 keep=0 verify=1 cold=0 names=()

usage() {
	echo "usage: trees.sh [--build DIR] [--timeout SECONDS] [--cold] [--plain] [--keep] [--list] [CASE|quick|slow|more|all]..." >&2
	exit 2
}

all=("${quick[@]}" "${slow[@]}" "${more[@]}")
while (($#)); do
	case $1 in
	--build|--timeout) (($# > 1)) || usage; printf -v "${1#--}" %s "$2"; shift ;;
	--keep) keep=1 ;;
	--cold) cold=1 ;;
	--plain) verify=0 ;;
	--list) printf '%s\n' "${all[@]}"; exit 0 ;;
	quick) names+=("${quick[@]}") ;;
	slow) names+=("${slow[@]}") ;;
	more) names+=("${more[@]}") ;;
	all) names+=("${all[@]}") ;;
	-*) usage ;;
	*) [[ " ${all[*]} " == *" $1 "* ]] || usage; names+=("$1") ;;
	esac
	shift
done
((${#names[@]})) || names=("${all[@]}")
build=$(realpath -m "$build")
for tool in libptrace_rt.so ptrace-analyze ptrace-decode; do
	[[ -e $build/$tool ]] || { echo "trees.sh: $build/$tool is missing: run make first" >&2; exit 2; }
done
# cached maps know the format's version, not that the analyzer changed
maps=$build/cache/$(cksum < "$build/ptrace-analyze" | tr ' ' '-')
export LC_ALL=C TZ=UTC PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 GIT_CONFIG_NOSYSTEM=1

# ours ID - the processes of the run of that id, and its collectors; not those of this script
ours() {
	local p
	for p in /proc/[0-9]*; do
		[[ ${p#/proc/} != "$BASHPID" ]] || continue
		{ grep -qzx "TREES_CASE=$1" "$p/environ" ||
			tr '\0' ' ' < "$p/cmdline" | grep -q "^[^ ]*ptrace-collect --run $work/run"; } 2> /dev/null && echo "${p#/proc/}"
	done
}

# one KIND CASE PREFIX... - in a fresh directory; output in ../KIND.out and .err, what it leaves in .files and left
one() {
	local kind=$1 name=$2 id=$1-$2-$$ k p turn
	shift 2
	rm -rf "$work/dir"; mkdir -p "$work/dir/tmp"; cp "$work/text" "$work/dir/text"; chmod 1777 "$work/dir/tmp"
	(cd "$work/dir" && ports=$((20000 + RANDOM % 10000)) && export ports TMPDIR=$PWD/tmp HOME=$PWD TREES_CASE=$id &&
		"c_$name" "$@") > "$work/$kind.out" 2> "$work/$kind.err" < /dev/null
	k=$?
	# the collectors may still be compressing
	for turn in $(seq $((timeout * 5))); do # (not $_, which is the last command's argument)
		left=$(ours "$id")
		[[ $left ]] || break
		sleep 0.2
		[[ $kind != native ]] || ((turn < 25)) || break
		# none: it has ended meanwhile
		cmdline=$(tr '\0' ' ' < "/proc/${left%%$'\n'*}/cmdline" 2> /dev/null)
		[[ ! $cmdline || $cmdline == *ptrace-collect* ]] || ((turn < 25)) || break
	done
	for p in $left; do
		left="process left: $p $(tr '\0' ' ' < "/proc/$p/cmdline")"
		kill -KILL "$p"
	done
	(cd "$work/dir" && find . -printf '%y %p\n' | sed 's/[0-9][0-9]*/N/g' | sort -u) > "$work/$kind.files"
	sed 's/[0-9a-f]*[0-9][0-9a-f]*/N/g; /^ptrace: analysing /d' "$work/$kind.err" | sort -u > "$work/$kind.said"
	return $k
}

# traced NAME - traced, and compared with the native run; leaves why
traced() {
	local f
	rm -rf "$work"/run.*
	one traced "$1" "${limit[@]}" env LD_PRELOAD="$build/libptrace_rt.so" PTRACE_DIR="$work/run.%p" \
		PTRACE_ANALYZE="$build/ptrace-analyze" PTRACE_VERIFY=$verify
	for f in out said files; do
		cmp -s "$work/native.$f" "$work/traced.$f" && continue
		why="$f differs: $(diff "$work/native.$f" "$work/traced.$f" | grep -m1 '^[<>]') ($(tail -1 "$work/traced.err"))"
		return
	done
	# servers have their own logs
	f=$(grep -rh '^ptrace: ' "$work/dir" 2> /dev/null | grep -v -m1 '^ptrace: analysing ')
	if [[ $left ]]; then
		why=$left
	elif [[ $f ]]; then
		why="said: $f"
	elif ((cold)); then # else others use it, too
		f=$(find "$XDG_CACHE_HOME/ptrace" -type f ! -name '*.ptmap' ! -name '*.avoid' | head -1)
		[[ -z $f ]] || why="left in the cache: $f"
	fi
}

judge() { # the verdict on the runs in why and detail
	local line run k n=0 sum=0 opaque=0 log=$work/decode.err
	for run in "$work"/run.*; do
		[[ -d $run ]] || continue
		n=$((n + 1))
		if ((verify)); then
			line=$(timeout $((timeout * 4)) "$build/ptrace-decode" --verify "$run" 2> "$log" | tail -1)
			# a process that a signal kills while it computes has not said all
			[[ $line == *" wrong=0 unknown=0 missing=$(grep -c 'the process: killed' "$log") "* ]] ||
				why="addresses are not exact: $line; $(tail -1 "$log")"
			opaque=$((opaque + ${line##*opaque=}))
			line=${line#*accesses=}
			sum=$((sum + ${line%% *}))
		else
			timeout $((timeout * 4)) "$build/ptrace-decode" -f null "$run" 2> "$log"
			k=$?
			((k < 2)) || why="ptrace-decode: status $k: $(tail -1 "$log")"
		fi
		grep -q 'stopped before\|is missing\|lost' "$log" && why=$(grep -m1 'stopped before\|is missing\|lost' "$log")
	done
	((n)) || why="no run directory"
	# generated code, and functions that cannot be moved, are no failure, but news everywhere else
	((opaque == 0)) || [[ $why || " ${opaque_cases[*]} " == *" $name "* ]] || why="opaque code was entered $opaque times"
	[[ -z $why || ! -e $log ]] || cp "$log" "$work/decode.bad"
	detail="runs=$n accesses=$sum opaque=$opaque"
}

passed=0 failed=0 skipped=0 limit=(timeout -k 5 "$timeout")
for name in "${names[@]}"; do
	work=$build/trees/$name
	rm -rf "$work"; mkdir -p "$work"; chmod 755 "$work"
	seq 1 60000 | awk '{ print ($1 * 7919) % 60013, "some words to compress", $1 % 17 }' > "$work/text"
	XDG_CACHE_HOME=$maps
	((cold)) && XDG_CACHE_HOME=$work/cache
	export XDG_CACHE_HOME
	mkdir -p "$XDG_CACHE_HOME"
	why='' detail='' k=0 when=''
	one native "$name" "${limit[@]}" || k=$?
	if ((k == 77)); then
		printf 'skip    %-18s %s\n' "$name" "$(tail -1 "$work/native.out")"
		skipped=$((skipped + 1)); continue
	fi
	why=${left:+native: $left}
	if ((cold)) && [[ -z $why ]]; then
		when='cold cache: '
		traced "$name"
		[[ $why ]] || judge
		[[ $why ]] || when=
	fi
	[[ $why ]] || traced "$name"
	[[ $why ]] || judge
	if [[ -z $why ]]; then
		printf 'ok      %-18s %s\n' "$name" "$detail"
		passed=$((passed + 1)); rm -rf "$work"
	else
		printf 'FAILED  %-18s %s%s\n' "$name" "$when" "$why"
		failed=$((failed + 1)); ((keep)) || rm -rf "$work"
	fi
done
echo "$passed passed, $failed failed$( ((skipped)) && echo ", $skipped skipped")"
((failed == 0))
