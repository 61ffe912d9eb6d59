#!/bin/sh
# SPDX-License-Identifier: MIT
#
# discover.sh - what discovery says about small functions whose every byte is known
#
# Each case is assembled or compiled, analyzed, and asked questions with --explain. Addresses are
# symbols; the expectation stands next to the code.
#
# usage: discover.sh ANALYZER
# shellcheck disable=SC2016 # $ is the assembler's
set -u
an=${1:-build/ptrace-analyze}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
pass=0 fail=0

ok() { # ok NAME CONDITION...
	name=$1
	shift
	if "$@"; then pass=$((pass + 1)); else fail=$((fail + 1)); echo "FAIL $name"; fi
}
has() { printf '%s\n' "$1" | grep -Eq -- "$2"; }
lacks() { ! has "$1" "$2"; }
explain() { "$an" --explain="$2" "$1"; }
so() { gcc -shared -nostdlib -Wl,--build-id -o "$tmp/$1.so" "$tmp/$1.S" && echo "$tmp/$1.so"; }
fn() { # fn NAME: a global function with an FDE from here to `end NAME`
	echo ".globl $1; .type $1,@function; $1: .cfi_startproc"
}
end() { echo ".cfi_endproc; .size $1,.-$1"; }

# --- overlap by prefix: both forms are instructions, and flow joins behind them
{ echo .text; fn f; echo 'cmpl $0,%fs:0x18; je 1f; lock; 1: cmpxchg %edx,(%rdi); setz %al; ret'; end f; } >"$tmp/lock.S"
o=$(explain "$(so lock)" f)
ok lock-variants test "$(printf '%s\n' "$o" | grep -Ec '^    [0-9a-f]+ [34] $')" = 3
ok lock-certain has "$o" '^group'

# --- a real overlap is refused
{ echo .text; fn f; echo 'test %eax,%eax; je 1f+1; 1: mov $0x90909090,%eax; ret'; end f; } >"$tmp/over.S"
ok overlap-opaque has "$(explain "$(so over)" f)" 'overlapping'

# --- the address of the next instruction, taken with a call, is a value
{ echo .text; fn f; echo 'call 1f; 1: pop %rax; ret'; end f; } >"$tmp/getpc.S"
ok getpc-opaque has "$(explain "$(so getpc)" f)" 'address escapes'

# --- signal return: an entry at its mov, also where the FDE begins a byte early
{ echo '.text; nopl 0(%rax); .cfi_startproc; nop; .globl r; .type r,@function; r: mov $15,%rax; syscall'; end r
  fn g; echo 'mov $15,%eax; syscall'; end g; } >"$tmp/sigret.S"
s=$(so sigret)
ok sigreturn-relocated has "$(explain "$s" r)" '^group'
ok sigreturn-two test "$(explain "$s" r | grep -c ' 2 syscall')" = 1
ok sigreturn-short has "$(explain "$s" g)" '^group'
# --- undecodable only where reached
{ echo .text; fn f; echo 'ret; .byte 6,6,6'; end f; fn g; echo '.byte 6'; end g; } >"$tmp/bad.S"
s=$(so bad)
ok unreached-junk has "$(explain "$s" f)" '^group.* suspect'
ok reached-junk has "$(explain "$s" g)" 'undecodable'

# --- what nothing reaches jumps through a table that nothing shows, and calls into the middle of a gap
{ echo '.text; nop; .p2align 4'; fn a; echo ret; end a; echo 'nop; ret; 1: xor %eax,%eax; ret'
  fn f; echo 'jmp *%rdi; call 1b; jmp *(%rsi,%rax,8)'; end f; echo '.skip 16,0xcc'; } >"$tmp/gapcut.S"
ok unreached-hidden-table has "$(explain "$(so gapcut)" f)" '^opaque'

# --- bounded table, relative; bounded table, absolute with relocations; no bound
{ echo .text
  fn f; echo 'cmp $2,%edi; ja 9f; lea t(%rip),%rdx; mov %edi,%edi; movslq (%rdx,%rdi,4),%rax; add %rdx,%rax
	notrack jmp *%rax; 1: mov $1,%eax; ret; 2: mov $2,%eax; ret; 3: mov $3,%eax; ret; 9: xor %eax,%eax; ret'; end f
  fn g; echo 'and $1,%edi; lea u(%rip),%rdx; jmp *(%rdx,%rdi,8); 4: mov $1,%eax; ret; 5: mov $2,%eax; ret'; end g
  fn h; echo 'movzbl (%rdi),%eax; lea v(%rip),%rdx; movslq (%rdx,%rax,4),%rax; add %rdx,%rax; jmp *%rax
	6: mov $1,%eax; ret; 7: mov $2,%eax; ret'; end h
  fn i; echo 'movzbl (%rdi),%eax; lea w(%rip),%rdx; movslq (%rdx,%rax,4),%rax; add %rdx,%rax; jmp *%rax
	8: mov $1,%eax; ret; mov $2,%eax; ret'; end i
  fn k; echo 'lea z(%rip),%rax; ret'; end k
  echo '.section .rodata; t: .long 1b-t,2b-t,3b-t; v: .long 6b-v,7b-v; w: .long 8b-w,8b-w; z: .long 0x7fffffff
	.section .data.rel.ro,"aw"; u: .quad 4b,5b'; } >"$tmp/tab.S"
s=$(so tab)
ok table-relative has "$(explain "$s" f)" ' exact table .*\[3\]'
ok table-absolute has "$(explain "$s" g)" 'exact table .*\[2\]'
ok table-scanned has "$(explain "$s" h)" ' exact table .*\[2\]'
ok table-suspect has "$(explain "$s" i)" 'inexact table'

# --- writable table: may change
{ echo .text; fn f; echo 'and $1,%edi; lea u(%rip),%rdx; jmp *(%rdx,%rdi,8); 4: ret; 5: mov $2,%eax; ret'; end f
  echo '.data; u: .quad 4b,5b'; } >"$tmp/wtab.S"
ok table-writable has "$(explain "$(so wtab)" f)" 'inexact table .*\[2\]'

# --- a jump through a function pointer leaves
{ echo .text; fn f; echo 'mov 8(%rdi),%rax; jmp *%rax'; end f; } >"$tmp/tail.S"
ok tail-leaves lacks "$(explain "$(so tail)" f)" 'exact table'
ok tail-tailx has "$(explain "$tmp/tail.so" f)" '^group.* tailx'

# --- hot and cold part are one group; a tail call to a function is not a part
{ echo .text; fn f; echo 'test %edi,%edi; js c; ret'; end f; fn g; echo 'test %edi,%edi; js h; jmp f'; end g
  echo 'c: .cfi_startproc; mov $1,%eax; ret; .cfi_endproc'; fn h; echo 'mov $3,%eax; ret'; end h; } >"$tmp/cold.S"
s=$(so cold)
ok cold-joined test "$(explain "$s" f | head -1 | grep -Eo '[0-9a-f]+-[0-9a-f]+' | wc -l)" = 2
ok tail-not-joined test "$(explain "$s" g | head -1 | grep -Eo '[0-9a-f]+-[0-9a-f]+' | wc -l)" = 1

# --- control that falls out of a function through padding joins the next one
{ echo .text; fn f; echo 'cmp %rsi,%rdi; ja h'; end f; echo '.p2align 4'; fn g; echo 'ret'; end g
  fn h; echo 'ud2'; end h; } >"$tmp/fall.S"
ok fall-joined has "$(explain "$(so fall)" f)" '^group [0-9]+ f.*'
ok fall-same-group test "$(explain "$tmp/fall.so" f)" = "$(explain "$tmp/fall.so" g)"

# --- a call at the end of a function does not return; setjmp returns twice
{ echo .text; fn f; echo 'call g'; end f; fn g; echo 'ret'; end g
  fn h; echo 'call _setjmp@plt; test %eax,%eax; ret'; end h; } >"$tmp/call.S"
s=$(so call)
ok call-noreturn has "$(explain "$s" f)" 'call .*noreturn'
ok call-twice has "$(explain "$s" h)" 'call .*twice'
ok block-twice has "$(explain "$s" h)" 'block 1 depth 0 Rwr'

# --- a call into the middle of a function makes an entry there
{ echo .text; fn f; echo 'xor %eax,%eax; m: inc %eax; ret'; end f; fn g; echo 'call m; ret'; end g; } >"$tmp/mid.S"
ok mid-entry has "$(explain "$(so mid)" f)" 'block 1 depth 0 Er'

# --- loops: every cycle has a head; depth counts nesting
{ echo .text; fn f; echo '1: mov $9,%ecx; 2: dec %ecx; jnz 2b; dec %edi; jnz 1b; ret'; end f; } >"$tmp/loop.S"
o=$(explain "$(so loop)" f)
ok loop-depth has "$o" 'depth 2 hr'
ok loop-outer has "$o" 'depth 1 E?hr'

# --- landing pads
cat >"$tmp/eh.cc" <<'END'
int g(int); void h();
extern "C" int f(int x) { try { return g(x); } catch (int e) { h(); return e; } }
END
g++ -O2 -fPIC -shared -o "$tmp/eh.so" "$tmp/eh.cc"
ok landing-pad has "$("$an" --dump "$tmp/eh.so")" 'block [0-9]+ depth 0 L'

# --- refusals are one clear line and status 2
echo hello >"$tmp/text"
"$an" --stats "$tmp/text" 2>"$tmp/err"
r=$?
ok refuse-status test $r = 2
ok refuse-line test "$(wc -l <"$tmp/err")" = 1
head -c 3000 "$tmp/eh.so" >"$tmp/cut"
"$an" --stats "$tmp/cut" >"$tmp/out" 2>&1
r=$?
ok cut-status test $r -le 3

echo "$pass passed, $fail failed"
test $fail = 0
