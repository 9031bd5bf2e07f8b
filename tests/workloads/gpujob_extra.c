// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of extras, and those that are short: SVM ranges, userptr memory of a memfd, a BO mapped in several
 * ways, a child with inherited device files, and things that cannot be dumped.
 */
#include <errno.h>
#include <fcntl.h>
#include <libdrm/amdgpu_drm.h>
#include <linux/kfd_ioctl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fdpass.h"
#include "gem.h"
#include "gpujob_extra.h"
#include "pattern.h"
#include "report.h"

#define EXTRA_BYTES (8 * KFD_PAGE_SIZE)

/* KFD 1.19, newer than some headers. */
#define IOCTL_CREATE_PROCESS _IO('K', 0x27)

static void *anonymous(int flags)
{
	void *p = mmap(NULL, EXTRA_BYTES, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		report(errno, "mmap of %u bytes: %m", EXTRA_BYTES);
	return p;
}

/* The pattern as the GPU and as the CPU sees it, and what the GPU writes there. */
static int memory_check(struct job_gpu *gpu, const char *what, void *p)
{
	uint64_t va = (uint64_t)(uintptr_t)p, seed = gpu->seed + 0x5000;
	struct pattern_diff diff;
	int err = job_gpu_copy(gpu, gpu->window.va, va, EXTRA_BYTES);

	if (err)
		return err;
	if (!pattern_check(gpu->window.cpu, EXTRA_BYTES, seed, 0, &diff) || !pattern_check(p, EXTRA_BYTES, seed, 0, &diff))
		return report(EILSEQ, "%s: byte %lu is %#04x, want %#04x", what, (unsigned long)diff.offset, diff.got,
			      diff.want);
	memset(p, 0, EXTRA_BYTES);
	err = job_gpu_copy(gpu, va, gpu->window.va, EXTRA_BYTES);
	if (!err && !pattern_check(p, EXTRA_BYTES, seed, 0, &diff))
		err = report(EILSEQ, "%s written by the GPU: byte %lu is %#04x", what, (unsigned long)diff.offset, diff.got);
	return err;
}

/* A child that dies with the process: 0 there, its pid here, -errno. */
static pid_t child_fork(void)
{
	pid_t pid = fork();

	if (pid < 0)
		return report(errno, "fork: %m");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGTERM, SIG_DFL);
	return 0;
}

static void __attribute__((noreturn)) sleep_for_ever(void)
{
	for (;;)
		pause();
}

/* ---- svm ---- */

static void *svm_memory;

int job_svm_attributes(struct job_gpu *gpu, uint32_t op, const void *p, uint64_t bytes,
		       struct kfd_ioctl_svm_attribute *attrs, uint32_t n)
{
	struct {
		struct kfd_ioctl_svm_args args;
		struct kfd_ioctl_svm_attribute attrs[4];
	} svm = { .args = { .start_addr = (uintptr_t)p, .size = bytes, .op = op, .nattr = n } };
	int err;

	memcpy(svm.attrs, attrs, n * sizeof(*attrs));
	err = kfd_ioctl(gpu->kfd->fd, AMDKFD_IOC_SVM + ((unsigned long)n * sizeof(*attrs) << _IOC_SIZESHIFT), &svm);
	memcpy(attrs, svm.attrs, n * sizeof(*attrs));
	return err ? report(-err, "SVM operation %u: %s", op, strerror(-err)) : 0;
}

static int svm_setup(struct job_gpu *gpu)
{
	struct kfd_ioctl_svm_attribute attrs[] = {
		{ KFD_IOCTL_SVM_ATTR_ACCESS, gpu->gpu->gpu_id },
		{ KFD_IOCTL_SVM_ATTR_SET_FLAGS, KFD_IOCTL_SVM_FLAG_GPU_EXEC },
		{ KFD_IOCTL_SVM_ATTR_GRANULARITY, 5 },
	};

	svm_memory = anonymous(MAP_PRIVATE);
	if (svm_memory == MAP_FAILED)
		return -ENOMEM;
	pattern_fill(svm_memory, EXTRA_BYTES, gpu->seed + 0x5000, 0);
	return job_svm_attributes(gpu, KFD_IOCTL_SVM_OP_SET_ATTR, svm_memory, EXTRA_BYTES, attrs, 3);
}

static int svm_check(struct job_gpu *gpu)
{
	struct kfd_ioctl_svm_attribute attrs[] = {
		{ KFD_IOCTL_SVM_ATTR_ACCESS, gpu->gpu->gpu_id },
		{ KFD_IOCTL_SVM_ATTR_SET_FLAGS, 0 },
		{ KFD_IOCTL_SVM_ATTR_GRANULARITY, 0 },
	};
	int err = job_svm_attributes(gpu, KFD_IOCTL_SVM_OP_GET_ATTR, svm_memory, EXTRA_BYTES, attrs, 3);

	if (err)
		return err;
	if (attrs[0].type != KFD_IOCTL_SVM_ATTR_ACCESS || !(attrs[1].value & KFD_IOCTL_SVM_FLAG_GPU_EXEC) ||
	    attrs[2].value != 5)
		return report(EILSEQ, "SVM range: access %u, flags %#x, granularity %u", attrs[0].type, attrs[1].value,
			      attrs[2].value);
	return memory_check(gpu, "SVM range", svm_memory);
}

/* ---- memfd: userptr memory that is shared ---- */

static struct kfd_bo memfd_bo;

static int memfd_setup(struct job_gpu *gpu)
{
	int fd = memfd_create("userptr", MFD_CLOEXEC);
	void *p = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, EXTRA_BYTES))
		p = mmap(NULL, EXTRA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return report(errno, "memfd of %u bytes: %m", EXTRA_BYTES);
	close(fd);
	pattern_fill(p, EXTRA_BYTES, gpu->seed + 0x5000, 0);
	return kfd_bo_adopt(gpu->kfd, gpu->gpu, p, EXTRA_BYTES, &memfd_bo);
}

static int memfd_check(struct job_gpu *gpu)
{
	return memory_check(gpu, "userptr memory of a memfd", memfd_bo.cpu);
}

static int memfd_teardown(struct job_gpu *gpu)
{
	return kfd_bo_free(gpu->kfd, &memfd_bo);
}

/* ---- maps: a BO that is mapped in several ways ---- */

#define MAPS_PAGES (EXTRA_BYTES / KFD_PAGE_SIZE)
#define LEFT_PAGES (MAPS_PAGES - 1) /* of the second mapping; its last page is unmapped */
#define PART_PAGES 2u		    /* of the third mapping, which cannot be written */

static struct kfd_bo maps_bo;
static uint8_t *maps_second, *maps_third; /* elsewhere than the GPU has it */

static uint8_t *map_again(const struct job_gpu *gpu, unsigned int pages, int prot)
{
	void *p = mmap(NULL, pages * KFD_PAGE_SIZE, prot, MAP_SHARED, gpu->gpu->render_fd, (off_t)maps_bo.mmap_offset);

	if (p == MAP_FAILED || madvise(p, pages * KFD_PAGE_SIZE, MADV_DONTFORK))
		return NULL;
	return p;
}

static int maps_setup(struct job_gpu *gpu)
{
	int err = kfd_bo_alloc(gpu->kfd, gpu->gpu, KFD_MEMORY_GTT, EXTRA_BYTES, &maps_bo);

	if (err)
		return err;
	pattern_fill(maps_bo.cpu, EXTRA_BYTES, gpu->seed + 0x5000, 0);
	maps_second = map_again(gpu, MAPS_PAGES, PROT_READ | PROT_WRITE);
	maps_third = map_again(gpu, PART_PAGES, PROT_READ);
	if (!maps_second || !maps_third || munmap(maps_second + LEFT_PAGES * KFD_PAGE_SIZE, KFD_PAGE_SIZE))
		return report(errno, "mappings of a GTT BO: %m");
	return 0;
}

/* What is written through the first is seen through the others. */
static bool pages_are_the_same(const volatile uint8_t *other, unsigned int pages)
{
	volatile uint8_t *first = maps_bo.cpu;
	bool same = true;

	for (unsigned int i = 0; i < pages; i++) {
		uint8_t was = first[i * KFD_PAGE_SIZE], now = was ^ 0xff;

		first[i * KFD_PAGE_SIZE] = now;
		same = same && other[i * KFD_PAGE_SIZE] == now;
		first[i * KFD_PAGE_SIZE] = was;
	}
	return same;
}

static int maps_check(struct job_gpu *gpu)
{
	int err = memory_check(gpu, "GTT that is mapped several times", maps_bo.cpu);

	if (!err && !(pages_are_the_same(maps_second, LEFT_PAGES) && pages_are_the_same(maps_third, PART_PAGES)))
		err = report(EILSEQ, "GTT that is mapped several times: the mappings show different memory");
	return err;
}

static int maps_teardown(struct job_gpu *gpu)
{
	munmap(maps_second, LEFT_PAGES * KFD_PAGE_SIZE);
	munmap(maps_third, PART_PAGES * KFD_PAGE_SIZE);
	return kfd_bo_free(gpu->kfd, &maps_bo);
}

/* ---- hole: what is behind it cannot be mapped again, since the kernel maps BOs from their start only ---- */

static int hole_setup(struct job_gpu *gpu)
{
	int err = maps_setup(gpu);

	return err || !munmap(maps_second + KFD_PAGE_SIZE, KFD_PAGE_SIZE) ? err : report(errno, "munmap: %m");
}

/* ---- fork: a child that has inherited the device files ---- */

static pid_t heir;
static volatile uint64_t *heir_beats; /* shared; [1] is not 0 when the child found something wrong */

static void heir_main(const struct job_gpu *gpu)
{
	for (;;) {
		struct kfd_ioctl_get_version_args version;

		/* The KFD of another process: nobody but that one may use it. */
		if (kfd_ioctl(gpu->kfd->fd, AMDKFD_IOC_GET_VERSION, &version) != -EBADF)
			heir_beats[1] = 1;
		if (kfd_gpu_reopen_check(gpu->gpu, gpu->gpu->render_fd))
			heir_beats[1] = 2;
		heir_beats[0]++;
		usleep(5000);
	}
}

/* In the second step: in the first, who waits for the job to be ready waits for every process with its pipe. */
static int fork_step(struct job_gpu *gpu)
{
	static unsigned int steps;

	if (++steps != 2)
		return 0;
	heir_beats = anonymous(MAP_SHARED);
	if (heir_beats == MAP_FAILED)
		return -ENOMEM;
	heir = child_fork();
	if (!heir)
		heir_main(gpu);
	return heir < 0 ? heir : 0;
}

static int fork_check(struct job_gpu *gpu)
{
	uint64_t beats;

	(void)gpu;
	if (!heir)
		return 0;
	beats = heir_beats[0];
	for (unsigned int naps = 0; heir_beats[0] == beats; naps++) {
		if (naps == 10000)
			return report(ETIME, "the child %d with inherited files stands still", (int)heir);
		usleep(1000);
	}
	return heir_beats[1] ? report(EILSEQ, "child with inherited files: %s is not what it was",
				      heir_beats[1] == 1 ? "/dev/kfd" : "the render node") : 0;
}

static int fork_teardown(struct job_gpu *gpu)
{
	(void)gpu;
	if (!heir)
		return 0;
	kill(heir, SIGKILL);
	return waitpid(heir, NULL, 0) == heir ? 0 : report(errno, "child with inherited files: %m");
}

/* ---- what cannot be dumped ---- */

/*
 * A child that has inherited a mapping, as of a program that does not keep its mappings from children, and has given
 * back its first page.
 */
static int lent_setup(struct job_gpu *gpu)
{
	void *p = mmap(NULL, gpu->log_bo.size_bytes, PROT_READ, MAP_SHARED, gpu->gpu->render_fd,
		       (off_t)gpu->log_bo.mmap_offset);
	pid_t pid;

	if (p == MAP_FAILED)
		return report(errno, "second mapping: %m");
	pid = child_fork();
	if (pid)
		return pid < 0 ? pid : 0;
	close_range(3, ~0u, 0);
	munmap(p, KFD_PAGE_SIZE);
	sleep_for_ever();
}

static int gem_setup(struct job_gpu *gpu)
{
	uint32_t handle;

	return gem_create(gpu->gpu->render_fd, EXTRA_BYTES, GEM_DOMAIN_GTT, 0, &handle);
}

static int smi_setup(struct job_gpu *gpu)
{
	struct kfd_ioctl_smi_events_args args = { .gpuid = gpu->gpu->gpu_id };
	int err = kfd_ioctl(gpu->kfd->fd, AMDKFD_IOC_SMI_EVENTS, &args);

	return err ? report(-err, "SMI_EVENTS: %s", strerror(-err)) : 0;
}

/* A thread makes a timer for itself and ends. */
static void *timer_thread(void *arg)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGURG };
	timer_t id;

	event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	return timer_create(CLOCK_MONOTONIC, &event, &id) ? arg : NULL;
}

static int timer_setup(struct job_gpu *gpu)
{
	void *failed = NULL;
	pthread_t thread;

	if (pthread_create(&thread, NULL, timer_thread, gpu) || pthread_join(thread, &failed) || failed)
		return report(EAGAIN, "a thread with a timer: %m");
	return 0;
}

/* Of a process that computes, criu knows no such file. */
static int misc_setup(struct job_gpu *gpu)
{
	(void)gpu;
	return open("/dev/cpu_dma_latency", O_RDONLY | O_CLOEXEC) < 0 ? report(errno, "/dev/cpu_dma_latency: %m") : 0;
}

/* Memory and doorbells stay mapped, and the GPU computes on. */
static int closed_setup(struct job_gpu *gpu)
{
	for (unsigned int i = 0; i < gpu->kfd->nr_gpus; i++)
		close(gpu->kfd->gpus[i].render_fd);
	return close(gpu->kfd->fd) ? report(errno, "close of /dev/kfd: %m") : 0;
}

static int context_setup(struct job_gpu *gpu)
{
	int fd = kfd_reopen(), err = fd < 0 ? fd : kfd_ioctl(fd, IOCTL_CREATE_PROCESS, NULL);

	(void)gpu;
	return err ? report(-err, "CREATE_PROCESS: %s", strerror(-err)) : 0;
}

/* A descriptor that is a path only. */
static int path_setup(struct job_gpu *gpu)
{
	(void)gpu;
	return open("/dev/kfd", O_PATH | O_CLOEXEC) < 0 ? report(errno, "/dev/kfd as a path: %m") : 0;
}

/* A second file of /dev/kfd that nobody has open: it is in a message that was not received. */
static int flight_setup(struct job_gpu *gpu)
{
	int sockets[2], fd = kfd_reopen(), err;

	(void)gpu;
	if (fd < 0)
		return fd;
	err = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) ? report(errno, "socketpair: %m") : 0;
	err = err ? err : fdpass_send(sockets[0], "", 1, fd);
	close(fd);
	return err;
}

/* Half of the doorbells has another protection, which makes two mappings of them. Queues can have theirs in both halves. */
static int bells_setup(struct job_gpu *gpu)
{
	if (mprotect((void *)(uintptr_t)gpu->gpu->doorbell_page, KFD_PAGE_SIZE, PROT_WRITE))
		return report(errno, "protection of doorbells: %m");
	return 0;
}

/* A child with a render node and nothing of the KFD, which has a context or a sync object there. */
static int child_with_node(const struct job_gpu *gpu, bool context)
{
	pid_t pid = child_fork();
	uint32_t made;
	int fd;

	if (pid)
		return pid < 0 ? pid : 0;
	close_range(3, ~0u, 0);
	fd = kfd_gpu_reopen(gpu->gpu);
	if (fd < 0 || (context ? gem_context_create(fd, &made) : syncobj_create(fd, false, &made)))
		_exit(1);
	sleep_for_ever();
}

static int drawing_setup(struct job_gpu *gpu)
{
	return child_with_node(gpu, true);
}

static int syncing_setup(struct job_gpu *gpu)
{
	return child_with_node(gpu, false);
}

/* A child that has VRAM of its own, no file of it and no mapping of any device. */
static int bare_setup(struct job_gpu *gpu)
{
	pid_t pid = child_fork();
	struct kfd_bo bo;
	struct kfd own;

	if (pid)
		return pid < 0 ? pid : 0;
	if (kfd_open(&own, ~0ull, false) || kfd_bo_alloc(&own, &own.gpus[gpu->gpu->index], KFD_MEMORY_VRAM, EXTRA_BYTES, &bo))
		_exit(1);
	close_range(3, ~0u, 0);
	sleep_for_ever();
}

/* ---- moved: the doorbells are elsewhere than they were mapped ---- */

static int moved_setup(struct job_gpu *gpu)
{
	char *old = (char *)(uintptr_t)gpu->gpu->doorbell_page;
	char *place = mmap(NULL, KFD_DOORBELL_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (place == MAP_FAILED || mremap(old, KFD_DOORBELL_BYTES, KFD_DOORBELL_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED,
					  place) != place)
		return report(errno, "doorbells cannot be moved: %m");
	/* The address stays that of the doorbells on the GPU. */
	if (mmap(old, KFD_DOORBELL_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != old)
		return report(errno, "place of the doorbells: %m");
	gpu->gpu->doorbell_page = (volatile uint64_t *)place;
	gpu->chain_queue.doorbell = (volatile uint64_t *)(place + ((char *)(uintptr_t)gpu->chain_queue.doorbell - old));
	if (gpu->busy_queue.doorbell)
		gpu->busy_queue.doorbell =
			(volatile uint64_t *)(place + ((char *)(uintptr_t)gpu->busy_queue.doorbell - old));
	return 0;
}

/* ---- flags: files that are open in other ways ---- */

static const int flags_wanted[] = { O_RDONLY | O_NONBLOCK, O_RDONLY, O_RDWR | O_NONBLOCK, O_RDWR };
static int flags_fds[4];

/* Those of status that are kept with a file, but for what the kernel itself adds. */
static int flags_of(int fd)
{
	return fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK | O_APPEND);
}

static int flags_setup(struct job_gpu *gpu)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/dri/renderD%u", gpu->gpu->render_minor);
	flags_fds[0] = open("/dev/kfd", flags_wanted[0] | O_CLOEXEC);
	flags_fds[1] = open(path, flags_wanted[1] | O_CLOEXEC);
	flags_fds[2] = gpu->kfd->fd;
	flags_fds[3] = gpu->gpu->render_fd;
	if (flags_fds[0] < 0 || flags_fds[1] < 0 || fcntl(flags_fds[2], F_SETFL, O_NONBLOCK))
		return report(errno, "files with other flags: %m");
	return 0;
}

static int flags_check(struct job_gpu *gpu)
{
	(void)gpu;
	for (unsigned int i = 0; i < 4; i++)
		if (flags_of(flags_fds[i]) != flags_wanted[i])
			return report(EILSEQ, "file %d has flags %#o, want %#o", flags_fds[i], flags_of(flags_fds[i]),
				      flags_wanted[i]);
	return 0;
}

/* ---- the table ---- */

/* In the order in which they are set up. */
#define EXTRA(...) &(const struct job_extra){ __VA_ARGS__ }

static const struct job_extra *const extras[] = {
	EXTRA("svm", svm_setup, NULL, svm_check, NULL),
	EXTRA("memfd", memfd_setup, NULL, memfd_check, memfd_teardown),
	EXTRA("maps", maps_setup, NULL, maps_check, maps_teardown),
	EXTRA(.name = "hole", .setup = hole_setup),
	EXTRA("fork", NULL, fork_step, fork_check, fork_teardown),
	EXTRA(.name = "gem", .setup = gem_setup),
	EXTRA(.name = "lent", .setup = lent_setup),
	EXTRA(.name = "smi", .setup = smi_setup),
	EXTRA(.name = "timer", .setup = timer_setup),
	EXTRA(.name = "misc", .setup = misc_setup),
	&job_extra_aql, &job_extra_wave, &job_extra_code, &job_extra_assert, &job_extra_idle, &job_extra_nap, &job_extra_old,
	&job_extra_packets, &job_extra_masked, &job_extra_threads, &job_extra_token,
	&job_extra_discard,
	EXTRA(.name = "context", .setup = context_setup),
	EXTRA(.name = "closed", .setup = closed_setup),
	EXTRA(.name = "path", .setup = path_setup),
	EXTRA(.name = "flight", .setup = flight_setup),
	EXTRA(.name = "bells", .setup = bells_setup),
	EXTRA(.name = "drawing", .setup = drawing_setup),
	EXTRA(.name = "syncing", .setup = syncing_setup),
	EXTRA(.name = "moved", .setup = moved_setup),
	EXTRA("flags", flags_setup, NULL, flags_check, NULL),
	EXTRA(.name = "bare", .setup = bare_setup),
	&job_extra_reads,
};

#define NR_EXTRAS (sizeof(extras) / sizeof(*extras))

uint64_t job_extra_bit(const char *name)
{
	for (unsigned int i = 0; i < NR_EXTRAS; i++)
		if (!strcmp(extras[i]->name, name))
			return 1ull << i;
	return 0;
}

typedef int extra_function(struct job_gpu *gpu);

/* Calls one function of each extra that the job has; @at is where the function is in struct job_extra. */
static int for_all(struct job_gpu *gpu, size_t at)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < NR_EXTRAS; i++) {
		extra_function *function = *(extra_function *const *)((const char *)extras[i] + at);

		if (function && gpu->options->extras & 1ull << i)
			err = function(gpu);
	}
	return err;
}

int job_extras_setup(struct job_gpu *gpu)
{
	return for_all(gpu, offsetof(struct job_extra, setup));
}

int job_extras_step(struct job_gpu *gpu)
{
	return for_all(gpu, offsetof(struct job_extra, step));
}

int job_extras_check(struct job_gpu *gpu)
{
	return for_all(gpu, offsetof(struct job_extra, check));
}

int job_extras_teardown(struct job_gpu *gpu)
{
	return for_all(gpu, offsetof(struct job_extra, teardown));
}
