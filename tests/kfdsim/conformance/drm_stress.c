// SPDX-License-Identifier: GPL-2.0-only
/*
 * Eight processes allocate, map, share, copy and check on all GPUs, end by
 * themselves or are killed at any point, for DRM_STRESS_SECONDS (default 10).
 * Then nothing must be left, and the engines must work.
 */
#include <signal.h>
#include <sys/wait.h>

#include "drm_test.h"

#define CLIENTS 8
#define MiB	(1ull << 20)

static uint64_t random_state;

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

/* A copy of @size bytes from one mapping of the GPU to another, checked by the processor. */
static void copy_and_check(struct engine *e, uint64_t src_va, const uint8_t *src, uint64_t dst_va, const uint8_t *dst,
			   uint64_t size)
{
	uint64_t from = pick(size / 2), to = pick(size / 2), len = 1 + pick(size / 2);

	e->c.n = 0;
	emit_copy(&e->c, dst_va + to, src_va + from, len);
	if (engine_run(e) || memcmp(dst + to, src + from, len))
		_exit(3);
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
		_exit(7);
	return list.out.list_handle;
}

static void share_with_other_gpu(struct engine *e, uint32_t bo, const uint8_t *p, uint64_t size)
{
	uint32_t imported, out;
	struct engine other;
	uint64_t va, out_va;
	uint8_t *q;
	int dmabuf;

	if (try_export(e->fd, bo, DRM_CLOEXEC, &dmabuf))
		_exit(4);
	engine_open(&other, pick(render_count()));
	if (try_import(other.fd, dmabuf, &imported))
		_exit(5);
	close(dmabuf);
	out = bo_create(other.fd, size, DOMAIN_GTT);
	q = bo_map(other.fd, out, size);
	va = engine_map(&other, imported, size);
	out_va = engine_map(&other, out, size);
	other.bo_list = list_of(other.fd, imported, out, other.ib_handle);
	copy_and_check(&other, va, p, out_va, q, size);
	munmap(q, size);
	engine_close(&other);
}

static void one_life(void)
{
	const uint32_t flags = AMDGPU_GEM_USERPTR_REGISTER | AMDGPU_GEM_USERPTR_VALIDATE;
	uint64_t size = MiB + pick(4) * MiB, vram_va, user_va;
	uint32_t vram, user;
	struct engine e;
	uint8_t *p, *u;

	engine_open(&e, pick(render_count()));
	vram = bo_create(e.fd, size, pick(2) ? DOMAIN_VRAM : DOMAIN_GTT);
	p = bo_map(e.fd, vram, size);
	u = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (u == MAP_FAILED || try_userptr(e.fd, u, size, flags, &user))
		_exit(6);
	vram_va = engine_map(&e, vram, size);
	user_va = engine_map(&e, user, size);
	memset(u, pick(256), size);
	copy_and_check(&e, user_va, u, vram_va, p, size);
	memset(p, pick(256), size / 2);
	copy_and_check(&e, vram_va, p, user_va, u, size);
	if (pick(2))
		share_with_other_gpu(&e, vram, p, size);
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

static pid_t start_client(uint64_t seed)
{
	pid_t pid = fork();

	if (pid < 0)
		err(2, "fork");
	if (!pid) {
		random_state = seed * 0x9e3779b97f4a7c15ull + 1;
		one_life();
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

int main(void)
{
	const char *seconds = getenv("DRM_STRESS_SECONDS");
	uint64_t end = in_ms((seconds ? atoi(seconds) : 10) * 1000);
	unsigned int i, lives = 0, killed = 0, wrong = 0;
	pid_t pids[CLIENTS];
	struct engine e;
	int status;

	random_state = 20240229;
	for (i = 0; i < CLIENTS; i++)
		pids[i] = start_client(++lives);
	while (in_ms(0) < end) {
		i = pick(CLIENTS);
		usleep(pick(30000));
		if (!pick(3))
			kill(pids[i], SIGKILL);
		if (waitpid(pids[i], &status, WNOHANG) != pids[i])
			continue;
		killed += WIFSIGNALED(status);
		wrong += WIFEXITED(status) ? WEXITSTATUS(status) != 0 : WTERMSIG(status) != SIGKILL;
		if (WIFEXITED(status) && WEXITSTATUS(status))
			printf("# a client ended with status %d\n", WEXITSTATUS(status));
		pids[i] = start_client(++lives);
	}
	for (i = 0; i < CLIENTS; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], &status, 0);
	}
	check_true(lives > CLIENTS && killed, "%u clients lived, %u were killed", lives, killed);
	check_u64(wrong, 0, "all others found their data right");
	check_true(objects_are_gone(), "no live objects are left");
	engine_open(&e, 0);
	e.c.n = 8;
	memset(e.c.dw, 0, 32);
	check_errno(engine_run(&e), 0, "the engines work");
	engine_close(&e);
	return conformance_end();
}
