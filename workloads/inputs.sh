#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs.sh SIZE [BUILD] - make the inputs of the real-program cases: BUILD/inputs/SIZE/.
#
# SIZE is small or bench, BUILD the build folder (default build), which must already hold
# workloads/mkinputs. Deterministic for one mkinputs binary, git and assembler. The folder
# appears when it is complete, with a file named stamp; a second call replaces it.
set -euo pipefail

size=${1:?usage: inputs.sh small|bench [BUILD]}
build=${2:-build}
mk=$build/workloads/mkinputs
case $size in
small)	text=300000 log=1500 sql=1500 c=60 asm=12000 objects=8 functions=150 tar=400
	tar_list=3000 commits=60 ;;
bench)	text=24000000 log=220000 sql=220000 c=2000 asm=1000000 objects=60 functions=2500 tar=24000
	tar_list=350000 commits=4000 ;;
*)	echo "inputs.sh: no such size: $size (small or bench)" >&2; exit 2 ;;
esac
[[ -x $mk ]] || { echo "inputs.sh: $mk is missing: run make workloads" >&2; exit 1; }

final=$build/inputs/$size
new=$final.new
rm -rf "$new"
mkdir -p "$new"
export LC_ALL=C TZ=UTC GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null

# optional TOOL - whether an input can be made; its cases are skipped when it cannot
optional() {
	command -v "$1" > /dev/null && return
	echo "inputs.sh: $1 is not installed: the inputs of its cases are left out" >&2
	return 1
}

"$mk" text "$text" > "$new/text"
"$mk" log "$log" > "$new/log"
"$mk" sql "$sql" > "$new/data.sql"
"$mk" c "$c" > "$new/gen.c"
"$mk" asm "$asm" > "$new/gen.s"
"$mk" list "$tar_list" > "$new/list.tar"
if optional tar; then
	"$mk" tar "$tar" | tar -C "$new" -xf -
fi
if optional as; then
	mkdir "$new/obj"
	for ((i = 0; i < objects; i++)); do
		"$mk" object "$functions" "$i" | as -o "$new/obj/$i.o" -
	done
fi
if optional git; then
	git -c init.defaultBranch=main init -q --bare "$new/repo.git"
	"$mk" history "$commits" | git --git-dir="$new/repo.git" fast-import --quiet --done
	git --git-dir="$new/repo.git" -c pack.threads=1 repack -adfq
fi
"$mk" text 200 > "$new/stamp"
rm -rf "$final"
mv "$new" "$final"
