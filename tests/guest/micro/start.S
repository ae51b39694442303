/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The way in.  A PVH loader (QEMU's -kernel, Xen, cloud-hypervisor) finds the
 * ELF note, loads the image at its physical addresses, and enters it in 32-bit
 * protected mode, flat segments, paging off, %ebx at the start info.  From
 * there to long mode: the first 4 GB are mapped one to one with 2 MB pages, the
 * last of the four (devices live there) uncached.
 */

#define	CR0_PG		0x80000000
#define	CR0_EM		0x4
#define	CR4_PAE		0x20
#define	MSR_EFER	0xc0000080
#define	EFER_LME	0x100
#define	PTE_P		0x001
#define	PTE_RW		0x002
#define	PTE_PWT		0x008
#define	PTE_PCD		0x010
#define	PTE_PS		0x080
#define	CODE64		0x08
#define	DATA64		0x10

	/* Xen's public/elfnote.h: XEN_ELFNOTE_PHYS32_ENTRY is 18. */
	.section .note.Xen, "a", @note
	.balign	4
	.long	4, 8, 18
	.asciz	"Xen"
	.quad	start

	.section .text.start, "ax", @progbits
	.code32
	.globl	start
start:
	cld
	cli
	movl	$stack_top, %esp

	/* Four page directories: 2048 entries of 2 MB. */
	movl	$page_dirs, %edi
	movl	$(PTE_PS | PTE_RW | PTE_P), %eax
	xorl	%ecx, %ecx
1:	cmpl	$1536, %ecx
	jne	2f
	orl	$(PTE_PCD | PTE_PWT), %eax
2:	movl	%eax, (%edi, %ecx, 8)
	addl	$0x200000, %eax
	incl	%ecx
	cmpl	$2048, %ecx
	jne	1b

	movl	$(page_dirs + (PTE_RW | PTE_P)), %eax
	movl	%eax, page_dirptr
	addl	$4096, %eax
	movl	%eax, page_dirptr + 8
	addl	$4096, %eax
	movl	%eax, page_dirptr + 16
	addl	$4096, %eax
	movl	%eax, page_dirptr + 24
	movl	$(page_dirptr + (PTE_RW | PTE_P)), page_top

	movl	$page_top, %eax
	movl	%eax, %cr3
	movl	%cr4, %eax
	orl	$CR4_PAE, %eax
	movl	%eax, %cr4
	movl	$MSR_EFER, %ecx
	rdmsr
	orl	$EFER_LME, %eax
	wrmsr
	movl	%cr0, %eax
	orl	$CR0_PG, %eax
	andl	$~CR0_EM, %eax
	movl	%eax, %cr0
	lgdt	gdt_desc
	ljmp	$CODE64, $3f

	.code64
3:	movl	$DATA64, %eax
	movl	%eax, %ds
	movl	%eax, %es
	movl	%eax, %ss
	xorl	%eax, %eax
	movl	%eax, %fs
	movl	%eax, %gs
	movl	%ebx, %edi
	xorl	%ebp, %ebp
	call	micro_main
4:	hlt
	jmp	4b

	.section .rodata
	.balign	8
gdt:	.quad	0
	.quad	0x00af9b000000ffff	/* CODE64 */
	.quad	0x00cf93000000ffff	/* DATA64 */
gdt_desc:
	.word	. - gdt - 1
	.quad	gdt

	.bss
	.balign	4096
page_top:	.skip	4096
page_dirptr:	.skip	4096
page_dirs:	.skip	4 * 4096
	.skip	65536
stack_top:
