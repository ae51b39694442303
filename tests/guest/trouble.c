/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A module for guests: trouble for a driver.  It does what is written to its
 * parameters, in /sys/module/trouble/parameters:
 *
 *	netpoll		"US OPTIONS": send a message each US microseconds, from
 *			a hard interrupt, as netconsole does if one prints; the
 *			OPTIONS are netconsole's.  "0" ends that
 *	fail		"FUNCTION VALUE N": the next N calls of the kernel's
 *			function do nothing and return VALUE
 *
 * Read, these are the number of messages; what is left of N, and the second
 * argument of the last call.
 */

#include <linux/hrtimer.h>
#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/netpoll.h>

#include <asm/linkage.h>

static struct hrtimer timer;
static struct netpoll netpoll = { .name = "trouble" };
static unsigned int interval_us, sent;

static enum hrtimer_restart
netpoll_send(struct hrtimer *t)
{
	char text[32];

	netpoll_send_udp(&netpoll, text,
	    sprintf(text, "trouble %u\n", sent++));
	/* As netpoll_send_udp() does if it cannot send at once. */
	netpoll_poll_dev(netpoll.dev);
	hrtimer_forward_now(t, ns_to_ktime(interval_us * 1000ULL));
	return (HRTIMER_RESTART);
}

static void
netpoll_end(void)
{
	hrtimer_cancel(&timer);
	if (netpoll.dev != NULL)
		netpoll_cleanup(&netpoll);
}

static int
netpoll_set(const char *text, const struct kernel_param *kp)
{
	char options[96];
	int error;

	netpoll_end();
	if (sscanf(text, "%u %95s", &interval_us, options) != 2)
		return (0);
	error = netpoll_parse_options(&netpoll, options);
	if (error == 0)
		error = netpoll_setup(&netpoll);
	if (error == 0)
		hrtimer_start(&timer, ns_to_ktime(interval_us * 1000ULL),
		    HRTIMER_MODE_REL_HARD);
	return (error);
}

static int
netpoll_get(char *buf, const struct kernel_param *kp)
{
	return (sprintf(buf, "%u\n", READ_ONCE(sent)));
}

static const struct kernel_param_ops netpoll_ops = {
	.set = netpoll_set,
	.get = netpoll_get,
};
module_param_cb(netpoll, &netpoll_ops, NULL, 0644);

/* A function that returns what its caller finds in the register for that. */
void fail_return(void);
asm(".pushsection .text\n"
    ".type fail_return, @function\n"
    "fail_return:\n"
    ASM_RET
    ".size fail_return, . - fail_return\n"
    ".popsection\n");

static char fail_name[64];
static long fail_value;
static atomic_t fail_left;
static unsigned long fail_argument;

static int
fail_call(struct kprobe *kp, struct pt_regs *regs)
{
	WRITE_ONCE(fail_argument, regs_get_kernel_argument(regs, 1));
	if (atomic_dec_if_positive(&fail_left) < 0)
		return (0);
	regs_set_return_value(regs, fail_value);
	instruction_pointer_set(regs, (unsigned long)fail_return);
	return (1);
}

static struct kprobe probe;

static void
fail_end(void)
{
	if (probe.addr != NULL)
		unregister_kprobe(&probe);
	memset(&probe, 0, sizeof(probe));
}

static int
fail_set(const char *text, const struct kernel_param *kp)
{
	int error, n;

	fail_end();
	if (sscanf(text, "%63s %ld %d", fail_name, &fail_value, &n) != 3)
		return (-EINVAL);
	atomic_set(&fail_left, n);
	probe.symbol_name = fail_name;
	probe.pre_handler = fail_call;
	error = register_kprobe(&probe);
	if (error != 0)
		memset(&probe, 0, sizeof(probe));
	return (error);
}

static int
fail_get(char *buf, const struct kernel_param *kp)
{
	return (sprintf(buf, "%d %lu\n", atomic_read(&fail_left),
	    READ_ONCE(fail_argument)));
}

static const struct kernel_param_ops fail_ops = {
	.set = fail_set,
	.get = fail_get,
};
module_param_cb(fail, &fail_ops, NULL, 0644);

static int __init
trouble_init(void)
{
	hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	timer.function = netpoll_send;
	return (0);
}
module_init(trouble_init);

static void __exit
trouble_exit(void)
{
	netpoll_end();
	fail_end();
}
module_exit(trouble_exit);

MODULE_DESCRIPTION("Trouble for a driver");
MODULE_LICENSE("Dual BSD/GPL");
