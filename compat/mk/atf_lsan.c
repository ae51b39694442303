/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Linked into every ATF test program of a sanitizer build.  libatf-c never
 * frees its data about the program; these suppressions keep LeakSanitizer from
 * reporting them.  No suppression matches atf_tc_run(), which calls the bodies
 * of the tests, so their leaks are reported.
 */

const char *__lsan_default_options(void);
const char *__lsan_default_suppressions(void);

/*
 * Let LeakSanitizer print no statistics: when Kyua lists test cases, any output
 * on stderr is a failure.
 */
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
