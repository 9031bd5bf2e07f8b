// SPDX-License-Identifier: GPL-2.0-only
/*
 * Eight processes allocate, map, share, copy and check on all GPUs, end by
 * themselves or are killed at any point, for DRM_STRESS_SECONDS (default 10).
 * Some leave work behind that never ends: where the driver resets the GPU for
 * that, others lose their jobs, and are told so.
 * Then nothing must be left, and the engines must work.
 */
#include <signal.h>
#include <sys/wait.h>

#include "drm_test.h"

#define CLIENTS 8
#define LOST	100 /* status of a client whose job was lost in a reset */

/* AMDGPU_CTX_QUERY2_FLAGS_RESET_IN_PROGRESS, which the installed header may lack. */
#define RESET_IN_PROGRESS (1 << 5)
#define MiB	(1ull << 20)

static uint64_t random_state;
static bool gpus_share_vram;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static uint64_t pick(uint64_t below)
{
	return next_random() % below;
}

/* Whether the driver has reset the GPU since the context was made, and not for a job of its own. */
static bool was_reset(struct engine *e)
{
	union drm_amdgpu_ctx c = { .in = { .op = AMDGPU_CTX_OP_QUERY_STATE2, .ctx_id = e->ctx } };
	uint64_t flags;

	if (ioctl(e->fd, NR_CTX, &c))
		err(3, "asking for the state of a context");
	flags = c.out.state.flags;
	return flags & (AMDGPU_CTX_QUERY2_FLAGS_RESET | RESET_IN_PROGRESS) &&
	       !(flags & AMDGPU_CTX_QUERY2_FLAGS_GUILTY);
}

/* A copy of @size bytes from one mapping of the GPU to another, checked by the processor. */
static void copy_and_check(struct engine *e, const char *what, uint64_t src_va, const uint8_t *src, uint64_t dst_va,
			   const uint8_t *dst, uint64_t size)
{
	uint64_t from = pick(size / 2), to = pick(size / 2), len = 1 + pick(size / 2);
	int error;

	e->c.n = 0;
	emit_copy(&e->c, dst_va + to, src_va + from, len);
	if (engine_run(e)) {
		error = errno;
		if (was_reset(e))
			_exit(LOST);
		errno = error;
		err(3, "a copy %s", what);
	}
	for (uint64_t i = 0; i < len; i++)
		if (dst[to + i] != src[from + i])
			errx(3, "a copy %s, %#" PRIx64 " bytes to %#" PRIx64 ": byte %#" PRIx64 " is %#x, want %#x", what,
			     len, dst_va + to, i, dst[to + i], src[from + i]);
}

/* Without a list of what a job uses, foreign buffers stay out of the page tables. */
static uint32_t list_of(int fd, uint32_t a, uint32_t b, uint32_t c)
{
	struct drm_amdgpu_bo_list_entry entries[] = { { .bo_handle = a }, { .bo_handle = b }, { .bo_handle = c } };
	union drm_amdgpu_bo_list list = { .in = { .operation = AMDGPU_BO_LIST_OP_CREATE,
						  .bo_number = 3,
						  .bo_info_size = sizeof(entries[0]),
						  .bo_info_ptr = (uintptr_t)entries } };

	if (ioctl(fd, NR_BO_LIST, &list))
		err(7, "making a BO list");
	return list.out.list_handle;
}

static void share_with_gpu(unsigned int gpu, struct engine *e, uint32_t bo, const uint8_t *p, uint64_t size)
{
	uint32_t imported, out;
	struct engine other;
	uint64_t va, out_va;
	uint8_t *q;
	int dmabuf;

	if (try_export(e->fd, bo, DRM_CLOEXEC, &dmabuf))
		err(4, "exporting a BO");
	engine_open(&other, gpu);
	if (try_import(other.fd, dmabuf, &imported))
		err(5, "importing a BO");
	close(dmabuf);
	out = bo_create(other.fd, size, DOMAIN_GTT);
	q = bo_map(other.fd, out, size);
	va = engine_map(&other, imported, size);
	out_va = engine_map(&other, out, size);
	other.bo_list = list_of(other.fd, imported, out, other.ib_handle);
	copy_and_check(&other, "of a shared BO", va, p, out_va, q, size);
	munmap(q, size);
	engine_close(&other);
}

static void one_life(void)
{
	const uint32_t flags = AMDGPU_GEM_USERPTR_REGISTER | AMDGPU_GEM_USERPTR_VALIDATE;
	uint64_t size = MiB + pick(4) * MiB, vram_va, user_va;
	uint32_t domain, vram, user;
	struct engine e;
	uint8_t *p, *u;

	engine_open(&e, pick(render_count()));
	domain = pick(2) ? DOMAIN_VRAM : DOMAIN_GTT;
	vram = bo_create(e.fd, size, domain);
	p = bo_map(e.fd, vram, size);
	u = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (u == MAP_FAILED || try_userptr(e.fd, u, size, flags, &user))
		err(6, "making a userptr BO");
	vram_va = engine_map(&e, vram, size);
	user_va = engine_map(&e, user, size);
	memset(u, pick(256), size);
	copy_and_check(&e, "from a userptr", user_va, u, vram_va, p, size);
	memset(p, pick(256), size / 2);
	copy_and_check(&e, "to a userptr", vram_va, p, user_va, u, size);
	if (pick(2) && (domain == DOMAIN_GTT || gpus_share_vram))
		share_with_gpu(pick(render_count()), &e, vram, p, size);
	if (pick(2)) { /* leave work behind that never ends */
		e.c.n = 0;
		emit_poll_equal(&e.c, vram_va, 0x12345678);
		engine_start(&e, pick(2), &size);
		_exit(0);
	}
	munmap(p, size);
	munmap(u, size);
	engine_close(&e);
	_exit(0);
}

/* VRAM of the first GPU, read by the second, if there is one. */
static void share_vram(void)
{
	struct engine e;
	uint32_t bo;
	uint8_t *p;

	engine_open(&e, 0);
	bo = bo_create(e.fd, MiB, DOMAIN_VRAM);
	p = bo_map(e.fd, bo, MiB);
	memset(p, 0x5a, MiB);
	share_with_gpu(render_count() > 1, &e, bo, p, MiB);
	_exit(0);
}

static pid_t start_client(uint64_t seed, void (*life)(void))
{
	pid_t pid = fork();

	if (pid < 0)
		err(2, "fork");
	if (!pid) {
		random_state = seed * 0x9e3779b97f4a7c15ull + 1;
		life();
	}
	return pid;
}

/* Waits until nobody has anything any more: memory of a process that has ended is given back a moment later. */
static bool objects_are_gone(void)
{
	char line[128];
	int try;

	for (try = 0; try < 100; try++) {
		FILE *f = fopen("/sys/kernel/debug/kfdsim/objects", "r");
		bool left = !f;

		while (f && fgets(line, sizeof(line), f))
			left |= !strstr(line, " 0\n");
		if (f)
			fclose(f);
		if (!left)
			return true;
		usleep(100000);
	}
	printf("# at least %s", line);
	return false;
}

static int start_alone(void (*life)(void))
{
	int status;

	if (waitpid(start_client(0, life), &status, 0) < 0)
		err(2, "waiting for a client");
	return status;
}

/* How clients ended. */
static struct {
	unsigned int well, killed, lost, wrong;
} ended;

static void count(int status)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		ended.killed++;
	else if (WIFEXITED(status) && WEXITSTATUS(status) == LOST)
		ended.lost++;
	else if (status)
		ended.wrong++;
	else
		ended.well++;
}

int main(void)
{
	const char *seconds = getenv("DRM_STRESS_SECONDS");
	unsigned int i, lives = 0;
	pid_t pids[CLIENTS];
	struct engine e;
	uint64_t end;
	int status;

	setlinebuf(stdout);
	gpus_share_vram = check_u64(start_alone(share_vram), 0, "a GPU reads another one's VRAM");
	random_state = 20240229;
	end = in_ms((seconds ? atoi(seconds) : 10) * 1000);
	for (i = 0; i < CLIENTS; i++)
		pids[i] = start_client(++lives, one_life);
	while (in_ms(0) < end) {
		i = pick(CLIENTS);
		usleep(pick(30000));
		if (!pick(3))
			kill(pids[i], SIGKILL);
		if (waitpid(pids[i], &status, WNOHANG) != pids[i])
			continue;
		count(status);
		pids[i] = start_client(++lives, one_life);
	}
	for (i = 0; i < CLIENTS; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], &status, 0);
		count(status);
	}
	printf("# %u of %u clients lost their jobs in a reset\n", ended.lost, lives);
	check_true(ended.well && ended.killed, "%u clients lived, %u were killed", lives, ended.killed);
	check_u64(ended.wrong, 0, "all others found their data right");
	check_true(objects_are_gone(), "no live objects are left");
	engine_open(&e, 0);
	e.c.n = 8;
	memset(e.c.dw, 0, 32);
	check_errno(engine_run(&e), 0, "the engines work");
	engine_close(&e);
	return conformance_end();
}
