/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * Requests of descriptors of /dev/netmap: which are refused, what valed is
 * sent, and which error a request that fails returns.
 */

#include <sys/param.h>

#include <errno.h>
#include <string.h>

#include <atf-c.h>

#include "run_desc_calls.h"
#include "test.h"

static struct nmreq_header hdr;
static struct nmreq_register reg;

/* A request.  Returns 0, or an errno. */
static int
request(uint16_t type, const char *name, void *body)
{
	int r;

	memset(&hdr, 0, sizeof(hdr));
	hdr.nr_version = NETMAP_API;
	hdr.nr_reqtype = type;
	hdr.nr_body = (uintptr_t)body;
	strncpy(hdr.nr_name, name, sizeof(hdr.nr_name));
	errno = 0;
	r = run_ioctl(that, NIOCCTRL, &hdr);
	ATF_CHECK(r == 0 || r == -1);
	return (r == 0 ? 0 : errno);
}

#define	REG	NETMAP_REQ_REGISTER
#define	INFO	NETMAP_REQ_PORT_INFO_GET
/* A line may be written: its lock is a table's, as the test sees it. */
#define	SAYS	" lock(table) unlock(table)"

TEST(checks, "Which requests are refused, before there is a connection")
{
	char name[sizeof(hdr.nr_name) + 1];
	unsigned int i;

	opened();
	fail.join = ECONNREFUSED;
	fail.port_open = ECHILD;
	/* Names: these come as far as valed. */
	ATF_CHECK_EQ(ECHILD, request(REG, "vale0:x", &reg));
	ATF_CHECK_EQ(ECHILD, request(REG, "", &reg));
	ATF_CHECK_EQ(ECHILD, request(REG, "x{1", &reg));
	ATF_CHECK_EQ(ECHILD, request(REG, "x}1", &reg));
	ATF_CHECK_EQ(ECHILD, request(REG, "vale", &reg));
	ATF_CHECK_EQ(ENXIO, request(REG, "x", &reg));
	ATF_CHECK_EQ(ENXIO, request(REG, "val", &reg));
	ATF_CHECK_EQ(ENXIO, request(REG, "xvale", &reg));
	reg.nr_mode = NR_REG_NULL;
	ATF_CHECK_EQ(ECHILD, request(REG, "any", &reg));
	ATF_CHECK_EQ(ECONNREFUSED, request(INFO, "vale0:x", &reg));
	ATF_CHECK_EQ(ENXIO, request(INFO, "any", &reg));
	ATF_CHECK_EQ(ENXIO, request(REG, "any", NULL));
	ATF_CHECK_EQ(EINVAL, request(REG, "vale0:x", NULL));
	reg.nr_mode = NR_REG_ALL_NIC;
	quiet();
	memset(name, 'x', sizeof(name));
	memcpy(name, "vale0:", 6);
	name[sizeof(hdr.nr_name)] = '\0';
	ATF_CHECK_EQ(EINVAL, request(REG, name, &reg));
	SAID(SAYS);
	name[sizeof(hdr.nr_name) - 1] = '\0';
	ATF_CHECK_EQ(ECHILD, request(REG, name, &reg));
	/* Types. */
	quiet();
	for (i = 0; i <= UINT16_MAX; i++)
		if (i != REG && i != INFO && i != NETMAP_REQ_VALE_LIST &&
		    i != NETMAP_REQ_PORT_HDR_SET &&
		    i != NETMAP_REQ_PORT_HDR_GET)
			ATF_REQUIRE_EQ_MSG(EOPNOTSUPP, request(i, "vale0:x",
			    &reg), "%u", i);
	ATF_CHECK_EQ(EOPNOTSUPP, request(NETMAP_REQ_POOLS_INFO_GET, "eth0",
	    &reg));
	/* Options. */
	quiet();
	hdr.nr_options = EMSGSIZE;
	FAILS(EMSGSIZE, run_ioctl(that, NIOCCTRL, &hdr));
	SAID(SAYS);
}

TEST(versions, "Which versions of the API are taken")
{
	static const struct {
		uint16_t version;
		int error;
	} rows[] = {
		{ NETMAP_API - 1, EINVAL },
		{ NETMAP_API, ECHILD },
		{ NETMAP_API_MAX, ECHILD },
		{ NETMAP_API_MAX + 1, EINVAL },
	};
	unsigned int i;

	opened();
	fail.port_open = ECHILD;
	hdr = (struct nmreq_header){ .nr_name = "vale0:x",
	    .nr_reqtype = REG, .nr_body = (uintptr_t)&reg };
	for (i = 0; i < nitems(rows); i++) {
		hdr.nr_version = rows[i].version;
		FAILS(rows[i].error, run_ioctl(that, NIOCCTRL, &hdr));
		ATF_CHECK_EQ_MSG(rows[i].error == EINVAL ? NETMAP_API :
		    rows[i].version, hdr.nr_version, "%u", i);
	}
}

TEST(registers, "NETMAP_REQ_REGISTER: once, of rings of some direction")
{
	opened();
	reg = (struct nmreq_register){ .nr_mode = 4,
	    .nr_flags = NR_RX_RINGS_ONLY | NR_TX_RINGS_ONLY };
	ATF_CHECK_EQ(EINVAL, request(REG, "vale0:x", &reg));
	SAID(" lock(rd)" SAYS " unlock(rd)");
	reg.nr_flags = NR_RX_RINGS_ONLY;
	fail.port_open = EBUSY;
	ATF_CHECK_EQ(EBUSY, request(REG, "vale0:x", &reg));
	SAID(" lock(rd) port_open(vale0:x,4) unlock(rd)");
	ATF_CHECK(!that->rd_registered);
	fail.port_open = 0;
	reg.nr_flags = NR_TX_RINGS_ONLY;
	ATF_CHECK_EQ(0, request(REG, "vale0:x", &reg));
	SAID(" lock(rd) port_open(vale0:x,4) unlock(rd)");
	ATF_CHECK(that->rd_registered);
	ATF_CHECK_STREQ("vale0:x", hdr.nr_name);
	ATF_CHECK_EQ(EBUSY, request(REG, "vale0:x", &reg));
	SAID(" lock(rd)" SAYS " unlock(rd)");
}

TEST(requests, "What valed is sent, and how much it may answer")
{
	static const struct {
		uint16_t type;
		uint16_t as;
		size_t in, out;
	} rows[] = {
		{ INFO, VALE_WIRE_INFO, sizeof(struct nmreq_port_info_get),
		    sizeof(struct nmreq_port_info_get) },
		{ NETMAP_REQ_VALE_LIST, NETMAP_REQ_VALE_LIST,
		    sizeof(struct nmreq_vale_list),
		    sizeof(struct nmreq_vale_list) },
		{ NETMAP_REQ_PORT_HDR_SET, NETMAP_REQ_PORT_HDR_SET,
		    sizeof(struct nmreq_port_hdr), 0 },
		{ NETMAP_REQ_PORT_HDR_GET, NETMAP_REQ_PORT_HDR_GET, 0,
		    sizeof(struct nmreq_port_hdr) },
	};
	char what[256], call[128];
	unsigned int i;

	opened();
	for (i = 0; i < nitems(rows); i++) {
		snprintf(call, sizeof(call),
		    " call(6,vale0:x,%u,%u,%zu,%zu)", rows[i].as, NETMAP_API,
		    rows[i].in, rows[i].out);
		ATF_CHECK_EQ(0, request(rows[i].type, "vale0:x", &reg));
		snprintf(what, sizeof(what),
		    " lock(rd)%s wrlck(6)%s unlck(6) unlock(rd)",
		    i == 0 ? " join(6,/path)" : "", call);
		SAID(what);
		ATF_CHECK_STREQ("answer", hdr.nr_name);
		ATF_CHECK_EQ(rows[i].type, hdr.nr_reqtype);
		ATF_CHECK_EQ(EINVAL, request(rows[i].type, "vale0:x", NULL));
		SAID(" lock(rd) unlock(rd)");
		ATF_CHECK_STREQ("vale0:x", hdr.nr_name);
		/* With a port, that others may have. */
		that->rd_port = &port;
		that->rd_registered = true;
		ATF_CHECK_EQ(0, request(rows[i].type, "vale0:x", &reg));
		snprintf(what, sizeof(what),
		    " lock(rd) lock(rp) wrlck(6)%s unlck(6) unlock(rp)"
		    " unlock(rd)", call);
		SAID(what);
		that->rd_registered = false;
	}
	/* As the newest version. */
	strcpy(hdr.nr_name, "vale0:x");
	hdr.nr_version = NETMAP_API_MAX;
	ATF_CHECK_EQ(0, run_ioctl(that, NIOCCTRL, &hdr));
	ATF_CHECK_EQ(NETMAP_API_MAX, hdr.nr_version);
	ATF_CHECK(strstr(said_text, ",14,") != NULL);
	quiet();
	fail.call = ENOENT;
	ATF_CHECK_EQ(ENOENT, request(INFO, "vale0:x", &reg));
	ATF_CHECK_STREQ("vale0:x", hdr.nr_name);
	that->rd_connected = false;
	fail.join = ECONNREFUSED;
	quiet();
	ATF_CHECK_EQ(ECONNREFUSED, request(INFO, "vale0:x", &reg));
	SAID(" lock(rd) join(6,/path)" SAYS " unlock(rd)");
}

static int	error_wanted;
static uint16_t	type_wanted;
static const char *name_wanted = "vale0:x";

static void
makes_request(void)
{
	ATF_CHECK_EQ(error_wanted, request(type_wanted, name_wanted, &reg));
}

TEST(debugs, "Why a port is refused is said, and all else that went wrong if "
    "that is asked for")
{
	opened();
	reg.nr_mode = NR_REG_NULL;
	type_wanted = REG;
	error_wanted = fail.port_open = EBUSY;
	that->rd_connected = true;
	why = "the rings are taken";
	/* A refused port is said once, or each time. */
	ATF_CHECK_STREQ("netmap-run: vale0:x: the rings are taken\n",
	    written(makes_request));
	ATF_CHECK_STREQ("", written(makes_request));
	debug = "";
	ATF_CHECK_STREQ("netmap-run: vale0:x: the rings are taken\n",
	    written(makes_request));
	that->rd_connected = false;
	ATF_CHECK_STREQ("netmap-run: vale0:x: the rings are taken\n",
	    written(makes_request));
	/* run_connect() has said it. */
	why = "";
	ATF_CHECK_STREQ("", written(makes_request));
	that->rd_connected = true;
	ATF_CHECK_STREQ("netmap-run: vale0:x: Device or resource busy\n",
	    written(makes_request));
	name_wanted = "";
	ATF_CHECK_STREQ("netmap-run: Device or resource busy\n",
	    written(makes_request));
	type_wanted = INFO;
	error_wanted = fail.call = ENOENT;
	why = "no port";
	ATF_CHECK_STREQ("netmap-run: no port\n", written(makes_request));
	name_wanted = "vale0:y";
	ATF_CHECK_STREQ("netmap-run: vale0:y: no port\n",
	    written(makes_request));
}

TEST(gone, "When valed has gone, a descriptor without a port gets another "
    "socket, under all its numbers")
{
	static const int errors[] = { EPIPE, ECONNRESET, ENOTCONN };
	unsigned int i;

	opened();
	run_copied(that, 40);
	run_copied(that, 0);
	run_copied(that, RUN_FDS - 1);
	for (i = 0; i < nitems(errors); i++) {
		fail = (struct failure){ .call = errors[i] };
		that->rd_connected = true;
		getfd = i == 0 ? FD_CLOEXEC : i == 1 ? 0 : -1;
		quiet();
		ATF_CHECK_EQ(ENXIO, request(NETMAP_REQ_PORT_HDR_GET,
		    "vale0:x", &reg));
		ATF_CHECK(!that->rd_connected);
		if (i == 0)
			SAID(" lock(rd) wrlck(6) call(6,vale0:x,7,14,0,8)"
			    " unlck(6)" SAYS " socket lock(table)"
			    " getfd(0) dup3(5,0,0x80000)"
			    " getfd(5) dup3(5,5,0x80000)"
			    " getfd(40) dup3(5,40,0x80000)"
			    " getfd(65535) dup3(5,65535,0x80000)"
			    " dup3(5,6,0x80000) unlock(table) close(5)"
			    " unlock(rd)");
		else
			ATF_CHECK(strstr(said_text, " getfd(40) dup3(5,40,0)"
			    " getfd(65535) dup3(5,65535,0) dup3(5,6,0x80000)")
			    != NULL);
	}
	/* Other errors. */
	fail.call = ECONNABORTED;
	that->rd_connected = true;
	ATF_CHECK_EQ(ECONNABORTED, request(INFO, "vale0:x", &reg));
	ATF_CHECK(that->rd_connected);
	/* No socket. */
	fail = (struct failure){ .call = EPIPE, .socket = EMFILE };
	quiet();
	ATF_CHECK_EQ(ENXIO, request(INFO, "vale0:x", &reg));
	ATF_CHECK(that->rd_connected);
	ATF_CHECK(strstr(said_text, "dup3") == NULL);
	ATF_CHECK(strstr(said_text, "close") == NULL);
	/* Of a registration. */
	fail = (struct failure){ .port_open = EPIPE };
	quiet();
	ATF_CHECK_EQ(ENXIO, request(REG, "vale0:x", &reg));
	ATF_CHECK(!that->rd_connected);
	ATF_CHECK(strstr(said_text, " dup3(5,6,0x80000)") != NULL);
	/* With a port, that is all. */
	fail = (struct failure){ .call = EPIPE };
	that->rd_port = &port;
	that->rd_registered = true;
	quiet();
	ATF_CHECK_EQ(ENXIO, request(INFO, "vale0:x", &reg));
	ATF_CHECK(strstr(said_text, "socket") == NULL);
}

TEST_PROGRAM
