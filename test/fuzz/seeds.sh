#!/bin/sh
# SPDX-License-Identifier: MIT
# seeds.sh - makes the corpus anew: run with changed formats (a map or run version), then commit test/fuzz/corpus.
#
# The programs are traced without their libraries (the analyzer is only asked about them), so each gives one
# small map and a stream of marks and values that fits it.
set -eu
B=${B:-build}
B=$(cd "$B" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/analyze" <<EOF
#!/bin/sh
for f; do :; done
case \$f in *.so*) exit 3 ;; esac
exec "$B/ptrace-analyze" "\$@"
EOF
chmod +x "$tmp/analyze"
export XDG_CACHE_HOME="$tmp/cache" PTRACE_ANALYZE="$tmp/analyze" PTRACE_DIR="$tmp/run"
mkdir -p "$tmp/cache" "$here/corpus/run" "$here/corpus/bin" "$here/corpus/elf"
rm -f "$here"/corpus/run/seed-* "$here"/corpus/bin/seed-* "$here"/corpus/elf/seed-*
for p in jt_dense rep_strings avx2_gather setjmp xstate calls_indirect enter_leave syscalls signals killed \
	memheavy; do
	rm -rf "$tmp/run"
	[ $p = memheavy ] && export PTRACE_VERIFY=1
	LD_PRELOAD="$B/libptrace_rt.so" "$B/test/progs/$p" >"$tmp/out" 2>&1 || [ $p = killed ] || continue
	"$B/fuzz/seed" "$tmp/run" "$here/corpus/run/seed-$p"
	[ $p != enter_leave ] || "$B/fuzz/seed" --start "$tmp/run" "$here/corpus/run/seed-start"
done
# a trace with payloads as they are: fuzz_bin compresses
"$B/fuzz/seed" --bin "$tmp/run" "$here/corpus/bin/seed-trace"
# ELF files: one with everything stripped, one with symbols, unwind tables and a jump table
cat >"$tmp/a.c" <<'EOF'
int f(int a, int *b) { switch (a) { case 0: return *b; case 1: return b[1]; case 2: return a + b[2]; case 3: return b[7];
case 4: return 5; case 5: b[1] = 3; return 9; default: return -1; } }
void _start(void) { int v[8] = {1}; for (int i = 0; i < 9; i++) v[i & 7] += f(i, v); __asm__ volatile("syscall"); for (;;) ; }
EOF
gcc -O2 -nostdlib -static-pie -fPIE -Wl,-z,noseparate-code -Wl,-z,max-page-size=4096 -o "$here/corpus/elf/seed-pie" "$tmp/a.c"
gcc -O1 -nostdlib -shared -fPIC -s -Wl,-z,noseparate-code -Wl,--build-id=none -Wl,-z,max-page-size=4096 \
	-o "$here/corpus/elf/seed-so" "$tmp/a.c"
gcc -O2 -nostdlib -no-pie -static -fno-asynchronous-unwind-tables -s -Wl,-z,noseparate-code \
	-Wl,-z,max-page-size=4096 -o "$here/corpus/elf/seed-exe" "$tmp/a.c"
# and code of many kinds
for p in r15_forms rep_strings bit_ops flags_odd popf last_ret lock_jump overlap avx512_masks jt_sparse; do
	gcc -O2 -fPIC -march=skylake-avx512 -nostdlib -shared -s -Wl,-z,noseparate-code -Wl,--build-id=none \
		-Wl,-z,max-page-size=4096 -o "$here/corpus/elf/seed-$p" "$here/../progs/$p".[cS]
done
du -sk "$here/corpus"
