#!/bin/sh
# SPDX-License-Identifier: MIT
# forks.sh - many children that end at once: each one's trace is there, and right
#
# usage: test/forks.sh [BUILD]
set -u
export PTRACE_CF="${PTRACE_CF:-soft}" # log everything: what a replay computes is for replay.sh
build=$(realpath "${1:-build}") || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME="$build/cache" PTRACE_DIR="$work/run" PTRACE_ANALYZE="$build/ptrace-analyze"
n=300
PTRACE_VERIFY=1 LD_PRELOAD=$build/libptrace_rt.so "$build/test/forks_prog" $n || { echo "the program: status $?"; exit 1; }
"$build/ptrace-decode" --verify --json "$work/run" >"$work/out"
s=$?
python3 - "$work/out" $n $s <<'PY'
import json, sys
text = open(sys.argv[1]).read()
n, status = int(sys.argv[2]), int(sys.argv[3])
run, at = json.JSONDecoder().raw_decode(text)
proc, thread = run["process_list"], run["thread_list"]
root = [i for i, p in enumerate(proc) if not p["forked"]]
forked = sum(p["forked"] and p["parent"] in root and p["end"] == "exit 7" for p in proc)
traced = sum(proc[t["process"]]["forked"] and (t["records"] or 0) > 0 and t["end"] == "exit 7" for t in thread)
print(f"{forked} children, {traced} traced to their end; {text[at:].strip().splitlines()[-1]}")
sys.exit(status or forked != 5 * n or traced != 5 * n or len(root) != 1)
PY
