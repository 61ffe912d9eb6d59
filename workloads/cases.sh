#!/bin/bash
# SPDX-License-Identifier: MIT
# cases.sh - the programs that are benchmarked and verified: one place for both.
#
#	cases.sh list [kernels|real]		names, one a line
#	cases.sh show NAME SIZE BUILD OUT	the case, as NAME=VALUE lines; sizes small and bench
#
# A show has package=P (Debian's, or - for our own), stdin=FILE, env=NAME=VALUE (many) and
# arg=A (many, the command, by absolute path). OUT is the folder where the command may leave
# files; they and stdout do not change from run to run. Exit status of show: 0, 1 (an input is
# missing), 2 (wrong use), 3 (the program is not installed; a message says the package).
#
# Commands are single-threaded and do not fork. Written for bash; may be sourced for its
# functions.

kernel_cases=(gemm 2mm jacobi-2d seidel-2d correlation trisolv cholesky lu floyd-warshall
	nussinov chase hashjoin sort bytecode)
real_cases=(gzip gunzip xz unxz tar-create tar-list coreutils-sort sed mawk bash perl lua
	python-nbody python-dicts python-classes sqlite3 openssl-dgst openssl-enc git-log git-patch
	git-diff git-grep cc1 as ld)

# program NAME PACKAGE [PATH] - a program of Debian's; never one that merely comes first in PATH
program() {
	package=$2
	argv=("${3:-/usr/bin/$1}")
	[[ -x ${argv[0]} ]] && return
	echo "cases.sh: $1 is not installed: package $2" >&2
	exit 3
}

args() {
	argv+=("$@")
}

# pick SMALL BENCH - the word for the size
pick() {
	if [[ $size == small ]]; then echo "$1"; else echo "$2"; fi
}

# case_load NAME - sets package, stdin, argv; from size, build, in (inputs) and out
case_load() {
	local here passes
	here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
	stdin=/dev/null

	if [[ " ${kernel_cases[*]} " == *" $1 "* ]]; then
		package=-
		argv=("$build/workloads/$1" -s "$(pick small medium)")
		[[ -x ${argv[0]} ]] && return
		echo "cases.sh: ${argv[0]} is missing: run make workloads" >&2
		exit 1
	fi
	if [[ ! -e $in/stamp ]]; then
		echo "cases.sh: $in is missing: run make inputs-$size" >&2
		exit 1
	fi
	case $1 in
	gzip)
		program gzip gzip
		args -6nc "$in/text" ;;
	gunzip)
		program gzip gzip
		passes=$(pick 1 9)
		made text.gz gzip -6nc "$in/text"
		args -dc
		while ((passes-- > 0)); do args "$in/text.gz"; done ;;
	xz)
		program xz xz-utils
		args -T1 -1 -c "$in/text" ;;
	unxz)
		program xz xz-utils
		passes=$(pick 1 4)
		made text.xz xz -T1 -1 -c "$in/text"
		args -T1 -dc
		while ((passes-- > 0)); do args "$in/text.xz"; done ;;
	tar-create)
		program tar tar /bin/tar
		args --format=gnu --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner
		args -C "$in" -cf "$out/tree.tar" tree
		[[ $size == small ]] || args tree tree tree ;;
	tar-list)
		program tar tar /bin/tar
		args --numeric-owner --utc -tvf "$in/list.tar" ;;
	coreutils-sort)
		program sort coreutils
		args --parallel=1 -S 1G -k11,11n -k6,6 -k1,1 "$in/log"
		[[ $size == small ]] || args "$in/log" ;;
	sed)
		program sed sed /bin/sed
		args -E -n "s/([a-z]+)\\[([0-9]+)\\]: (warn|error)/<\\3> \\2 \\1/; t ok; d; : ok; "
		argv[-1]+="s/id=[0-9]+/id=N/g; y/abc/ABC/; H; x; s/^[^\\n]*\\n//; p"
		args "$in/log"
		[[ $size == small ]] || args "$in/log" "$in/log" "$in/log" "$in/log" ;;
	mawk)
		program mawk mawk
		args "{ n[\$2]++; bytes[\$4] += \$13; if (match(\$6, /id=[0-9]+/)) ids += RLENGTH;
			gsub(/[0-9]+/, \"#\"); seen[length(\$0) % 97 \":\" substr(\$6, 2, 3)]++ }
			END { for (h in n) h1 += n[h] * length(h); for (s in seen) t += seen[s] ^ 2;
			printf \"%d %d %d %.0f\\n\", NR, h1, ids, t; print bytes[\"warn\"] }"
		argv[-1]=${argv[-1]//[$'\n\t']/ }
		args "$in/log"
		[[ $size == small ]] || args "$in/log" "$in/log" "$in/log" ;;
	bash)
		program bash bash /bin/bash
		args --norc --noprofile "$here/scripts/loops.bash" "$(pick 20 13000)" ;;
	perl)
		program perl perl-base
		args "$here/scripts/words.pl" "$in/text" "$(pick 25 24000)" ;;
	lua)
		program lua5.4 lua5.4
		args "$here/scripts/mix.lua" "$(pick 12 4500)" ;;
	python-nbody)
		program python3.11 python3.11
		args -s "$here/scripts/nbody.py" "$(pick 300 220000)" ;;
	python-dicts)
		program python3.11 python3.11
		args -s "$here/scripts/dicts.py" "$in/log" 1 ;;
	python-classes)
		program python3.11 python3.11
		args -s "$here/scripts/classes.py" "$(pick 4 500)" ;;
	sqlite3)
		program sqlite3 sqlite3
		stdin=$in/data.sql
		args -batch -init /dev/null :memory: ;;
	openssl-dgst)
		program openssl openssl
		passes=$(pick 8 28)
		args dgst -sha512 -r
		while ((passes-- > 0)); do args "$in/text"; done ;;
	openssl-enc)
		program openssl openssl
		args enc -camellia-256-cbc -a -K 00112233445566778899aabbccddeeff
		argv[-1]+=00112233445566778899aabbccddeeff
		args -iv 0123456789abcdef0123456789abcdef -in "$in/$(pick text list.tar)" ;;
	git-log)
		program git git
		args -c core.abbrev=12 --no-pager --git-dir="$in/repo.git" log --no-color --stat
		args --date=iso-strict --format="%h %an %ad %s%n%b" main ;;
	git-patch)
		program git git
		args -c core.abbrev=12 -c diff.renameLimit=100 --no-pager --git-dir="$in/repo.git"
		args log --no-color -p --minimal --format=%h -n "$(pick 40 3500)" main ;;
	git-diff)
		program git git
		args -c core.abbrev=12 -c diff.renameLimit=100 --no-pager --git-dir="$in/repo.git"
		args diff --no-color -M --patience "main~$(pick 40 400)" main ;;
	git-grep)
		program git git
		args -c grep.threads=1 --no-pager --git-dir="$in/repo.git" grep --no-color -n -E
		args "(ta|ri)[a-z]+\\(.*9[0-9]*\\)" main
		passes=$(pick 2 350)
		while ((passes-- > 0)); do args "main~$((1 + passes))"; done ;;
	cc1)
		program cc1 cpp-12 "$(gcc -print-prog-name=cc1 2> /dev/null)"
		args -quiet -O2 "$in/gen.c" -o "$out/gen.s" ;;
	as)
		program as binutils
		args -o "$out/gen.o" "$in/gen.s" ;;
	ld)
		program ld binutils
		args -o "$out/linked" "$in"/obj/*.o ;;
	*)
		echo "cases.sh: no such case: $1" >&2
		exit 2 ;;
	esac
	argv[0]=$(readlink -f "${argv[0]}")
}

# made FILE CMD... - an input that only the program itself can make, on first use
made() {
	local file=$in/$1
	shift
	[[ -e $file ]] || { "$@" > "$file.new" && mv "$file.new" "$file"; }
}

# case_env - what every case runs with; nothing else is in its environment
case_env() {
	printf '%s\n' PATH=/usr/bin:/bin HOME=/nonexistent LC_ALL=C TZ=UTC \
		PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 PERL_HASH_SEED=0 PERL_PERTURB_KEYS=0 \
		GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_PAGER=cat \
		OPENSSL_CONF=/dev/null
}

case_main() {
	local package stdin argv
	case ${1-}:$# in
	list:1)
		printf '%s\n' "${kernel_cases[@]}" "${real_cases[@]}" ;;
	list:2)
		case $2 in
		kernels) printf '%s\n' "${kernel_cases[@]}" ;;
		real) printf '%s\n' "${real_cases[@]}" ;;
		*) return 2 ;;
		esac ;;
	show:5)
		local size=$3 build out in
		build=$(realpath -m "$4")
		out=$(realpath -m "$5")
		in=$build/inputs/$size
		[[ $size == small || $size == bench ]] || return 2
		case_load "$2"
		printf 'package=%s\nstdin=%s\n' "$package" "$stdin"
		case_env | sed 's/^/env=/'
		printf 'arg=%s\n' "${argv[@]}" ;;
	*)
		echo "usage: cases.sh list [kernels|real] | show NAME SIZE BUILD OUT" >&2
		return 2 ;;
	esac
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
	case_main "$@"
fi
