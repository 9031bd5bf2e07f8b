// SPDX-License-Identifier: GPL-2.0-only
/*
 * What it costs by the number of buffers to tell other tasks of them and to take their dma-bufs, with a store of files like
 * criu's: a socket that is sent to itself and peeked at from an offset. "walked" is how many messages the kernel passes on
 * the way to those that are asked for, which is what grows with the square.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "host/host.h"
#include "share/table.h"

static int store = -1;
static int nr_kept;
static uint64_t nr_walked, nr_gets;

union control {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void store_open(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1);
	int bytes = INT32_MAX / 2;

	length += (socklen_t)snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "bench-share-%d", (int)getpid());
	store = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (store < 0 || setsockopt(store, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) ||
	    setsockopt(store, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) ||
	    bind(store, (struct sockaddr *)&address, length) || connect(store, (struct sockaddr *)&address, length))
		die("the store (root is needed)");
}

static void message(struct msghdr *msg, struct iovec *iov, union control *control)
{
	static char byte;

	*iov = (struct iovec){ &byte, 1 };
	*msg = (struct msghdr){
		.msg_iov = iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(*control),
	};
}

int criu_keep_files(const int *fds, size_t nr)
{
	int fd = bundle_new(fds, nr);
	union control control = { .bytes = { 0 } };
	struct iovec iov;
	struct msghdr msg;

	message(&msg, &iov, &control);
	CMSG_FIRSTHDR(&msg)->cmsg_level = SOL_SOCKET;
	CMSG_FIRSTHDR(&msg)->cmsg_type = SCM_RIGHTS;
	CMSG_FIRSTHDR(&msg)->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &fd, sizeof(fd));
	if (sendmsg(store, &msg, 0) < 0)
		die("sendmsg");
	close(fd);
	return nr_kept++;
}

int criu_kept_files(int store_id, int fds[BUNDLE_MAX], size_t *ret_nr)
{
	union control control;
	struct iovec iov;
	struct msghdr msg;
	int fd, err;

	message(&msg, &iov, &control);
	if (setsockopt(store, SOL_SOCKET, SO_PEEK_OFF, &store_id, sizeof(store_id)) || recvmsg(store, &msg, MSG_PEEK) < 0)
		die("recvmsg");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	nr_walked += (uint64_t)store_id;
	nr_gets++;
	err = bundle_open(fd, fds, ret_nr);
	close(fd);
	return err;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Processor time of telling of @nr buffers and of taking each @times. */
static double run(uint32_t nr, unsigned int times)
{
	struct share_table *table = share_table_new();
	struct share_batch batch = { 0 };
	int fd = memfd_create("buffer", MFD_CLOEXEC);
	struct share_open open = { 0 };
	double begin = now(), seconds;

	if (!table || fd < 0)
		die("memory");
	store_open();
	nr_kept = 0;
	nr_walked = nr_gets = 0;
	for (uint32_t i = 1; i <= nr; i++)
		if (share_batch_add(&batch, table, i, fd))
			exit(1);
	if (share_batch_export(&batch, table))
		exit(1);
	for (unsigned int time = 0; time < times; time++)
		for (uint32_t i = 1; i <= nr; i++)
			if (share_table_borrow(table, &open, i) < 0)
				exit(1);
	share_open_done(&open);
	seconds = now() - begin;
	close(store);
	close(fd);
	share_table_free(table);
	return seconds;
}

int main(void)
{
	static const struct {
		uint32_t nr;
		unsigned int times;
	} runs[] = { { 2500, 1 }, { 5000, 1 }, { 10000, 1 }, { 20000, 1 }, { 512, 8 }, { 1024, 16 }, { 2048, 32 }, { 4096, 64 } };

	printf("buffers  taken by  microseconds a time  walked a time\n");
	for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
		double seconds = run(runs[i].nr, runs[i].times);

		printf("%7u %9u %20.1f %14.1f\n", runs[i].nr, runs[i].times,
		       seconds * 1e6 / ((double)runs[i].nr * runs[i].times), (double)nr_walked / (double)nr_gets);
	}
	return 0;
}
