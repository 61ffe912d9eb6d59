/* SPDX-License-Identifier: MIT
 *
 * marker.S - stand-in for the runtime under PTRACE_ORACLE=1: its constructor is the
 * start marker and nothing else. For testing the oracle without the runtime.
 */
	.text
	.type	marker, @function
marker:	.cfi_startproc
	mov	(%rsp), %rdi
	lea	8(%rsp), %rsi
	movabs	$0x5054524143455354, %rax
	int3
	ret
	.cfi_endproc
	.size	marker, . - marker
	.section .init_array, "aw"
	.balign	8
	.quad	marker
	.section .note.GNU-stack, "", @progbits
