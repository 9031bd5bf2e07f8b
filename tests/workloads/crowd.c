// SPDX-License-Identifier: GPL-2.0-only
/*
 * crowd.so: what a program may have besides, for LD_PRELOAD: $CROWD_THREADS threads that sleep or compute, a TCP
 * connection to itself, an io_uring, with $CROWD_SECCOMP a filter that allows no further memfd, as
 * injected calls make one, and with $CROWD_LOCK all memory locked.
 */
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES (64u << 10)

static void give_up(const char *what)
{
	perror(what);
	_exit(125);
}

static void *idle(void *arg)
{
	for (;;)
		if (arg)
			usleep(1000);
		else
			pause();
	return NULL;
}

static void start_threads(long nr)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (long i = 0; i < nr; i++)
		if (pthread_create(&thread, &attr, idle, i % 8 ? NULL : &attr))
			give_up("crowd: pthread_create");
}

static void connect_to_itself(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(server, (struct sockaddr *)&address, len) || listen(server, 1) ||
	    getsockname(server, (struct sockaddr *)&address, &len) ||
	    connect(client, (struct sockaddr *)&address, len) || accept(server, NULL, NULL) < 0)
		give_up("crowd: TCP");
}

static void fence(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
		give_up("crowd: seccomp");
}

/* Also where the program goes on in a child, which has only one thread and no memory locked. */
static void start_all(void)
{
	const char *nr = getenv("CROWD_THREADS");

	if (getenv("CROWD_LOCK") && mlockall(MCL_CURRENT | MCL_FUTURE))
		give_up("crowd: mlockall");
	start_threads(nr ? atol(nr) : 0);
}

static void __attribute__((constructor)) begin(void)
{
	struct io_uring_params params = { 0 };

	connect_to_itself();
	if (syscall(SYS_io_uring_setup, 4, &params) < 0)
		give_up("crowd: io_uring");
	if (getenv("CROWD_SECCOMP"))
		fence();
	pthread_atfork(NULL, NULL, start_all);
}
