// SPDX-License-Identifier: GPL-2.0-only
/*
 * Test material for the content engine. Its own system calls are marked as being those of
 * the stand-in (fake_drm_depth), so that tests which make calls fail do not hit these.
 */
#define _GNU_SOURCE
#include "content_fixture.h"
#include "amdgpu_plugin_util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "fake_drm.h"

#define PREFIX_BYTES 8u

#define NEED(condition)                                                                                      \
	do {                                                                                                 \
		if (!(condition)) {                                                                          \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, strerror(errno)); \
			abort();                                                                             \
		}                                                                                            \
	} while (0)

uint64_t rng_next(struct rng *rng)
{
	uint64_t z = rng->state += 0x9e3779b97f4a7c15u; /* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

uint64_t rng_below(struct rng *rng, uint64_t limit)
{
	return rng_next(rng) % limit;
}

int fixture_memfd(uint64_t bytes)
{
	int fd;

	fake_drm_depth++;
	fd = memfd_create("fixture", MFD_CLOEXEC);
	NEED(fd >= 0);
	NEED(ftruncate(fd, (off_t)bytes) == 0);
	fake_drm_depth--;
	return fd;
}

static void *map_fd(int fd, uint64_t bytes, int prot)
{
	void *mem;

	fake_drm_depth++;
	mem = mmap(NULL, bytes, prot, MAP_SHARED, fd, 0);
	NEED(mem != MAP_FAILED);
	fake_drm_depth--;
	return mem;
}

static void unmap_mem(void *mem, uint64_t bytes)
{
	fake_drm_depth++;
	NEED(munmap(mem, bytes) == 0);
	fake_drm_depth--;
}

static bool page_has_data(enum fixture_fill how, uint64_t page, struct rng *rng)
{
	static _Thread_local uint64_t run_end;
	static _Thread_local bool run_is_data;

	switch (how) {
	case FILL_RANDOM:
		return true;
	case FILL_SPARSE:
		return page % 10 == 3;
	case FILL_MIXED:
		if (!page || page >= run_end) {
			run_is_data = rng_next(rng) & 1;
			run_end = page + 1 + rng_below(rng, 40);
		}
		return run_is_data;
	default:
		return false;
	}
}

void fixture_fill(int fd, uint64_t bytes, enum fixture_fill how, struct rng *rng)
{
	uint8_t *mem = map_fd(fd, bytes, PROT_READ | PROT_WRITE);

	for (uint64_t page = 0; page * PAGE_BYTES < bytes; page++) {
		uint64_t end = (page + 1) * PAGE_BYTES < bytes ? (page + 1) * PAGE_BYTES : bytes;

		if (!page_has_data(how, page, rng))
			continue;
		for (uint64_t i = page * PAGE_BYTES; i < end; i += 8) {
			uint64_t v = rng_next(rng) | 1;

			memcpy(mem + i, &v, end - i < 8 ? end - i : 8);
		}
	}
	unmap_mem(mem, bytes);
}

bool fixture_same(int fd_a, int fd_b, uint64_t bytes)
{
	void *a = map_fd(fd_a, bytes, PROT_READ), *b = map_fd(fd_b, bytes, PROT_READ);
	bool same = !memcmp(a, b, bytes);

	unmap_mem(a, bytes);
	unmap_mem(b, bytes);
	return same;
}

static void add_bo(struct fixture_gpu *f, uint64_t size)
{
	f->gpu.bos[f->gpu.nr_bos] = (struct content_bo){
		.dmabuf_fd = fixture_memfd(size),
		.size = size,
		.index = (uint32_t)(100 + f->gpu.nr_bos),
	};
	f->gpu.nr_bos++;
	f->bytes += size;
}

static void init_gpu(struct fixture_gpu *f, uint32_t gpu_id, size_t max_bos)
{
	*f = (struct fixture_gpu){ 0 };
	snprintf(f->gpu.pages_name, sizeof(f->gpu.pages_name), "pages-%x.img", gpu_id);
	f->gpu.gpu_id = gpu_id;
	f->gpu.render_fd = fixture_memfd(0);
	f->gpu.pages_fd = -1;
	f->gpu.bos = malloc((max_bos + 1) * sizeof(*f->gpu.bos));
	NEED(f->gpu.bos);
}

void fixture_gpu_init(struct fixture_gpu *f, uint32_t gpu_id, const uint64_t *sizes, size_t nr, enum fixture_fill how,
		      struct rng *rng)
{
	init_gpu(f, gpu_id, nr);
	for (size_t i = 0; i < nr; i++) {
		add_bo(f, sizes[i]);
		fixture_fill(f->gpu.bos[i].dmabuf_fd, sizes[i], how, rng);
	}
}

void fixture_gpu_like(struct fixture_gpu *f, const struct fixture_gpu *from)
{
	init_gpu(f, from->gpu.gpu_id, from->gpu.nr_bos);
	for (size_t i = 0; i < from->gpu.nr_bos; i++) {
		struct content_bo *bo = &f->gpu.bos[i];
		void *mem;

		add_bo(f, from->gpu.bos[i].size);
		bo->crc32c = from->gpu.bos[i].crc32c;
		bo->has_crc32c = from->gpu.bos[i].has_crc32c;
		mem = map_fd(bo->dmabuf_fd, bo->size, PROT_READ | PROT_WRITE);
		memset(mem, 0xa5, bo->size);
		unmap_mem(mem, bo->size);
	}
	f->gpu.pages_fd = from->gpu.pages_fd;
	f->gpu.streaming = from->gpu.streaming;
}

void fixture_gpu_done(struct fixture_gpu *f)
{
	for (size_t i = 0; i < f->gpu.nr_bos; i++)
		close(f->gpu.bos[i].dmabuf_fd);
	close(f->gpu.render_fd);
	free(f->gpu.bos);
}

bool fixture_gpus_same(const struct fixture_gpu *a, const struct fixture_gpu *b)
{
	for (size_t i = 0; i < a->gpu.nr_bos; i++)
		if (!fixture_same(a->gpu.bos[i].dmabuf_fd, b->gpu.bos[i].dmabuf_fd, a->gpu.bos[i].size))
			return false;
	return a->gpu.nr_bos == b->gpu.nr_bos;
}

int fixture_file(const char *dir)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/content-test-XXXXXX", dir);
	fd = mkostemp(path, O_CLOEXEC);
	NEED(fd >= 0);
	NEED(unlink(path) == 0);
	return fd;
}

bool fixture_file_is_right(int fd, const struct fixture_gpu *f)
{
	uint64_t prefix = 0, pos = PREFIX_BYTES;
	uint8_t *file;
	struct stat st;
	bool right;

	NEED(fstat(fd, &st) == 0);
	if ((uint64_t)st.st_size != f->bytes + PREFIX_BYTES)
		return false;
	file = map_fd(fd, (uint64_t)st.st_size, PROT_READ);
	for (unsigned int i = 0; i < PREFIX_BYTES; i++)
		prefix |= (uint64_t)file[i] << 8 * i;
	right = prefix == f->bytes;
	for (size_t i = 0; i < f->gpu.nr_bos && right; i++) {
		void *bo = map_fd(f->gpu.bos[i].dmabuf_fd, f->gpu.bos[i].size, PROT_READ);

		right = !memcmp(file + pos, bo, f->gpu.bos[i].size);
		unmap_mem(bo, f->gpu.bos[i].size);
		pos += f->gpu.bos[i].size;
	}
	unmap_mem(file, (uint64_t)st.st_size);
	return right;
}

void fixture_write_file(int fd, const struct fixture_gpu *f)
{
	uint8_t prefix[PREFIX_BYTES];
	off_t pos = PREFIX_BYTES;

	for (unsigned int i = 0; i < PREFIX_BYTES; i++)
		prefix[i] = (uint8_t)(f->bytes >> 8 * i);
	NEED(pwrite(fd, prefix, sizeof(prefix), 0) == sizeof(prefix));
	for (size_t i = 0; i < f->gpu.nr_bos; i++) {
		const struct content_bo *bo = &f->gpu.bos[i];
		void *mem = map_fd(bo->dmabuf_fd, bo->size, PROT_READ);

		NEED(pwrite(fd, mem, bo->size, pos) == (ssize_t)bo->size);
		unmap_mem(mem, bo->size);
		pos += (off_t)bo->size;
	}
}

bool fixture_takes_direct(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	struct statfs fs;

	NEED(fstatfs(fd, &fs) == 0);
	if (fs.f_type == TMPFS_MAGIC || fcntl(fd, F_SETFL, flags | O_DIRECT) < 0)
		return false;
	NEED(fcntl(fd, F_SETFL, flags) == 0);
	return true;
}

/* ---- pipes ---- */

struct fixture_peer {
	pthread_t thread;
	int pipe_fd, file;
	uint64_t bytes;
};

static void *reader_thread(void *arg)
{
	struct fixture_peer *peer = arg;
	static _Thread_local char buf[65536];
	off_t pos = 0;
	ssize_t n;

	fake_drm_depth++;
	while ((n = read(peer->pipe_fd, buf, sizeof(buf))) > 0) {
		NEED(pwrite(peer->file, buf, (size_t)n, pos) == n);
		pos += n;
	}
	close(peer->pipe_fd);
	return NULL;
}

static void *writer_thread(void *arg)
{
	struct fixture_peer *peer = arg;
	static _Thread_local char buf[65536];
	sigset_t pipe_signal;
	off_t pos = 0;

	fake_drm_depth++;
	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE); /* the other side may leave */
	pthread_sigmask(SIG_BLOCK, &pipe_signal, NULL);
	while ((uint64_t)pos < peer->bytes) {
		uint64_t rest = peer->bytes - (uint64_t)pos;
		ssize_t n = pread(peer->file, buf, rest < sizeof(buf) ? rest : sizeof(buf), pos);

		NEED(n > 0);
		for (ssize_t done = 0, m; done < n; done += m) {
			m = write(peer->pipe_fd, buf + done, (size_t)(n - done));
			if (m < 0)
				goto out;
		}
		pos += n;
	}
out:
	close(peer->pipe_fd);
	return NULL;
}

static struct fixture_peer *start_peer(int pipe_fd, int file, uint64_t bytes, void *(*fn)(void *))
{
	struct fixture_peer *peer = malloc(sizeof(*peer));

	NEED(peer);
	*peer = (struct fixture_peer){ .pipe_fd = pipe_fd, .file = file, .bytes = bytes };
	fake_drm_depth++;
	NEED(pthread_create(&peer->thread, NULL, fn, peer) == 0);
	fake_drm_depth--;
	return peer;
}

struct fixture_peer *fixture_reader(int file, int *ret_fd)
{
	int fds[2];

	NEED(pipe2(fds, O_CLOEXEC) == 0);
	*ret_fd = fds[1];
	return start_peer(fds[0], file, 0, reader_thread);
}

struct fixture_peer *fixture_writer(int file, uint64_t bytes, int *ret_fd)
{
	int fds[2];

	NEED(pipe2(fds, O_CLOEXEC) == 0);
	*ret_fd = fds[0];
	return start_peer(fds[1], file, bytes, writer_thread);
}

void fixture_peer_join(struct fixture_peer *peer)
{
	NEED(pthread_join(peer->thread, NULL) == 0);
	free(peer);
}

static size_t count_entries(const char *path)
{
	DIR *dir = opendir(path);
	size_t n = 0;

	NEED(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

size_t fixture_open_fds(void)
{
	return count_entries("/proc/self/fd");
}

size_t fixture_threads(void)
{
	return count_entries("/proc/self/task");
}
