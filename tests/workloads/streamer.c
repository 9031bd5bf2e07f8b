// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stands in for criu-image-streamer: speaks its protocol to one criu with --stream.
 *
 *     streamer capture DIR STORE     what criu dumps becomes files in STORE
 *     streamer serve DIR STORE       gives each file of STORE to criu once, and removes it
 *
 * The socket is in DIR. On it, criu names a file (a 32-bit length and a protobuf message
 * with one string); when serving, the answer says whether it exists; then criu sends the
 * other end of a pipe. The names are printed in the order in which they were asked for.
 *
 * Files of the plugin are served strictly one after the other: the next request is only
 * answered when the file before has been read. criu's own are served side by side, since
 * it reads several at a time.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fdpass.h"

#define NAME_MAX_BYTES 120
#define STALLED_MS     60000

enum { FIELD_1_STRING = 0x0a, FIELD_1_NUMBER = 0x08 };

static int store;

static void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

static void die(const char *fmt, ...)
{
	va_list args;

	fputs("streamer: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fprintf(stderr, " (%s)\n", strerror(errno));
	exit(1);
}

static int accept_criu(const char *dir, bool capture)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), criu;
	int n = snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/streamer-%s.sock", dir, capture ? "capture" : "serve");

	if (n >= (int)sizeof(addr.sun_path))
		die("%s is too long", dir);
	unlink(addr.sun_path);
	if (sock < 0 || bind(sock, (struct sockaddr *)&addr, sizeof(addr)) || listen(sock, 1))
		die("%s", addr.sun_path);
	criu = accept4(sock, NULL, NULL, SOCK_CLOEXEC);
	if (criu < 0)
		die("accept");
	close(sock);
	return criu;
}

/* False at the end of the connection. */
static bool receive_all(int criu, void *data, size_t len)
{
	ssize_t n = recv(criu, data, len, MSG_WAITALL);

	if (n && n != (ssize_t)len)
		die("a message of %zd bytes instead of %zu", n, len);
	return n;
}

static bool receive_name(int criu, char name[NAME_MAX_BYTES + 1])
{
	uint8_t message[2 + NAME_MAX_BYTES];
	uint32_t len;

	if (!receive_all(criu, &len, sizeof(len)))
		return false;
	if (len < 3 || len > sizeof(message) || !receive_all(criu, message, len) || message[0] != FIELD_1_STRING ||
	    message[1] != len - 2)
		die("not a request: %u bytes", len);
	memcpy(name, message + 2, len - 2);
	name[len - 2] = '\0';
	if (strchr(name, '/'))
		die("%s is no name", name);
	return true;
}

static void send_reply(int criu, bool exists)
{
	const struct {
		uint32_t len;
		uint8_t message[2];
	} __attribute__((packed)) reply = { .len = 2, .message = { FIELD_1_NUMBER, exists } };

	if (send(criu, &reply, sizeof(reply), MSG_NOSIGNAL) != sizeof(reply))
		die("sending a reply");
}

static int receive_pipe(int criu)
{
	char byte;
	int fd;

	if (fdpass_receive(criu, &byte, 1, &fd) || fd < 0)
		die("no pipe came");
	return fd;
}

static void copy(int from, int to, const char *name)
{
	static char buf[1 << 16];
	struct pollfd p = { .fd = to, .events = POLLOUT };
	ssize_t n;

	while ((n = read(from, buf, sizeof(buf))) > 0)
		for (ssize_t done = 0, m; done < n; done += m) {
			if (poll(&p, 1, STALLED_MS) != 1)
				die("%s is not read", name);
			m = write(to, buf + done, (size_t)(n - done) < 4096 ? (size_t)(n - done) : 4096);
			if (m < 0)
				die("writing %s", name);
		}
	if (n < 0)
		die("reading %s", name);
}

/* In a process of its own unless @wait. */
static void copy_and_close(int criu, int from, int to, const char *name, bool wait)
{
	pid_t pid = wait ? 0 : fork();

	if (pid < 0)
		die("fork");
	if (!pid)
		copy(from, to, name);
	if (!pid && !wait) {
		close(criu);
		_exit(0);
	}
	close(from);
	close(to);
}

static void capture(int criu)
{
	char name[NAME_MAX_BYTES + 1];

	while (receive_name(criu, name)) {
		int from = receive_pipe(criu);
		int to = openat(store, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

		if (to < 0)
			die("%s came twice", name);
		puts(name);
		copy_and_close(criu, from, to, name, false);
	}
}

static void serve(int criu)
{
	char name[NAME_MAX_BYTES + 1];

	while (receive_name(criu, name)) {
		int from = openat(store, name, O_RDONLY | O_CLOEXEC);

		send_reply(criu, from >= 0);
		if (from < 0)
			continue;
		puts(name);
		unlinkat(store, name, 0);
		copy_and_close(criu, from, receive_pipe(criu), name, !strncmp(name, "amdgpu-", 7));
	}
}

int main(int argc, char **argv)
{
	bool is_capture = argc == 4 && !strcmp(argv[1], "capture");
	int criu, status, failed = 0;

	if (argc != 4 || (!is_capture && strcmp(argv[1], "serve"))) {
		fputs("usage: streamer capture|serve DIR STORE\n", stderr);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	setvbuf(stdout, NULL, _IOLBF, 0);
	store = open(argv[3], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store < 0)
		die("%s", argv[3]);
	criu = accept_criu(argv[2], is_capture);
	(is_capture ? capture : serve)(criu);
	while (wait(&status) > 0)
		failed += status != 0;
	return failed != 0;
}
