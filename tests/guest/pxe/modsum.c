/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Prints, for each module that its Multiboot loader has put into memory, what
 * cksum(1) prints for that file, without its name, after the word "cksum".  The
 * output goes to COM1 as the BIOS has left it.  Then it stops.
 *
 * Multiboot Specification 0.6.96.
 */

#include <stddef.h>
#include <stdint.h>

#define	MULTIBOOT_MAGIC		0x1badb002	/* in the image */
#define	MULTIBOOT_LOADER	0x2badb002	/* in %eax */
#define	 MULTIBOOT_PAGE_ALIGN	0x1		/* modules at pages */
#define	 MULTIBOOT_MEMINFO	0x2

#define	MULTIBOOT_FLAGS		(MULTIBOOT_PAGE_ALIGN | MULTIBOOT_MEMINFO)

static const uint32_t header[3] __attribute__((__section__(".multiboot"),
    __used__)) = {
	MULTIBOOT_MAGIC, MULTIBOOT_FLAGS, -(MULTIBOOT_MAGIC + MULTIBOOT_FLAGS)
};

struct multiboot_info {
	uint32_t	flags;
#define	MULTIBOOT_HAS_MODULES	0x8
	uint32_t	mem_lower, mem_upper, boot_device, cmdline;
	uint32_t	nmods, mods;
};

struct multiboot_module {
	uint32_t	start, end, string, reserved;
};

#define	COM1		0x3f8
#define	COM_DATA	(COM1 + 0)
#define	COM_LSR		(COM1 + 5)
#define	 LSR_TXRDY	0x20

static uint8_t stack[16384] __attribute__((__aligned__(16), __used__));

/* The loader leaves its magic number in %eax, the information in %ebx. */
__asm__(
"	.text\n"
"	.globl	start\n"
"start:	cld\n"
"	cli\n"
"	movl	$stack + 16384, %esp\n"
"	pushl	%ebx\n"
"	pushl	%eax\n"
"	call	modsum\n");

void	modsum(uint32_t magic, const struct multiboot_info *info);

static void
putc(char c)
{
	uint8_t lsr;

	do {
		__asm__ __volatile__("inb %w1, %b0" : "=a" (lsr) :
		    "Nd" (COM_LSR));
	} while ((lsr & LSR_TXRDY) == 0);
	__asm__ __volatile__("outb %b0, %w1" : : "a" (c), "Nd" (COM_DATA));
}

static void
puts(const char *s)
{
	while (*s != '\0')
		putc(*s++);
}

static void
print_number(uint32_t v)
{
	char digits[10];
	int n = 0;

	do {
		digits[n++] = '0' + v % 10;
		v /= 10;
	} while (v != 0);
	while (n > 0)
		putc(digits[--n]);
}

/* POSIX, cksum: the CRC of the bytes and of their number. */
static uint32_t
crc(const uint8_t *p, uint32_t len)
{
	static uint32_t table[256];
	uint32_t c, i, j;

	for (i = 0; i < 256; i++) {
		c = i << 24;
		for (j = 0; j < 8; j++)
			c = c << 1 ^ (c >> 31 != 0 ? 0x04c11db7 : 0);
		table[i] = c;
	}
	c = 0;
	for (i = 0; i < len; i++)
		c = c << 8 ^ table[c >> 24 ^ p[i]];
	for (; len != 0; len >>= 8)
		c = c << 8 ^ table[c >> 24 ^ (len & 0xff)];
	return (~c);
}

__attribute__((__used__)) void
modsum(uint32_t magic, const struct multiboot_info *info)
{
	const struct multiboot_module *m;
	uint32_t i, len;

	if (magic == MULTIBOOT_LOADER &&
	    (info->flags & MULTIBOOT_HAS_MODULES) != 0)
		for (i = 0; i < info->nmods; i++) {
			m = (const struct multiboot_module *)info->mods + i;
			len = m->end - m->start;
			puts("\ncksum ");
			print_number(crc((const uint8_t *)m->start, len));
			putc(' ');
			print_number(len);
		}
	puts("\nmodsum done\n");
	for (;;)
		__asm__ __volatile__("hlt");
}
