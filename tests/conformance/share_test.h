/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For the share_*.c programs: processes that each hold /dev/kfd and the render
 * nodes of all GPUs and do single steps when told, so that a check can say
 * "this one exports, that one imports". The first is the program itself, the
 * others are children that get their steps through a socket.
 */
#ifndef CONFORMANCE_SHARE_TEST_H
#define CONFORMANCE_SHARE_TEST_H

#include "../workloads/fdpass.h"
#include "../workloads/gem.h"
#include "criu_test.h"

#include <sys/socket.h>

#define BO_BYTES (64ull << 10)
#define VRAM_OWN (VRAM_RW | MEM_PUBLIC | MEM_EXEC)
#define GTT_OWN	 (GTT_RW | MEM_EXEC)

enum step {
	STEP_ALLOC,
	STEP_ALLOC_NO_VA,
	STEP_EXPORT,
	STEP_IMPORT,
	STEP_FREE,
	STEP_MAP,
	STEP_UNMAP,
	STEP_GEM_IMPORT,
	STEP_GEM_CLOSE,
	STEP_HOLD,
	STEP_DROP,
	STEP_CHECKPOINT,
};

struct request {
	uint32_t step, gpu, flags;
	uint64_t handle;
};

/* What CHECKPOINT and its dma-buf fd say of a BO. */
struct seen {
	uint64_t ino, offset, addr, size;
	int64_t count;
	uint32_t flags, nr_bos;
};

struct reply {
	int32_t error;
	uint64_t handle;
	struct seen seen;
};

struct process {
	int sock; /* -1: the program itself */
	pid_t pid;
	int kfd, drm[MAX_STATE_GPUS], held;
};

/* Whether buffers of these KFD flags can be imported by another GPU; not VRAM in a hive of 7.2.12. */
static bool far_vram;

static inline bool far_import(uint32_t flags)
{
	return nr_gpus > 1 && (far_vram || !(flags & MEM_VRAM));
}

static inline void find_gpus(int argc, char **argv)
{
	gpus_find();
	far_vram = nr_gpus > 1 &&
		   (!is_since_7_2_12(argc, argv) || !gpus[0].hive_id);
}

/* ---- dma-bufs ---- */

static inline int64_t dmabuf_count(int fd)
{
	char path[64], line[256];
	int64_t count = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	if (!f)
		err(1, "%s", path);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "count: %" SCNd64, &count) == 1)
			break;
	fclose(f);
	return count;
}

static inline uint64_t inode_of(int fd)
{
	struct stat st;

	must(fstat(fd, &st), "fstat");
	return st.st_ino;
}

static inline int kfd_export(int kfd, uint64_t handle)
{
	struct {
		uint64_t handle;
		uint32_t flags, fd;
	} args = { .handle = handle, .flags = O_RDWR | O_CLOEXEC };

	return ioctl(kfd, NR_EXPORT_DMABUF, &args) ? -1 : (int)args.fd;
}

static inline int kfd_import(int kfd, uint32_t gpu_id, int fd, uint64_t va, uint64_t *handle)
{
	struct kfd_ioctl_import_dmabuf_args args = { .gpu_id = gpu_id, .dmabuf_fd = fd, .va_addr = va };
	int ret = ioctl(kfd, AMDKFD_IOC_IMPORT_DMABUF, &args);

	*handle = args.handle;
	return ret;
}

static inline uint32_t object_new(int file, uint64_t size, uint64_t domains)
{
	uint32_t handle;

	must(gem_create(file, size, domains, 0, &handle), "GEM_CREATE");
	return handle;
}

/* ---- the steps ---- */

static inline struct process process_open(void)
{
	struct process p = { .sock = -1, .pid = getpid(), .kfd = kfd_file(), .held = -1 };

	gpus_acquire(p.kfd, p.drm);
	return p;
}

/* CHECKPOINT of the process itself; *@seen is of the BO with @handle. */
static inline int checkpoint_self(int kfd, uint64_t handle, struct seen *seen)
{
	struct state *s = calloc(1, sizeof(*s));
	uint32_t i;
	int ret;

	memset(seen, 0, sizeof(*seen));
	ret = state_info(kfd, s);
	if (!ret)
		ret = state_checkpoint(kfd, s);
	if (ret) {
		int saved = errno;

		criu_simple(kfd, KFD_CRIU_OP_UNPAUSE);
		free(s);
		errno = saved;
		return -1;
	}
	seen->nr_bos = s->info.num_bos;
	for (i = 0; i < s->info.num_bos; i++) {
		const struct kfd_criu_bo_bucket *b = &s->bos[i];
		const struct bo_priv *priv = state_bo_priv(s, i);

		if (b->gpu_id != handle >> 32 || priv->idr_handle != (uint32_t)handle)
			continue;
		seen->addr = b->addr;
		seen->size = b->size;
		seen->offset = b->offset;
		seen->flags = b->alloc_flags;
		if (b->dmabuf_fd != NO_FD) {
			seen->ino = inode_of(b->dmabuf_fd);
			seen->count = dmabuf_count(b->dmabuf_fd);
		}
	}
	state_close_fds(s);
	criu_simple(kfd, KFD_CRIU_OP_UNPAUSE);
	free(s);
	return 0;
}

static inline int do_step(struct process *p, const struct request *r, int fd, struct reply *reply, int *ret_fd)
{
	uint32_t gpu_id = gpus[r->gpu].gpu_id, handle32 = r->handle;
	uint64_t offset = 0;
	int ret;

	switch (r->step) {
	case STEP_ALLOC:
		return kfd_alloc(p->kfd, gpu_id, reserve(BO_BYTES), BO_BYTES, r->flags, &offset, &reply->handle);
	case STEP_ALLOC_NO_VA:
		return kfd_alloc(p->kfd, gpu_id, 0, BO_BYTES, r->flags, &offset, &reply->handle);
	case STEP_EXPORT:
		*ret_fd = kfd_export(p->kfd, r->handle);
		return *ret_fd < 0 ? -1 : 0;
	case STEP_IMPORT:
		return kfd_import(p->kfd, gpu_id, fd, reserve(BO_BYTES), &reply->handle);
	case STEP_FREE:
		return kfd_free(p->kfd, r->handle);
	case STEP_MAP:
		return kfd_map(p->kfd, r->handle, gpu_id);
	case STEP_UNMAP:
		return kfd_unmap(p->kfd, r->handle, gpu_id);
	case STEP_GEM_IMPORT:
		ret = gem_import(p->drm[r->gpu], fd, &handle32);
		reply->handle = handle32;
		return ret;
	case STEP_GEM_CLOSE:
		return gem_close(p->drm[r->gpu], r->handle);
	case STEP_HOLD:
		p->held = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		return p->held < 0 ? -1 : 0;
	case STEP_DROP:
		return close(p->held);
	case STEP_CHECKPOINT:
		return checkpoint_self(p->kfd, r->handle, &reply->seen);
	}
	errno = ENOSYS;
	return -1;
}

/* ---- other processes ---- */

static inline void process_serve(int sock)
{
	struct process p = process_open();
	struct request r;
	int fd;

	while (!fdpass_receive(sock, &r, sizeof(r), &fd)) {
		struct reply reply = { 0 };
		int ret_fd = -1;

		if (do_step(&p, &r, fd, &reply, &ret_fd))
			reply.error = errno;
		if (fd >= 0)
			close(fd);
		must(fdpass_send(sock, &reply, sizeof(reply), ret_fd), "sending a reply");
		if (ret_fd >= 0)
			close(ret_fd);
	}
	_exit(0);
}

/* Before the program opens anything that the child should not inherit. */
static inline struct process process_start(void)
{
	struct process p = { .kfd = -1, .held = -1 };
	int socks[2];

	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks), "socketpair");
	p.pid = fork();
	must(p.pid, "fork");
	if (!p.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(socks[0]);
		process_serve(socks[1]);
	}
	close(socks[1]);
	p.sock = socks[0];
	return p;
}

static inline void process_end(struct process *p)
{
	close(p->sock);
	reap(p->pid, false);
}

/* 0, or -1 with errno. @ret_fd: NULL when the step gives none. */
static inline int tell(struct process *p, struct request r, int fd, struct reply *reply, int *ret_fd)
{
	int new_fd = -1;

	memset(reply, 0, sizeof(*reply));
	if (p->sock < 0) {
		if (do_step(p, &r, fd, reply, &new_fd))
			return -1;
	} else {
		must(fdpass_send(p->sock, &r, sizeof(r), fd), "sending a request");
		if (fdpass_receive(p->sock, reply, sizeof(*reply), &new_fd))
			errx(1, "a process of the test has ended");
	}
	if (ret_fd)
		*ret_fd = new_fd;
	errno = reply->error;
	return reply->error ? -1 : 0;
}

static inline uint64_t p_handle(struct process *p, struct request r, int fd, const char *what)
{
	struct reply reply;

	must(tell(p, r, fd, &reply, NULL), what);
	return reply.handle;
}

static inline uint64_t p_alloc(struct process *p, unsigned int gpu, uint32_t flags)
{
	return p_handle(p, (struct request){ .step = STEP_ALLOC, .gpu = gpu, .flags = flags }, -1, "ALLOC");
}

static inline int p_export(struct process *p, uint64_t handle)
{
	struct reply reply;
	int fd;

	must(tell(p, (struct request){ .step = STEP_EXPORT, .handle = handle }, -1, &reply, &fd), "EXPORT_DMABUF");
	return fd;
}

static inline uint64_t p_import(struct process *p, unsigned int gpu, int fd)
{
	return p_handle(p, (struct request){ .step = STEP_IMPORT, .gpu = gpu }, fd, "IMPORT_DMABUF");
}

/* A BO of one process is imported by another one, on a GPU of its choice. */
static inline uint64_t p_pass(struct process *from, uint64_t handle, struct process *to, unsigned int gpu)
{
	int fd = p_export(from, handle);
	uint64_t import = p_import(to, gpu, fd);

	close(fd);
	return import;
}

static inline void p_free(struct process *p, uint64_t handle)
{
	p_handle(p, (struct request){ .step = STEP_FREE, .handle = handle }, -1, "FREE");
}

static inline void p_map(struct process *p, uint64_t handle, unsigned int gpu)
{
	p_handle(p, (struct request){ .step = STEP_MAP, .handle = handle, .gpu = gpu }, -1, "MAP");
}

static inline void p_unmap(struct process *p, uint64_t handle, unsigned int gpu)
{
	p_handle(p, (struct request){ .step = STEP_UNMAP, .handle = handle, .gpu = gpu }, -1, "UNMAP");
}

static inline uint32_t p_gem_import(struct process *p, unsigned int gpu, int fd)
{
	return p_handle(p, (struct request){ .step = STEP_GEM_IMPORT, .gpu = gpu }, fd, "PRIME_FD_TO_HANDLE");
}

static inline void p_gem_close(struct process *p, unsigned int gpu, uint32_t handle)
{
	p_handle(p, (struct request){ .step = STEP_GEM_CLOSE, .gpu = gpu, .handle = handle }, -1, "GEM_CLOSE");
}

static inline void p_hold(struct process *p, int fd)
{
	p_handle(p, (struct request){ .step = STEP_HOLD }, fd, "keeping a dma-buf fd");
}

static inline void p_drop(struct process *p)
{
	p_handle(p, (struct request){ .step = STEP_DROP }, -1, "closing a dma-buf fd");
}

static inline int p_checkpoint(struct process *p, uint64_t handle, struct seen *seen)
{
	struct reply reply;
	int ret = tell(p, (struct request){ .step = STEP_CHECKPOINT, .handle = handle }, -1, &reply, NULL);

	*seen = reply.seen;
	return ret;
}

#endif
