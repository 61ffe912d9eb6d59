#!/bin/sh
# SPDX-License-Identifier: MIT
# pt_rt.sh - the runtime's and the collector's side of Intel PT under the simulator: what is refused and in which words,
# buffers made smaller, a thread without an event, packets lost and said to be; keyframes that change nothing
#   test/pt_rt.sh BUILD
set -u
B=$(cd "${1:-build}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
export XDG_CACHE_HOME="${PT_CACHE:-$dir/cache}"
mkdir -p "$XDG_CACHE_HOME"
pass=0 fail=0
check() { # NAME COMMAND...: passes when the command does
	name=$1; shift
	if "$@"; then pass=$((pass + 1)); else fail=$((fail + 1)); echo "FAIL: $name ($*)"; sed 's/^/    /' err | head -3; fi
}
prog="$B/test/progs/jt_dense"
# sim SIM-OPTIONS -- ENV... -- CMD: a run under the simulator into run.dir; its status
sim() {
	rm -rf run.dir
	"$B/test/ptsim" --kernel "$@" >out 2>err
}
lib="-E LD_PRELOAD=$B/libptrace_rt.so -E PTRACE_DIR=run.dir"
# says STATUS WORDS SIM-OPTIONS...: PTRACE_CF=pt ends with the status, and says so
says() {
	want=$1 words=$2; shift 2
	# shellcheck disable=SC2086 # options
	sim "$@" $lib -E PTRACE_CF=pt "$prog"
	[ $? = "$want" ] && { [ -z "$words" ] || grep -q "$words" err; }
}
soft() { # WORDS SIM-OPTIONS...: PTRACE_CF=full goes on without, and the run says why
	words=$1; shift
	# shellcheck disable=SC2086
	sim "$@" $lib -E PTRACE_CF=full "$prog" && grep -q '"cf": "soft"' run.dir/run.json && grep -q "$words" run.dir/run.json &&
		[ -z "$(find run.dir -name 'pt-*')" ] && "$B/ptrace-decode" run.dir >/dev/null 2>err
}
soft_refused() { # WORDS SIM-OPTIONS...: PTRACE_CF=auto, the program runs untraced and one line says why
	words=$1; shift
	# shellcheck disable=SC2086
	sim "$@" $lib "$prog" && [ "$(grep -c '^ptrace:' err)" = 1 ] && grep -q "^ptrace: $words.*running untraced" err
}
json() { sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" run.dir/proc-*/proc.json | head -1; }

# errno: EPERM 1, ESRCH 3, EACCES 13, EBUSY 16, EINVAL 22, ENOSYS 38
check busy says 126 'in use by another' --open-errno 16
check nosys says 126 'perf_event_open does not exist here' --open-errno 38
check rights says 126 'perf_event_' --open-errno 13
check settings says 126 'does not take the settings' --open-errno 22
check memory says 126 'perf_event_mlock_kb' --mlock-kb 32
check not-started [ ! -s out ]
check auto-busy soft 'in use by another' --open-errno 16
check auto-rights soft 'perf_event_' --open-errno 1
check ptwrite-none says 0 'has no PTWRITE' --no-ptwrite -E PTRACE_PTWRITE=1
check ptwrite says 0 'control flow: Intel PT' -E PTRACE_PTWRITE=1 -E PTRACE_LOG=info
check ptwrite-map [ -n "$(find run.dir/maps -name '*-w.ptmap')" ]
check ptwrite-busy soft_refused 'PTRACE_PTWRITE=1: .*in use by another' --open-errno 16 -E PTRACE_PTWRITE=1

# one that has just gone is waited for
check busy-once says 0 '' --open-errno 16,0,3
check busy-once-pt grep -q '"cf": "pt"' run.dir/run.json
# smaller buffers fit
check small says 0 'control flow: Intel PT' --mlock-kb 600 -E PTRACE_LOG=info
aux() { od -An -t u8 -j 96 -N 8 run.dir/proc-*/pt-*.bin | tr -d ' '; }
check small-aux [ "$(aux)" = 524288 ]
check none-lost [ "$(json truncated)" = 0 ]

# packets lost: counted, and the event goes on
# shellcheck disable=SC2086
sim --truncate 1 $lib -E PTRACE_CF=pt gzip -9c "$here/pt_rt.sh"
check truncated [ $? = 0 ]
check truncated-count [ "$(json truncated)" -gt 1 ]

# a thread whose event cannot be opened: the program does not notice, the run says so
# shellcheck disable=SC2086
sim --open-errno 16,2,100000 $lib -E PTRACE_CF=pt "$B/test/progs/thr_join"
check thread [ $? = 0 ]
check thread-failed [ "$(json failed)" -gt 0 ]
check thread-open [ "$(json threads)" -gt 0 ]

head -c 4000 "$B/ptrace-decode" >in
# keyframes: the same trace with and without, more of them or less; the options have the same length
for key in 0016K 1024K; do
	# shellcheck disable=SC2086
	sim $lib -E PTRACE_CF=pt -E PTRACE_PT_KEY=$key gzip -c in
	check "gzip-$key" [ $? = 0 ]
	"$B/ptrace-decode" run.dir >trace.$key 2>err
	check "decode-$key" [ $? = 0 ]
	chunks=$(LC_ALL=C grep -ao PTCK run.dir/proc-*/thread-*.log | wc -l)
	echo "$key: $chunks chunks, $(wc -l <trace.$key) accesses, $(json bytes) bytes of packets"
	eval "n$key=$chunks"
done
check keyframes [ "${n0016K:-0}" -gt "${n1024K:-9999}" ]
check keyframes-equal cmp -s trace.0016K trace.1024K
echo "$pass passed, $fail failed"
[ $fail = 0 ]
