#!/bin/sh
# SPDX-License-Identifier: MIT
# badinput.sh - damaged, missing, foreign and stale input; no space, no permission; helpers that die; settings
# that are not there. Each gives one clear line and the documented exit status, what is intact is decoded,
# and a traced program always ends as it would untraced.
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
B=$(cd "${B:-$here/build}" && pwd)
dir=$(mktemp -d) || exit 1
chmod 755 "$dir"
trap 'umount "$dir/small" 2>/dev/null; rm -rf "$dir"' EXIT
cd "$dir" || exit 1
D=$B/ptrace-decode A=$B/ptrace-analyze R=$B/ptrace-record
pass=0 fail=0
check() { # check NAME COMMAND...: passes when the command does
	name=$1; shift
	if "$@"; then pass=$((pass + 1)); else fail=$((fail + 1)); echo "FAIL: $name ($*)"; sed 's/^/    /' err 2>/dev/null | head -5; fi
}
# The program alone is traced: its libraries would take seconds to analyse, and change nothing here.
cat >analyze <<EOF
#!/bin/sh
for f; do :; done
case \$f in */prog | */nobuildid | */copy) exec "$A" "\$@" ;; esac
exit 3
EOF
chmod 755 analyze
cat >p.c <<'EOF'
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *a[4096], **p;
/* in traced code: libc is not traced here, and an exit there is not seen */
static __attribute__((noinline)) void exit_here(long code)
{
	__asm__ volatile("syscall" : : "a"(231L), "D"(code) : "rcx", "r11", "memory");
}
int main(int argc, char **argv) /* COUNT: follows pointers, which fills the log; then as told */
{
	long n = argc > 1 ? atol(argv[1]) : 1000;

	for (int i = 0; i < 4096; i++)
		a[i] = &a[(i * 1229 + 7) & 4095];
	p = (void **)a;
	for (long i = 0; i < n; i++)
		p = *p;
	printf("%ld\n", (long)(p - (void **)a));
	fflush(stdout);
	if (argc > 2 && !strcmp(argv[2], "kill"))
		raise(SIGKILL);
	exit_here(42);
	return 1;
}
EOF
gcc -O1 -o prog p.c && gcc -O1 -Wl,--build-id=none -o nobuildid p.c || exit 1
mkdir cache
export XDG_CACHE_HOME="$dir/cache" PTRACE_ANALYZE="$dir/analyze"
unset PTRACE_DIR PTRACE_VERIFY PTRACE_MODE LD_PRELOAD
export PTRACE_CF=soft # damage to what is logged; to a recording for a replay: replay.sh
traced() { env LD_PRELOAD="$B/libptrace_rt.so" "$@"; }
json() { sed -n "s/.*\"$1\": \"*\([a-z0-9-]*\)\"*.*/\1/p" "$2"; }
wait_end() { i=0; while ! grep -q '"end"' run.dir/proc-*/proc.json 2>/dev/null && [ $i -lt 100 ]; do sleep 0.05; i=$((i + 1)); done; }

# dec STATUS PATTERN ARGS...: exit status; every line on stderr is ptrace-decode's and says what to do; one
# matches the pattern ("" = nothing is printed)
dec() {
	want=$1 pat=$2; shift 2
	"$D" "$@" >out 2>err; s=$?
	[ $s = "$want" ] || { echo "status $s"; return 1; }
	[ -n "$pat" ] || { [ ! -s err ]; return; }
	grep -q "$pat" err && ! grep -qv '^ptrace-decode: ' err
}
# a fresh copy of the run, to be damaged
fresh() { rm -rf bad; cp -r good bad; P=$(echo bad/proc-*); M=$(echo bad/maps/*.ptmap); L=$(echo bad/proc-*/thread-*.log); }
poke() { printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null; } # poke FILE OFFSET BYTES
cut() { truncate -s "$2" "$1"; }
records() { "$D" -f csv bad 2>/dev/null | wc -l; }

traced ./prog 500000 >want; check traced [ "$? $(cat want)" = "42 $(./prog 500000)" ]
wait_end
mv run.dir good
check good dec 0 '' -f csv good
fresh; all=$(records)
check several-chunks [ "$(grep -ao PTCK "$L" | wc -l)" -gt 2 ]

# --- the run directory ---
check no-such-run dec 3 'no-such-run: No such file' no-such-run
check not-a-run dec 3 'is it a run directory' cache
check file-for-run dec 3 'prog: Not a directory' prog
fresh; cut bad/run.json 10; check run.json-cut dec 0 '' -f null bad
fresh; rm bad/run.json; check run.json-missing dec 0 '' -f null bad
fresh; printf '{ "version": 999 }' >bad/run.json; check run-version dec 3 'run version 999' -f null bad
fresh; rm "$P/start.bin"; check start-missing dec 1 'start.bin' -f null bad
fresh; cut "$P/start.bin" 100; check start-cut dec 1 'start.bin is cut' -f null bad
fresh; cut "$P/start.bin" 8192; check start-cut-later dec 1 'start.bin is cut' -f null bad
fresh; cut "$P/start.bin" 0; check start-empty dec 1 'start.bin is cut' -f null bad
fresh; poke "$P/start.bin" 100 '\377\377\377'; check start-corrupt dec 1 'damaged' -f null bad
fresh; poke "$P/start.bin" 8 '\143'; check start-version dec 1 'version 99' -f null bad
fresh; poke "$P/start.bin" 0 'XXXX'; check start-magic dec 1 'not a start state' -f null bad
fresh; rm "$P/modules.bin"; check modules-missing dec 1 'modules.bin' -f null bad
fresh; cut "$P/modules.bin" 0; check modules-empty dec 1 'modules.bin' -f null bad
fresh; cut "$P/modules.bin" 200; check modules-cut dec 1 'modules.bin' -f null bad
fresh; poke "$P/modules.bin" 40 '\377'; check modules-corrupt dec 1 'modules.bin: record 0' -f null bad
fresh; rm "$P"/proc.json; check proc.json-missing dec 0 '' -f null bad

# --- the log: what is before the damage is decoded ---
fresh; rm "$L"; check log-missing dec 3 'no thread' -f null bad
fresh; cut "$L" 0; check log-empty dec 1 'the stream ends' -f null bad
fresh; cut "$L" 20; check log-cut-head dec 1 'the stream ends' -f null bad
fresh; cut "$L" $(($(stat -c %s "$L") - 10)); check log-cut dec 1 'the stream ends' -f null bad
n=$(records); check log-cut-intact [ "$n" -gt $((all / 2)) ]
fresh; poke "$L" $(($(stat -c %s "$L") - 10)) 'XXXX'; check log-corrupt dec 1 'damaged (checksum)' -f null bad
n=$(records); check log-corrupt-intact [ "$n" -gt $((all / 2)) ]
fresh; poke "$L" 70 'XXXX'; check log-corrupt-first dec 1 'chunk 0 at byte 0 is damaged' -f null bad
fresh; poke "$L" 4 '\143'; check log-version dec 1 'version 99' -f null bad
fresh; poke "$L" 0 'XXXX'; check log-magic dec 1 'no chunk head' -f null bad
fresh; poke "$L" 32 '\377\377\377\377'; check log-size dec 1 'impossible size' -f null bad
fresh; mkdir x; mv "$L" x; mkdir "$L"; check log-directory dec 1 'directory' -f null bad; rm -rf x
fresh; poke "$L" 8 '\001\001'; check log-other-thread dec 1 'another thread' -f null bad

# --- threads.log: one chunk for each thread ---
cat >t.c <<'EOT'
#include <pthread.h>
static void *fn(void *p) { return p; }
int main(void)
{
	for (int i = 0; i < 4; i++) {
		pthread_t t;
		if (pthread_create(&t, 0, fn, 0) || pthread_join(t, 0))
			return 1;
	}
	return 0;
}
EOT
gcc -O1 -o t t.c && PTRACE_ANALYZE=$A traced ./t || exit 1 # a thread that libc makes, untraced, is not seen
wait_end
mv good one; mv run.dir good
fresh; T=$P/threads.log; all=$(records)
threads() { "$D" --summary --json bad 2>/dev/null | sed -n 's/.*"threads": \([0-9]*\),/\1/p' | head -1; }
check threads dec 0 '' -f csv bad
check threads-five [ "$(threads)" = 5 ]
size=$(stat -c %s "$T")
cut "$T" $((size - 10)); check threads-cut dec 1 'threads.log: damaged at byte' -f null bad
check threads-cut-four [ "$(threads)" = 4 ]
cut "$T" 30; check threads-cut-head dec 1 'threads.log: damaged at byte 0' -f null bad
fresh; poke "$T" 0 'XXXX'; check threads-magic dec 1 'threads.log: damaged at byte 0' -f null bad
check threads-magic-one [ "$(threads)" = 1 ]
fresh; poke "$T" 80 'XXXX'; check threads-corrupt dec 1 'chunk 0 at byte 0 is damaged (checksum)' -f null bad
n=$(records); check threads-corrupt-others [ "$n" -lt "$all" ]; check threads-corrupt-five [ "$(threads)" = 5 ]
rm -r good; mv one good; all=$(fresh; records)

# --- maps in the run ---
fresh; rm "$M"; check map-missing dec 1 'no map' -f null bad
fresh; rm -r bad/maps; check maps-missing dec 1 'no map' -f null bad
fresh; cut "$M" 100; check map-cut-head dec 1 'no map' -f null bad
fresh; cut "$M" 5000; check map-cut dec 1 'does not fit\|cut' -f null bad
fresh; poke "$M" 300 '\377\377'; check map-head-corrupt dec 1 'checksum' -f null bad
sect() { od -An -tu8 -j$((88 + 24 * $1)) -N8 "$2" | tr -d ' '; } # where a section begins: struct map_head
ops=9 blocks=6 # enum map_section
fresh; poke "$M" $(($(sect $ops "$M") + 100)) 'XXXXXXXX'; check map-corrupt dec 1 'ops is damaged (checksum)' -f null bad
fresh; poke "$M" 8 '\143'; check map-version dec 1 'map version 99' -f null bad
fresh; poke "$M" 16 'XXXXXXXXXXXX'; check map-key dec 1 'no map with its key' -f null bad
fresh; printf x >bad/maps/other.ptmap; check map-foreign-file dec 0 '' -f null bad

# --- reading, writing ---
if [ "$(id -u)" = 0 ]; then as() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }; else as() { "$@"; }; fi
chmod 755 cache good
unreadable() { as "$D" -f null bad >out 2>err; [ $? = "$1" ] && grep -q "$2" err; }
fresh; chmod 000 "$L"; check log-unreadable unreadable 1 'Permission denied'
fresh; chmod 000 "$M"; check map-unreadable unreadable 1 'map'
fresh; chmod 000 bad; check run-unreadable unreadable 3 'Permission denied'; chmod 755 bad
check out-unwritable dec 5 'cannot write /proc/x' -o /proc/x -f text good
check out-full dec 5 'cannot write .*No space left' -o /dev/full -f text good
"$D" -f text good 2>err >/dev/full; check stdout-full [ "$? $(grep -c 'No space left' err)" = '5 1' ]
"$D" --json good 2>err >/dev/full; check json-full [ "$? $(grep -c 'No space left' err)" = '5 1' ]
("$D" -f text good 2>err; echo $? >st) | head -1 >out; check pipe-closed [ "$(cat st) $(wc -c <err) $(wc -l <out)" = '141 0 1' ]
"$D" -f text good >&- 2>err; check stdout-closed [ "$? $(grep -c 'cannot write' err)" = '5 1' ]
check bad-format dec 2 'no format' -f nonsense good
check bad-option dec 2 'not a value' --list --from=x good
"$D" -f bin -o t.bin good
check to-terminal dec 0 '' -o - -f null good

# --- the program on disk is replaced between run and decode: names come from the map, or are not there ---
cp prog copy; rm -rf run.dir; traced ./copy 1000 >/dev/null; printf 'int main(void){return 1;}' >m.c; gcc -o copy m.c
check replaced dec 0 '' -s -f text run.dir
check replaced-names grep -q 'copy+0x.* main+' out
rm copy; check removed dec 0 '' -s -f text run.dir

# --- the cache ---
map=$(ls cache/ptrace/*.ptmap | head -1)
again() { # a bad map in the cache is made anew
	rm -rf run.dir; traced ./prog >out 2>err
	[ $? = 42 ] && [ ! -s err ] && "$D" -f null run.dir 2>err && cmp -s "$map" "$dir/map.good"
}
rm -f cache/ptrace/*.ptmap; rm -rf run.dir; traced ./prog >/dev/null; map=$(ls cache/ptrace/*.ptmap); cp "$map" map.good
for at in 100 2000; do # what the runtime uses: head, copy
	cp map.good x; poke x $at '\314\314\314\314\314\314\314\314'; cp x "$map"
	check "cache-corrupt-$at" again
	cp map.good "$map"
done
for at in $ops $blocks; do # what only the decoder reads
	cp map.good x; poke x $(($(sect "$at" x) + 100)) '\314\314\314\314\314\314\314\314'; cp x "$map"
	rm -rf run.dir; traced ./prog >out 2>err; check "cache-corrupt-$at" [ $? = 42 ]
	check "cache-corrupt-$at-decode" dec 1 'is damaged (checksum)' -f null run.dir
	cp map.good "$map"
done
cp map.good "$map"; cut "$map" 3000; check cache-cut again
cut "$map" 0; check cache-empty again
cp map.good "$map"; poke "$map" 8 '\143'; check cache-version again
cp map.good "$map"; poke "$map" 16 'XXXX'; check cache-other-key again
rm "$map"; mkdir "$map"; rm -rf run.dir; traced ./prog >out 2>err; check cache-directory [ $? = 42 ]; rmdir "$map"
if [ "$(id -u)" != 0 ] || as true 2>/dev/null; then
	mkdir ro open; chmod 555 ro; chmod 777 open
	as env XDG_CACHE_HOME="$dir/ro" PTRACE_DIR="$dir/open/run" LD_PRELOAD="$B/libptrace_rt.so" ./prog >out 2>err
	check cache-unwritable [ "$? $(wc -c <err)" = '42 0' ]
	check cache-unwritable-decodes dec 0 '' -f null open/run
	as env PTRACE_DIR="$dir/ro/run" LD_PRELOAD="$B/libptrace_rt.so" ./prog >out 2>err
	check dir-unwritable [ "$? $(grep -c 'ro/run: permission denied; running untraced' err) $(wc -l <err)" = '42 1 1' ]
fi

# --- no build-id: the file's hash is the key ---
rm -rf run.dir; traced ./nobuildid >/dev/null; check no-build-id [ $? = 42 ]
check no-build-id-traced grep -q 'nobuildid$' <<EOF
$("$D" --list run.dir)
EOF

# --- settings ---
refused() { want=$1; shift; rm -rf run.dir; traced "$@" ./prog >out 2>err; [ $? = 42 ] && [ "$(wc -l <err)" = 1 ] && grep -q "^ptrace: .*$want.*running untraced" err; }
for v in PTRACE_MODE=fast PTRACE_MODE=x PTRACE_CF=x PTRACE_PTWRITE=1 PTRACE_VERIFY=yes PTRACE_RING=x \
	PTRACE_COMPRESS=rar; do
	check "$v" refused "$v" $v
done
not_started() { rm -rf run.dir; traced PTRACE_CF=pt ./prog >out 2>err; [ "$? $(wc -l <err)" = '126 1' ] && grep -q '^ptrace: PTRACE_CF=pt: .*not started' err; }
[ -e /sys/bus/event_source/devices/intel_pt ] || check PTRACE_CF=pt not_started
check no-collector refused 'cannot start /nonexistent' PTRACE_COLLECT=/nonexistent
check collector-broken refused 'it ended at once' PTRACE_COLLECT=/bin/false
check dir-is-file refused 'not a directory\|not a run directory' PTRACE_DIR=prog/x
check dir-is-other refused 'is not a run directory' PTRACE_DIR=cache
check dir-too-long refused 'name too long' PTRACE_DIR="$(printf '%01500d' 0)"

# --- processes that die ---
rm -rf run.dir; traced ./prog 500000 kill >out 2>&1; check killed [ $? = 137 ]
wait_end; check killed-decodes dec 1 'the process: killed' -f csv run.dir
check killed-intact [ "$(wc -l <out)" -gt $((all / 2)) ]
rm -rf run.dir; traced ./prog 20000000 >out 2>err & p=$!
i=0; while [ ! -s run.dir/run.json ] && [ $i -lt 100 ]; do sleep 0.02; i=$((i + 1)); done
for c in $(pgrep -f "ptrace-collect --run $dir/run.dir"); do kill -9 "$c"; done
wait $p; check collector-killed [ "$? $(cat out)" = "42 $(./prog 20000000)" ]
check collector-killed-decodes dec 1 'the stream ends' -f null run.dir

# --- no space ---
rm -rf run.dir; (ulimit -f 20; traced ./prog 500000 >out 2>err); check fsize-small [ "$? $(cat out)" = "42 $(cat want)" ]
rm -rf run.dir; (ulimit -f 30000; PTRACE_COMPRESS=none traced ./prog 4000000 >out 2>err); check fsize [ "$? $(cat out)" = "42 $(./prog 4000000)" ]
wait_end; check fsize-decodes dec 1 'no space' -f null run.dir
mkdir small
if mount -t tmpfs -o size=2m none small 2>/dev/null; then
	PTRACE_COMPRESS=none PTRACE_DIR=$dir/small/run traced ./prog 2000000 >out 2>err
	check full-disk [ "$? $(cat out)" = "42 $(./prog 2000000)" ]
	i=0; while ! grep -q '"end"' small/run/proc-*/proc.json 2>/dev/null && [ $i -lt 60 ]; do sleep 0.05; i=$((i + 1)); done
	check full-disk-decodes dec 1 'no space' -f null small/run
fi

# --- the command line tools ---
says() { want=$1 status=$2; shift 2; "$@" >out 2>err; [ $? = "$status" ] && [ "$(wc -l <err)" = 1 ] && grep -q "$want" err; }
check analyze-missing says "ptrace-analyze: cannot analyze 'none': No such file" 2 "$A" -o m none
check analyze-text says 'not an ELF file' 2 "$A" -o m p.c
check analyze-dir says 'not an ELF file\|a directory' 2 "$A" -o m cache
head -c 2000 prog >cutelf; check analyze-cut says 'truncated' 2 "$A" -o m cutelf
: >empty; check analyze-empty says 'not an ELF file' 2 "$A" -o m empty
gcc -c -o obj.o m.c; check analyze-object says 'neither an executable' 2 "$A" -o m obj.o
check analyze-unwritable says 'cannot write' 4 "$A" -o /proc/x/m prog
check analyze-full says 'cannot write' 4 sh -c "trap '' XFSZ; ulimit -f 1; '$A' -o m prog"
check analyze-full-rest [ -z "$(ls m m.*.tmp 2>/dev/null)" ]
(ulimit -f 1; "$A" -o m prog) 2>/dev/null; check analyze-killed [ $? -gt 128 ]
check analyze-killed-rest [ -z "$(ls m m.[0-9]* 2>/dev/null)" ]
# nor does one whose program is killed meanwhile: the map it makes is the next one's
printf '#!/bin/sh\nsleep 0.5\nexec "%s" "$@"\n' "$A" >slow; chmod 755 slow
env PTRACE_ANALYZE="$dir/slow" XDG_CACHE_HOME="$dir/slowly" LD_PRELOAD="$B/libptrace_rt.so" ./prog 1 2>/dev/null & p=$!
i=0; until pgrep -f "$dir/slow" >/dev/null || [ $i -gt 100 ]; do sleep 0.05; i=$((i + 1)); done
kill -9 $p; wait $p 2>/dev/null
i=0; while [ -z "$(ls slowly/ptrace/*.ptmap* 2>/dev/null)" ] && [ $i -lt 200 ]; do sleep 0.05; i=$((i + 1)); done
check killed-while-analysed [ "$(find slowly/ptrace -name '*.ptmap*' | sed 's/.*ptmap//' | sort -u | wc -c)" = 1 ]
mkfifo pipe; cat pipe >/dev/null & check analyze-pipe says 'cannot write .*pipe' 4 "$A" -o pipe prog; wait $!
check analyze-pipe-kept [ -p pipe ]
gcc -static -o static m.c && check record-static says 'statically linked' 126 "$R" ./static
check record-missing says 'No such file' 127 "$R" ./missing
check record-no-perm says 'ermission denied' 126 "$R" ./p.c
check record-fast says 'not available' 2 "$R" -m fast true
printf 'x\n' >text; chmod +x text; check record-text says 'neither an ELF' 126 "$R" ./text
printf '\177ELF\001\001\001%057d' 0 >elf32; chmod +x elf32; check record-32 says '32-bit' 126 "$R" ./elf32
[ "$(id -u)" != 0 ] || { cp prog suid; chown 1 suid; chmod 4755 suid; check record-suid says 'set-user-id' 126 "$R" ./suid; }

echo "$pass passed, $fail failed"
[ $fail = 0 ]
