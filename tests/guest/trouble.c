/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * A module for guests: trouble for a driver.  It does what is written to its
 * parameters, in /sys/module/trouble/parameters:
 *
 *	netpoll	"US OPTIONS": send a message each US microseconds, from a hard
 *		interrupt, as netconsole does if one prints; the OPTIONS are
 *		netconsole's.  "0" ends that
 *	fail	"FUNCTION VALUE N [SKIP]": N calls of the kernel's function do
 *		nothing and return VALUE; the first SKIP are left alone
 *	meta	anything: count frames that a driver passes to the stack with
 *		the metadata of xdp.c
 *	sum	"N": for N frames with segments of UDP, lem(4) finds in the
 *		header ring that their checksum is elsewhere
 *
 * Read, these are the number of messages; what is left of N, the second
 * argument of the last call, and the number of calls; the number of frames;
 * what is left of N.
 */

#include <linux/hrtimer.h>
#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/netpoll.h>
#include <linux/skbuff.h>

#include <asm/linkage.h>

#include "lem_core.h"

#define	XDP_META	0x6d657461	/* xdp.c */

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
static atomic_t fail_left, fail_calls;
static unsigned long fail_argument;
static int fail_skip;

static int
fail_call(struct kprobe *kp, struct pt_regs *regs)
{
	WRITE_ONCE(fail_argument, regs_get_kernel_argument(regs, 1));
	if (atomic_inc_return(&fail_calls) <= fail_skip ||
	    atomic_dec_if_positive(&fail_left) < 0)
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
	fail_skip = 0;
	if (sscanf(text, "%63s %ld %d %d", fail_name, &fail_value, &n,
	    &fail_skip) < 3)
		return (-EINVAL);
	atomic_set(&fail_left, n);
	atomic_set(&fail_calls, 0);
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
	return (sprintf(buf, "%d %lu %d\n", atomic_read(&fail_left),
	    READ_ONCE(fail_argument), atomic_read(&fail_calls)));
}

static const struct kernel_param_ops fail_ops = {
	.set = fail_set,
	.get = fail_get,
};
module_param_cb(fail, &fail_ops, NULL, 0644);

static unsigned int meta_frames;

static int
meta_call(struct kprobe *kp, struct pt_regs *regs)
{
	const struct sk_buff *skb = (void *)regs_get_kernel_argument(regs, 1);

	if (skb_metadata_len(skb) == sizeof(u32) &&
	    *((u32 *)skb_metadata_end(skb) - 1) == XDP_META)
		meta_frames++;
	return (0);
}

static struct kprobe meta_probe;

static void
meta_end(void)
{
	if (meta_probe.addr != NULL)
		unregister_kprobe(&meta_probe);
}

static int
meta_set(const char *text, const struct kernel_param *kp)
{
	meta_end();
	meta_frames = 0;
	meta_probe = (struct kprobe){
		.symbol_name = "napi_gro_receive",
		.pre_handler = meta_call,
	};
	return (register_kprobe(&meta_probe));
}

static int
meta_get(char *buf, const struct kernel_param *kp)
{
	return (sprintf(buf, "%u\n", READ_ONCE(meta_frames)));
}

static const struct kernel_param_ops meta_ops = {
	.set = meta_set,
	.get = meta_get,
};
module_param_cb(meta, &meta_ops, NULL, 0644);

static atomic_t sum_left;

static int
sum_call(struct kprobe *kp, struct pt_regs *regs)
{
	struct lem_core *lc = (void *)regs_get_kernel_argument(regs, 0);

	if ((regs_get_kernel_argument(regs, 3) & LEM_RX_OFFLOAD) != 0 &&
	    lc->lc_rx_offload.lo_type == LEM_OFFLOAD_UDP &&
	    atomic_dec_if_positive(&sum_left) >= 0)
		lc->lc_rx_offload.lo_csum_offset -= sizeof(u16);
	return (0);
}

static struct kprobe sum_probe;

static void
sum_end(void)
{
	if (sum_probe.addr != NULL)
		unregister_kprobe(&sum_probe);
}

static int
sum_set(const char *text, const struct kernel_param *kp)
{
	int n;

	if (kstrtoint(text, 0, &n) != 0)
		return (-EINVAL);
	sum_end();
	atomic_set(&sum_left, n);
	sum_probe = (struct kprobe){
		.symbol_name = "lem_os_rx",
		.pre_handler = sum_call,
	};
	return (register_kprobe(&sum_probe));
}

static int
sum_get(char *buf, const struct kernel_param *kp)
{
	return (sprintf(buf, "%d\n", atomic_read(&sum_left)));
}

static const struct kernel_param_ops sum_ops = {
	.set = sum_set,
	.get = sum_get,
};
module_param_cb(sum, &sum_ops, NULL, 0644);

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
	meta_end();
	sum_end();
}
module_exit(trouble_exit);

MODULE_DESCRIPTION("Trouble for a driver");
MODULE_LICENSE("Dual BSD/GPL");
