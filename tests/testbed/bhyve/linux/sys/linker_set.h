/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Linker sets: any file of a program may add objects to a set, and the linker
 * collects them.  A set is a section of pointers; its name is a C identifier,
 * so the linker defines symbols for its start and end.
 *
 * The linker takes an object file out of a static library only if another file
 * refers to it.  The members in the others are not in the set.
 */

#ifndef _COMPAT_SYS_LINKER_SET_H_
#define	_COMPAT_SYS_LINKER_SET_H_

#include <sys/cdefs.h>

/* Add object `sym' to `set'. */
#define	DATA_SET(set, sym)						\
	static const void * const __set_##set##_sym_##sym		\
	    __attribute__((__section__("set_" #set), __used__)) = &(sym)

/* Declare `set', whose objects have type `ptype'. */
#define	SET_DECLARE(set, ptype)						\
	extern ptype *__start_set_##set[]				\
	    __attribute__((__weak__, __visibility__("hidden")));	\
	extern ptype *__stop_set_##set[]				\
	    __attribute__((__weak__, __visibility__("hidden")))

#define	SET_BEGIN(set)		(&__start_set_##set[0])
#define	SET_LIMIT(set)		(&__stop_set_##set[0])

/* Loop over `set' in link order.  `pvar' is a ptype **. */
#define	SET_FOREACH(pvar, set)						\
	for (pvar = SET_BEGIN(set); pvar < SET_LIMIT(set); pvar++)

#endif /* !_COMPAT_SYS_LINKER_SET_H_ */
