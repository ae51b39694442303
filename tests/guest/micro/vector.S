/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Where the processor goes on an exception or interrupt.  It aligns the stack
 * to 16 bytes and pushes five words (micro.h, struct trap_frame), or six with an
 * error code.  The C functions use general registers only.
 */

	.text

/* An interrupt: save what a C function may change, call it, return. */
	.macro	interrupt name, func
	.globl	\name
\name:
	pushq	%rax
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	cld
	call	\func
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%rcx
	popq	%rax
	iretq
	.endm

	interrupt vector_timer, cpu_timer_intr
	interrupt vector_nic, cpu_nic_intr

	.globl	vector_spurious
vector_spurious:
	iretq

/* Exceptions do not return. */
	.globl	vector_trap
vector_trap:
	xorl	%esi, %esi
	jmp	1f

	.globl	vector_trap_code
vector_trap_code:
	popq	%rsi
1:	movq	%rsp, %rdi
	andq	$-16, %rsp
	cld
	call	cpu_trap
