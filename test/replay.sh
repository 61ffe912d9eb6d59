#!/bin/sh
# SPDX-License-Identifier: MIT
# replay.sh - programs of which only the system calls are recorded (PTRACE_CF=replay): output and exit status as
# untraced; the replay comes to the recording's end; every address is the one that it logged; and, where the program
# does the same each time, the trace is, record for record, the one of a run that is recorded in full. Then what
# goes wrong: damage, files that have changed, a decoder that wants no more.
#
# usage: test/replay.sh [BUILD [PROGRAM...]]	with programs: only those, verified
set -u
build=$(realpath -m "${1:-build}")
[ $# = 0 ] || shift
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
export XDG_CACHE_HOME="$build/cache"
mkdir -p "$XDG_CACHE_HOME"
progs=$build/test/progs prog=$build/test/replay_prog
pass=0 fail=0

# The two settings are of one length together, so that all that the program finds on its stack is where it was; only
# the second string begins two bytes later.
run() { # CF PAD PROGRAM ARGS...: traced, output in $tmp/CF.*
	cf=$1 pad=$2
	shift 2
	rm -rf "$tmp/run"
	timeout 120 setarch -R env -i PATH="$PATH" HOME="$tmp" XDG_CACHE_HOME="$XDG_CACHE_HOME" LC_ALL=C.UTF-8 \
		PTRACE_DIR="$tmp/run" PTRACE_ANALYZE="$build/ptrace-analyze" PTRACE_RING=4 \
		PTRACE_CF="$cf" P="$pad" PTRACE_COMPRESS="${compress:-lz4}" LD_PRELOAD="$build/libptrace_rt.so" "$@" \
		< "${in:-/dev/null}" > "$tmp/$cf.out" 2> "$tmp/err"
	echo $? > "$tmp/$cf.status"
	grep -v '^ptrace: analysing' "$tmp/err" > "$tmp/$cf.err"
	rm -rf "$tmp/$cf.run"
	mv "$tmp/run" "$tmp/$cf.run"
}

native() {
	timeout 60 setarch -R env -i PATH="$PATH" HOME="$tmp" LC_ALL=C.UTF-8 "$@" < "${in:-/dev/null}" \
		> "$tmp/native.out" 2> "$tmp/native.err"
	echo $? > "$tmp/native.status"
}

ok() {
	pass=$((pass + 1))
}

bad() { # NAME WHY
	echo "FAIL: $1: $2" | head -c 600
	echo
	fail=$((fail + 1))
}

decode() { # ARGS...
	timeout 300 "$build/ptrace-decode" "$@" 2> "$tmp/decode.err"
}

# clean: some program of the run may have been killed, which is no fault of the trace
verify() { # true if every address was compared and is right
	decode --verify "$tmp/replay.run" > "$tmp/verify"
	s=$?
	tail -1 "$tmp/verify" | grep -q 'accesses=[1-9][0-9]* wrong=0 unknown=0 missing=0' && [ $s = 0 ]
}

# what the program does is what it does natively; whether the replay is exact is left in verify's status and files
recorded_quietly() { # PROGRAM ARGS...
	native "$@"
	run replay xx "$@"
	for f in out err status; do
		cmp -s "$tmp/native.$f" "$tmp/replay.$f" && continue
		bad "$*" "$f differs: $(diff "$tmp/native.$f" "$tmp/replay.$f" | head -3 | tr '\n' ' ')"
		return 1
	done
	verify
	exact=$?
}

recorded() { # PROGRAM ARGS...
	recorded_quietly "$@" || return
	[ $exact -eq 0 ] && ! grep -q 'no unwind table tells' "$tmp/decode.err" && return
	bad "$*" "$(tail -1 "$tmp/verify") $(grep -v analysing "$tmp/decode.err" | head -3 | tr '\n' ' ')"
	return 1
}

verified() { # PROGRAM ARGS...
	recorded "$@" && ok
}

same() { # PROGRAM ARGS...: and the trace is that of a run recorded in full
	recorded "$@" || return
	run soft xxxx "$@"
	decode -f text -o "$tmp/replay.txt" "$tmp/replay.run" &&
		decode -f text -o "$tmp/soft.txt" "$tmp/soft.run" || {
		bad "$*" "$(tail -1 "$tmp/decode.err")"
		return
	}
	if why=$(python3 - "$tmp/replay.txt" "$tmp/soft.txt" << 'PY'
import itertools, sys
n = 0
with open(sys.argv[1]) as a, open(sys.argv[2]) as b:
    for x, y in itertools.zip_longest(a, b):
        n += 1
        if x == y:
            continue
        p, q = (x or "").split(), (y or "").split()
        if len(p) != len(q) or len(p) < 5 or p[:3] + p[4:] != q[:3] + q[4:] or int(p[3], 16) - int(q[3], 16) != 2:
            print(f"record {n}: replayed {x}, recorded in full {y}")
            sys.exit(1)
sys.exit(n < 100)
PY
	); then
		ok
	else
		bad "$*" "$why"
	fi
}

# ---- programs ----

if [ $# -gt 0 ]; then
	for p; do
		verified "$p"
	done
	echo "$pass passed, $fail failed"
	exit $((fail != 0))
fi

seq 1 3000 > "$tmp/text"
printf 'create table t(a,b); insert into t values(1,2),(3,4); select sum(a*b) from t;\n' > "$tmp/sql"
cat > "$tmp/lua" << 'LUA'
local t = {}
for i = 1, 2000 do t[i] = (i * 7919) % 1009 end
table.sort(t)
print(t[1], t[2000], os.time() > 0, #tostring({}))
LUA
cat > "$tmp/sh" << 'SH'
x=0; for i in 1 2 3 4 5; do x=$((x + i)); done; echo $x
echo piped | cat; (exit 4); echo $?; exec sh -c 'echo executed; exit 3'
SH
same /bin/true
same /bin/echo hi
same gzip -nc "$tmp/text"
verified sort -rn "$tmp/text"
in=$tmp/text same cat
same sed -n '10,20s/1/x/p' "$tmp/text"
for p in jt_dense calls_indirect exceptions libc_strings deep_recursion setjmp bit_ops computed_goto rep_strings r15_branch \
	tailcall varargs plt_self fiber ucontext memheavy; do
	same "$progs/$p"
done
cat > "$tmp/storm" << 'SH'
trap '' USR1
LD_PRELOAD= sh -c 'while kill -USR1 $0; do sleep 0.001; done' $$ 2> /dev/null & # not traced: nobody waits for its end
exec "$1" storm
SH
# One that comes while the program computes costs what ran since its last call, and that is said: nothing else may be lost.
stormed() {
	recorded_quietly "$@" || return
	lost=$(grep -v -e analysing -e 'a signal came while the program computed' \
		-e "the replay did not come to the recording's end" -e 'no unwind table tells' "$tmp/decode.err")
	if [ -z "$lost" ] && tail -1 "$tmp/verify" | grep -q 'wrong=0 unknown=0 .*opaque=0$'; then
		ok
	else
		bad "$*" "$(tail -1 "$tmp/verify") $lost"
	fi
}
for _ in 1 2 3; do
	stormed sh "$tmp/storm" "$prog"
done
mkdir "$tmp/dir" "$tmp/dir/a"
verified ls -l "$tmp/dir"
verified date +%Y
verified xz -c "$tmp/text"
verified tar -cf - -C "$tmp" dir
verified perl -e 'my %h = map { $_ => $_ ** 2 } 1 .. 500; print join(",", map { $h{$_} } sort keys %h), "\n"'
verified python3 -S -c 'import sys; print(sum(i * i for i in range(3000)), sys.argv)'
verified sqlite3 :memory: ".read $tmp/sql"
verified lua5.4 "$tmp/lua"
verified bash "$tmp/sh"
verified sh -c 'trap "" HUP TERM; exec sort "$1"' sh "$tmp/text" # asks what is ignored from the start
verified python3 -S -c 'import subprocess; print(subprocess.run(["/bin/echo", "child"]).returncode)' # vfork(2)
for p in dlopen fault_loop sig_longjmp sig_flags sig_frame sig_nested fork_exec proc_vfork thr_join; do
	verified "$progs/$p"
done
same "$progs/proc_fork_frames" 2 # without the one that makes a thread, whose trace is not the same each time
verified "$progs/proc_fork_frames"
for p in proc_fork_throw stk_fork_context; do
	same "$progs/$p"
done
for p in several returns dropped; do
	same "$prog" $p
done
for p in clocks ticks late reraised reraised-term; do
	verified "$prog" $p
done

# ---- where a recording cannot go on: why, in proc.json ----

goes_on() { # WORDS PROGRAM ARGS...
	words=$1
	shift
	recorded "$@" || return
	if grep -q "in full from here: $words" "$tmp"/replay.run/proc-*.1/proc.json &&
		grep -q '"end": "switch"' "$tmp"/replay.run/proc-*.0/proc.json; then
		ok
	else
		bad "$*" "$(grep -h cf_reason "$tmp"/replay.run/proc-*/proc.json | head -2 | tr '\n' ' ')"
	fi
}
goes_on 'it makes a thread' "$progs/thr_tsd"
if [ "$("$progs/rtm_abort")" = 'rtm_abort 50' ]; then
	goes_on 'it begins a transaction' "$progs/rtm_abort"
else
	echo "skipped: a recording that comes to a transaction (no RTM here)"
fi
goes_on 'it gives up rights' bash -c 'ulimit -n 100; ulimit -n'
goes_on 'it loaded a module' "$progs/ldr_textrel"
goes_on 'it makes a thread or a process' "$prog" down
same "$prog" down # --verify has where a string instruction begins, not its direction

# one thread, of two images: listed once, chosen by either's number, in order; what of it is not there costs that part
run replay xx "$progs/proc_fork_throw"
pid=$(ls "$tmp/replay.run" | sed -n 's/^proc-\([0-9]*\)\.1$/\1/p')
decode --list "$tmp/replay.run" > "$tmp/list"
for image in 0 1; do
	decode -f text --pid="$pid.$image" -o "$tmp/image.$image" "$tmp/replay.run"
done
if [ "$(grep -c "^process $pid image 0, from 1 on in full" "$tmp/list")" = 1 ] && grep -c "tid $pid " "$tmp/list" | grep -qx 1 &&
	cmp "$tmp/image.0" "$tmp/image.1" && [ -s "$tmp/image.0" ]; then
	ok
else
	bad once "$(head -5 "$tmp/list" | tr '\n' ' ')"
fi
: > "$(echo "$tmp/replay.run/proc-$pid.0"/thread-*.log)"
decode -f text --pid="$pid" -o "$tmp/rest" "$tmp/replay.run"
s=$?
if [ $s = 1 ] && [ -s "$tmp/rest" ] && tail -c "$(stat -c %s "$tmp/rest")" "$tmp/image.0" | cmp - "$tmp/rest"; then
	ok
else
	bad rest "status $s $(wc -l "$tmp/rest" "$tmp/image.0" | tr '\n' ' ') $(head -2 "$tmp/decode.err")"
fi

# ---- how a program ends ----

# its own fault: by the very instruction that it was, with the same signal
run replay xx "$prog" fault
if [ "$(cat "$tmp/replay.status")" = 139 ]; then
	decode -s -f text -o "$tmp/replay.txt" "$tmp/replay.run"
	decode --verify "$tmp/replay.run" > "$tmp/verify"
	if tail -1 "$tmp/verify" | grep -q 'wrong=0 unknown=0' && ! grep -q ptrace-replay "$tmp/decode.err" &&
		tail -1 "$tmp/replay.txt" | grep -q ' main'; then
		ok
	else
		bad fault "$(tail -1 "$tmp/verify") $(tail -1 "$tmp/replay.txt") $(head -3 "$tmp/decode.err")"
	fi
else
	bad fault "status $(cat "$tmp/replay.status")"
fi
# by somebody, while it computes: the trace ends at its last call, not in the loop for ever, and that is said
timeout -s KILL 1 setarch -R env -i PTRACE_DIR="$tmp/replay.run.k" PTRACE_ANALYZE="$build/ptrace-analyze" \
	XDG_CACHE_HOME="$XDG_CACHE_HOME" PTRACE_CF=replay LD_PRELOAD="$build/libptrace_rt.so" "$prog" loop \
	> "$tmp/out" 2>&1
rm -rf "$tmp/replay.run"
mv "$tmp/replay.run.k" "$tmp/replay.run"
decode --verify "$tmp/replay.run" > "$tmp/verify"
s=$?
if tail -1 "$tmp/verify" | grep -q 'accesses=[1-9][0-9]* wrong=0 unknown=0' && [ $s = 1 ] &&
	grep -q 'while the program computed' "$tmp/decode.err"; then
	ok
else
	bad loop "status $s $(tail -1 "$tmp/verify") $(head -3 "$tmp/decode.err")"
fi

# ---- signals while it computes: to the very instruction ----

place=$build/test/place_prog
usec() { # FROM TO
	echo $(($1 + $(od -An -N4 -tu4 /dev/urandom) % ($2 - $1)))
}
count() { # FUNCTION...: accesses in it, in all images of the run
	decode --json "$tmp/replay.run" > "$tmp/json" && python3 - "$tmp/json" "$@" << 'PY'
import json, sys
f = json.load(open(sys.argv[1]))["functions"]
print(*[sum(x["count"] for x in f if x["function"] == n and x["module"] == "place_prog") for n in sys.argv[2:]])
PY
}
images() {
	echo "$tmp"/replay.run/proc-* | wc -w
}
clean() { # NAME
	if [ "$1" != "$2" ]; then
		bad "$3" "accesses $1, not $2: $(grep -v analysing "$tmp/decode.err" | head -3 | tr '\n' ' ')"
	elif ! verify; then
		bad "$3" "$(tail -1 "$tmp/verify") $(grep -v analysing "$tmp/decode.err" | head -3 | tr '\n' ' ')"
	else
		ok
	fi
}

# the handler says how often the loop went round, each time two accesses
for us in $(usec 500 2000) $(usec 2000 20000); do
	run replay xx "$place" count "$us"
	n=$(tail -1 "$tmp/replay.out")
	clean "$(count count_up)" $((n * 2)) "count $us ($n)"
	[ "$(images)" = 2 ] || bad "count $us" "$(images) images"
done
# forked and executed: whose folder is made first, the fork's or the image's, is different each time, and which is the next image, too
for i in 1 2 3 4 5; do
	# shellcheck disable=SC2016 # $0 is the shell's there
	run replay xx sh -c '"$0" count 2000 & wait' "$place"
	n=$(tail -1 "$tmp/replay.out")
	clean "$(count count_up)" $((n * 2)) "forked, count $i ($n)"
done
# all together they access what they do when no signal comes
work="nested floats strings library ascending"
run replay xx "$place" work 0
all=$(count $work)
verify || bad work "$(tail -1 "$tmp/verify")"
for us in $(usec 200 700) $(usec 200 1500) $(usec 200 3000) $(usec 200 3000); do
	run replay xx "$place" work "$us"
	clean "$(count $work)" "$all" "work $us"
done
# and none of the callers is forgotten there, whatever tables say
run replay xx "$place" frames 0
all=$(count $work)
verify || bad frames "$(tail -1 "$tmp/verify")"
for us in $(usec 200 1500) $(usec 200 3000) $(usec 200 3000); do
	run replay xx "$place" frames "$us"
	clean "$(count $work)" "$all" "frames $us"
	! grep 'no unwind table tells' "$tmp/decode.err" || bad "frames $us" "callers are unwound"
	[ "$(images)" = 2 ] || [ "$(cat "$tmp/replay.status")" = 2 ] || bad "frames $us" "$(images) images"
done
# killed, by default: memory at that time says how far it was
for s in TERM USR2 ALRM; do # not INT, which a shell's background jobs ignore, nor HUP (nohup)
	rm -f "$tmp/out"
	setarch -R env -i PTRACE_DIR="$tmp/replay.run.k" PTRACE_ANALYZE="$build/ptrace-analyze" PTRACE_RING=4 \
		XDG_CACHE_HOME="$XDG_CACHE_HOME" PTRACE_CF=replay LD_PRELOAD="$build/libptrace_rt.so" "$place" wait \
		> "$tmp/out" 2> /dev/null &
	pid=$!
	while ! [ -s "$tmp/out" ]; do sleep 0.01; done
	kill -$s $pid
	wait $pid
	status=$?
	rm -rf "$tmp/replay.run"
	mv "$tmp/replay.run.k" "$tmp/replay.run"
	n=$(python3 - "$tmp"/replay.run/proc-*.0/place.bin "$(cat "$tmp/out")" << 'PY'
import struct, sys
b, addr = open(sys.argv[1], "rb").read(), int(sys.argv[2], 16)
n, = struct.unpack_from("<I", b, 12)
for at in range(0, 4096, 8): # the table of regions: the one that begins with a dumped region that has the counter
    for i in range(n):
        lo, size, prot, name, off = struct.unpack_from("<QQIIQ", b, at + 32 * i)
        if lo % 4096 or size % 4096 or not size:
            break
        if prot & 0x100 and lo <= addr < lo + size:
            print(struct.unpack_from("<Q", b, off + addr - lo)[0])
            sys.exit()
PY
	)
	case $s in TERM) want=143 ;; USR2) want=140 ;; *) want=142 ;; esac
	[ $status = $want ] || bad "kill -$s" "status $status"
	clean "$(count count_up)" $((n * 2)) "kill -$s ($n)"
done

# ---- what goes wrong ----

run replay xx gzip -nc "$tmp/text"
decode -f text --to=1000 -o "$tmp/part" "$tmp/replay.run"
if [ "$(wc -l < "$tmp/part")" = 1000 ] && ! ls -d "$tmp/replay.run"/replay-* 2> /dev/null; then
	ok
else
	bad early "$(wc -l < "$tmp/part") records of 1000, or its directory is left"
fi
check() { # NAME STATUS TEXT: of a decode
	decode -f null "$tmp/replay.run" > "$tmp/out"
	s=$?
	if [ $s = "$2" ] && grep -q "$3" "$tmp/decode.err"; then
		ok
	else
		bad "$1" "status $s, not $2, or no \"$3\": $(head -3 "$tmp/decode.err" | tr '\n' ' ')"
	fi
}
# The times are those of the recording: what a shell's child did comes before what the shell did last.
run replay xx sh -c '/bin/true; exit 0'
decode --merge=time -s -f text -o "$tmp/merged" "$tmp/replay.run"
decode --list "$tmp/replay.run" > "$tmp/list"
true=$(sed -n '/: \/bin\/true: /,$s/.*thread \([0-9]*\):.*/\1/p' "$tmp/list" | head -1)
if [ -n "$true" ] && grep -q "^$true " "$tmp/merged" && [ "$(tail -1 "$tmp/merged" | cut -d' ' -f1)" != "$true" ]; then
	ok
else
	bad times "the child is thread '$true', the last record $(tail -1 "$tmp/merged") $(head -3 "$tmp/decode.err")"
fi
# files that are mapped: one that changes later, one that the program changes, one that somebody else changes
head -c 10000 "$tmp/text" > "$tmp/map"
recorded "$prog" mapped "$tmp/map" && echo more >> "$tmp/map" &&
	if verify; then ok; else bad mapped "$(head -3 "$tmp/decode.err")"; fi
# an object file, as linkers map it, which the compiler removes (its first bytes are all that is looked at)
{ printf '\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\1\0\76\0' && head -c 10000 "$tmp/text"; } > "$tmp/map.o"
recorded "$prog" mapped "$tmp/map.o" && rm "$tmp/map.o" &&
	if verify; then ok; else bad mapped.o "$(head -3 "$tmp/decode.err")"; fi
head -c 10000 "$tmp/text" > "$tmp/map"
native "$prog" mapped-written "$tmp/map"
head -c 10000 "$tmp/text" > "$tmp/map"
run replay xx "$prog" mapped-written "$tmp/map"
if verify && cmp "$tmp/native.out" "$tmp/replay.out"; then ok; else bad mapped-written "$(head -3 "$tmp/decode.err")"; fi
run replay xx "$prog" mapped-changed "$tmp/map"
check mapped-changed 1 'changed while the program had it mapped'
run replay xx "$prog" hidden
check hidden 1 'code that is not traced makes a system call'
run replay xx gzip -nc "$tmp/text"
log=$(echo "$tmp"/replay.run/proc-*.0/thread-*.log)
cp "$log" "$tmp/log"
PTRACE_REPLAY=/nonexistent check no_tool 1 'cannot execute /nonexistent'
size=$(stat -c %s "$log")
truncate -s $((size - 100)) "$log"
check cut 1 'holds no recording' # all of it is one chunk
cp "$tmp/log" "$log"
printf 'XXXX' | dd of="$log" bs=1 seek=$((size / 2)) conv=notrunc 2> /dev/null
check damaged 1 'damaged'
: > "$log"
check empty 1 'holds no recording'
cp "$(command -v gzip)" "$tmp/prog"
run replay xx "$tmp/prog" -nc "$tmp/text"
cp "$(command -v sort)" "$tmp/prog"
check changed 1 'another file than when it was recorded'

# another processor: one feature (CPUID 7.1 EAX, bit 31) that this one has not; the chunk's checksum is made right
compress=none run replay xx /bin/true
if python3 - "$tmp"/replay.run/proc-*.0/thread-*.log << 'PY'
import ctypes, struct, sys
with open(sys.argv[1], "r+b") as f:
    b = bytearray(f.read())
    at = 72
    while struct.unpack_from("<I", b, at)[0] != 7:  # REC_CPU
        at += struct.unpack_from("<I", b, at + 4)[0]
    b[at + 16 + 4 * 5 + 3] |= 0x80
    h = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
    h.restype = ctypes.c_uint64
    size = struct.unpack_from("<I", b, 36)[0]
    struct.pack_into("<Q", b, 56, h(bytes(b[72:72 + size]), ctypes.c_size_t(size)))
    f.seek(0)
    f.write(b)
PY
then
	check processor 1 'this processor has not all'
else
	bad processor 'the recording could not be changed'
fi

# interrupted while it decodes: ended by the signal, whole lines, nothing left behind
run replay xx /usr/bin/python3 -c 'print(sum(i * i for i in range(10**6)))'
for sig in 2 15; do # INT, TERM
	env --default-signal=INT "$build/ptrace-decode" -f csv "$tmp/replay.run" > "$tmp/cut" 2> "$tmp/err" &
	p=$!
	n=0
	while [ ! -s "$tmp/cut" ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n + 1)); done
	kill -$sig $p
	wait $p 2> /dev/null
	s=$?
	if [ $s = $((128 + sig)) ] && [ -z "$(ls -d "$tmp"/replay.run/replay-* 2> /dev/null)" ] &&
		[ -s "$tmp/cut" ] && [ -z "$(tail -c 1 "$tmp/cut" | tr -d '\n')" ]; then
		ok
	else
		bad "interrupted-$sig" "status $s: $(head -1 "$tmp/err") $(ls -d "$tmp"/replay.run/replay-* 2> /dev/null)"
	fi
done

if "$build/ptrace-record" -q --cf replay -o "$tmp/record.run" -- /bin/true &&
	grep -q '"cf": "replay"' "$tmp"/record.run/proc-*/proc.json; then
	ok
else
	bad ptrace-record '--cf replay does not record for a replay'
fi

echo "$pass passed, $fail failed"
[ $fail = 0 ]
