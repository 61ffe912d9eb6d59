#!/bin/bash
# SPDX-License-Identifier: MIT
# loops.bash N - N rounds of what shell scripts do all day, without a single fork.
set -u
n=${1:?usage: loops.bash N}

declare -A count
list=()
text=

# One call of each kind of expansion; the result is left in REPLY.
mangle() {
	local s=$1 k=$2
	s=${s//a/oo}
	s=${s^}${k##*/}
	[[ $s =~ ^([A-Z])([a-z]*)([0-9]+) ]] && s=${BASH_REMATCH[2]}${BASH_REMATCH[3]}
	printf -v REPLY '%s-%04x' "${s:0:12}" "$k"
}

collatz() {
	local x=$1 steps=0
	while ((x != 1)); do
		((x = x & 1 ? 3 * x + 1 : x >> 1, steps++))
	done
	REPLY=$steps
}

words=(alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima)
for ((i = 0; i < n; i++)); do
	w=${words[i % 12]}$((i * i % 97))
	mangle "$w" "$i"
	key=${REPLY:0:5}
	count[$key]=$((${count[$key]:-0} + 1))
	list[i % 50]=$REPLY
	collatz $((i % 300 + 1))
	case $REPLY in
	*[02468]) text+=e ;;
	1?) text+=t ;;
	*) text+=o ;;
	esac
	((${#text} > 60)) && text=${text:40}
done

# Insertion sort of the keys: associative arrays have no order of their own.
keys=("${!count[@]}")
for ((i = 1; i < ${#keys[@]}; i++)); do
	k=${keys[i]}
	for ((j = i; j > 0; j--)); do
		[[ ${keys[j - 1]} > $k ]] || break
		keys[j]=${keys[j - 1]}
	done
	keys[j]=$k
done
for k in "${keys[@]:0:20}"; do
	echo "$k ${count[$k]}"
done
while read -r a b; do
	echo "$b:$a"
done <<< "${list[*]:0:2}"
echo "${#keys[@]} $text"
