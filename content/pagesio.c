// SPDX-License-Identifier: GPL-2.0-only
/*
 * File input and output of pages images.
 *
 * Files are read and written at offsets, by O_DIRECT where it works: buffer data would push everything else out of the
 * page cache, and are needed only once. Elsewhere the cache is used, and emptied behind the transfer. What is in the
 * cache before a restore is read from there, and stays: a program has warmed it, perhaps for several restores. Pipes are
 * made non-blocking, so that a peer that stalls cannot hold the thread.
 */
#define _GNU_SOURCE
#include "content/pagesio.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "content/layout.h"
#include "amdgpu_plugin_util.h"

#define BLOCK		   LAYOUT_BLOCK_BYTES
/* A shorter hole is read as zeros: that saves a packet for the GPU and a system call. */
#define HOLE_BYTES_MIN	   (64u << 10)
/* Above this many extents of data in a window, the page cache gathers small writes better than the disk does. */
#define EXTENTS_MAX_DIRECT 64
#define POLL_MS		   100
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif
/* A peer that keeps the pipe open and sends nothing for this long has sent everything. */
#define END_POLLS	   50

/* Keeps where in the file it was. */
#define io_fail(io, err, off, ...) ((io)->at = (off), fail(err, __VA_ARGS__))

/* Switches between direct and cached transfers; want_direct says which is to be the rule. */
static void set_direct(struct pagesio *io, bool direct)
{
	int flags = direct ? io->flags | O_DIRECT : io->flags & ~O_DIRECT;

	if (io->direct == direct || io->flags < 0)
		return;
	if (fcntl(io->fd, F_SETFL, flags) == 0)
		io->direct = direct;
}

/* Such a file is its own page cache. */
bool pagesio_in_memory(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

/* How both directions begin. */
static int open_either(struct pagesio *io, int fd, bool streaming, uint64_t file_bytes, struct stat *st)
{
	io->fd = fd;
	io->streaming = streaming;
	io->file_bytes = file_bytes;
	io->flags = -1;
	if (fstat(fd, st) < 0)
		return io_fail(io, errno_or_eio(), 0, "examining the file: %m");
	if (!streaming && !S_ISREG(st->st_mode))
		return io_fail(io, -EINVAL, 0, "neither a file nor a stream (mode %o)", st->st_mode);
	io->flags = fcntl(fd, F_GETFL);
	if (io->flags < 0)
		return io_fail(io, errno_or_eio(), 0, "asking for the flags of the file: %m");
	io->direct = io->flags & O_DIRECT;
	io->in_memory = streaming || pagesio_in_memory(fd);
	if (streaming && fcntl(fd, F_SETFL, io->flags | O_NONBLOCK) < 0)
		return io_fail(io, errno_or_eio(), 0, "making the pipe non-blocking: %m");
	return 0;
}

/* File systems in memory take O_DIRECT as well, but there it means nothing. */
static void choose_path(struct pagesio *io)
{
	set_direct(io, !io->in_memory);
	io->want_direct = io->direct;
}

int pagesio_create(struct pagesio *io, int fd, bool streaming, uint64_t file_bytes)
{
	struct stat st;
	int err = open_either(io, fd, streaming, file_bytes, &st);

	if (err || streaming)
		return err;
	if (ftruncate(fd, 0))
		return io_fail(io, errno_or_eio(), 0, "setting the length to 0: %m");
	if (ftruncate(fd, (off_t)file_bytes))
		return io_fail(io, errno_or_eio(), 0, "setting the length to %" PRIu64 ": %m", file_bytes);
	choose_path(io);
	return 0;
}

/* Waits a moment for the pipe to be usable again: the number of ready files, or -errno. */
static int wait_pipe(struct pagesio *io, short events)
{
	struct pollfd p = { .fd = io->fd, .events = events };
	int n;

	if (io->stop && atomic_load(io->stop))
		return -ECANCELED;
	n = poll(&p, 1, POLL_MS);
	if (n < 0 && errno != EINTR)
		return errno_or_eio();
	return n > 0;
}

/* Whether the transfer can go on after the error of the last call, and if not, why. */
static int recover(struct pagesio *io, short events)
{
	int err = errno_or_eio();

	if (err == -EINTR)
		return 0;
	if (err == -EAGAIN && io->streaming) {
		err = wait_pipe(io, events);
		return err < 0 ? err : 0;
	}
	if (err == -EINVAL && io->direct) { /* alignment that this file system does not take */
		io->want_direct = false;
		set_direct(io, false);
		return io->direct ? err : 0;
	}
	return err;
}

static int write_range(struct pagesio *io, uint64_t off, const char *mem, uint64_t len)
{
	uint64_t done = 0;

	while (done < len) {
		ssize_t n = io->streaming ? write(io->fd, mem + done, len - done)
					  : pwrite(io->fd, mem + done, len - done, (off_t)(off + done));
		int err;

		if (n > 0) {
			done += (uint64_t)n;
			continue;
		}
		err = n ? recover(io, POLLOUT) : -EIO;
		if (err)
			return io_fail(io, err, off + done, "writing: %m");
	}
	return 0;
}

/* Reads @need bytes, and up to @len if they come along; fewer only at the end of the file. */
static int read_range(struct pagesio *io, uint64_t off, char *mem, uint64_t need, uint64_t len, uint64_t *ret_read)
{
	uint64_t done = 0;

	while (done < need) {
		ssize_t n = io->streaming ? read(io->fd, mem + done, len - done)
					  : pread(io->fd, mem + done, len - done, (off_t)(off + done));
		int err;

		if (n == 0)
			break;
		if (n > 0) {
			done += (uint64_t)n;
			continue;
		}
		err = recover(io, POLLIN);
		if (err)
			return io_fail(io, err, off + done, "reading: %m");
	}
	*ret_read = done;
	return 0;
}

/* Writeback errors are errors of the file; other failures mean that the call is not known here. */
static int flush_range(struct pagesio *io, uint64_t from, uint64_t to, unsigned int how)
{
	int err;

	if (from == to || sync_file_range(io->fd, (off_t)from, (off_t)(to - from), how) == 0)
		return 0;
	err = errno_or_eio();
	if (err != -EIO && err != -ENOSPC && err != -EDQUOT)
		return 0;
	return io_fail(io, err, from, "writing back: %m");
}

/* Waits for what was written before, drops it from the page cache, and starts [from, to). */
static int write_behind(struct pagesio *io, uint64_t from, uint64_t to)
{
	int err;

	if (io->in_memory)
		return 0;
	err = flush_range(io, from, to, SYNC_FILE_RANGE_WRITE);
	if (err)
		return err;
	err = flush_range(io, io->flush_from, io->flush_to,
			  SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
	if (err)
		return err;
	if (io->flush_to > io->flush_from)
		posix_fadvise(io->fd, (off_t)io->flush_from, (off_t)(io->flush_to - io->flush_from),
			      POSIX_FADV_DONTNEED);
	io->flush_from = from;
	io->flush_to = to;
	return 0;
}

bool pagesio_next_extent(const uint8_t *map, uint64_t len, struct extent *extent)
{
	size_t nr = (len + BLOCK - 1) / BLOCK, n = (extent->to + BLOCK - 1) / BLOCK;

	if (n == nr)
		return false;
	extent->from = extent->to;
	extent->data = map[n];
	while (n < nr && !map[n] == !extent->data)
		n++;
	extent->to = n < nr ? n * BLOCK : len;
	return true;
}

int pagesio_write(struct pagesio *io, uint64_t off, const void *mem, uint64_t len, const uint8_t *map)
{
	size_t nr = 0;
	int err = 0;

	if (io->streaming)
		return write_range(io, off, mem, len);
	for (struct extent extent = { 0 }; pagesio_next_extent(map, len, &extent);)
		nr += extent.data;
	if (nr > EXTENTS_MAX_DIRECT)
		set_direct(io, false);
	for (struct extent extent = { 0 }; !err && pagesio_next_extent(map, len, &extent);) {
		const char *from = (const char *)mem + extent.from;
		uint64_t bytes = extent.to - extent.from, whole = bytes / BLOCK * BLOCK;

		if (!extent.data)
			continue;
		err = whole ? write_range(io, off + extent.from, from, whole) : 0;
		if (err || whole == bytes)
			continue;
		set_direct(io, false); /* the last, partial block cannot be written directly */
		err = write_range(io, off + extent.from + whole, from + whole, bytes - whole);
	}
	if (!err && !io->direct)
		err = write_behind(io, off, off + len);
	set_direct(io, io->want_direct);
	return err;
}

int pagesio_flush(struct pagesio *io)
{
	return write_behind(io, 0, 0);
}

int pagesio_complete(struct pagesio *io)
{
	uint8_t prefix[LENGTH_PREFIX_BYTES];
	int err;

	if (io->streaming)
		return 0;
	set_direct(io, false);
	length_prefix_put(prefix, io->file_bytes - LENGTH_PREFIX_BYTES);
	err = write_range(io, 0, (const char *)prefix, sizeof(prefix));
	if (err)
		return err;
	err = write_behind(io, 0, BLOCK);
	if (err)
		return err;
	return write_behind(io, 0, 0);
}

void pagesio_discard(struct pagesio *io)
{
	if (!io->streaming && io->flags >= 0)
		(void)!ftruncate(io->fd, 0); /* should this fail as well, the file has no prefix and is refused */
}

static int check_prefix(struct pagesio *io)
{
	uint8_t prefix[LENGTH_PREFIX_BYTES];
	uint64_t got = 0;
	int err = read_range(io, 0, (char *)prefix, sizeof(prefix), sizeof(prefix), &got);

	if (err)
		return err;
	if (got != sizeof(prefix))
		return io_fail(io, -EBADMSG, got, "ends within its length prefix");
	io->at = 0;
	return content_check_prefix(prefix, io->file_bytes);
}

/* Whether all of the range is in the page cache; where the kernel does not tell, it is not. */
static bool is_cached(const struct pagesio *io, uint64_t off, uint64_t len)
{
	const uint64_t range[] = { off, len };
	size_t nr = (len + BLOCK - 1) / BLOCK, n = 0;
	uint64_t counts[5] = { 0 }; /* struct cachestat: in the cache, dirty, ... */
	_cleanup_free_ uint8_t *pages = NULL;
	void *mem;

	if (syscall(SYS_cachestat, io->fd, range, counts, 0) == 0)
		return counts[0] * (uint64_t)sysconf(_SC_PAGESIZE) >= len;
	if (errno != ENOSYS)
		return false;
	/* Linux before 6.5. A mapping alone reads nothing. */
	pages = calloc(nr, 1);
	mem = mmap(NULL, len, PROT_READ, MAP_SHARED, io->fd, (off_t)off);
	if (mem == MAP_FAILED)
		return false;
	if (pages && mincore(mem, len, pages) == 0)
		while (n < nr && pages[n] & 1)
			n++;
	munmap(mem, len);
	return n == nr;
}

int pagesio_open(struct pagesio *io, int fd, bool streaming, uint64_t file_bytes)
{
	struct stat st;
	bool is_warm;
	uint64_t size;
	int err = open_either(io, fd, streaming, file_bytes, &st);

	if (err)
		return err;
	size = (uint64_t)st.st_size;
	if (streaming)
		return check_prefix(io);
	io->at = size < file_bytes ? size : file_bytes;
	err = content_check_size(size, file_bytes);
	if (err)
		return err;
	set_direct(io, false); /* the prefix is not a block */
	/*
	 * No reading ahead into the cache from the end of what is in it, nor into the window of another lane. Before the
	 * first read: what one has begun, later ones go on with.
	 */
	posix_fadvise(io->fd, 0, 0, POSIX_FADV_RANDOM);
	is_warm = is_cached(io, 0, BLOCK);
	err = check_prefix(io);
	if (err)
		return err;
	if (!is_warm)
		posix_fadvise(io->fd, 0, BLOCK, POSIX_FADV_DONTNEED);
	choose_path(io);
	return 0;
}

int pagesio_open_again(struct pagesio *io, const struct pagesio *first)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", first->fd);
	*io = *first;
	io->fd = open(path, (first->flags & O_ACCMODE) | O_CLOEXEC);
	if (io->fd < 0)
		return errno_or_eio();
	io->direct = false;
	choose_path(io);
	posix_fadvise(io->fd, 0, 0, POSIX_FADV_RANDOM);
	return 0;
}

int pagesio_join(struct pagesio *first, struct pagesio *io)
{
	first->some_cached |= io->some_cached;
	first->want_direct &= io->want_direct;
	return close(io->fd) < 0 ? io_fail(io, errno_or_eio(), io->file_bytes, "closing the file: %m") : 0;
}

/*
 * Marks the blocks of those holes in [off, off + len) that are long enough to be worth it. In a file system that does not
 * know of holes, all is data.
 */
static void map_holes(struct pagesio *io, uint64_t off, uint64_t len, uint8_t *map)
{
	uint64_t pos = off, end = off + len;

	memset(map, 1, (len + BLOCK - 1) / BLOCK);
	while (pos < end) {
		uint64_t from, to, first = (pos + BLOCK - 1) / BLOCK * BLOCK, last;

		/* Each question may look at all the data behind it, so it is asked once for each stretch of data. */
		if (pos < io->hole_from || pos >= io->data_to) {
			off_t data = lseek(io->fd, (off_t)pos, SEEK_DATA);
			off_t hole = data < 0 ? -1 : lseek(io->fd, data, SEEK_HOLE);

			io->hole_from = pos;
			io->data_from = data >= 0 ? (uint64_t)data : errno == ENXIO ? UINT64_MAX : pos;
			io->data_to = hole > data ? (uint64_t)hole : UINT64_MAX;
		}
		from = pos > io->data_from ? pos : io->data_from;
		from = from < end ? from : end;
		to = io->data_to < end ? io->data_to : end;
		last = from == end ? (end + BLOCK - 1) / BLOCK * BLOCK : from / BLOCK * BLOCK;
		if ((from - pos >= HOLE_BYTES_MIN || from - pos == len) && last > first)
			memset(map + (first - off) / BLOCK, 0, (last - first) / BLOCK);
		pos = to;
	}
}

/* A direct read takes whole blocks, and the memory has room for these. */
static int read_extent(struct pagesio *io, uint64_t off, char *mem, uint64_t len)
{
	uint64_t got = 0;
	int err = read_range(io, off, mem, len, io->direct ? (len + BLOCK - 1) / BLOCK * BLOCK : len, &got);

	if (err)
		return err;
	if (got < len)
		return io_fail(io, -EBADMSG, off + got, "ends after %" PRIu64 " bytes, %" PRIu64 " expected", off + got,
			       io->file_bytes);
	return 0;
}

int pagesio_read(struct pagesio *io, uint64_t off, void *mem, uint64_t len, uint8_t *map)
{
	uint64_t skip = off ? 0 : LENGTH_PREFIX_BYTES; /* of a stream it was read when that was opened */
	bool keep = false;

	if (io->streaming) {
		memset(map, 1, (len + BLOCK - 1) / BLOCK);
		return read_extent(io, off + skip, (char *)mem + skip, len - skip);
	}
	map_holes(io, off, len, map);
	for (struct extent extent = { 0 }; pagesio_next_extent(map, len, &extent);) {
		uint64_t at = off + extent.from, bytes = extent.to - extent.from;
		bool cached = extent.data && !io->in_memory && is_cached(io, at, bytes);
		int err;

		if (!extent.data)
			continue;
		keep |= cached;
		io->some_cached |= cached;
		set_direct(io, io->want_direct && !cached);
		err = read_extent(io, at, (char *)mem + extent.from, bytes);
		if (err)
			return err;
	}
	if (!io->in_memory && !io->want_direct && !keep)
		posix_fadvise(io->fd, (off_t)off, (off_t)len, POSIX_FADV_DONTNEED);
	return 0;
}

int pagesio_check_end(struct pagesio *io)
{
	uint64_t got = 0;
	int ready = 0, err;
	char byte;

	if (!io->streaming)
		return 0;
	for (int n = 0; n < END_POLLS && ready == 0; n++)
		ready = wait_pipe(io, POLLIN);
	if (ready <= 0)
		return ready < 0 ? io_fail(io, ready, io->file_bytes, "waiting for the end: %m") : 0;
	err = read_range(io, io->file_bytes, &byte, 1, 1, &got);
	if (err)
		return err;
	if (got)
		return io_fail(io, -EBADMSG, io->file_bytes, "continues after %" PRIu64 " bytes, where it should end",
			       io->file_bytes);
	return 0;
}

void pagesio_done(struct pagesio *io)
{
	if (io->flags >= 0)
		fcntl(io->fd, F_SETFL, io->flags);
	io->flags = -1;
}
