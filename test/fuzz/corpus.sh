#!/bin/bash
# SPDX-License-Identifier: MIT
# corpus.sh [plain|replay] - the committed inputs through every target, with the build's own objects or with
# sanitizers. A crash, an abort, a hang or memory beyond 2 GiB fails; what was freed is overwritten.
set -eu
B=${B:-build}
kind=${1:-plain}
c=test/fuzz/corpus
[ "$kind" = replay ] || ulimit -v 2097152
export MALLOC_PERTURB_=165
for t in walk:run run:run bin:bin elf:elf rtelf:elf pt:pt; do
	echo "${t%:*}"
	timeout 60 "$B/fuzz/${kind}_${t%:*}" $c/"${t#*:}"
done
