#!/bin/sh
# SPDX-License-Identifier: MIT
# make demo: trace a real program and show what came out.
set -eu
b=${1:-build}
out=$b/demo
rm -rf "$out"
mkdir -p "$out"
# something worth compressing: the headers of the C library
cat /usr/include/*.h >"$out/input"
printf '\n$ gzip -c input >plain.gz                                   # untraced\n'
gzip -nc "$out/input" >"$out/plain.gz"
printf '$ LD_PRELOAD=libptrace_rt.so gzip -c input >traced.gz       # run.dir appears\n'
PTRACE_DIR=$out/run.dir LD_PRELOAD=$b/libptrace_rt.so gzip -nc "$out/input" >"$out/traced.gz"
cmp "$out/plain.gz" "$out/traced.gz"
printf '  (same output, %s bytes in, run.dir takes %s)\n' \
	"$(wc -c <"$out/input")" "$(du -sh "$out/run.dir" | cut -f1)"
printf '\n$ ptrace-decode run.dir --summary\n'
"$b/ptrace-decode" "$out/run.dir" --summary
printf '\n$ ptrace-decode run.dir --format=text --symbols --module gzip --from 2000000 --to 2000011\n'
"$b/ptrace-decode" "$out/run.dir" --format=text --symbols --module gzip --from 2000000 --to 2000011
