#!/bin/sh
# SPDX-License-Identifier: MIT
# Test the oracle on programs whose accesses are known by hand (cases/*.S), and the
# comparer on traces with known differences. Every case is also run against one wrong
# expectation, which must be noticed. Run from the project root after building.
set -u
build=$(realpath -m "${BUILD:-build}")
oracle=$build/test/oracle
compare=$build/test/compare
src=test/oracle/cases
tmp=${TMPDIR:-/tmp}/oracle-selftest.$$
passed=0 failed=0
mkdir -p "$tmp" || exit 2
trap 'rm -rf "$tmp"' EXIT

ok() { passed=$((passed + 1)); echo "ok   $*"; }
bad() { failed=$((failed + 1)); echo "FAIL $*"; }

# build NAME OUT FLAGS...: assemble, and extract the expected records
build() {
	name=$1 bin=$2; shift 2
	${CC:-cc} "$@" -nostdlib -static -no-pie -Wl,--build-id=none -I "$src" \
		-o "$bin" "$src/$name.S" &&
	objcopy -O binary --only-section=.expect --set-section-flags .expect=alloc \
		"$bin" "$bin.expect"
}

has_cpu_flags() {
	# shellcheck disable=SC2013 # words are wanted
	for f in $(sed -n 's/.*NEEDS: \([^*]*\).*/\1/p' "$1"); do
		grep -qm1 "^flags.* $f\b" /proc/cpuinfo || return 1
	done
}

echo "0 ffffffffffffffff all" > "$tmp/all"
for s in "$src"/*.S; do
	name=$(basename "$s" .S)
	if ! has_cpu_flags "$s"; then
		echo "skip $name: this processor lacks $(sed -n 's/.*NEEDS: \([^*]*\).*/\1/p' "$s")"
		continue
	fi
	if ! build "$name" "$tmp/$name" || ! build "$name" "$tmp/$name.mut" -DMUTATE; then
		bad "$name: does not build"
		continue
	fi
	for start in --from-entry --start-at-main-exe-entry; do
		timeout 60 "$oracle" $start -o "$tmp/$name.raw" -- "$tmp/$name"
		status=$?
		if [ $status -ne 0 ]; then
			bad "$name $start: exit status $status"
		elif "$compare" "$tmp/$name.expect" "$tmp/$name.raw" --ranges "$tmp/all" \
			> "$tmp/out" 2>&1 && cmp -s "$tmp/$name.expect" "$tmp/$name.raw"; then
			ok "$name $start: $(sed -n 's/.* \(equal=[0-9]*\).*/\1/p' "$tmp/out")"
		else
			bad "$name $start"
			cat "$tmp/out"
		fi
	done
	timeout 60 "$oracle" --from-entry -o "$tmp/$name.raw" -- "$tmp/$name.mut"
	"$compare" "$tmp/$name.mut.expect" "$tmp/$name.raw" --ranges "$tmp/all" > "$tmp/out" 2>&1
	if [ $? -eq 1 ] && grep -q 'equal=0 .*result=diverged' "$tmp/out"; then
		ok "$name: a wrong expectation is noticed"
	else
		bad "$name: a wrong expectation is not noticed"
		cat "$tmp/out"
	fi
done

# The comparer. expect_compare WHAT STATUS PATTERN ARGS...
expect_compare() {
	what=$1 want=$2 pattern=$3; shift 3
	"$compare" "$@" > "$tmp/out" 2>&1
	got=$?
	if [ $got -eq "$want" ] && grep -q -- "$pattern" "$tmp/out"; then
		ok "compare: $what"
	else
		bad "compare: $what: status $got"
		cat "$tmp/out"
	fi
}
a=$tmp/string.expect
n=$(($(stat -c %s "$a") / 24))
head -c -24 "$a" > "$tmp/short"
head -c -8 "$a" > "$tmp/torn"
tail -c +2 "$a" > "$tmp/magic"
: > "$tmp/none"
head -c 16 "$a" > "$tmp/empty"
expect_compare "equal" 0 "oracle=$n traced=$n equal=$n opaque=0 opaque_share=0.0000% result=equal" \
	"$a" "$a" --ranges "$tmp/all"
expect_compare "trace ends early" 1 "equal=$((n - 1)) .*result=diverged" \
	"$a" "$tmp/short" --ranges "$tmp/all"
expect_compare "oracle ends early" 1 "equal=$((n - 1)) .*result=diverged" \
	"$tmp/short" "$a" --ranges "$tmp/all"
expect_compare "all opaque, empty trace" 0 "opaque=$n opaque_share=100.0000% result=equal" \
	"$a" "$tmp/empty" --ranges "$tmp/none"
expect_compare "nothing opaque, empty trace" 1 "equal=0 opaque=0 .*result=diverged" \
	"$a" "$tmp/empty" --ranges "$tmp/all"
expect_compare "a record outside the ranges" 1 "opaque=$n .*result=diverged" \
	"$a" "$a" --ranges "$tmp/none"
expect_compare "torn file" 2 "ends inside a record" "$a" "$tmp/torn" --ranges "$tmp/all"
expect_compare "not a trace" 2 "bad magic" "$tmp/magic" "$a" --ranges "$tmp/all"
expect_compare "no such file" 2 "No such file" "$tmp/missing" "$a" --ranges "$tmp/all"
expect_compare "usage" 2 "usage" "$a" "$a"

# Threads: the second half of a trace as another thread's, in two orders.
python3 - "$a" "$tmp" <<'END'
import struct, sys
d = open(sys.argv[1], "rb").read()
head, recs = d[:16], [d[i:i + 24] for i in range(16, len(d), 24)]
half = len(recs) // 2
def tid(r, t):
    return r[:20] + struct.pack("<I", struct.unpack("<I", r[20:])[0] & ~0xffffff | t)
one, two = [tid(r, 0) for r in recs[:half]], [tid(r, 1) for r in recs[half:]]
mixed = []
for i in range(half + 1):
    mixed += [tid(r, 2) for r in recs[half + i:half + i + 1]] + recs[i:i + 1] * (i < half)
open(sys.argv[2] + "/threads", "wb").write(head + b"".join(one + two))
open(sys.argv[2] + "/mixed", "wb").write(head + b"".join(mixed))
END
printf '0\n1\n' > "$tmp/pairs01"
printf '0\n2\n' > "$tmp/pairs02"
printf '0\n' > "$tmp/pairs0"
printf '2\n0\n' > "$tmp/pairs20"
expect_compare "two threads" 0 "equal=$n opaque=0 .*threads=2 result=equal" \
	"$tmp/threads" "$tmp/threads" --ranges "$tmp/all" --threads "$tmp/pairs01"
expect_compare "two threads, mixed, with other numbers" 0 "equal=$n .*threads=2 result=equal" \
	"$tmp/threads" "$tmp/mixed" --ranges "$tmp/all" --threads "$tmp/pairs02"
expect_compare "threads taken for each other" 1 "first divergence of thread 0 after 0 " \
	"$tmp/threads" "$tmp/mixed" --ranges "$tmp/all" --threads "$tmp/pairs20"
expect_compare "a thread of the oracle without counterpart" 1 "$((n - n / 2)) records of threads that have no counterpart" \
	"$tmp/threads" "$tmp/threads" --ranges "$tmp/all" --threads "$tmp/pairs0"
expect_compare "a thread that has no records" 1 "first divergence of thread 1 after 0 " \
	"$tmp/threads" "$tmp/threads" --ranges "$tmp/all" --threads "$tmp/pairs02"

# The oracle's own contract.
status_of() { "$oracle" "$@" > /dev/null 2> "$tmp/err"; echo $?; }
check() { if [ "$2" = "$3" ]; then ok "$1"; else bad "$1: got $2, want $3"; fi; }
check "exit status passes through" \
	"$(status_of --launch -- sh -c 'exit 7')" 7
check "a fatal signal is 128 + signal" \
	"$(status_of --launch -- sh -c 'kill -9 $$')" 137
check "--max-steps ends with 124" \
	"$(status_of --from-entry --max-steps 100 -o "$tmp/x.raw" -- /bin/true)" 124
check "a missing program is 127" \
	"$(status_of --launch -- ./does-not-exist)" 127
check "no start marker is 125" \
	"$(status_of -o "$tmp/x.raw" -- /bin/true)" 125
check "two launches have the same auxiliary vector" \
	"$("$oracle" --launch -- od -An -tx1 /proc/self/auxv | cksum)" \
	"$("$oracle" --launch -- od -An -tx1 /proc/self/auxv | cksum)"
# shellcheck disable=SC2016 # the inner shell expands it
check "-E sets a variable" "$("$oracle" --launch -E FOO=bar -- sh -c 'echo $FOO')" bar

# The start marker: recording must begin where the constructor returned to, which is in
# the dynamic linker, at the rsp it had before the call.
"$oracle" -E LD_PRELOAD="$build/test/libmarker.so" --list -o "$tmp/x.raw" -- /bin/true \
	2> "$tmp/list"
awk '/ ret$/ && !n { n = NR } { line[NR] = $0 } END { print line[n + 1] ~ /R 0x7ff/ ? "recorded" : "not recorded" }' \
	"$tmp/list" > "$tmp/first"
check "nothing is recorded before the constructor has returned" "$(cat "$tmp/first")" "not recorded"
got=$("$compare" --dump "$tmp/x.raw" | awk 'NR == 1 { print "0x" $4 }')
check "the first record is the first access after the marker" "$got" \
	"$(awk '/^0x/ { ip = $1 } /^\t/ { print ip; exit }' "$tmp/list")"

# Threads and children: all are stepped, each has its own records, none of their accesses is another's.
follow() { # PROGRAM: its output, threads seen, records
	timeout 120 "$oracle" --follow --start-at-main-exe-entry -o "$tmp/x.raw" -- "$1" > "$tmp/follow.out"
	echo "$? $("$compare" --dump "$tmp/x.raw" | awk '{ t[$1]++ } END { for (i in t) n++; print n }')"
}
cat > "$tmp/follow.S" <<'END'
#include <asm/unistd.h>
# A thread and a forked child, each two accesses of its own; the maker waits in the kernel, a spinning one too.
	.globl	_start
_start:	mov	$__NR_clone, %eax
	mov	$0x10f00 | 0x200000, %edi	# VM FS FILES SIGHAND THREAD CHILD_CLEARTID
	lea	top(%rip), %rsi
	xor	%edx, %edx
	lea	tid(%rip), %r10
	movl	$1, tid(%rip)
	syscall
	test	%eax, %eax
	jnz	1f
	mov	word(%rip), %eax		# thread 1: R word
	movl	$5, word(%rip)			# W word
	mov	$__NR_exit, %eax
	syscall
1:	pause
	cmpl	$0, word(%rip)			# spins until it is written
	je	1b
	mov	$__NR_fork, %eax
	syscall
	test	%eax, %eax
	jnz	2f
	incl	word(%rip)			# thread 2: R word, W word
	mov	word(%rip), %edi		# R word: 6
	mov	$__NR_exit_group, %eax
	syscall
2:	mov	%eax, %edi
	mov	$__NR_wait4, %eax
	lea	status(%rip), %rsi
	xor	%edx, %edx
	xor	%r10d, %r10d
	syscall
	movzbl	status+1(%rip), %edi		# R status + 1
	mov	$__NR_exit_group, %eax
	syscall
	.bss
word:	.long	0
tid:	.long	0
status:	.long	0
	.balign	16
	.skip	4096
top:
	.section .note.GNU-stack, "", @progbits
END
${CC:-cc} -nostdlib -static -no-pie -o "$tmp/follow" -x assembler-with-cpp "$tmp/follow.S"
check "threads and children are followed: status, threads" "$(follow "$tmp/follow")" "6 3"
dumped() { "$compare" --dump "$tmp/x.raw" | awk -v t="$1" '$1 == t { printf "%s%s ", $5, $7 }'; }
check "a thread's accesses" "$(dumped 1)" "R4 W4 "
check "a child's accesses" "$(dumped 2)" "R4 W4 R4 "
check "the maker's last access" "$(dumped 0 | awk '{ print $NF }')" "R1"

# Random bytes and layout must be the same in all runs.
cat > "$tmp/random.c" <<'END'
#include <stdio.h>
#include <sys/auxv.h>
int main(void)
{
	unsigned long *r = (unsigned long *)getauxval(AT_RANDOM);
	printf("%lx %lx %p %p\n", r[0], r[1], (void *)r, (void *)main);
	return 0;
}
END
${CC:-cc} -o "$tmp/random" "$tmp/random.c"
check "launched and stepped runs have the same random bytes and layout" \
	"$("$oracle" --launch -- "$tmp/random")" \
	"$("$oracle" --start-at-main-exe-entry -o "$tmp/x.raw" -- "$tmp/random")"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
