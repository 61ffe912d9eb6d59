#!/bin/bash
# SPDX-License-Identifier: MIT
# trees.sh - real programs with threads, processes and signals: each is run natively and traced with
# every address logged (PTRACE_VERIFY=1); what it says must be the same, and the decoder must
# reconstruct every address of every thread of every process.
#
#	trees.sh [--build DIR] [--timeout SECONDS] [--plain] [--keep] [CASE|quick|all]...
#	trees.sh --list
#
# --plain: as users run it, without the logged addresses. A line a case, then "N passed, N failed" (and
# ", N skipped": not installed). Exit status: 0; 1 a case failed; 2 wrong use or something is missing.
# Files: DIR/trees/CASE/; --keep leaves the run directories of failed cases there.
#
# A case is a function c_NAME: it runs its program through "$@" (timeout, and, the second time, what has it traced), in a
# directory of its own, and prints what must not differ. Servers run traced, their clients
# natively. ports=: the first of the TCP ports it may use on the loopback.
set -u
export PTRACE_CF="${PTRACE_CF:-soft}"

quick=(xz zstd sort gcc make pipeline gitclone python-threads python-processes python-signals python-asyncio perl)
slow=(memcached redis nginx postgres node java stress)
build=build timeout=300 keep=0 verify=1 names=()

usage() {
	echo "usage: trees.sh [--build DIR] [--timeout SECONDS] [--plain] [--keep] [--list] [CASE|quick|all]..." >&2
	exit 2
}

while (($#)); do
	case $1 in
	--build|--timeout) (($# > 1)) || usage; printf -v "${1#--}" %s "$2"; shift ;;
	--keep) keep=1 ;;
	--plain) verify=0 ;;
	--list) printf '%s\n' "${quick[@]}" "${slow[@]}"; exit 0 ;;
	quick) names+=("${quick[@]}") ;;
	all) names+=("${quick[@]}" "${slow[@]}") ;;
	-*) usage ;;
	*) [[ " ${quick[*]} ${slow[*]} " == *" $1 "* ]] || usage; names+=("$1") ;;
	esac
	shift
done
((${#names[@]})) || names=("${quick[@]}" "${slow[@]}")
build=$(realpath -m "$build")
for tool in libptrace_rt.so ptrace-analyze ptrace-decode; do
	[[ -e $build/$tool ]] || { echo "trees.sh: $build/$tool is missing: run make first" >&2; exit 2; }
done
# cached maps know the format's version, not that the analyzer changed
XDG_CACHE_HOME=$build/cache/$(cksum < "$build/ptrace-analyze" | tr ' ' '-')
export XDG_CACHE_HOME LC_ALL=C TZ=UTC PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1

have() { command -v "$1" > /dev/null; }
need() { for p; do have "$p" || { echo "SKIPPED: $p is not installed"; exit 77; }; done; }

# wait_for COMMAND... - until it succeeds, 20 s at most
wait_for() {
	for _ in $(seq 200); do "$@" > /dev/null 2>&1 && return; sleep 0.1; done
	echo "nothing answers: $*"; return 1
}
# ends PID - it was told to end: its exit status
ends() { wait "$1"; echo "server: $?"; }

c_xz() { need xz; "$@" xz -T2 --block-size=300KiB -k -c text | md5sum; }
c_zstd() { need zstd; "$@" zstd -T2 -q -c text | md5sum; }
c_sort() { "$@" sort --parallel=2 -S 2M -T . text | md5sum; }
c_gcc() {
	need gcc
	printf '#include <stdio.h>\nint main(void) { puts("hello"); return 3; }\n' > hello.c
	"$@" gcc -O1 hello.c -o hello && "$@" ./hello; echo $?
}
c_make() {
	need make gcc
	printf 'a: b.o c.o\n\tcc -o a b.o c.o\n%%.o: %%.c\n\tcc -c $<\n' > Makefile
	echo 'int f(void); int main(void) { return f(); }' > b.c
	echo 'int f(void) { return 4; }' > c.c
	"$@" make -j2 -s; ./a; echo $?
}
c_pipeline() {
	cat > s.sh <<'S'
for i in 1 2 3; do echo "line $i" | sed s/line/row/ | tr a-z A-Z; done
x=$(grep -c a text | cat); echo "$x lines"
(trap 'echo bye' EXIT; exit 3); echo $?
sort text | uniq -c | sort -rn | head -3
trap 'echo usr1' USR1; kill -USR1 $$; sleep 0.1 & wait; echo done
S
	"$@" bash s.sh
}
c_gitclone() {
	need git
	export HOME=$PWD GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='@1 +0000' GIT_COMMITTER_DATE='@1 +0000'
	git -c init.defaultBranch=m init -q r
	for i in 1 2 3 4; do
		cp text "r/f$i"; echo "$i" >> "r/f$i"
		git -C r add . && git -C r -c user.name=a -c user.email=a@b commit -q -m "$i"
	done
	"$@" git clone -q "file://$PWD/r" s; git -C s log --format=%H; "$@" git -C s fsck 2>&1 | sort
}
c_python-threads() {
	need python3
	"$@" python3 -c '
import threading, queue
q, out, lock = queue.Queue(), [], threading.Lock()
def work():
    while (i := q.get()) is not None:
        s = sum(k * k for k in range(i * 50))
        with lock: out.append((i, s))
ts = [threading.Thread(target=work) for _ in range(3)]
for t in ts: t.start()
for i in range(60): q.put(i)
for t in ts: q.put(None)
for t in ts: t.join()
print(sum(s for _, s in out), len(out))'
}
c_python-processes() {
	need python3
	"$@" python3 -c '
import multiprocessing as m, subprocess, os
def f(x): return sum(range(x))
if __name__ == "__main__":
    with m.Pool(2) as p: print(sum(p.map(f, range(100))))
    print(subprocess.run(["echo", "hi"], capture_output=True).stdout)
    print(subprocess.check_output("ls text | wc -l", shell=True))
    r, w = os.pipe()
    if os.fork() == 0:
        os.write(w, b"child"); os._exit(0)
    print(os.read(r, 9), os.wait()[1])'
}
c_python-signals() {
	need python3
	"$@" python3 -c '
import signal, os, time
n = 0
def h(s, f):
    global n
    n += 1
signal.signal(signal.SIGUSR1, h); signal.signal(signal.SIGALRM, h)
for _ in range(200): os.kill(os.getpid(), signal.SIGUSR1)
a = n
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
while n < a + 30: sum(range(100))
signal.setitimer(signal.ITIMER_REAL, 0)
print(a, n >= a + 30)
signal.signal(signal.SIGTERM, lambda *x: exit(5)); os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)'
	echo $?
}
c_python-asyncio() {
	need python3
	"$@" python3 -c '
import asyncio
async def srv(r, w):
    w.write((await r.readline()).upper()); await w.drain(); w.close()
async def one(i):
    r, w = await asyncio.open_unix_connection("sock")
    w.write(b"hello %d\n" % i); d = await r.readline(); w.close(); return d
async def main():
    s = await asyncio.start_unix_server(srv, "sock")
    print(sorted(await asyncio.gather(*[one(i) for i in range(40)]))[-1])
    p = await asyncio.create_subprocess_exec("echo", "sub", stdout=-1); print(await p.communicate())
    print(await asyncio.get_running_loop().run_in_executor(None, sum, range(10)))
asyncio.run(main())'
}
c_perl() {
	need perl
	"$@" perl -e '
$SIG{ALRM} = sub { $a++ }; $SIG{CHLD} = sub { };
for $i (1 .. 5) { my $p = fork; if (!$p) { exit $i } waitpid $p, 0; print $? >> 8, "\n" }
alarm 1; select undef, undef, undef, 5 until $a; print "alarm\n";
eval { local $SIG{ALRM} = sub { die "timeout\n" }; alarm 1; 1 while 1 }; print $@;
print `echo backquotes`; kill TERM => $$; sleep 9'
	echo $?
}
c_memcached() {
	need memcached python3
	for t in 2 4; do
		"$@" memcached -u nobody -t "$t" -p $((ports + t)) -l 127.0.0.1 -U 0 & p=$!
		wait_for python3 -c "import socket; socket.create_connection(('127.0.0.1', $((ports + t))))"
		python3 - $((ports + t)) <<'P'
import socket, sys, threading
def client(k):
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1]))); f = s.makefile("rb")
    for i in range(300):
        v = b"v%d" % i * (i % 50)
        s.sendall(b"set k%d.%d 0 0 %d\r\n%s\r\nget k%d.%d\r\n" % (k, i % 37, len(v), v, k, i % 37))
        assert f.readline() == b"STORED\r\n"
        assert f.readline().startswith(b"VALUE") and f.readline() == v + b"\r\n" and f.readline() == b"END\r\n"
ts = [threading.Thread(target=client, args=(k,)) for k in range(8)]
[t.start() for t in ts]; [t.join() for t in ts]; print("2400 sets and gets")
P
		kill -TERM $p; ends $p
	done
}
c_redis() {
	need redis-server redis-benchmark redis-cli
	"$@" redis-server --port "$ports" --save '' --appendonly no --daemonize no --dir . > log & p=$!
	wait_for redis-cli -p "$ports" ping
	redis-benchmark -p "$ports" -q -n 2000 -c 8 -t set,get,lpush,zadd > bench.out && echo benchmark ran
	redis-cli -p "$ports" dbsize; redis-cli -p "$ports" bgsave > saved; sleep 0.5
	redis-cli -p "$ports" shutdown nosave; ends $p
}
c_nginx() {
	need nginx wrk
	mkdir -p logs; chmod 777 . logs; cp text index.html
	cat > nginx.conf <<C
worker_processes 2; daemon off; pid $PWD/pid; error_log $PWD/logs/error.log; events { }
http { access_log off; client_body_temp_path $PWD/b; proxy_temp_path $PWD/p; fastcgi_temp_path $PWD/f;
       uwsgi_temp_path $PWD/u; scgi_temp_path $PWD/s;
       server { listen 127.0.0.1:$ports; root $PWD; } }
C
	"$@" nginx -p . -c "$PWD/nginx.conf" & p=$!
	wait_for python3 -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$ports/')"
	wrk -t1 -c4 -d2 "http://127.0.0.1:$ports/" | grep -c 'Requests/sec'
	kill -QUIT $p; ends $p
}
c_postgres() {
	PATH=$PATH:$(echo /usr/lib/postgresql/*/bin)
	need initdb postgres psql pgbench
	local as=()
	if [[ $(id -u) = 0 ]]; then
		as=(setpriv --reuid=postgres --regid=postgres --clear-groups)
		chown postgres .; chmod 777 . "$work"; chmod -R a+rwX "$XDG_CACHE_HOME"
	fi
	"${as[@]}" "$@" initdb -D "$PWD/d" -A trust --no-sync > log 2>&1; echo $?
	"${as[@]}" "$@" postgres -D "$PWD/d" -k "$PWD" -h '' > log2 2>&1 & p=$!
	wait_for psql -h "$PWD" -U postgres -c 'select 1' postgres
	pgbench -h "$PWD" -U postgres -i -q postgres > log3 2>&1; echo $?
	pgbench -h "$PWD" -U postgres -c 2 -t 20 postgres 2>&1 | grep 'actually processed'
	kill -INT $p; ends $p
}
c_node() {
	need node
	"$@" node -e '
const { Worker } = require("worker_threads"), { execSync } = require("child_process");
console.log(execSync("echo sub").toString().trim());
let s = 0; for (let i = 0; i < 3e5; i++) s += i % 7; console.log(s);
new Worker("require(\"worker_threads\").parentPort.postMessage(6 * 7)", { eval: true }).on("message", console.log);'
	"$@" node -p 'process.version'
}
c_java() {
	need java
	"$@" java -version 2>&1 | grep version
	cat > H.java <<'J'
public class H { public static void main(String[] a) throws Exception { int[] s = {0};
 Thread t = new Thread(() -> { for (int i = 0; i < 100000; i++) s[0] += i % 3; }); t.start(); t.join();
 Object o = null; try { o.hashCode(); } catch (NullPointerException e) { System.out.println("npe"); }
 System.out.println(s[0]); System.exit(3); } }
J
	if have javac; then javac H.java && "$@" java -Xint H; echo $?; fi
}
c_stress() {
	need stress-ng
	for s in cpu pthread signal fork vm; do
		"$@" stress-ng --$s 2 --$s-ops 200 -t 60 --vm-bytes 8M -q; echo "$s $?"
	done
}

# one KIND CASE PREFIX... - in a fresh directory; output in ../KIND.out
one() {
	local kind=$1 name=$2
	shift 2
	rm -rf "$work/dir"; mkdir -p "$work/dir"; cp "$work/text" "$work/dir/text"
	(cd "$work/dir" && ports=$((20000 + RANDOM % 20000)) && export ports && "c_$name" "$@") \
		> "$work/$kind.out" 2> "$work/$kind.err" < /dev/null
}

judge() { # the verdict on the runs in why and detail
	local line run k n=0 sum=0
	for run in "$work"/run.*; do
		[[ -d $run ]] || continue
		n=$((n + 1))
		if ((verify)); then
			line=$(timeout $((timeout * 4)) "$build/ptrace-decode" --verify "$run" 2> "$work/decode.err" | tail -1)
			# a process that a signal kills while it computes has not said all
			[[ $line == *" wrong=0 unknown=0 missing=$(grep -c 'the process: killed' "$work/decode.err") "* ]] ||
				why="addresses are not exact: $line; $(tail -1 "$work/decode.err")"
			line=${line#*accesses=}
			sum=$((sum + ${line%% *}))
		else
			timeout $((timeout * 4)) "$build/ptrace-decode" -f null "$run" 2> "$work/decode.err"
			k=$?
			((k < 2)) || why="ptrace-decode: status $k: $(tail -1 "$work/decode.err")"
		fi
		grep -q 'stopped before\|is missing\|lost' "$work/decode.err" &&
			why=$(grep -m1 'stopped before\|is missing\|lost' "$work/decode.err")
	done
	((n)) || why="no run directory"
	detail="runs=$n accesses=$sum"
}

passed=0 failed=0 skipped=0 limit=(timeout -k 5 "$timeout")
for name in "${names[@]}"; do
	work=$build/trees/$name
	rm -rf "$work"; mkdir -p "$work"; chmod 755 "$work"
	seq 1 60000 | awk '{ print ($1 * 7919) % 60013, "some words to compress", $1 % 17 }' > "$work/text"
	why='' detail='' k=0
	one native "$name" "${limit[@]}" || k=$?
	if ((k == 77)); then
		printf 'skip    %-18s %s\n' "$name" "$(tail -1 "$work/native.out")"
		skipped=$((skipped + 1)); continue
	fi
	one traced "$name" "${limit[@]}" env LD_PRELOAD="$build/libptrace_rt.so" PTRACE_DIR="$work/run.%p" \
		PTRACE_ANALYZE="$build/ptrace-analyze" PTRACE_VERIFY=$verify
	for _ in $(seq 100); do pgrep -f "ptrace-collect --run $work/run" > /dev/null || break; sleep 0.1; done
	if cmp -s "$work/native.out" "$work/traced.out"; then
		judge
	else
		why="output differs: $(diff "$work/native.out" "$work/traced.out" | sed -n 2p) $(tail -1 "$work/traced.err")"
	fi
	if [[ -z $why ]]; then
		printf 'ok      %-18s %s\n' "$name" "$detail"
		passed=$((passed + 1)); rm -rf "$work"
	else
		printf 'FAILED  %-18s %s\n' "$name" "$why"
		failed=$((failed + 1)); ((keep)) || rm -rf "$work"
	fi
done
echo "$passed passed, $failed failed$( ((skipped)) && echo ", $skipped skipped")"
((failed == 0))
