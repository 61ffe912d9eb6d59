#!/bin/sh
# SPDX-License-Identifier: MIT
# corpus.sh - the committed inputs through every target
set -eu
B=${B:-build}
c=test/fuzz/corpus
for t in walk:run run:run bin:bin elf:elf rtelf:elf; do
	timeout 60 "$B/fuzz/replay_${t%:*}" $c/"${t#*:}"
done
