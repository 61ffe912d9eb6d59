#!/bin/bash
# SPDX-License-Identifier: MIT
# server.sh - what an operation of a server costs more when it is traced
#
# usage: workloads/server.sh [BUILD]      (make bench-servers)
#
# Starts each server natively and traced in turn, three times, and puts the same load on it from outside: memcached with 2 and
# 4 worker threads (mcload.c), redis-server (redis-benchmark). Prints a Markdown table of the least
# of each: processor time of the server per operation, the collector's, and operations a second. The load runs on the
# same processors. A server that is not installed is left out, and said to be.
set -u
build=$(realpath "${1:-build}") || exit 2
work=$(mktemp -d) || exit 2
server=
trap '[ -z "$server" ] || kill -KILL $server 2>/dev/null; rm -rf "$work"' EXIT
chmod 755 "$work"
cd "$work" || exit 2
port=$((20000 + $$ % 20000))
ticks=$(getconf CLK_TCK)

have() { command -v "$1" >/dev/null || { echo "server.sh: $1 is not installed" >&2; false; }; }
# cpu PID...: milliseconds of processor time, of all its threads, and of what it has waited for
cpu() { for p; do cut -d')' -f2 "/proc/$p/stat" 2>/dev/null; done | awk -v t="$ticks" '{ n += $12 + $13 } END { print n * 1000 / t }'; }
family() { echo "$1"; pgrep -P "$1"; }
answers() { for _ in $(seq 400); do (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && return; sleep 0.05; done; echo "server.sh: nothing answers" >&2; exit 1; }

# once LOAD CMD...: starts it, puts the load on; sets ms, collector, rate
# shellcheck disable=SC2046 # process ids
once() {
	local load=$1 a c
	shift
	"$@" >out 2>&1 &
	server=$!
	answers
	$load 2000 >/dev/null || exit 1 # everything is loaded, and what is made once is there
	a=$(cpu $(family $server)) c=$(cpu $(pgrep -f "ptrace-collect --run $work/run"))
	rate=$($load "$ops") || exit 1
	ms=$(echo "$(cpu $(family $server)) $a" | awk '{ print $1 - $2 }')
	collector=$(echo "$(cpu $(pgrep -f "ptrace-collect --run $work/run")) $c" | awk '{ print $1 - $2 }')
	kill -TERM $server; wait $server 2>/dev/null
	server=
	while pgrep -f "ptrace-collect --run $work/run" >/dev/null; do sleep 0.05; done
	rm -rf "$work"/run*
}
measure() { # NAME LOAD CMD...
	local name=$1 load=$2
	shift 2
	once "$load" env PTRACE_DIR="$work/run" LD_PRELOAD="$build/libptrace_rt.so" "$@" # makes maps
	: >n; : >t
	for _ in 1 2 3; do
		once "$load" "$@"; echo "$ms $rate" >>n
		once "$load" env PTRACE_DIR="$work/run" LD_PRELOAD="$build/libptrace_rt.so" "$@"; echo "$ms $rate $collector" >>t
	done
	{ sort -n n | head -1; sort -n t | head -1; } | tr '\n' ' ' | awk -v name="$name" -v ops="$ops" '{
		printf "| %s | %.1f | %.1f | %.2f | %.1f | %.0f | %.0f |\n", name, $1 * 1000 / ops, $3 * 1000 / ops, $3 / $1,
			$5 * 1000 / ops, $2, $4 }'
}

load_memcached() { "$build/workloads/mcload" "$port" 16 "$1"; }
load_redis() { redis-benchmark -p "$port" -c 16 -n "$1" -t get -q --csv | awk -F'"' '/GET/ { print $4 }'; }

echo '| server | native µs/op | traced µs/op | ratio | collector µs/op | native op/s | traced op/s |'
echo '|---|---|---|---|---|---|---|'
ops=200000
if have memcached; then
	for t in 2 4; do
		measure "memcached -t $t" load_memcached memcached -u nobody -t $t -p "$port" -l 127.0.0.1 -U 0
	done
fi
if have redis-server && have redis-benchmark; then
	measure redis load_redis redis-server --port "$port" --save '' --appendonly no --daemonize no --dir .
fi
