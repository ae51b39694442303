/*
 * Copyright (c) 2026 The bhyve-vale authors
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */

/*
 * --openmetrics=http: one request of HTTP/1.x on stdin, which a service manager
 * has accepted, and its reply on stdout.  The client is not trusted: there is a
 * limit to what it sends and to its time, and only the request line and what it
 * accepts are looked at.
 */

#include <err.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>
#include <unistd.h>

#include "valectl.h"

#define	REQUEST_MAX	8192	/* bytes, with all headers */
#define	REQUEST_S	10	/* from the first byte to the reply's last */

#define	TYPE_TEXT	"text/plain; version=0.0.4; charset=utf-8"
#define	TYPE_OPENMETRICS						\
	"application/openmetrics-text; version=1.0.0; charset=utf-8"

/* Write a reply, whose body is left out for HEAD. */
static void
reply(const char *status, const char *type, const char *body, size_t size,
    bool head)
{
	printf("HTTP/1.1 %s\r\n"
	    "Content-Type: %s\r\n"
	    "Content-Length: %zu\r\n"
	    "%s"
	    "Connection: close\r\n\r\n", status, type, size,
	    strncmp(status, "405", 3) == 0 ? "Allow: GET, HEAD\r\n" : "");
	if (!head)
		fwrite(body, 1, size, stdout);
}

static void __printflike(3, 4)
refuse(const char *status, bool head, const char *fmt, ...)
{
	char text[1400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text) - 1, fmt, ap);
	va_end(ap);
	strlcat(text, "\n", sizeof(text));
	reply(status, "text/plain; charset=utf-8", text, strlen(text), head);
}

/* Read up to the empty line.  Returns false after a reply, or the end. */
static bool
request_read(char request[REQUEST_MAX])
{
	size_t len = 0;
	ssize_t n;

	do {
		if (len == REQUEST_MAX - 1) {
			refuse("431 Request Header Fields Too Large", false,
			    "more than %d bytes", REQUEST_MAX - 1);
			return (false);
		}
		n = read(STDIN_FILENO, request + len, REQUEST_MAX - 1 - len);
		if (n <= 0)
			return (false);
		len += n;
		request[len] = '\0';
		if (strlen(request) != len) {
			refuse("400 Bad Request", false, "a NUL");
			return (false);
		}
	} while (strstr(request, "\r\n\r\n") == NULL &&
	    strstr(request, "\n\n") == NULL);
	return (true);
}

/* Return whether a header says that the client takes OpenMetrics. */
static bool
request_takes(const char *headers)
{
	static const char name[] = "\nAccept:", *const type =
	    "application/openmetrics-text";
	const char *p, *found;

	for (p = headers; (p = strchr(p, '\n')) != NULL; p++) {
		if (strncasecmp(p, name, strlen(name)) != 0)
			continue;
		found = strcasestr(p, type);
		if (found != NULL && found < p + 1 + strcspn(p + 1, "\n"))
			return (true);
	}
	return (false);
}

/* Reply with the metrics. */
static void
serve(bool openmetrics, bool head)
{
	char *text = NULL, why[1280];
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (f == NULL)
		err(EX_OSERR, NULL);
	if (vc_metrics(f, openmetrics) == -1) {
		if (!vale_find_error(errno, why, sizeof(why)))
			strlcpy(why, strerror(errno), sizeof(why));
		fclose(f);
		refuse("503 Service Unavailable", head, "%s", why);
	} else if (fclose(f) != 0)
		err(EX_OSERR, NULL);
	else
		reply("200 OK", openmetrics ? TYPE_OPENMETRICS : TYPE_TEXT,
		    text, size, head);
	free(text);
}

void
vc_http(void)
{
	char request[REQUEST_MAX], method[8], path[256], version[16];
	bool head;
	size_t len;

	/* A client that does not read, or write, ends the program. */
	alarm(REQUEST_S);
	if (!request_read(request))
		return;
	len = strcspn(request, "\r\n");
	if (len >= 512 || sscanf(request, "%7s %255s %15[^\r\n ]", method, path,
	    version) != 3 || strncmp(version, "HTTP/1.", 7) != 0) {
		refuse("400 Bad Request", false, "not a request of HTTP/1.1");
		return;
	}
	head = strcmp(method, "HEAD") == 0;
	if (!head && strcmp(method, "GET") != 0) {
		refuse("405 Method Not Allowed", false, "not GET or HEAD");
		return;
	}
	path[strcspn(path, "?")] = '\0';
	if (strcmp(path, "/metrics") != 0) {
		refuse("404 Not Found", head, "only /metrics is there");
		return;
	}
	serve(request_takes(request + len), head);
}
