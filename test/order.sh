#!/bin/sh
# SPDX-License-Identifier: MIT
# order.sh - PTRACE_ORDER=1: the merged trace has what threads did under a lock in the order of the lock
#
# usage: test/order.sh [BUILD]
#
# order_prog writes the slots of an array one after the other, each by whoever has the lock. In the trace,
# merged by time, the addresses must only go up.
set -u
export PTRACE_CF="${PTRACE_CF:-soft}" # log everything: what a replay computes is for replay.sh
build=$(realpath "${1:-build}") || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
export XDG_CACHE_HOME="$build/cache" PTRACE_DIR="$work/run"

at=$(PTRACE_ORDER=1 LD_PRELOAD=$build/libptrace_rt.so "$build/test/order_prog" where) || exit 1
end=$(printf %x $((0x$at + 8 * 4000)))
"$build/ptrace-decode" --merge=time --format=csv --addr "$at-$end" run >trace || { echo "decode: status $?"; exit 1; }
python3 - "$at" <<'PY'
import csv, sys
base = int(sys.argv[1], 16)
rows = list(csv.DictReader(open("trace")))
w = [r for r in rows if r["kind"] == "W"]
slots = [(int(r["address"], 16) - base) // 8 for r in w]
turns = sum(a["thread"] != b["thread"] for a, b in zip(w, w[1:]))
back = sum(a > b for a, b in zip(slots, slots[1:]))
print(f"{len(slots)} slots written, {turns} changes of thread, {back} out of order")
sys.exit(len(slots) != 4000 or back != 0 or turns < 3)
PY
