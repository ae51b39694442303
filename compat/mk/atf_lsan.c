/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Linked into every ATF test program of a sanitizer build: libatf-c itself
 * never frees what it keeps about the program, and those leaks are not ours.
 * Test bodies run below atf_tc_run(), which none of these matches.
 */

const char *__lsan_default_options(void);
const char *__lsan_default_suppressions(void);

/* Kyua takes anything on stderr for a failure when it lists test cases. */
const char *
__lsan_default_options(void)
{
	return ("print_suppressions=0");
}

const char *
__lsan_default_suppressions(void)
{
	return ("leak:atf_tp_get_tcs\n"
	    "leak:atf_map_\n"
	    "leak:atf_list_\n"
	    "leak:atf_tc_init\n"
	    "leak:atf_tp_init\n"
	    "leak:atf_tp_add_tc\n"
	    "leak:atf_dynstr_\n"
	    "leak:atf_text_\n"
	    "leak:atf_error_new\n");
}
