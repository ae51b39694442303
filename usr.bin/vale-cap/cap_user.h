/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The user that vale-cap goes on as.
 */

#ifndef _CAP_USER_H_
#define	_CAP_USER_H_

/*
 * Become a user, with the groups that he has, for good.  Who is not root has
 * no privileges to drop, and stays.  What fails ends the program with a line.
 */
void	cap_user(const char *name);

#endif /* !_CAP_USER_H_ */
