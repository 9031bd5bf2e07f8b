// SPDX-License-Identifier: GPL-2.0-only
/*
 * meshjob: GPU processes with many buffers of one page, of which every byte is known. Either each process has buffers that
 * all others have imported, or several GPUs and buffers that nobody else has, or one process has handles of a render node,
 * each mapped on the GPU.
 *
 * Prints "ready", on each SIGUSR1 "verified BYTES" when all are right that the first process can reach, and ends on SIGTERM.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../workloads/gem.h"
#include "../workloads/kfd.h"
#include "../workloads/pattern.h"
#include "../workloads/report.h"

#define MAX_PROCESSES 64u
#define MAX_BUFFERS   64u
#define HANDLES_VA    0x100000000000ull /* on the GPU */
#define NAP_USEC      2000

static struct control {
	atomic_uint arrived, failed;
	pid_t pids[MAX_PROCESSES];
	int dmabufs[MAX_PROCESSES][MAX_BUFFERS]; /* open there until all have them */
} *control;

static unsigned int nr_processes, nr_buffers, nr_handles, nr_gpus = 1, me;
static bool apart;
static struct kfd kfd;
static struct kfd_bo *bos; /* of all processes */
static uint32_t *handles;

/* Waits until all have come as often. */
static int meet(unsigned int times)
{
	atomic_fetch_add(&control->arrived, 1);
	while (atomic_load(&control->arrived) < times * nr_processes) {
		if (atomic_load(&control->failed))
			return -ECANCELED;
		usleep(NAP_USEC);
	}
	return 0;
}

/* ---- buffers of all processes ---- */

static int own_make(unsigned int i)
{
	struct kfd_bo *bo = &bos[me * nr_buffers + i];
	int err = kfd_bo_alloc(&kfd, &kfd.gpus[0], KFD_MEMORY_GTT, KFD_PAGE_SIZE, bo);

	if (err)
		return err;
	pattern_fill(bo->cpu, KFD_PAGE_SIZE, me * nr_buffers + i + 1, 0);
	return kfd_bo_export(&kfd, bo, &control->dmabufs[me][i]);
}

static int others_take(unsigned int from)
{
	int pidfd = (int)syscall(SYS_pidfd_open, control->pids[from], 0), err = 0;

	if (pidfd < 0)
		return report(errno, "process %u: %m", from);
	for (unsigned int i = 0; !err && i < nr_buffers; i++) {
		int fd = (int)syscall(SYS_pidfd_getfd, pidfd, control->dmabufs[from][i], 0);

		if (fd < 0)
			return report(errno, "dma-buf %u of process %u: %m", i, from);
		err = kfd_bo_import(&kfd, &kfd.gpus[0], fd, KFD_PAGE_SIZE, &bos[from * nr_buffers + i]);
		close(fd);
	}
	close(pidfd);
	return err;
}

static int mesh_setup(void)
{
	int err = 0;

	control->pids[me] = getpid();
	bos = calloc((size_t)nr_processes * nr_buffers, sizeof(*bos));
	if (!bos)
		return report(ENOMEM, "no memory for %u BOs", nr_processes * nr_buffers);
	for (unsigned int i = 0; !err && i < nr_buffers; i++)
		err = own_make(i);
	err = err ? err : meet(1);
	for (unsigned int i = 0; !err && i < nr_processes; i++)
		err = i == me || apart ? 0 : others_take(i);
	err = err ? err : meet(2);
	for (unsigned int i = 0; !err && i < nr_buffers; i++)
		close(control->dmabufs[me][i]);
	return err ? err : meet(3);
}

/* ---- handles ---- */

static int handles_setup(void)
{
	int err = 0, file = kfd.gpus[0].render_fd;

	handles = calloc(nr_handles, sizeof(*handles));
	if (!handles)
		return report(ENOMEM, "no memory for %u handles", nr_handles);
	for (unsigned int i = 0; !err && i < nr_handles; i++) {
		uint64_t offset = 0;
		void *p;

		err = gem_create(file, KFD_PAGE_SIZE, GEM_DOMAIN_GTT, 0, &handles[i]);
		err = err ? err : gem_mmap_offset(file, handles[i], &offset);
		err = err ? err : gem_va_map(file, handles[i], HANDLES_VA + (uint64_t)i * KFD_PAGE_SIZE, 0,
					     KFD_PAGE_SIZE, GEM_READ | GEM_WRITE);
		p = err ? MAP_FAILED : mmap(NULL, KFD_PAGE_SIZE, PROT_WRITE, MAP_SHARED, file, (off_t)offset);
		if (p == MAP_FAILED)
			return err ? err : report(errno, "mmap of handle %u: %m", handles[i]);
		pattern_fill(p, KFD_PAGE_SIZE, i + 1, 0);
		munmap(p, KFD_PAGE_SIZE);
	}
	return err;
}

/* ---- what is right ---- */

static int page_check(int file, uint32_t handle, unsigned int number)
{
	struct pattern_diff diff;
	uint64_t offset = 0;
	int err = gem_mmap_offset(file, handle, &offset);
	void *p = err ? MAP_FAILED : mmap(NULL, KFD_PAGE_SIZE, PROT_READ, MAP_SHARED, file, (off_t)offset);

	if (p == MAP_FAILED)
		return err ? err : report(errno, "mmap of buffer %u: %m", number);
	if (!pattern_check(p, KFD_PAGE_SIZE, number + 1, 0, &diff))
		err = report(EILSEQ, "buffer %u has wrong contents", number);
	munmap(p, KFD_PAGE_SIZE);
	return err;
}

/* Whoever made it. */
static int bo_check(int file, unsigned int number)
{
	uint32_t handle;
	int err = gem_import_bo(file, &kfd, &bos[number], &handle);

	if (err)
		return err;
	err = page_check(file, handle, number);
	return err ? err : gem_close(file, handle);
}

static int check(void)
{
	unsigned int nr = nr_handles ? nr_handles : (apart ? 1 : nr_processes) * nr_buffers;
	int err = 0, file = nr_handles ? kfd.gpus[0].render_fd : kfd_gpu_reopen(&kfd.gpus[0]);

	if (file < 0)
		return report(-file, "the render node: %s", strerror(-file));
	for (unsigned int i = 0; !err && i < nr; i++)
		err = nr_handles ? page_check(file, handles[i], i) : bo_check(file, i);
	if (!nr_handles)
		close(file);
	if (!err)
		dprintf(STDOUT_FILENO, "verified %" PRIu64 "\n", (uint64_t)nr * KFD_PAGE_SIZE);
	return err;
}

/* ---- processes ---- */

static int serve(const sigset_t *signals)
{
	int err = 0, number;

	if (!me)
		dprintf(STDOUT_FILENO, "ready\n");
	while (!err) {
		number = sigwaitinfo(signals, NULL);
		if (number == SIGTERM)
			return 0;
		if (number == SIGUSR1)
			err = check();
	}
	return err;
}

static int run(const sigset_t *signals)
{
	pid_t first = getpid();
	int err;

	for (unsigned int i = 1; i < nr_processes && !me; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return report(errno, "fork: %m");
		me = pid ? 0 : i;
	}
	if (me) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != first)
			return -ECANCELED;
	}
	err = kfd_open(&kfd, UINT64_MAX >> (64 - nr_gpus), false);
	if (!err)
		err = nr_handles ? handles_setup() : mesh_setup();
	if (err)
		atomic_store(&control->failed, 1);
	return err ? err : serve(signals);
}

static unsigned int number(const char *text)
{
	return (unsigned int)strtoul(text, NULL, 10);
}

int main(int argc, char **argv)
{
	sigset_t signals;

	report_name("meshjob");
	if (argc == 3 && !strcmp(argv[1], "handles")) {
		nr_processes = 1;
		nr_handles = number(argv[2]);
	} else if (argc == 4 && !strcmp(argv[1], "mesh")) {
		nr_processes = number(argv[2]);
		nr_buffers = number(argv[3]);
	} else if (argc == 5 && !strcmp(argv[1], "apart")) {
		apart = true;
		nr_processes = number(argv[2]);
		nr_buffers = number(argv[3]);
		nr_gpus = number(argv[4]);
	}
	if (!nr_gpus || nr_gpus > KFD_MAX_GPUS || !nr_processes || nr_processes > MAX_PROCESSES ||
	    nr_buffers > MAX_BUFFERS || !(nr_handles || nr_buffers)) {
		fprintf(stderr, "usage: meshjob handles NUMBER | meshjob mesh PROCESSES BUFFERS_OF_EACH | "
			"meshjob apart PROCESSES BUFFERS_OF_EACH GPUS\n");
		return 2;
	}
	control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (control == MAP_FAILED)
		return 1;
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	return run(&signals) ? 1 : 0;
}
