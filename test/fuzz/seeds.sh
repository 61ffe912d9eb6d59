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
# Intel PT: the streams of test/ptraw, with their code; and a run's, with asked-for jumps and a counter
mkdir -p "$here/corpus/pt"
rm -f "$here"/corpus/pt/seed-*
seed_pt() { # seed_pt FLAGS CODE STREAM NAME: see fuzz_pt.c
	n=$(stat -c %s "$2")
	[ "$n" -le 4096 ] || n=4096
	{
		# shellcheck disable=SC2059 # the format is what is made here
		printf "$(printf '\\%03o\\%03o\\%03o' "$1" $((n & 255)) $((n >> 8)))"
		head -c "$n" "$2"
		cat "$3"
	} >"$here/corpus/pt/seed-$4"
}
gcc -c -o "$tmp/code.o" "$here/../ptraw/code.S"
ld -Ttext=0x401000 --section-start=.gone=0x500000 --section-start=.far=0x7f1234560000 \
	--section-start=.code32=0x8048000 -e 0 -o "$tmp/code" "$tmp/code.o"
nm "$tmp/code" >"$tmp/syms"
objcopy -O binary -j .text "$tmp/code" "$tmp/text"
head -c 96 "$tmp/text" >"$tmp/text96" # what most cases need
awk -v d="$tmp" '$1 == "case" { f = d "/case-" $2; p = 0; next }
	$1 == "ips" || $1 == "end" { p = 0 }
	p { print >f } $1 == "packets" { p = 1 }' "$here/../ptraw/cases.txt"
for f in "$tmp"/case-*; do
	"$B/test/mkpt" "$tmp/syms" "$tmp/stream" <"$f"
	seed_pt 1 "$tmp/text96" "$tmp/stream" "${f##*/case-}"
	case $f in
	*start_ip*) seed_pt 3 "$tmp/text96" "$tmp/stream" "${f##*/case-}" ;;
	*pages) seed_pt 1 "$tmp/text" "$tmp/stream" "${f##*/case-}" ;;
	esac
done
cat >"$tmp/flow.S" <<'EOF'
c0:	test	%eax, %eax
c1:	je	c2
	nop
c2:	call	*%rcx
c3:	jne	c0
c4:	call	*%rdx
c5:	jmp	*%rax
c6:	syscall
c7:	jmp	c0
	.org	40
o0:	nop
o1:	ret
	.org	64
k0:	.rept	32
	.byte	0x72, 4, 0x90, 0x90, 0x90, 0x90, 0xd1, 0xe7
	.endr
	ret
EOF
gcc -c -o "$tmp/flow.o" "$tmp/flow.S"
ld -Ttext=0x401000 -e 0 -o "$tmp/flow" "$tmp/flow.o"
nm "$tmp/flow" >"$tmp/syms"
objcopy -O binary -j .text "$tmp/flow" "$tmp/text"
lap='tnt T;tip o0;tnt TT;tnt N;tip o0 1;tnt TN'
key='tip k0 1;tnt NNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNT;tnt T'
start='psb;tsc 0x1000;mode 64;fup c0;psbend'
seed_flow() { # seed_flow NAME FLAGS PACKETS
	echo "$3" | tr ';' '\n' | "$B/test/mkpt" "$tmp/syms" "$tmp/stream"
	seed_pt "$2" "$tmp/text" "$tmp/stream" "$1"
}
seed_flow flow 0 "$start;$lap;$key;tip c6;pgd -;pge c7;$lap"
seed_flow flow-losses 0 "$start;$lap;ovf;fup c4;$key;tip c0;$lap;tip 0x5000;tnt TNT;tip c4;$key;tip c0;$lap"
seed_flow flow-cut 4 \
	"$start;tnt T;fup c2;pgd -;pge o0;fup o1;pgd -;pge c2;$lap;$start;$lap;$key;tip c0;$lap;$lap;$lap;$lap;$lap"
seed_flow flow-ptw 128 "$start;$lap;tip k0;ptw 7 ip;fup k0;$lap"
du -sk "$here/corpus"
