#!/bin/sh
# SPDX-License-Identifier: MIT
# rt_env.sh - what cannot be traced still runs, unchanged, after one clear line; broken
# surroundings (full disk, unwritable directory, killed process or collector) leave a readable
# run directory; ptrace-record's refusals and statuses.
set -u
export PTRACE_CF="${PTRACE_CF:-soft}" # log everything: what a replay computes is for replay.sh
here=$(cd "$(dirname "$0")/.." && pwd)
B=$here/build
dir=$(mktemp -d) || exit 1
trap 'umount "$dir/small" 2>/dev/null; rm -rf "$dir"' EXIT
cd "$dir" || exit 1
export XDG_CACHE_HOME="$dir/cache" PTRACE_ANALYZE="$B/test/rt_mkmap"
mkdir cache
pass=0 fail=0
check() { # check NAME COMMAND...: passes when the command does
	name=$1; shift
	if "$@"; then pass=$((pass + 1)); else fail=$((fail + 1)); echo "FAIL: $name ($*)"; fi
}
# runs rt_prog log with extra environment; want: status 42, one line on stderr that says $1
refused() {
	want=$1; shift
	env "$@" LD_PRELOAD="$B/libptrace_rt.so" "$B/test/rt_prog" log >out 2>err
	[ $? = 42 ] && [ "$(wc -l <err)" = 1 ] && grep -q "$want" err
}
proc() { sed -n "s/.*\"$1\": \"*\([a-z0-9-]*\)\"*.*/\1/p" run.dir/proc-*/proc.json; }
# run.json is written last
settled() { i=0; while ! grep -q '"end"' run.dir/run.json && [ $i -lt 600 ]; do sleep 0.05; i=$((i + 1)); done; }
wait_end() { i=0; while [ -z "$(proc end)" ] && [ $i -lt 100 ]; do sleep 0.05; i=$((i + 1)); done; }
readable() { # every chunk of every log is whole: magic, sizes add up to the file's size
	python3 - "$@" <<'PY'
import glob, struct, sys
n = 0
for f in glob.glob('run.dir/proc-*/thread-*.log'):
    d = open(f, 'rb').read(); o = 0
    while o < len(d):
        magic, ver, codec, kind, pid, tid, seq, first, raw, disk = struct.unpack_from('<IHBBIIQQII', d, o)
        assert magic == 0x4b435450 and len(d) - o >= 72 + disk
        o += 72 + disk; n += raw
assert n >= int(sys.argv[1]), n
PY
}

check mode-fast refused 'PTRACE_MODE=fast' PTRACE_MODE=fast
check mode-unknown refused 'PTRACE_MODE=x' PTRACE_MODE=x
# Intel PT, with a PMU directory that is not there, and one of a PMU that the kernel does not have
nopt() { # WANT ENV...: not started, one line that says WANT, status 126
	want=$1; shift
	env "$@" PTRACE_CF=pt LD_PRELOAD="$B/libptrace_rt.so" "$B/test/rt_prog" log >out 2>err
	[ $? = 126 ] && [ "$(wc -l <err)" = 1 ] && grep -q "PTRACE_CF=pt: .*$want.*; not started" err && [ ! -s out ]
}
mkdir pmu pmu/format pmu/caps
echo 4000000000 >pmu/type
echo config:10 >pmu/format/tsc
check pt-no-pmu nopt 'PT' PTRACE_PMU_DIR="$dir/none"
check pt-no-run [ ! -e run.dir ]
check pt-no-event nopt 'takes no events of a thread' PTRACE_PMU_DIR="$dir/pmu"
check pt-no-event-run grep -q '"stop_reason": "unsupported"' run.dir/run.json
rm -rf run.dir
check ptw-no-pmu refused 'PTRACE_PTWRITE=1: needs Intel PT' PTRACE_PTWRITE=1 PTRACE_PMU_DIR="$dir/none"
env PTRACE_CF=full PTRACE_LOG=info PTRACE_PMU_DIR="$dir/pmu" LD_PRELOAD="$B/libptrace_rt.so" "$B/test/rt_prog" log >out 2>err
check pt-auto [ $? = 42 ]
settled
check pt-auto-says grep -q 'control flow: recorded by the copies: .*takes no events of a thread' err
check pt-auto-json grep -q '"cf": "soft"' run.dir/run.json
check pt-auto-why grep -q '"cf_reason": ".*takes no events of a thread' run.dir/run.json
check pt-no-files [ -z "$(find run.dir -name 'pt-*' -o -name '*.text')" ]
rm -rf run.dir
echo x >pmu/type
check pt-odd nopt 'makes no sense' PTRACE_PMU_DIR="$dir/pmu"
record() { "$B/ptrace-record" "$@" "$B/test/rt_prog" log >/dev/null 2>&1; echo $?; }
check pt-record-usage [ "$(record --cf x)" = 2 ]
check pt-record [ "$(PTRACE_PMU_DIR="$dir/none" record --cf pt)" = 126 ]
check pt-record-soft [ "$(record --cf soft)" = 42 ]
rm -rf run.dir run.dir.old cache/ptrace
check cf refused 'PTRACE_CF=x: unknown' PTRACE_CF=x
check pt-aux refused 'PTRACE_PT_AUX' PTRACE_PT_AUX=1K
check pt-ring refused 'PTRACE_PT_RING' PTRACE_PT_RING=x
check pt-key refused 'PTRACE_PT_KEY' PTRACE_PT_KEY=1K
check pt-psb refused 'PTRACE_PT_PSB' PTRACE_PT_PSB=16
check pt-mtc refused 'PTRACE_PT_MTC' PTRACE_PT_MTC=on
check pt-retc refused 'PTRACE_PT_RETC' PTRACE_PT_RETC=2
check pt-cyc refused 'PTRACE_PT_CYC' PTRACE_PT_CYC=2
check log refused 'PTRACE_LOG' PTRACE_LOG=all
check ptwrite refused 'PTRACE_PTWRITE=1' PTRACE_PTWRITE=1
check ptwrite-word refused 'PTRACE_PTWRITE=yes' PTRACE_PTWRITE=yes
check ptwrite-budget refused 'PTRACE_PTWRITE_BUDGET=0: use' PTRACE_PTWRITE_BUDGET=0
check ptwrite-budget-word refused 'PTRACE_PTWRITE_BUDGET=any: use' PTRACE_PTWRITE_BUDGET=any
check verify refused 'PTRACE_VERIFY=yes' PTRACE_VERIFY=yes
check ring refused 'PTRACE_RING=1' PTRACE_RING=1
check compress refused 'PTRACE_COMPRESS=rar' PTRACE_COMPRESS=rar
check spool refused 'PTRACE_SPOOL=4T' PTRACE_SPOOL=4T
check spool-huge refused 'PTRACE_SPOOL=99999999999G' PTRACE_SPOOL=99999999999G
check collector refused 'cannot start /nonexistent' PTRACE_COLLECT=/nonexistent
rm -rf run.dir
check no-map refused 'no module could be analysed' PTRACE_ANALYZE=never
mkdir other; echo precious >other/file
check not-a-run refused 'is not a run directory' PTRACE_DIR=other
check kept grep -q precious other/file
check unwritable refused 'cannot make the run directory' PTRACE_DIR=/proc/x
rm -rf run.dir cache/ptrace

traced() { env LD_PRELOAD="$B/libptrace_rt.so" "$@"; }
for z in lz4 zstd none; do
	rm -rf run.dir
	PTRACE_COMPRESS=$z traced "$B/test/rt_prog" log >/dev/null; settled; check $z readable 5000000
done
# more than fits into the collector's memory, with and without a spool
for z in 0 20M 4G; do
	rm -rf run.dir
	PTRACE_SPOOL=$z PTRACE_COMPRESS=zstd traced "$B/test/rt_prog" log 100000000 >/dev/null
	settled; check spool-$z readable 80000000; check spool-$z-complete [ "$(proc complete)" = true ]
	check spool-$z-gone [ "$(find run.dir -name '*spool*')" = "" ]
done
traced "$B/test/rt_prog" log >/dev/null
check renamed [ -f run.dir.old/run.json ]
# an older run in which a decoder was killed while it replayed; one with something of the user's
mkdir -p run.dir.old/replay-x/run/proc-1.0; : >run.dir.old/replay-x/run/proc-1.0/start.bin; : >run.dir.old/replay-x/log
traced "$B/test/rt_prog" log >/dev/null 2>err
check renamed-replay [ ! -s err ]
check renamed-replay-gone [ ! -e run.dir.old/replay-x ]
mkdir -p run.dir.old/a/b; : >run.dir.old/a/b/mine
check renamed-not refused 'in its .old cannot be removed' X=
check renamed-kept [ -f run.dir.old/a/b/mine ]
rm -rf run.dir.old
PTRACE_DIR=d-%p traced "$B/test/rt_prog" log >/dev/null
check percent-p [ -f d-[0-9]*/run.json ]
rm -rf run.dir; traced "$B/test/rt_prog" log >/dev/null; settled
check complete [ "$(proc complete) $(proc exit_status)" = "true 42" ]
(HOME=/nonexistent; unset XDG_CACHE_HOME; export HOME; rm -rf run.dir; traced "$B/test/rt_prog" log >/dev/null)
settled
check no-cache [ "$(proc complete)" = true ]

rm -rf run.dir
traced "$B/test/rt_prog" kill 2>/dev/null; check kill9 [ $? = 137 ]
wait_end
check kill9-end [ "$(proc end) $(proc salvaged)" = "killed true" ]
check kill9-log readable 2500000
rm -rf run.dir
traced "$B/test/rt_prog" abort 2>/dev/null >&2; check abort [ $? = 134 ]
wait_end
check abort-end [ "$(proc end)" = killed ]

# the collector dies while the program runs: the program must not notice
rm -rf run.dir
traced "$B/test/rt_prog" log 3000000000 >/dev/null 2>err & p=$!
i=0; while [ ! -s run.dir/run.json ] && [ $i -lt 100 ]; do sleep 0.05; i=$((i + 1)); done
sleep 0.2
for c in $(pgrep -f "ptrace-collect --run $dir/run.dir"); do
	kill -9 "$c"
done
wait $p; check collector-killed [ $? = 42 ]
check collector-killed-log readable 1

# a module that changes the gs base: not traced when it is there from the beginning, and no longer once it is loaded
mkdir real
bases() { # CF PRELOAD
	rm -rf bases.dir
	XDG_CACHE_HOME=$dir/real PTRACE_ANALYZE=$B/ptrace-analyze PTRACE_DIR=$dir/bases.dir PTRACE_CF=$1 \
		env LD_PRELOAD="$2" "$B/test/bases_prog" "$B/test/bases_plug.so" 2>err
}
for cf in auto soft; do
	out=$(bases $cf "$B/libptrace_rt.so:$B/test/bases_plug.so")
	check "bases-$cf" [ "$? $out" = '7 set' ]
	check "bases-$cf-says" grep -q 'changes the fs or gs base' err
	"$B/ptrace-decode" --summary bases.dir >out 2>err
	check "bases-$cf-decode" [ "$? $(wc -l <err)" = '1 1' ]
	check "bases-$cf-decode-says" grep -q 'nothing was traced: stopped (the program changes the gs base' err
	out=$(bases $cf "$B/libptrace_rt.so")
	check "bases-loaded-$cf" [ "$? $out" = '7 set' ]
done
# data among the code that would be such an instruction: traced
cat >data.c <<'X'
__asm__(".text; .globl info; .type info, @function; info: .byte 0x8e, 0xec, 2, 0, 0, 0, 0, 0, 6, 0xc3; .size info, . - info");
__asm__(".text; .globl odd, more; .type odd, @function; .type more, @function;"
	"more: nop; nop; nop; .byte 0x8e, 0x6f, 9, 0, 0, 0, 0, 6, 0xc3; .size more, . - more;"
	"odd: int $0x81; jmp more + 3; .size odd, . - odd");
int main(void) { return 7; }
X
cc -O1 -o data data.c
XDG_CACHE_HOME=$dir/real PTRACE_ANALYZE=$B/ptrace-analyze PTRACE_DIR=$dir/data.dir LD_PRELOAD=$B/libptrace_rt.so ./data 2>err
check bases-data [ "$? $(cat err)" = '7 ' ]

mkdir small
if mount -t tmpfs -o size=600k none small 2>/dev/null; then
	rm -rf run.dir; ln -s small/run run.dir
	PTRACE_COMPRESS=none PTRACE_DIR=$dir/small/run traced "$B/test/rt_prog" big >/dev/null 2>err
	check full-disk [ $? = 42 ]
	check full-disk-log readable 0
	rm -f run.dir; umount small
	mount -t tmpfs -o size=3m none small; ln -s small/run run.dir
	PTRACE_COMPRESS=none PTRACE_DIR=$dir/small/run traced "$B/test/rt_prog" big >/dev/null 2>err
	check full-disk-later [ $? = 42 ]
	settled
	check full-disk-reason [ "$(proc stop_reason)" = space ]
	check full-disk-later-log readable 1000000
	rm -f run.dir
else
	echo "skipped: full disk (cannot mount a tmpfs here)"
fi
rm -rf run.dir
(ulimit -f 20; traced "$B/test/rt_prog" log >/dev/null 2>err); check fsize-limit [ $? = 42 ]

# ptrace-record
R=$B/ptrace-record
rm -rf run.dir
"$R" "$B/test/rt_prog" log >/dev/null 2>err; check record-status [ $? = 42 ]
check record-says grep -q "run directory $dir/run.dir" err
"$R" -q "$B/test/rt_prog" log >/dev/null 2>err; check record-quiet [ ! -s err ]
"$R" -q "$B/test/rt_prog" kill >/dev/null 2>err; check record-signal [ $? = 137 ]
says() { want=$1 status=$2; shift 2; "$@" >out 2>err; [ $? = "$status" ] && [ "$(wc -l <err)" = 1 ] && grep -q "$want" err; }
echo 'int main(void) { return 3; }' >m.c
gcc -static -o static m.c && check record-static says 'statically linked' 126 "$R" ./static
check record-missing says 'No such file' 127 "$R" ./missing
check record-missing-path says 'No such file' 127 "$R" no-such-command-here
printf 'x\n' >text; chmod +x text; check record-text says 'neither an ELF' 126 "$R" ./text
printf '#!/nonexistent/sh\n' >script; chmod +x script; check record-script says 'nonexistent' 126 "$R" ./script
printf '#!%s\n' "$dir/static" >script; check record-script-static says 'statically' 126 "$R" ./script
check record-dir says 'directory' 126 "$R" ./small
printf '\177ELF\001\001\001%057d' 0 >elf32; chmod +x elf32; check record-32 says '32-bit' 126 "$R" ./elf32
if [ "$(id -u)" = 0 ]; then
	cp "$B/test/rt_prog" suid; chown 1 suid; chmod 4755 suid; check record-suid says 'set-user-id' 126 "$R" ./suid
fi
check record-fast says 'not available' 2 "$R" -m fast true
"$R" --verify -q -o v.dir "$B/test/rt_prog" log >/dev/null 2>err
check record-verify [ -n "$(ls cache/ptrace/*-v.ptmap)" ]

# a run that is going on is left where it is: who wants the same directory meanwhile takes another, and says so
rm -rf run.dir run.dir.*
LD_PRELOAD=$B/libptrace_rt.so "$B/test/rt_prog" log 400000000 >/dev/null 2>err &
p=$! i=0
while [ ! -s run.dir/run.json ] && [ $i -lt 2000 ]; do sleep 0.005; i=$((i + 1)); done
kill -STOP $p
traced "$B/test/rt_prog" log >/dev/null 2>err1; check live-second [ $? = 42 ]
check live-says grep -q "^ptrace: $dir/run.dir is being recorded into; this run is in $dir/run.dir.1$" err1
"$R" "$B/test/rt_prog" log >/dev/null 2>err1; check live-again [ $? = 42 ]
# that in run.dir.1 has ended
check live-record-says grep -q "run directory $dir/run.dir.1$" err1
check live-moved [ -f run.dir.1.old/run.json ]
kill -CONT $p
wait $p; check live-first [ $? = 42 ]
settled
check live-first-whole [ "$(proc complete) $(cat err)" = 'true ' ]
check live-first-log readable 400000000
check live-not-moved [ ! -e run.dir.old ]
traced "$B/test/rt_prog" log >/dev/null 2>err1
check live-ended [ "$(ls run.dir.old/run.json)$(cat err1)" = run.dir.old/run.json ]
rm -rf run.dir run.dir.*

# the analyzer is no child that the program would notice: with maps still to be made at a dlopen, and at a switch
for cf in soft auto; do
	rm -rf run.dir
	printf '%s ' $cf
	env -u PTRACE_ANALYZE XDG_CACHE_HOME="$dir/cold-$cf" PTRACE_CF=$cf LD_PRELOAD="$B/libptrace_rt.so" "$B/test/rt_chld" 2>err
done >chld
check own-children [ "$(cat chld)" = "$(printf 'soft 1 signals, then no child\nauto 1 signals, then no child')" ]

echo "$pass passed, $fail failed"
[ $fail = 0 ]
