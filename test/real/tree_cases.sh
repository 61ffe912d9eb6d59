# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154,SC2034 # work, ports are trees.sh's; it uses the lists
# tree_cases.sh - the programs that trees.sh runs: with threads, processes, signals, servers and their clients
#
# A case is a function c_NAME: it runs its program through "$@" (timeout, and, the second time, what has it traced), in a
# directory of its own, and prints what must not differ. Servers run traced, their clients natively. ports: the first
# of the TCP ports it may use on the loopback. Nothing it starts may be left when it returns.

# in make check / servers, run-time compilers and stressors / programs that nobody named
quick=(xz zstd sort gcc make pipeline gitclone python-threads python-processes python-ctypes python-signals python-asyncio perl
	valgrind)
slow=(memcached redis nginx postgres node java stress-cpu stress-pthread stress-sigq
	stress-signal stress-sigsegv stress-sigfpe stress-fork stress-vm)
more=(vim tmux curl ssh-keygen tclsh gdb strace strace-outside perl-threads daemon wget openssl sqlite3 tar bc
	ninja rustc groff convert dbus xargs jq ctags clang ld gpg zip lua psql top sbcl php ruby)

# those that run code which cannot be moved: JIT compilers', instructions that fault by design in functions of one byte;
# or seem to: where gcc's __builtin_longjmp leads (ruby) counts as come from such code; libffi
opaque_cases=(node java stress-sigsegv sbcl ruby python-ctypes)

have() { command -v "$1" > /dev/null; }
need() { for p; do have "$p" || { echo "SKIPPED: $p is not installed"; exit 77; }; done; }

# the interpreter itself, not what chooses a version
python=$(python3 -c 'import sys; print(sys.executable)' 2> /dev/null) || python=python3

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
	export GIT_AUTHOR_DATE='@1 +0000' GIT_COMMITTER_DATE='@1 +0000'
	git -c init.defaultBranch=m init -q r
	for i in 1 2 3 4; do
		cp text "r/f$i"; echo "$i" >> "r/f$i"
		git -C r add . && git -C r -c user.name=a -c user.email=a@b commit -q -m "$i"
	done
	"$@" git clone -q "file://$PWD/r" s; git -C s log --format=%H; "$@" git -C s fsck 2>&1 | sort
}
c_python-threads() {
	need python3
	"$@" "$python" -c '
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
	"$@" "$python" -c '
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
c_python-ctypes() { # functions called through libffi, and called back, from code that is traced
	"$@" "$python" -c '
import ctypes as c, threading
l = c.CDLL(None)
l.labs.restype = c.c_long; l.atof.restype = c.c_double
print(l.abs(-3), l.labs(c.c_long(-5)), l.atof(b"2.5"))
a = (c.c_int * 5)(3, 1, 2, 5, 4)
f = c.CFUNCTYPE(c.c_int, c.POINTER(c.c_int), c.POINTER(c.c_int))
def cmp(x, y):
    t = threading.Thread(target=lambda: l.abs(4)); t.start(); t.join()
    return x[0] - y[0]
l.qsort(a, 5, 4, f(lambda x, y: x[0] - y[0])); print(list(a))
l.qsort(a, 5, 4, f(cmp)); print(list(a))'
}
c_python-signals() {
	need python3
	"$@" "$python" -c '
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
	"$@" "$python" -c '
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
		wait_for "$python" -c "import socket; socket.create_connection(('127.0.0.1', $((ports + t))))"
		"$python" - $((ports + t)) <<'P'
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
nginx_start() { # PREFIX...: serves ., its process in p
	mkdir -p logs; chmod 777 . logs; cp text index.html
	cat > nginx.conf <<C
worker_processes 2; daemon off; pid $PWD/pid; error_log $PWD/logs/error.log; events { }
http { access_log off; client_body_temp_path $PWD/b; proxy_temp_path $PWD/p; fastcgi_temp_path $PWD/f;
       uwsgi_temp_path $PWD/u; scgi_temp_path $PWD/s;
       server { listen 127.0.0.1:$ports; root $PWD; } }
C
	"$@" nginx -p . -c "$PWD/nginx.conf" & p=$!
	wait_for "$python" -c "import urllib.request as u; u.urlopen('http://127.0.0.1:$ports/')"
}
c_nginx() {
	need nginx wrk
	nginx_start "$@"
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
# stress STRESSOR WORKERS PREFIX... - its status
stress() {
	local s=$1 n=$2
	shift 2
	need stress-ng
	"$@" stress-ng "--$s" "$n" -t "${STRESS_SECONDS:-30}" --vm-bytes 64M -q
	echo "$s $?"
}
c_stress-cpu() { stress cpu 2 "$@"; }
c_stress-pthread() { stress pthread 2 "$@"; }
c_stress-sigq() { stress sigq 1 "$@"; }
c_stress-signal() { stress signal 1 "$@"; }
c_stress-sigsegv() { stress sigsegv 1 "$@"; }
c_stress-sigfpe() { stress sigfpe 1 "$@"; }
c_stress-fork() { stress fork 1 "$@"; }
c_stress-vm() { stress vm 1 "$@"; }

# ---- programs that nobody named ----

c_vim() {
	need vim
	cp text t
	"$@" vim -N -u NONE -i NONE -es -c '%s/words/lines/g' -c 'g/ 3$/d' -c 'sort n' -c 'r !echo shell' -c 'wq' t
	echo $?; md5sum < t
}
c_tmux() {
	need tmux
	"$@" tmux -V
	TMUX_TMPDIR=$PWD "$@" tmux -f /dev/null new-session -d -s a "echo in a pane > out; cat"
	wait_for test -s out; cat out
	TMUX_TMPDIR=$PWD "$@" tmux list-sessions | cut -d: -f1
	TMUX_TMPDIR=$PWD "$@" tmux kill-server; echo $?
}
c_curl() {
	need nginx curl
	nginx_start
	for i in 1 2 3; do "$@" curl -s "http://127.0.0.1:$ports/index.html" | md5sum; done
	"$@" curl -s -Z "http://127.0.0.1:$ports/text" "http://127.0.0.1:$ports/index.html" -o a -o b; echo $?; cmp a text
	"$@" curl -sS "http://127.0.0.1:$((ports + 1))/" 2>&1 | sed 's/[0-9]* ms/N ms/; s/port [0-9]*/port N/'
	"$@" curl -s -o c "ftp://127.0.0.1:$((ports + 1))/"; echo $?
	kill -QUIT $p; wait $p
}
c_wget() {
	need nginx wget
	nginx_start
	"$@" wget -q -O got "http://127.0.0.1:$ports/index.html"; echo $?; cmp got text
	kill -QUIT $p; wait $p
}
c_ssh-keygen() {
	need ssh-keygen
	"$@" ssh-keygen -q -t ed25519 -N '' -f k; echo $?
	"$@" ssh-keygen -q -t rsa -b 1024 -N pass -f r; echo $?
	"$@" ssh-keygen -y -P pass -f r > r2; cut -d' ' -f1,2 r.pub | cmp - <(cut -d' ' -f1,2 r2)
	"$@" ssh-keygen -l -f k.pub | cut -d' ' -f1
}
c_tclsh() {
	need tclsh
	cat > s.tcl <<'T'
set l {}; for {set i 0} {$i < 5000} {incr i} { lappend l [expr {($i * 7919) % 5003}] }
puts [lindex [lsort -integer $l] 4000]; puts [exec echo hi | tr a-z A-Z]
after 20 {set done 1}; vwait done; puts [catch {exec false} m]; set f [open "|cat text" r]; gets $f x; puts $x; close $f
T
	"$@" tclsh s.tcl
}
c_prog() { # makes ./prog: a thread, a child, a handled signal
	need gcc
	cat > prog.c <<'C'
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int got;
static void on(int s) { got += s; }
static void *thread(void *a) { return (char *)a + 1; }
int main(void)
{
	pthread_t t;
	void *r;
	int st;

	signal(SIGUSR1, on);
	raise(SIGUSR1);
	pthread_create(&t, 0, thread, 0);
	pthread_join(t, &r);
	if (!fork())
		_exit(3);
	wait(&st);
	printf("%d %d %d\n", got, (int)(long)r, WEXITSTATUS(st));
	return 4;
}
C
	gcc -g -O1 -pthread prog.c -o prog
}
c_gdb() {
	need gdb
	c_prog
	# the debugger and what it debugs
	"$@" gdb -nx -batch -ex 'handle SIGUSR1 nostop noprint pass' -ex 'catch syscall exit_group' -ex run \
		-ex 'print got' -ex continue ./prog 2>&1 | grep '^10 1 3\|^\$1\|exited with' | sed 's/(process .*)//'
	# a debugger that is not traced, of a program that is
	gdb -nx -batch -ex 'handle SIGUSR1 nostop noprint pass' -ex run --args "$@" ./prog 2>&1 | grep '^10 1 3\|exited with' |
		sed 's/(process .*)//'
}
c_strace() {
	need strace
	c_prog
	"$@" strace -f -o log -e trace=exit_group ./prog; echo $?; grep -o 'exit_group([34]' log | sort
	"$@" strace -c -f -o log bash -c 'echo $((1 + 2)); (exit 5)'; echo $?
}
c_strace-outside() { # a program that is traced, its collector and all
	need strace
	c_prog
	strace -f -o log "$@" ./prog; echo $?; grep -o 'exit_group([34]' log | sort
	grep -c 'execve.*"[^"]*/ptrace-' log # they are nobody's business
}
c_valgrind() { # runs untraced what it runs, and says so
	need valgrind
	"$@" valgrind -q --tool=none --log-file=log cat text 2> err | md5sum
	grep -v '^ptrace: .* emulator' err; rm err
}
c_perl-threads() {
	need perl
	"$@" perl -e '
use threads; use threads::shared; my $n : shared = 0;
my @t = map { my $k = $_; threads->create(sub { for (1 .. 200) { lock $n; $n += $k } return $k * 2 }) } 1 .. 3;
print join(" ", map { $_->join } @t), " $n\n"; open F, "-|", "echo", "piped"; print <F>; close F'
}
c_daemon() { # one that closes all it has and outlives who started it
	"$@" "$python" -c '
import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.closerange(0, 1024); os.umask(0)
for i in range(5): time.sleep(.05)
open("done", "w").write("daemon %d\n" % (os.getppid() != 0)); os.rename("done", "done2")'
	echo $?; wait_for test -e done2; cat done2
}
c_openssl() {
	need openssl
	"$@" openssl genrsa 1024 2> /dev/null > k; "$@" openssl rsa -in k -check -noout
	"$@" openssl dgst -sha512 text; "$@" openssl enc -aes-256-cbc -pbkdf2 -k a -in text -out e
	"$@" openssl enc -d -aes-256-cbc -pbkdf2 -k a -in e | cmp - text; "$@" openssl speed -multi 2 -seconds 1 -bytes 64 sha256 > out 2>&1; echo $?
}
c_sqlite3() {
	need sqlite3
	"$@" sqlite3 db "pragma journal_mode=wal; create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where x < 3000)
		insert into t select x, x * 7919 % 3001 from c; create index i on t(b); select count(*), sum(a) from t where b > 1000;"
	"$@" sqlite3 db '.dump' | md5sum; "$@" sqlite3 db "pragma threads=2; select b from t order by b desc limit 2;"
}
c_tar() { "$@" tar -czf a.tgz text; "$@" tar -xzOf a.tgz | md5sum; "$@" tar -cJf a.txz text; "$@" tar -tJf a.txz; }
c_bc() { need bc; echo 'scale=200; 4*a(1); 2^500; define f(n) { if (n < 2) return 1; return n * f(n - 1); }; f(60)' | "$@" bc -lq; }
c_ninja() {
	need ninja cmake gcc
	printf 'cmake_minimum_required(VERSION 3.5)\nproject(p C)\nadd_executable(p a.c b.c)\n' > CMakeLists.txt
	echo 'int f(void); int main(void) { return f(); }' > a.c; echo 'int f(void) { return 6; }' > b.c
	"$@" cmake -G Ninja -S . -B o > log 2>&1; echo $?
	"$@" ninja -C o > log2; echo $?; o/p; echo $?
}
c_rustc() {
	need rustc
	# what rustup installs is a program that chooses one, by what is at home
	local r home
	home=$(getent passwd "$(id -u)" | cut -d: -f6)
	r=$(RUSTUP_HOME=${RUSTUP_HOME:-$home/.rustup} HOME=$home rustc --print sysroot)/bin/rustc
	echo 'use std::thread; fn main() { let t: Vec<_> = (0..3).map(|i| thread::spawn(move || i * 2)).collect();
		println!("{}", t.into_iter().map(|t| t.join().unwrap()).sum::<i32>()); }' > h.rs
	"$@" "$r" -C codegen-units=2 h.rs && "$@" ./h; echo $?
}
c_groff() { need groff; printf '.TH A 1\n.SH NAME\na \\- b\n.PP\n.B bold\ntext\n' > a.1; "$@" groff -man -Tutf8 a.1 | md5sum; "$@" man -P cat -l a.1 | wc -l; }
c_convert() {
	need convert
	"$@" convert -size 200x200 plasma:fractal -seed 1 a.png; echo $?
	"$@" convert -size 300x200 gradient:red-blue -blur 0x3 -resize 50% -rotate 30 b.ppm; md5sum b.ppm
}
c_dbus() {
	need dbus-daemon dbus-send
	"$@" dbus-daemon --session --nofork --address="unix:path=$PWD/bus" --print-address=1 > log & p=$!
	wait_for test -s log
	DBUS_SESSION_BUS_ADDRESS=unix:path=$PWD/bus "$@" dbus-send --session --print-reply --dest=org.freedesktop.DBus / \
		org.freedesktop.DBus.ListNames | grep -c 'string "org.freedesktop.DBus"'
	kill -TERM $p; ends $p
}
c_xargs() { seq 1 12 | "$@" xargs -P 3 -n 2 sh -c 'echo $(($1 + ${2:-0}))' - | sort -n; "$@" find . -name 't*' -exec basename {} \; | sort; }
c_php() {
	need php
	cat > p.php <<'P'
<?php
ini_set('pcre.jit', 0);
class A {
	public $x = 1;
	static $n = 0;
	function f($y) { self::$n++; return $this->x + $y; }
	function __get($n) { return $n; }
}
function g() { for ($i = 0; $i < 5; $i++) $r = yield $i => $i * $i; return 7; }
$a = []; $s = 0;
for ($i = 0; $i < 300; $i++) $a[] = $i * 3;
foreach ($a as $v) { $s += $v; if (preg_match('/7+/', (string)$v)) $s++; }
$o = new A;
for ($i = 0; $i < 50; $i++) $o->x = $o->f($i);
foreach (g() as $k => $v) echo "$k:$v ";
try { throw new Exception('e'); } catch (Exception $e) { echo $e->getMessage(); } finally { echo "f\n"; }
usort($a, fn($p, $q) => $q <=> $p);
[$p, $q] = [1, 2]; ['a' => $z] = ['a' => 5]; unset($a[0]);
switch ('b') { case 'a': echo 1; break; case 'b': echo 2; }
echo $s, $o->x, A::$n, $o->zz, $a[1] ?? 'n', isset($a[999]) ? 1 : 0, $p . $q, -$z, ~$z, $z % 3, $z << 2, $z & 1, $z | 8,
	match (true) { $z > 4 => 'm', default => 'd' }, implode(',', array_map(fn($x) => $x ** 2, range(1, 6))), "\n";
echo json_encode(['a' => [1, 2, ['b' => null]]]), strtoupper(str_repeat('ab', 3)), intdiv(7, 2), "\n";
P
	"$@" php p.php
}
c_ruby() {
	need ruby
	"$@" ruby -e 'a = (1..200).map { |x| x * 7 % 31 }.sort; puts a.inject(:+); h = {}; a.each { |x| h[x] = x.to_s * 2 }
		begin; raise "x"; rescue => e; puts e.message; end
		puts h.size, "abc".gsub(/b/, "xx"); f = Fiber.new { 9.times { |i| Fiber.yield i }; 7 }; p 10.times.map { f.resume }
		e = Enumerator.new { |y| 3.times { |i| y << i } }; p e.next, e.next'
}
c_sbcl() {
	need sbcl
	"$@" sbcl --non-interactive --no-sysinit --no-userinit --eval '(progn
		(defun f (n) (if (< n 2) n (+ (f (- n 1)) (f (- n 2)))))
		(print (f 15)) (gc :full t)
		(print (sort (loop for i below 50 collect (mod (* i 7919) 1009)) (function <))))'
}
c_jq() { need jq; "$python" -c 'import json; print(json.dumps([{"a": i, "b": str(i * 7 % 13)} for i in range(2000)]))' > j; "$@" jq -c 'group_by(.b) | map({(.[0].b): (map(.a) | add)}) | add' j; }
c_ctags() { need ctags; c_prog; "$@" ctags -f - prog.c | grep -c thread; }
c_clang() { need clang; c_prog; "$@" clang -O2 -g -pthread prog.c -o prog2 && "$@" ./prog2; echo $?; }
c_ld() {
	need gcc
	c_prog
	for l in bfd gold lld; do
		have ld.$l || continue
		"$@" gcc -fuse-ld=$l -pthread prog.c -o p.$l && ./p.$l; echo $l $?
	done
}
c_gpg() {
	need gpg
	mkdir -m 700 g
	echo pass | "$@" gpg --homedir g --batch --pinentry-mode loopback --passphrase-fd 0 -q -c -o e text; echo $?
	echo pass | "$@" gpg --homedir g --batch --pinentry-mode loopback --passphrase-fd 0 -q -d e | cmp - text
	gpgconf --homedir g --kill all
}
c_zip() { need zip unzip; "$@" zip -q a.zip text; "$@" unzip -p a.zip | md5sum; "$@" bzip2 -k text; "$@" bzip2 -dc text.bz2 | md5sum; }
c_lua() { need lua5.4; "$@" lua5.4 -e 'local c = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) print(c(), c(), c()) local f = io.popen("echo sub") print(f:read("a")) print(pcall(error, {})) os.exit(os.execute("exit 3") and 1 or 2)' | sed 's/0x.*//'; }
c_psql() { need psql; "$@" psql --version; "$@" psql -h "$PWD" -c 'select 1' 2>&1 | sed "s|$PWD||" | head -1; }
c_top() { need top ps; "$@" top -b -n 2 -d 0.1 > out; echo $?; "$@" ps -ef > out; echo $?; "$@" less text < /dev/null | md5sum; }
