#!/bin/sh
# SPDX-License-Identifier: MIT
# ptsim.sh BUILD - is what the Intel PT simulator writes the stream of what was executed?
#
#  * block by block and instruction by instruction it must record the same addresses and the same packets
#  * libipt alone must decode every stream to exactly the executed addresses, whatever options a processor may have
#  * a stream or a list with something wrong in it must be refused
set -u
t=$(cd "${1:-build}" && pwd)/test
d=$t/ptsim.out
fails=0
n=0
rm -rf "$d"
mkdir -p "$d"
bad() {
	echo "FAILED: $*"
	fails=$((fails + 1))
}
sim() { # sim NAME STATUS OPTIONS -- PROG ARGS
	name=$1
	want=$2
	shift 2
	timeout 120 "$t/ptsim" -o "$d/$name" -v "$@" >"$d/$name.out" 2>"$d/$name.err"
	got=$?
	[ $got = "$want" ] || bad "$name: exit status $got, not $want: $(tail -1 "$d/$name.err")"
}
check() {
	n=$((n + 1))
	"$t/pt_check" "$d/$1" >"$d/$1.check" || bad "$1: $(tail -1 "$d/$1.check")"
}

sim block 0 --irq 0 -- "$t/pt_kinds"
sim step 0 --irq 0 --step --verify -- "$t/pt_kinds"
for f in ips pt.bin; do
	cmp -s "$d/block/$f" "$d/step/$f" || bad "blocks and steps differ in $f"
done
for want in 'retc=[1-9]' 'ptw=4' 'fup=[1-9]' 'tip=[1-9]' 'pgd=[1-9]'; do
	grep -q "$want" "$d/block.err" || bad "kinds: no $want in $(cat "$d/block.err")"
done
grep -q "verified=[1-9][0-9][0-9]" "$d/step.err" || bad "no instruction was verified"
check block
check step

i=0
for o in "" --cyc --defer --short-tnt --no-48 --no-retc --no-time "--cyc --defer --short-tnt --no-48 --psb 200"; do
	i=$((i + 1))
	# shellcheck disable=SC2086 # options
	sim kinds$i 0 --irq 20 --seed $i $o -- "$t/pt_kinds"
	check kinds$i
done

p=$t/progs
sim sh 138 -- /bin/sh -c 'echo $((1 + 2)); : | :; kill -USR1 $$'
check sh
[ "$(cat "$d/sh.out")" = 3 ] || bad "sh printed $(cat "$d/sh.out")"
for c in setjmp thr_join sig_nested; do
	
	"$p/$c" >"$d/$c.native"
	sim $c $? --psb 1024 --irq 500 -- "$p/$c"
	cmp -s "$d/$c.native" "$d/$c.out" || bad "$c prints something else"
	check $c
done

# events of the fake PMU, drained by a small client; and what can go wrong with them
kernel() { # kernel NAME STATUS OPTIONS -- CLIENT'S OPTIONS AND PROGRAM
	name=$1
	want=$2
	shift 2
	: >"$d/opt"
	while [ "$1" != -- ]; do
		echo "$1" >>"$d/opt"
		shift
	done
	shift
	mkdir -p "$d/$name"
	# shellcheck disable=SC2046 # options
	timeout 120 "$t/ptsim" --kernel -v -o "$d/$name" $(cat "$d/opt") -- "$t/pt_client" "$@" \
		>"$d/$name.out" 2>"$d/$name.err"
	got=$?
	[ $got = "$want" ] || bad "$name: exit status $got, not $want: $(tail -1 "$d/$name.err")"
	cat "$d/$name"/ips-* >"$d/$name/ips" 2>/dev/null
}
kernel event 0 -- "$d/event" "$t/pt_kinds"
check event
for o in "-c 2" "-c 0x800" "-c 0x100000"; do # cyc, noretcomp, cyc_thresh
	# shellcheck disable=SC2086 # an option and its value
	kernel event_c 0 --irq 100 --defer -- $o "$d/event_c" "$t/pt_kinds"
	check event_c
	rm -f "$d"/event_c/ips*
done
# where the area fills up depends on when it is drained, so each run has other places: beside a PSB, an OVF, the end
for seed in 1 2 3 4 5; do
	rm -f "$d"/faults/ips*
	kernel faults 0 --seed $seed --irq 500 --ovf 2000 -- -a 8 -s $((seed * 25)) "$d/faults" /bin/echo said
	check faults
	[ "$(cat "$d/faults.out")" = said ] || bad "faults $seed: echo printed $(cat "$d/faults.out")"
	grep -q ' [1-9][0-9]* lost; [1-9][0-9]* overflows, [1-9][0-9]* gaps' "$d/faults.check" ||
		bad "faults $seed: $(cat "$d/faults.check")"
done
kernel busy 1 --open-errno 16 -- "$d/busy" "$t/pt_kinds"
grep -q 'perf_event_open: Device or resource busy' "$d/busy.err" || bad "busy: $(cat "$d/busy.err")"
kernel mlock 1 --mlock-kb 64 -- "$d/mlock" "$t/pt_kinds"
grep -q 'AUX area: Operation not permitted' "$d/mlock.err" || bad "mlock: $(cat "$d/mlock.err")"
kernel lost 1 --ring-lost 2 -- "$d/lost" "$t/pt_kinds" # the client minds
grep -q '^2 [0-9]* [1-9]' "$d/lost/records" || bad "lost: no PERF_RECORD_LOST"

# what must not pass
cp -r "$d/block" "$d/wrong"
sed -i '$d' "$d/wrong/ips"
"$t/pt_check" "$d/wrong" >/dev/null && bad "an address is missing, and that is not seen"
cp "$d/block/ips" "$d/wrong/ips"
# the last packet that says something: a bit of the TNT in front of the exit
printf '\004' | dd of="$d/wrong/pt.bin" bs=1 seek=$(($(wc -c <"$d/wrong/pt.bin") - 9)) conv=notrunc 2>/dev/null
"$t/pt_check" "$d/wrong" >/dev/null && bad "a packet is another, and that is not seen"

echo "ptsim: $n streams, $(cat "$d"/*/ips | wc -l) instructions, $fails failures"
[ $fails = 0 ]
