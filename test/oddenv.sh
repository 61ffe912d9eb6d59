#!/bin/sh
# SPDX-License-Identifier: MIT
# oddenv.sh - a traced program in odd surroundings does what it does untraced: output, exit status and stderr
# are the same, but for one line of the runtime where it must refuse; what was recorded decodes.
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
B=$(cd "${B:-$here/build}" && pwd)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
pass=0 fail=0 PRE='' POST=''
bad() { fail=$((fail + 1)); echo "FAIL: $1: $2"; head -5 err.traced 2>/dev/null | sed 's/^/    /'; }
# where nothing is cached the program alone is traced: its libraries would be analysed each time
cat >analyze <<EOF
#!/bin/sh
for f; do :; done
case \$f in */prog) exec "$B/ptrace-analyze" "\$@" ;; esac
exit 3
EOF
chmod 755 analyze
cat >prog.c <<'EOF'
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
extern char **environ;
/* everything that a tracer could change without wanting to goes to FILE, since stdout may be closed */
int main(int argc, char **argv)
{
	FILE *f = fopen("/tmp/../proc/self/cwd", "r"), *o;
	char *out = getenv("OUT"), cwd[4096];
	size_t n = 0, nenv = 0;
	int fds = 0;
	void *m;

	if (f)
		fclose(f);
	o = out ? fopen(out, "w") : stdout;
	if (!o)
		o = stdout;
	for (int i = 0; i < argc; i++)
		n += strlen(argv[i]) + 1;
	for (char **e = environ; *e; e++)
		if (strncmp(*e, "LD_PRELOAD=", 11) && strncmp(*e, "PTRACE_", 7) && strncmp(*e, "T=", 2) &&
		    strncmp(*e, "OUT=", 4)) /* what the two runs differ in */
			nenv += strlen(*e) + 1;
	for (int i = 0; i < 64; i++)
		if (fcntl(i, F_GETFD) >= 0)
			fds |= i == fileno(o) ? 0 : 1 << (i & 31);
	errno = 0;
	m = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fprintf(o, "argv %zu env %zu fds %x mmap %d cwd %s preload %s\n", n, nenv, fds, m == MAP_FAILED ? errno : 0,
		getcwd(cwd, sizeof(cwd)) ? "yes" : strerror(errno), getenv("OTHER") ? getenv("OTHER") : "-");
	printf("to stdout %d\n", argc);
	fflush(stdout);
	fprintf(stderr, "to stderr\n");
	if (o != stdout)
		fclose(o);
	return 7;
}
EOF
cat >other.c <<'EOF'
#include <stdlib.h>
__attribute__((constructor)) static void begin(void) { setenv("OTHER", "loaded", 1); }
EOF
gcc -O1 -o prog prog.c && gcc -O1 -shared -fPIC -o libother.so other.c || exit 1
mkdir cache
export XDG_CACHE_HOME="$dir/cache" PTRACE_ANALYZE="$B/ptrace-analyze"
RT=$B/libptrace_rt.so
unset LD_PRELOAD PTRACE_DIR PTRACE_MODE

# same NAME SAYS SCRIPT: runs the shell script, in which $T is what traces (or not) the program; SAYS is what
# the runtime's one line matches, "" if it must trace (then the run must decode)
same() {
	name=$1 says=$2 script=$3
	rm -rf run; mkdir -p w
	with=$(echo "${PRE:-}${POST:-}" | tr -d :)
	(cd w && T="env OUT=$dir/o.plain LD_PRELOAD=$with" && export T && eval "$script" >"$dir/out.plain" 2>"$dir/err.plain"; echo $? >"$dir/st.plain")
	rm -rf w; mkdir w
	(cd w && T="env OUT=$dir/o.traced PTRACE_DIR=$dir/run LD_PRELOAD=${PRE:-}$RT${POST:-}" && export T &&
		eval "$script" >"$dir/out.traced" 2>"$dir/err.traced"; echo $? >"$dir/st.traced")
	# for a replay the program's files must be there
	[ -n "$says" ] || "$B/ptrace-decode" -f null run >dec 2>&1
	decoded=$?
	rm -rf w
	for k in out st o; do
		cmp -s $k.plain $k.traced || { bad "$name" "$k differs: $(head -1 $k.plain) | $(head -1 $k.traced)"; return; }
	done
	grep -v '^ptrace: ' err.traced >err.rest
	cmp -s err.plain err.rest || { bad "$name" "stderr differs"; return; }
	if [ -n "$says" ]; then
		[ "$(grep -c '^ptrace: .*untraced' err.traced)" = 1 ] && grep -q "^ptrace: .*$says" err.traced ||
			{ bad "$name" "no line that says $says"; return; }
	else
		grep -q '^ptrace: ' err.traced && { bad "$name" "it said something"; return; }
		[ $decoded = 0 ] ||
			{ [ $decoded = 1 ] && [ "${name%no-cache}" != "$name" ] && ! grep -qv 'the stream ends' dec; } ||
			{ bad "$name" "decode: $(head -2 dec)"; return; }
	fi
	pass=$((pass + 1))
}
P=$dir/prog
PTRACE_DIR=$dir/run LD_PRELOAD=$RT $P >/dev/null 2>&1 # the first run analyses the libraries, and says so
same plain '' '$T $P a b'
same no-stdin '' '$T $P <&-'
same no-stdout '' '$T $P >&-'
same no-stderr '' '$T $P 2>&-'
same no-stdio '' '$T $P <&- >&- 2>&-'
same no-files 'too many open files' '(exec <&-; ulimit -n 3; exec $T $P)'
same few-files '' '(ulimit -n 8; $T $P)'
same small-space 'address space' '(ulimit -v 300000; $T $P)'
same small-data 'address space\|data' '(ulimit -d 20000; $T $P)'
same file-size '' '(ulimit -f 100000; $T $P)'
same file-size-small 'file size limit' '(ulimit -f 1; $T $P)'
same stack-small '' '(ulimit -s 256; $T $P)'
same stack-unlimited '' '(ulimit -s unlimited 2>/dev/null; $T $P)'
same deleted-cwd '' 'mkdir g; cd g; rmdir ../g; $T $P'
same no-home-no-cache '' 'unset HOME XDG_CACHE_HOME; PTRACE_ANALYZE=$dir/analyze $T $P'
same relative-no-cache '' 'XDG_CACHE_HOME=rel HOME=rel PTRACE_ANALYZE=$dir/analyze $T $P'
same read-only-cwd '' 'mkdir ro; chmod 555 ro; cd ro; $T $P'
same relative-path '' 'cp $P prog; $T ./prog'
same by-path '' 'PATH=$dir:$PATH $T prog'
same symlink '' 'ln -s $P link; $T ./link'
same long-argv '' '$T $P $(seq 1 100000)'
same long-arg '' '$T $P "$(printf %0130000d 0)"'
same long-env '' 'export BIG="$(printf %0130000d 0)"; export B2="$BIG" B3="$BIG" B4="$BIG" B5="$BIG" B6="$BIG"; $T $P'
same bind-now '' 'export LD_BIND_NOW=1; $T $P'
same empty-env '' 'env -i $T XDG_CACHE_HOME=$dir/cache PTRACE_ANALYZE=$PTRACE_ANALYZE $P'
same loader '' '$T /lib64/ld-linux-x86-64.so.2 $P x'
same background '' '$T $P & wait $!'
same nice '' 'nice -n 5 $T $P'
same under-timeout '' 'timeout 20 $T $P'
same umask '' 'umask 777; $T $P; s=$?; chmod -R u+rwx $dir/run 2>/dev/null; [ $s = 7 ]' || :
same ignored-signals '' 'trap "" PIPE CHLD TERM; $T $P'
PRE=$dir/libother.so:
same preload-before '' '$T $P'
PRE='' POST=:$dir/libother.so
same preload-after '' '$T $P'
POST=''
if unshare -m true 2>/dev/null; then
	same no-proc '/proc' 'unshare -m sh -c "umount -l /proc && exec $T $P"'
	same hidden-home '' 'unshare -m sh -c "mount -t tmpfs -o ro none /root 2>/dev/null; exec $T $P"'
fi
if unshare -p -f true 2>/dev/null; then
	same pid-namespace '' 'unshare -p -f --mount-proc $T $P'
fi
echo "$pass passed, $fail failed"
[ $fail = 0 ]
