#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh - fuzzes each target of $FUZZ for $FUZZ_SECONDS seconds, one after the other. New inputs go to
# $B/fuzz/corpus-TARGET, crashes to $B/fuzz/crash-TARGET-*; exit status 1 if there is one.
set -u
B=${B:-build}
bad=0
for t in $FUZZ; do
	mkdir -p "$B/fuzz/corpus-$t"
	max=65536
	case $t in walk) c=run ;; rtelf) c=elf ;; *) c=$t ;; esac
	nice -n 19 "$B/fuzz/fuzz_$t" -max_total_time="${FUZZ_SECONDS:-60}" -max_len=$max -timeout=10 -rss_limit_mb=2048 \
		-print_final_stats=1 -close_fd_mask=0 -artifact_prefix="$B/fuzz/crash-$t-" \
		"$B/fuzz/corpus-$t" "test/fuzz/corpus/$c" >"$B/fuzz/log-$t" 2>&1 || bad=1
	grep -E 'ERROR|SUMMARY|Test unit written|stat::(number_of_executed|new_units)' "$B/fuzz/log-$t" |
		sed "s/^/$t: /"
done
exit $bad
