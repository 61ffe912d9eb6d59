#!/bin/sh
# SPDX-License-Identifier: MIT
# pt_times.sh - Intel PT: the times of records are the processor's, and --merge=time has what two threads did in its order
#
# usage: test/pt_times.sh [BUILD]
#
# times_prog runs under the simulator, whose rdtsc gives the very time that its packets tell (ptsim --tsc): every slot
# holds when it was written. The times of those records must be that, as exactly as the packets allow; with CYC
# packets, with MTC packets, and, to see that they matter, with neither: then they are off.
set -u
build=$(realpath "${1:-build}") || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
export XDG_CACHE_HOME="$build/cache"
failed=0

# one NAME LIMIT SETTING...: no slot's record may be LIMIT ticks off; LIMIT -N: some must be N off
one() {
	name=$1 limit=$2
	shift 2
	timeout 120 "$build/test/ptsim" --kernel --tsc -E LD_PRELOAD="$build/libptrace_rt.so" -E PTRACE_CF=full \
		-E PTRACE_DIR="$work/$name" "$@" -- "$build/test/times_prog" >"$name.slots" ||
		{ echo "$name: exit status $?"; return 1; }
	"$build/ptrace-decode" --merge=time --times --format=csv "$name" >"$name.csv" || { echo "$name: decode: status $?"; return 1; }
	at=$(head -1 "$name.slots")
	"$build/ptrace-decode" --merge=time --times --addr "$at-$(printf %x $((0x$at + 960)))" "$name" >"$name.text" || return 1
	python3 - "$name" "$limit" <<'PY'
import csv, sys
name, limit = sys.argv[1], int(sys.argv[2])
lines = open(name + ".slots").read().split()
base, want = int(lines[0], 16), [int(v) for v in lines[1:]]
last, back, slots, error, chosen = {}, 0, [], [], []
for r in csv.DictReader(open(name + ".csv")):
    thread, time, addr = r["thread"], int(r["time"]), int(r["address"], 16)
    back += time < last.get(thread, 0)
    last[thread] = time
    if base <= addr < base + 8 * len(want) and r["kind"] == "W":
        i = (addr - base) // 8
        slots.append((i, thread))
        error.append(want[i] - time)
        chosen.append([thread, r["ip"][2:], "W", r["address"][2:], r["size"], r["time"]])
turns = sum(a[1] != b[1] for a, b in zip(slots, slots[1:]))
order = [s[0] for s in slots] == list(range(len(want)))
worst = max(map(abs, error), default=0)
print(f"{name}: {len(slots)} slots in {want[-1] - want[0]} ticks, {turns} changes of thread, "
      f"{'in order' if order else 'OUT OF ORDER'}, {back} records of a thread back in time, "
      f"off by {worst} ticks at most, {sum(error) // max(1, len(error))} on average")
text = [l.split() for l in open(name + ".text")]
if [t for t in text if t[2] == "W"] != chosen:
    sys.exit("the times of some records are others when only they are asked for")
sys.exit(not order or turns < 20 or back > 0 or (worst > limit if limit > 0 else worst < -limit))
PY
}

# an MTC packet every 8 ticks of the crystal's clock, 672 of the TSC: one may have passed since the last branch, and a branch
# waits for up to 46 others, 12 instructions each
one mtc 2000 || failed=1
one cyc 1200 -E PTRACE_PT_CYC=1 || failed=1
one none -3000 -E PTRACE_PT_MTC=off || failed=1

# lost NAME SETTING...: what a thread is said to have lost is not less than the time in which it wrote the slots that are not there
lost() {
	name=$1
	shift
	"$build/test/times_prog" now >"$name.span"
	timeout 120 "$build/test/ptsim" --kernel --tsc "$@" -E LD_PRELOAD="$build/libptrace_rt.so" -E PTRACE_CF=full \
		-E PTRACE_PT_KEY=4K -E PTRACE_DIR="$work/$name" -- "$build/test/times_prog" >"$name.slots" ||
		{ echo "$name: exit status $?"; return 1; }
	"$build/test/times_prog" now >>"$name.span"
	"$build/ptrace-decode" --merge=time --times --format=csv "$name" >"$name.csv" 2>"$name.err"
	"$build/ptrace-decode" --summary --json "$name" >"$name.json" 2>>"$name.err"
	"$build/ptrace-decode" --summary "$name" >"$name.sum" 2>>"$name.err"
	python3 - "$name" <<'PY'
import csv, json, sys
name = sys.argv[1]
lines = open(name + ".slots").read().split()
base, want = int(lines[0], 16), [int(v) for v in lines[1:]]
there = set()
before, after = [int(v) for v in open(name + ".span")]
for r in csv.DictReader(open(name + ".csv")):
    addr = int(r["address"], 16)
    if base <= addr < base + 8 * len(want) and r["kind"] == "W":
        there.add((addr - base) // 8)
summary = json.load(open(name + ".json"))
threads = summary["thread_list"]
bad = ""
for me in 0, 1:  # thread `me` wrote five slots in every second turn
    least, run = 0, []
    for i in [i for i in range(len(want)) if i // 5 % 2 == me] + [None]:
        if i is not None and i not in there:
            run.append(want[i])
        elif run:
            least += run[-1] - run[0]
            run = []
    said = threads[me]["lost_ticks"]
    print(f"{name}: thread {me}: {threads[me]['losses']} losses, {said} ticks; its missing slots took {least}")
    if not least <= said <= after - before or (said == 0) != (threads[me]["lost_log_bytes"] == 0):
        bad = "that cannot be"
if sum(t["lost_ticks"] for t in threads) != summary["lost_ticks"] or not summary["lost_ticks"]:
    bad = "the threads' are not the whole"
if f"bytes of the log and {summary['lost_ticks']} TSC ticks are left out" not in open(name + ".sum").read():
    bad = "the summary does not say so"
sys.exit(bad or len(there) == len(want))
PY
}
lost ovf --ovf 60000 || failed=1
lost often --ovf 15000 || failed=1 # up to the end
exit $failed
