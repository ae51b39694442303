/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * See cap_user.h.
 */

#include <err.h>
#include <grp.h>
#include <pwd.h>
#include <sysexits.h>
#include <unistd.h>

#include "cap_user.h"

void
cap_user(const char *name)
{
	const struct passwd *pw;

	pw = getpwnam(name);
	if (pw == NULL)
		errx(EX_NOUSER, "-Z %s: there is no such user", name);
	if (geteuid() != 0)
		return;
	if (initgroups(pw->pw_name, pw->pw_gid) == -1 ||
	    setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) == -1 ||
	    setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) == -1)
		err(EX_OSERR, "-Z %s", name);
}
