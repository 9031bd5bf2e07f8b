/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CRIU_OP from both sides: a tracer's view of a process that holds /dev/kfd,
 * the state that it takes out, and the private data's records.
 */
#ifndef CONFORMANCE_CRIU_TEST_H
#define CONFORMANCE_CRIU_TEST_H

#include "kfd_test.h"

#define NO_FD 0xffffffffu

struct bo_priv {
	uint64_t user_addr;
	uint32_t idr_handle, mapped[64], pad;
};

struct queue_priv {
	uint32_t object_type, pad;
	uint64_t ring, ring_size, rptr, wptr, unused, eop, cwsr;
	uint32_t gpu_id, type, format, q_id, priority, percent, doorbell_id, gws, sdma_id, eop_size, cwsr_size;
	uint32_t ctl_stack_size, mqd_size, pad2;
};

struct event_priv {
	uint32_t object_type, pad;
	uint64_t user_handle;
	uint32_t event_id, auto_reset, type, signaled;
	uint8_t data[32];
};

#define MAX_STATE_GPUS 8
#define MAX_STATE_BOS  64

/* All that CHECKPOINT gives. In memory that a forked child shares. */
struct state {
	struct kfd_ioctl_criu_args info;
	struct kfd_criu_device_bucket devices[MAX_STATE_GPUS];
	struct kfd_criu_bo_bucket bos[MAX_STATE_BOS];
	uint8_t priv[256 << 10];
};

static inline struct bo_priv *state_bo_priv(struct state *s, unsigned int i)
{
	return (struct bo_priv *)(s->priv + 8 + 8 * s->info.num_devices) + i;
}

static inline uint8_t *state_objects(struct state *s)
{
	return (uint8_t *)state_bo_priv(s, s->info.num_bos);
}

static inline int criu_op(int kfd, uint32_t op, struct kfd_ioctl_criu_args *args)
{
	args->op = op;
	return ioctl(kfd, AMDKFD_IOC_CRIU_OP, args);
}

static inline int criu_simple(int kfd, uint32_t op)
{
	struct kfd_ioctl_criu_args args = { 0 };

	return criu_op(kfd, op, &args);
}

static inline int state_info(int kfd, struct state *s)
{
	memset(&s->info, 0, sizeof(s->info));
	return criu_op(kfd, KFD_CRIU_OP_PROCESS_INFO, &s->info);
}

static inline struct kfd_ioctl_criu_args state_args(struct state *s)
{
	struct kfd_ioctl_criu_args args = s->info;

	args.devices = (uintptr_t)s->devices;
	args.bos = (uintptr_t)s->bos;
	args.priv_data = (uintptr_t)s->priv;
	return args;
}

static inline int state_checkpoint(int kfd, struct state *s)
{
	struct kfd_ioctl_criu_args args = state_args(s);

	return criu_op(kfd, KFD_CRIU_OP_CHECKPOINT, &args);
}

static inline int state_restore(int kfd, struct state *s)
{
	struct kfd_ioctl_criu_args args = state_args(s);

	return criu_op(kfd, KFD_CRIU_OP_RESTORE, &args);
}

static inline int criu_resume(int kfd, pid_t pid)
{
	struct kfd_ioctl_criu_args args = { .pid = pid };

	return criu_op(kfd, KFD_CRIU_OP_RESUME, &args);
}

static inline void state_close_fds(struct state *s)
{
	uint32_t i;

	for (i = 0; i < s->info.num_bos; i++)
		if (s->bos[i].dmabuf_fd != NO_FD)
			close(s->bos[i].dmabuf_fd);
}

/* XCCs whose state is saved with a queue: only the first before 6.16.4. */
static inline uint64_t saved_xccs(const struct kfd_gpu *gpu, unsigned int release)
{
	return release < 617 ? 1 : gpu->num_xcc;
}

/* Bytes of state that follow an SDMA queue's record. */
static inline uint64_t sdma_mqd_size(const struct kfd_gpu *gpu, unsigned int release)
{
	return 512 * saved_xccs(gpu, release);
}

/* All GPUs of the machine: CHECKPOINT and RESTORE want the address space of each. */
static struct kfd_gpu gpus[KFD_MAX_GPUS];
static unsigned int nr_gpus;

static inline void gpus_find(void)
{
	int nr = kfd_topology_read(gpus, KFD_MAX_GPUS);

	if (nr < 0 || nr > MAX_STATE_GPUS)
		errx(1, "not 1 to %d GPUs", MAX_STATE_GPUS);
	nr_gpus = nr;
}

/* Which partition of its device the GPU is. */
static inline unsigned int partition_of(const struct kfd_gpu *gpu)
{
	unsigned int partition = 0;
	const struct kfd_gpu *other;

	for (other = gpus; other < gpu; other++)
		partition += other->pci_device == gpu->pci_device;
	return partition;
}

/* Opens what RESTORE wants: /dev/kfd, and a render node for each GPU. */
static inline int heir_open(struct state *s)
{
	unsigned int i, g;

	for (i = 0; i < nr_gpus; i++)
		for (g = 0; g < nr_gpus; g++)
			if (s->devices[i].actual_gpu_id == gpus[g].gpu_id)
				s->devices[i].drm_fd = render_open(gpus[g].render_minor);
	return kfd_file();
}

/* The device of a user gpu id. */
static inline const struct kfd_criu_device_bucket *device_of(const struct state *s, uint32_t user_id)
{
	unsigned int i;

	for (i = 0; i < nr_gpus; i++)
		if (s->devices[i].user_gpu_id == user_id)
			return &s->devices[i];
	errx(1, "no GPU %#x in the state", user_id);
}

static inline void swap_gpus(struct state *s)
{
	uint32_t id = s->devices[0].actual_gpu_id;

	s->devices[0].actual_gpu_id = s->devices[1].actual_gpu_id;
	s->devices[1].actual_gpu_id = id;
}

/* Opens the render node of each GPU, and gives the process its address space. */
static inline void gpus_acquire(int kfd, int drm_fd[MAX_STATE_GPUS])
{
	unsigned int i;

	for (i = 0; i < nr_gpus; i++) {
		drm_fd[i] = render_open(gpus[i].render_minor);
		must(kfd_acquire(kfd, drm_fd[i], gpus[i].gpu_id), "ACQUIRE_VM");
	}
}

/* ---- other processes ---- */

static inline int fd_of(pid_t pid, int fd)
{
	int pidfd = syscall(SYS_pidfd_open, pid, 0), ret;

	if (pidfd < 0)
		err(1, "pidfd_open");
	ret = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	if (ret < 0)
		err(1, "pidfd_getfd");
	close(pidfd);
	return ret;
}

static inline void trace(pid_t pid)
{
	int status;

	must(ptrace(PTRACE_SEIZE, pid, 0, 0), "PTRACE_SEIZE");
	must(ptrace(PTRACE_INTERRUPT, pid, 0, 0), "PTRACE_INTERRUPT");
	must(waitpid(pid, &status, __WALL), "waitpid");
	if (!WIFSTOPPED(status))
		errx(1, "the traced process did not stop (status %#x)", status);
}

static inline void reap(pid_t pid, bool kill_it)
{
	int status;

	if (kill_it)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) != pid || WIFSTOPPED(status))
		;
	if (!kill_it && (!WIFEXITED(status) || WEXITSTATUS(status)))
		check_true(false, "the child ended well (status %#x)", status);
}

static inline void *shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		err(1, "shared memory");
	return p;
}

static inline void await(volatile uint32_t *word, uint32_t value)
{
	uint64_t end = now_ms() + 20000;

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value) {
		if (now_ms() > end)
			errx(1, "waited 20 s for step %u of the other process, which is at %u", value, *word);
		usleep(1000);
	}
}

static inline void announce(volatile uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

/* A page for events, one that is signalled and one of memory exceptions. */
struct events {
	struct buffer page;
	uint32_t signal, memory;
};

static inline struct events events_new(int kfd, int drm_fd)
{
	struct events events = { .page = buffer_new(kfd, drm_fd, gpus[0].gpu_id, 32 << 10, GTT_RW) };
	struct kfd_ioctl_create_event_args signal = { .event_page_offset = events.page.handle, .auto_reset = 1 };
	struct kfd_ioctl_create_event_args memory = { .event_type = KFD_IOC_EVENT_MEMORY, .auto_reset = 1 };

	must(ioctl(kfd, AMDKFD_IOC_CREATE_EVENT, &signal), "CREATE_EVENT");
	must(ioctl(kfd, AMDKFD_IOC_CREATE_EVENT, &memory), "CREATE_EVENT");
	events.signal = signal.event_id;
	events.memory = memory.event_id;
	return events;
}

/* Userptr memory of two pages at @va, which has to be mapped; pages of doorbells and of MMIO. */
static inline uint64_t special_memory_new(int kfd, uint64_t va)
{
	const uint32_t flags = MEM_WRITABLE | MEM_COHERENT;
	uint64_t offset = va, handle = 0;
	uint32_t gpu = gpus[0].gpu_id;

	must(kfd_alloc(kfd, gpu, va, 2 * PAGE, MEM_USERPTR | MEM_WRITABLE, &offset, &handle), "ALLOC userptr");
	must(kfd_map(kfd, handle, gpu), "MAP userptr");
	must(kfd_alloc(kfd, gpu, reserve(DOORBELLS), DOORBELLS, MEM_DOORBELL | flags, NULL, NULL), "ALLOC doorbells");
	must(kfd_alloc(kfd, gpu, reserve(PAGE), PAGE, MEM_MMIO | flags, NULL, NULL), "ALLOC MMIO");
	return va;
}

/* The state of the process that @start makes of a child, paused, when it has come to its first step. */
static inline pid_t child_checkpoint(void (*start)(void), volatile uint32_t *step, const int *childs_kfd, struct state *s,
				     int *ret_kfd)
{
	pid_t pid = fork();

	must(pid, "fork");
	if (!pid)
		start();
	await(step, 1);
	trace(pid);
	*ret_kfd = fd_of(pid, *childs_kfd);
	must(state_info(*ret_kfd, s), "PROCESS_INFO");
	if (s->info.priv_data_size > sizeof(s->priv))
		errx(1, "the private data is too large for this program");
	must(state_checkpoint(*ret_kfd, s), "CHECKPOINT");
	return pid;
}

/* What the BOs of a state contain, by number; closes their dma-bufs. */
static inline void save_contents(struct state *s, uint8_t *contents[MAX_STATE_BOS])
{
	uint32_t i;

	for (i = 0; i < s->info.num_bos; i++) {
		const struct kfd_criu_bo_bucket *b = &s->bos[i];
		uint8_t *p;

		if (b->dmabuf_fd == NO_FD)
			continue;
		p = must_map(0, b->size, PROT_READ, b->dmabuf_fd, 0);
		contents[i] = shared(b->size);
		memcpy(contents[i], p, b->size);
		munmap(p, b->size);
	}
	state_close_fds(s);
}

/* Has a child make checks, which count here. */
static inline void check_in_child(void (*checks)(void))
{
	static unsigned int *counts;
	pid_t pid;

	counts = counts ? counts : shared(2 * sizeof(*counts));
	counts[0] = 0;
	counts[1] = 1;
	fflush(stdout);
	pid = fork();
	must(pid, "fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		conformance_passed = conformance_failed = 0;
		checks();
		counts[0] = conformance_passed;
		counts[1] = conformance_failed;
		_exit(0);
	}
	reap(pid, false);
	conformance_passed += counts[0];
	conformance_failed += counts[1];
}

#endif
