/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * The changes of a reload (valed_changes.c), message by message.  The guard is
 * a process (valed_guard.c); interfaces are this file's.
 */

#include <sys/param.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atf-c.h>

#include "adapter_config.h"
#include "test.h"
#include "valed_guard.h"
#include "valed_guard_calls.h"
#include "valed_options.h"

/* Interfaces have two descriptors, of pipes; "e9" cannot be opened. */
int
hostif_open(const char *ifname, const struct hostif_options *options,
    struct hostif_fds *fds, char *error, size_t size)
{
	int p[2];

	if (strcmp(ifname, "e9") == 0) {
		snprintf(error, size, "e9: no such interface");
		return (-1);
	}
	ATF_REQUIRE_EQ(0, pipe2(p, O_CLOEXEC));
	memset(fds, 0, sizeof(*fds));
	strlcpy(fds->hf_name, ifname, sizeof(fds->hf_name));
	fds->hf_kind = options->ho_kind;
	fds->hf_flags = strcmp(ifname, "e8") == 0 ? HOSTIF_HOST_GETS : 0;
	fds->hf_nfds = 2;
	fds->hf_fd[0] = p[0];
	fds->hf_fd[1] = p[1];
	return (0);
}

bool
hostif_warning(const struct hostif_fds *fds, char *line, size_t size)
{
	snprintf(line, size, "the host gets what %s receives, too",
	    fds->hf_name);
	return ((fds->hf_flags & HOSTIF_HOST_GETS) != 0);
}

void
hostif_close(struct hostif_fds *fds)
{
	while (fds->hf_nfds > 0)
		close(fds->hf_fd[--fds->hf_nfds]);
}

enum hostif_kind
hostif_kind(const char *name)
{
	return (strcmp(name, "packet") == 0 ? HOSTIF_PACKET :
	    strcmp(name, "xdp") == 0 ? HOSTIF_XDP : HOSTIF_NKINDS);
}

static ino_t
inode(const char *path)
{
	struct stat st;

	ATF_REQUIRE_EQ(0, lstat(path, &st));
	return (st.st_ino);
}

TEST(changes, "Names are reserved, then adapters removed, then added, and then "
    "sockets removed")
{
	ino_t was;

	start(A B, 3);
	check_socket(opt.vo_adapters[0].ac_listen, "a.sock");
	check_socket(opt.vo_adapters[1].ac_listen, "b.sock");
	ATF_CHECK(listens("a.sock", SOCK_STREAM));
	ATF_CHECK(listens("b.sock", SOCK_STREAM));
	was = inode("a.sock");
	reload(A B);
	ends();
	reload("# Nothing has changed.\n" B A);
	ends();
	reload(A B C);
	reserves(3, "vale0:c", 0);
	adds(3, "c", "vale0:c", "c.sock", false, "c.sock", 0);
	ends();
	ATF_CHECK(listens("c.sock", SOCK_STREAM));
	/* No guard has it. */
	close(vc.vc_config.ac_listen);
	close(opt.vo_adapters[1].ac_listen);
	ATF_CHECK(exists("b.sock") && !listens("b.sock", SOCK_STREAM));
	reload(A "pci.0.1.0.csb=off\n" C "pci.0.4.0.path=d\n"
	    "pci.0.4.0.backend=vale1:c\npci.0.4.0.device=e1000\n");
	reserves(1, "vale0:a", 0);
	reserves(4, "vale1:c", 0);
	removes(1);
	removes(2);
	adds(1, "a", "vale0:a", "a.sock", true, NULL, 0);
	ATF_CHECK(exists("b.sock"));
	adds(4, "vale1:c", "vale1:c", "d", false, "d", 0);
	ends();
	ATF_CHECK(!exists("b.sock"));
	ATF_CHECK_EQ(was, inode("a.sock"));
	/* Paths change places. */
	reload("pci.0.1.0.path=d\npci.0.1.0.backend=vale0:a\n"
	    "pci.0.1.0.device=e1000\npci.0.4.0.path=a.sock\n"
	    "pci.0.4.0.backend=vale0:x\npci.0.4.0.device=e1000\n");
	reserves(1, "vale0:a", 0);
	reserves(4, "vale0:x", 0);
	removes(1);
	removes(3);
	removes(4);
	adds(1, "a", "vale0:a", "d", false, NULL, 0);
	adds(4, "x", "vale0:x", "a.sock", false, NULL, 0);
	ends();
	ATF_CHECK(!exists("c.sock") && exists("d"));
	ATF_CHECK_EQ(was, inode("a.sock"));
	valed_guard_end(false);
	ATF_CHECK(!exists("a.sock") && !exists("d"));
	said("");
}

#define	BUSY	"the port is open already, or another user captures its name"
#define	KEEPS	"another adapter keeps its port or socket"
#define	WHY(n, port, why, what)						\
	"valed.conf:" #n ": vale0:" port ": " why ": the adapter " what
#define	LINE(...)	"valed_changes_test: " WHY(__VA_ARGS__) "\n"

TEST(refused, "An adapter whose port is another's stays as it was, or is not "
    "added, and so does one that would be where it stays")
{
	start(A B, 3);
	reload(A "pci.0.1.0.csb=off\n" B C);
	reserves(1, "vale0:a", EBUSY);
	reserves(3, "vale0:c", EBUSY);
	ends_why(WHY(2, "a", BUSY, "stays as it was"));
	said(LINE(2, "a", BUSY, "stays as it was")
	    LINE(9, "c", BUSY, "is not added"));
	ATF_CHECK(!exists("c.sock"));
	/* It is tried again. */
	ATF_REQUIRE(valed_guard_reload(replace));
	reserves(1, "vale0:a", EBUSY);
	reserves(3, "vale0:c", EBUSY);
	ends_why(WHY(2, "a", BUSY, "stays as it was"));
	said(LINE(2, "a", BUSY, "stays as it was")
	    LINE(9, "c", BUSY, "is not added"));
	ATF_REQUIRE(valed_guard_reload(replace));
	reserves(1, "vale0:a", 0);
	reserves(3, "vale0:c", 0);
	removes(1);
	removes(3);			/* which is not there */
	adds(1, "a", "vale0:a", "a.sock", true, NULL, 0);
	adds(3, "c", "vale0:c", "c.sock", false, "c.sock", 0);
	ends();
	said("");
	/* One, and those that it keeps from their places. */
	reload("pci.0.1.0.device=e1000\npci.0.1.0.backend=vale0:x\n"
	    "pci.0.1.0.path=z.sock\n"
	    "pci.0.2.0.device=e1000\npci.0.2.0.backend=vale0:a\n"
	    "pci.0.2.0.path=y.sock\n"
	    "pci.0.4.0.device=e1000\npci.0.4.0.backend=vale0:d\n"
	    "pci.0.4.0.path=b.sock\n");
	reserves(1, "vale0:x", EBUSY);
	reserves(2, "vale0:a", 0);
	reserves(4, "vale0:d", 0);
	removes(3);
	ends_why(WHY(2, "x", BUSY, "stays as it was"));
	said(LINE(2, "x", BUSY, "stays as it was")
	    LINE(5, "a", KEEPS, "stays as it was")
	    LINE(8, "d", KEEPS, "is not added"));
	ATF_CHECK(exists("a.sock") && exists("b.sock") && !exists("c.sock") &&
	    !exists("y.sock") && !exists("z.sock"));
	valed_guard_end(false);
	ATF_CHECK(!exists("a.sock") && !exists("b.sock"));
}

/* A setting is changed: the next of one message. */
static void
sets(const char *name, unsigned int setting, const char *value)
{
	static unsigned int next;
	const struct vale_setting_change *sc = &vc.vc_change[next];
	char text[VALE_SETTING_SIZE];

	if (next++ == 0)
		comes(VALED_SET, 0);
	ATF_CHECK_STREQ(name, vc.vc_name);
	ATF_CHECK_EQ(setting, sc->sc_setting);
	ATF_CHECK_EQ(value != NULL, sc->sc_keep);
	vale_setting_print(setting, &sc->sc_value, text, sizeof(text));
	if (value != NULL)
		ATF_CHECK_STREQ(value, text);
	if (next < vc.vc_nchanges)
		return;
	next = 0;
	valed_guard_answer(0);
}

TEST(failed, "Of settings that fail, those are said to be changed that are")
{
	start(A, 3);
	reload(A "port.vale0:x.private=yes\nport.vale0:x.vlan=3\n");
	comes(VALED_SET, 0);
	ATF_REQUIRE_EQ(2, vc.vc_nchanges);
	valed_guard_answer(ENOBUFS + VALED_FAILED);
	ends_why("vale0:x: vlan=3: No buffer space available");
	said_both("vale0:x: private=yes\n", "valed_changes_test: vale0:x: "
	    "vlan=3: No buffer space available\n");
	/* None has changed. */
	reload(A);
	comes(VALED_SET, 0);
	valed_guard_answer(ENOMEM + 2 * VALED_FAILED);
	ends_why("vale0:x: private=no: Cannot allocate memory");
	said_both("", "valed_changes_test: vale0:x: private=no: Cannot "
	    "allocate memory\nvaled_changes_test: vale0:x: vlan=0: Cannot "
	    "allocate memory\n");
	valed_guard_end(false);
}

TEST(in_place, "What can be changed in place is, with one line for each thing, "
    "and the adapter is not removed")
{
	start(A B "switch.vale0.ageing=5\npci.0.1.0.rate=1Mbit/s\n", 3);
	reload(A B "pci.0.1.0.rate=2Mbit/s\npci.0.1.0.itr=5\n"
	    "pci.0.1.0.itr_min=6\npci.0.1.0.mtu=68\npci.0.1.0.poll=9\n"
	    "pci.0.2.0.vlan=7\n"
	    "port.vale0:x.private=yes\n");
	sets("vale0:a", VALE_SETTING_RATE, "2000000bit/s");
	sets("vale0:b", VALE_SETTING_VLAN, "7");
	sets("vale0:x", VALE_SETTING_PRIVATE, "yes");
	sets("vale0", VALE_SETTING_AGEING, NULL);
	comes(VALED_CHANGE, 1);
	ATF_CHECK_EQ(5, vc.vc_config.ac_itr_256ns);
	ATF_CHECK_EQ(6, vc.vc_config.ac_itr_min_256ns);
	ATF_CHECK_EQ(68, vc.vc_config.ac_mtu);
	ATF_CHECK_EQ(9, vc.vc_config.ac_poll_us);
	valed_guard_answer(0);
	ends();
	said_both("vale0:a: rate=2000000bit/s\nvale0:b: vlan=7\n"
	    "vale0:x: private=yes\nvale0: ageing=300\nvale0:a: itr=5\n"
	    "vale0:a: itr_min=6\nvale0:a: mtu=68\nvale0:a: poll=9\n", "");
	/* What has changed is known, also what could not be. */
	reload(A "port.vale0:x.private=yes\n"
	    "pci.0.1.0.itr=5\npci.0.1.0.rate=2Mbit/s\n");
	removes(2);
	sets("vale0:b", VALE_SETTING_VLAN, NULL);
	comes(VALED_CHANGE, 1);
	valed_guard_answer(0);
	ends();
	said_both("vale0:b: the adapter is removed\nvale0:b: vlan=0\n"
	    "vale0:a: itr_min=0\nvale0:a: mtu=16110\nvale0:a: poll=0\n", "");
	reload(A);
	comes(VALED_SET, 0);
	valed_guard_answer(ENOMEM);
	sets("vale0:x", VALE_SETTING_PRIVATE, NULL);
	comes(VALED_CHANGE, 1);
	valed_guard_answer(0);
	ends_why("vale0:a: rate=0: Cannot allocate memory");
	said_both("vale0:x: private=no\nvale0:a: itr=0\n",
	    "valed_changes_test: vale0:a: rate=0: Cannot allocate memory\n");
	/* An adapter that stays as it was keeps its settings. */
	reload(A "pci.0.1.0.limit=1\n");
	sets("vale0:a", VALE_SETTING_LIMIT, "1");
	ends();
	reload("pci.0.1.0.device=e1000\npci.0.1.0.backend=vale0:y\n"
	    "pci.0.1.0.path=a.sock\npci.0.1.0.limit=2\n");
	reserves(1, "vale0:y", EBUSY);
	comes(VALED_END, 0);
	said_both("vale0:a: limit=1\n", LINE(2, "y", BUSY,
	    "stays as it was"));
	ATF_REQUIRE(valed_guard_reload(replace));
	reserves(1, "vale0:y", 0);
	removes(1);
	sets("vale0:y", VALE_SETTING_LIMIT, "2");
	sets("vale0:a", VALE_SETTING_LIMIT, NULL);
	adds(1, "y", "vale0:y", "a.sock", false, NULL, 0);
	ends();
	said_both("vale0:a: the adapter is removed\nvale0:y: limit=2\n"
	    "vale0:a: limit=0\nvale0:y: the adapter is added\n", "");
	valed_guard_end(false);
}

/* Adapters with addresses of their own. */
#define	AT(slot, name, port)						\
	"pci.0." #slot ".0.device=e1000\npci.0." #slot ".0.backend=" port "\n" \
	"pci.0." #slot ".0.path=" name ".sock\n" \
	"pci.0." #slot ".0.mac=02:00:00:00:00:0" #slot "\n"
#define	MOVED(to, from)	to ": the adapter has moved from " from "\n"
#define	STAYS(n, port, what)						\
	"valed.conf:" #n ": " port ": the adapter cannot be moved, and " what
#define	STAYS_LINE(...)	"valed_changes_test: " STAYS(__VA_ARGS__) "\n"

TEST(moves, "An adapter on another port is moved, when nobody is there, after "
    "that port's settings and before others are no longer set")
{
	start(AT(1, "a", "vale0:a") AT(2, "b", "vale0:b")
	    "pci.0.1.0.vlan=10\npci.0.2.0.vlan=20\n", 3);
	replace = false;
	reload(AT(1, "a", "vale1:a") AT(2, "b", "vale0:a")
	    "pci.0.1.0.vlan=10\npci.0.1.0.itr=5\npci.0.1.0.direct=off\n"
	    "pci.0.2.0.limit=2\nswitch.vale1.ageing=9\n"
	    "port.vale0:x.private=yes\n");
	reserves(1, "vale1:a", 0);
	reserves(2, "vale0:a", 0);
	sets("vale1", VALE_SETTING_AGEING, "9");
	sets("vale0:x", VALE_SETTING_PRIVATE, "yes");
	sets("vale1:a", VALE_SETTING_VLAN, "10");
	moves(1, "vale1:a", 0);
	ATF_CHECK_EQ(5, vc.vc_config.ac_itr_256ns);
	ATF_CHECK(!vc.vc_config.ac_direct);
	sets("vale0:a", VALE_SETTING_LIMIT, "2");
	sets("vale0:a", VALE_SETTING_VLAN, NULL);
	moves(2, "vale0:a", 0);
	sets("vale0:b", VALE_SETTING_VLAN, NULL);
	ends();
	said_both("vale1: ageing=9\nvale0:x: private=yes\n"
	    "vale1:a: vlan=10\n" MOVED("vale1:a", "vale0:a")
	    "vale1:a: itr=5\nvale1:a: direct=off\n"
	    "vale0:a: limit=2\nvale0:a: vlan=0\n"
	    MOVED("vale0:a", "vale0:b") "vale0:b: vlan=0\n", "");
	/* It is known where they are. */
	ATF_REQUIRE(valed_guard_reload(replace));
	ends();
	valed_guard_end(false);
	ATF_CHECK(!exists("a.sock") && !exists("b.sock"));
}

#define	ONE	AT(1, "a", "vale0:a") AT(2, "b", "vale0:b")		\
	"pci.0.1.0.vlan=10\npci.0.2.0.vlan=20\n"
#define	OTHER	AT(1, "a", "vale0:b") AT(2, "b", "vale0:a")		\
	"pci.0.1.0.vlan=10\npci.0.2.0.vlan=20\n"

TEST(circle, "Adapters that exchange their ports are never at one with the "
    "settings of the other")
{
	start(ONE, 3);
	replace = false;
	reload(OTHER);
	reserves(1, "vale0:b", 0);
	reserves(2, "vale0:a", 0);
	moves(1, "none", 0);
	sets("vale0:a", VALE_SETTING_VLAN, "20");
	moves(2, "vale0:a", 0);
	sets("vale0:b", VALE_SETTING_VLAN, "10");
	moves(1, "vale0:b", 0);
	ends();
	said_both("vale0:a: vlan=20\n" MOVED("vale0:a", "vale0:b")
	    "vale0:b: vlan=10\n" MOVED("vale0:b", "vale0:a"), "");
	/* The first one cannot: both stay, with their settings. */
	reload(ONE);
	reserves(1, "vale0:a", 0);
	reserves(2, "vale0:b", 0);
	moves(1, "none", 0);
	sets("vale0:b", VALE_SETTING_VLAN, "20");
	moves(2, "vale0:b", ENOMEM);
	sets("vale0:b", VALE_SETTING_VLAN, NULL);
	sets("vale0:b", VALE_SETTING_VLAN, "10");
	moves(1, "vale0:b", 0);
	ends_why(STAYS(6, "vale0:b", "stays as it was"));
	said(STAYS_LINE(6, "vale0:b", "stays as it was")
	    STAYS_LINE(2, "vale0:a", "stays as it was"));
	/* Nor can the second one, and the other is where it was. */
	ATF_REQUIRE(valed_guard_reload(replace));
	reserves(1, "vale0:a", 0);
	reserves(2, "vale0:b", 0);
	moves(1, "none", 0);
	sets("vale0:b", VALE_SETTING_VLAN, "20");
	moves(2, "vale0:b", 0);
	sets("vale0:a", VALE_SETTING_VLAN, "10");
	moves(1, "vale0:a", ENOMEM);
	sets("vale0:a", VALE_SETTING_VLAN, NULL);
	ends_why(STAYS(2, "vale0:a", "has no port"));
	said(STAYS_LINE(2, "vale0:a", "has no port"));
	/* The next reload tries again. */
	ATF_REQUIRE(valed_guard_reload(replace));
	reserves(1, "vale0:a", 0);
	sets("vale0:a", VALE_SETTING_VLAN, "10");
	moves(1, "vale0:a", 0);
	ends();
	said_both("vale0:a: vlan=10\n" MOVED("vale0:a", "none"), "");
	/* One that cannot make room stays, and so does who waits for that. */
	reload(OTHER);
	reserves(1, "vale0:b", 0);
	reserves(2, "vale0:a", 0);
	moves(1, "none", ENOMEM);
	ends_why(STAYS(6, "vale0:a", "stays as it was"));
	said(STAYS_LINE(6, "vale0:a", "stays as it was")
	    STAYS_LINE(2, "vale0:b", "stays as it was"));
	reload(ONE);
	ends();
	valed_guard_end(false);
}

#define	ASK(n, port, option)						\
	"valed.conf:" #n ": " port ": another " option "= disconnects the " \
	"client: see reload --replace"
#define	ASK_LINE(...)	"valed_changes_test: " ASK(__VA_ARGS__) "\n"

TEST(confirmed, "A change that disconnects clients changes nothing unless that "
    "was confirmed; one without a client needs none")
{
	ino_t was;

	start(AT(1, "a", "vale0:a") AT(2, "b", "vale0:b") C, 3);
	was = inode("a.sock");
	replace = false;
	reload(AT(1, "a", "vale0:a") "pci.0.1.0.csb=off\n"
	    "pci.0.1.0.limit=3\n" AT(2, "z", "vale0:x") AT(4, "d", "vale0:d"));
	reserves(1, "vale0:a", 0);
	reserves(2, "vale0:x", 0);
	reserves(4, "vale0:d", 0);
	asks(1, EISCONN);
	asks(2, EISCONN);
	ends_why(ASK(5, "vale0:a", "csb"));
	said_both("", ASK_LINE(5, "vale0:a", "csb")
	    ASK_LINE(9, "vale0:x", "path"));
	ATF_CHECK(!exists("d.sock") && !exists("z.sock"));
	ATF_CHECK_EQ(was, inode("a.sock"));
	/* Only one has a client. */
	ATF_REQUIRE(valed_guard_reload(replace));
	reserves(1, "vale0:a", 0);
	reserves(2, "vale0:x", 0);
	reserves(4, "vale0:d", 0);
	asks(1, 0);
	asks(2, EISCONN);
	ends_why(ASK(9, "vale0:x", "path"));
	said_both("", ASK_LINE(9, "vale0:x", "path"));
	/* The address is that of the port. */
	reload(AT(1, "a", "vale0:a") AT(2, "b", "vale0:b")
	    "pci.0.3.0.device=e1000\npci.0.3.0.path=c.sock\n"
	    "pci.0.3.0.backend=vale1:c\n");
	reserves(3, "vale1:c", 0);
	asks(3, EISCONN);
	ends_why("valed.conf:11: vale1:c: another address disconnects the "
	    "client: set mac=58:9c:fc:6f:d6:df, or see reload --replace");
	/* One that stays as it was is not replaced, and none that goes. */
	reload(AT(1, "a", "vale0:x") "pci.0.1.0.csb=off\n"
	    AT(2, "b", "vale0:b"));
	reserves(1, "vale0:x", EBUSY);
	removes(3);
	comes(VALED_END, 0);
	/* Nobody is connected. */
	reload(AT(1, "a", "vale0:a") "pci.0.1.0.csb=off\n"
	    AT(2, "b", "vale0:b"));
	reserves(1, "vale0:a", 0);
	asks(1, 0);
	removes(1);
	adds(1, "a", "vale0:a", "a.sock", true, NULL, 0);
	ends();
	/* It was confirmed. */
	replace = true;
	reload(AT(1, "a", "vale0:a") AT(2, "b", "vale0:b"));
	reserves(1, "vale0:a", 0);
	removes(1);
	adds(1, "a", "vale0:a", "a.sock", false, NULL, 0);
	ends();
	valed_guard_end(false);
}

/* An interface is attached, with its descriptors. */
static void
attaches(const char *port, const char *ifname, unsigned int kind, int answer)
{
	comes(VALED_ATTACH, 0);
	ATF_CHECK_STREQ(port, vc.vc_config.ac_backend);
	ATF_CHECK_STREQ(ifname, vc.vc_hostif.hf_name);
	ATF_CHECK_EQ(kind, vc.vc_hostif.hf_kind);
	ATF_REQUIRE_EQ(2, vc.vc_hostif.hf_nfds);
	ATF_CHECK_EQ(1, write(vc.vc_hostif.hf_fd[1], "x", 1));
	ATF_CHECK_EQ(FD_CLOEXEC, fcntl(vc.vc_hostif.hf_fd[0], F_GETFD));
	hostif_close(&vc.vc_hostif);
	valed_guard_answer(answer);
}

static void
detaches(const char *port, int answer)
{
	comes(VALED_DETACH, 0);
	ATF_CHECK_STREQ(port, vc.vc_config.ac_backend);
	valed_guard_answer(answer);
}

#define	ATTACHED(port)	port ": the interface is attached\n"
#define	DETACHED(port)	port ": the interface is detached\n"

TEST(interfaces, "Interfaces of lines come and go; those of -a stay; one that "
    "cannot be attached is tried again")
{
	char line[256];

	argv[3] = (char []){ "-a" };
	argv[4] = (char []){ "vale0:e0" };
	start("attach.vale0:e1=packet\nattach.vale0:e9=packet\n", 5);
	valed_guard_unattached("vale0:e9", "");
	/* The same; a new one; another kind. */
	reload("attach.vale0:e1=packet\nattach.vale0:e9=packet\n"
	    "attach.vale0:e2=xdp\n");
	attaches("vale0:e2", "e2", HOSTIF_XDP, 0);
	ends_why("valed.conf:2: e9: no such interface");
	said_both(ATTACHED("vale0:e2"), "valed_changes_test: valed.conf:2: e9: "
	    "no such interface\n");
	reload("attach.vale0:e1=xdp\nattach.vale1:e2=xdp\n"
	    "port.vale1:e2.vlan=7\n");
	detaches("vale0:e1", 0);
	detaches("vale0:e9", ENXIO);
	detaches("vale0:e2", 0);
	sets("vale1:e2", VALE_SETTING_VLAN, "7");
	attaches("vale0:e1", "e1", HOSTIF_XDP, 0);
	attaches("vale1:e2", "e2", HOSTIF_XDP, EIO);
	snprintf(line, sizeof(line), "valed.conf:2: vale1:e2: the interface "
	    "is not attached: %s", strerror(EIO));
	ends_why(line);
	said_both(DETACHED("vale0:e1") DETACHED("vale0:e2")
	    "vale1:e2: vlan=7\n" ATTACHED("vale0:e1"),
	    "valed_changes_test: valed.conf:2: vale1:e2: the interface is not "
	    "attached: Input/output error\n");
	ATF_REQUIRE(valed_guard_reload(replace));
	attaches("vale1:e2", "e2", HOSTIF_XDP, 0);
	ends();
	said_both(ATTACHED("vale1:e2"), "");
	reload("attach.vale0:e8=packet\n");
	detaches("vale0:e1", 0);
	detaches("vale1:e2", 0);
	sets("vale1:e2", VALE_SETTING_VLAN, NULL);
	attaches("vale0:e8", "e8", HOSTIF_PACKET, 0);
	comes(VALED_END, 0);
	said_both(NULL, "valed_changes_test: valed.conf:1: the host gets what "
	    "e8 receives, too\n");
	valed_guard_end(false);
}

TEST(not_added, "The socket of one that could not be added is removed, and the "
    "next reload tries again")
{
	unsigned int i;

	start(A, 3);
	for (i = 0; i < 2; i++) {
		reload(A B C);
		reserves(2, "vale0:b", 0);
		reserves(3, "vale0:c", 0);
		if (i > 0) {
			removes(2);
			removes(3);
		}
		adds(2, "b", "vale0:b", "b.sock", false, "b.sock", ENOMEM);
		close(vc.vc_config.ac_listen);
		adds(3, "c", "vale0:c", "c.sock", false, "c.sock",
		    i == 0 ? ENOSPC : 0);
		ends_why(FAILED(5, "b"));
		ATF_CHECK(!exists("b.sock"));
		ATF_CHECK_EQ(i > 0, exists("c.sock"));
		ATF_CHECK(exists("a.sock"));
	}
	said("");
	valed_guard_end(false);
	ATF_CHECK(!exists("a.sock") && !exists("c.sock"));
}

TEST(wrong, "A configuration that is wrong changes nothing; nor does a socket "
    "that cannot be created, after others were")
{
	ino_t was;

	start(A, 3);
	was = inode("a.sock");
	reload(A C "x\n");
	ends_why("valed.conf:7: not name=value");
	said("valed_changes_test: valed.conf:7: not name=value\n");
	ATF_CHECK(!exists("c.sock"));
	ATF_REQUIRE_EQ(0, mkdir("d.sock", 0700));
	reload(C NODE(4, "d"));
	reserves(3, "vale0:c", 0);
	reserves(4, "vale0:d", 0);
	ends_why("valed.conf:6: path=d.sock: exists and is not a socket");
	ATF_CHECK(!exists("c.sock") && exists("d.sock"));
	ATF_CHECK_EQ(was, inode("a.sock"));
	reload(A);
	ends();
	ATF_CHECK_EQ(was, inode("a.sock"));
	valed_guard_end(false);
	ATF_CHECK(!exists("a.sock"));
}

TEST(inherited, "An inherited socket is passed again, and is not removed")
{
	struct sockaddr_un sun = { AF_UNIX, "in" };
	int s = socket(AF_UNIX, SOCK_STREAM, 0);

	ATF_REQUIRE_EQ(0, bind(s, (void *)&sun, sizeof(sun)));
	ATF_REQUIRE_EQ(0, listen(s, 1));
	ATF_REQUIRE(dup2(s, 20) == 20);
	close(s);
#define	IN	"pci.0.2.0.fd=20\npci.0.2.0.device=e1000\n"		\
		"pci.0.2.0.backend=vale0:i\n"
	start(A IN, 3);
	ATF_CHECK_EQ(20, opt.vo_adapters[1].ac_listen);
	reload(A IN "pci.0.2.0.mem=5M\n");
	reserves(2, "vale0:i", 0);
	removes(2);
	adds(2, "i", "vale0:i", "", false, "in", 0);
	ATF_CHECK_EQ(5 << 20, vc.vc_config.ac_mem);
	ATF_CHECK_EQ(20, vc.vc_config.ac_fd);
	ends();
	reload(A);
	removes(2);
	ends();
	ATF_CHECK(exists("in"));
	reload(A IN);
	reserves(2, "vale0:i", 0);
	adds(2, "i", "vale0:i", "", false, "in", 0);
	ends();
	/* Its path, for another one, is in use: it is a socket's name only. */
	reload(A IN NODE(3, "i2") "pci.0.3.0.csb=off\n");
	reserves(3, "vale0:i2", 0);
	adds(3, "i2", "vale0:i2", "i2.sock", true, "i2.sock", 0);
	ends();
	valed_guard_end(false);
	ATF_CHECK(exists("in") && !exists("a.sock") && !exists("i2.sock"));
}

TEST_PROGRAM
