/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * COM1, polled, and the little of libc that is needed.
 */

#include <stdarg.h>

#include "micro.h"

#define	COM1		0x3f8
#define	COM_DATA	0
#define	COM_IER		1
#define	COM_FCR		2
#define	COM_LCR		3
#define	 LCR_8N1	0x03
#define	 LCR_DLAB	0x80
#define	COM_MCR		4
#define	COM_LSR		5
#define	 LSR_TXRDY	0x20

void
console_init(void)
{
	outb(COM1 + COM_IER, 0);
	outb(COM1 + COM_LCR, LCR_DLAB);
	outb(COM1 + COM_DATA, 1);	/* 115200 bit/s */
	outb(COM1 + COM_IER, 0);
	outb(COM1 + COM_LCR, LCR_8N1);
	outb(COM1 + COM_FCR, 0x07);
	outb(COM1 + COM_MCR, 0x03);
}

static void
putc(char c)
{
	while ((inb(COM1 + COM_LSR) & LSR_TXRDY) == 0)
		continue;
	outb(COM1 + COM_DATA, (uint8_t)c);
}

static void
print_number(uint64_t v, unsigned int base, int width, char pad)
{
	char digits[20];
	int n = 0;

	do {
		digits[n++] = "0123456789abcdef"[v % base];
		v /= base;
	} while (v != 0);
	for (; width > n; width--)
		putc(pad);
	while (n > 0)
		putc(digits[--n]);
}

static void
vprint(const char *fmt, va_list ap)
{
	const char *s;
	int64_t v;
	int width;
	char pad;
	bool wide;

	for (; *fmt != '\0'; fmt++) {
		if (*fmt != '%') {
			putc(*fmt);
			continue;
		}
		pad = *++fmt == '0' ? '0' : ' ';
		for (width = 0; *fmt >= '0' && *fmt <= '9'; fmt++)
			width = width * 10 + *fmt - '0';
		wide = *fmt == 'l';
		if (wide)
			fmt++;
		switch (*fmt) {
		case 's':
			for (s = va_arg(ap, const char *); *s != '\0'; s++)
				putc(*s);
			break;
		case 'c':
			putc((char)va_arg(ap, int));
			break;
		case 'd':
			v = wide ? va_arg(ap, int64_t) : va_arg(ap, int);
			if (v < 0)
				putc('-');
			print_number(v < 0 ? -(uint64_t)v : (uint64_t)v, 10,
			    width, pad);
			break;
		case 'u':
		case 'x':
			print_number(wide ? va_arg(ap, uint64_t) :
			    va_arg(ap, unsigned int), *fmt == 'u' ? 10 : 16,
			    width, pad);
			break;
		default:
			putc(*fmt);
			break;
		}
	}
}

void
print(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vprint(fmt, ap);
	va_end(ap);
}

void
report(const char *name, uint64_t value)
{
	print("%s %lu\n", name, value);
}

void
report_total(const char *name, uint64_t value)
{
	print("total_%s %lu\n", name, value);
}

_Noreturn void
panic(const char *fmt, ...)
{
	va_list ap;

	print("panic: ");
	va_start(ap, fmt);
	vprint(fmt, ap);
	va_end(ap);
	print("\n");
	cpu_exit(1);
}

void *
memcpy(void *restrict dst, const void *restrict src, size_t len)
{
	void *d = dst;

	__asm __volatile("rep movsb" : "+D" (d), "+S" (src), "+c" (len) : :
	    "memory");
	return (dst);
}

void *
memset(void *dst, int c, size_t len)
{
	void *d = dst;

	__asm __volatile("rep stosb" : "+D" (d), "+c" (len) : "a" (c) :
	    "memory");
	return (dst);
}

int
memcmp(const void *a, const void *b, size_t len)
{
	const uint8_t *p = a, *q = b;

	for (; len > 0; len--, p++, q++)
		if (*p != *q)
			return (*p - *q);
	return (0);
}

size_t
strlen(const char *s)
{
	size_t n = 0;

	while (s[n] != '\0')
		n++;
	return (n);
}
