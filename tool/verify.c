// SPDX-License-Identifier: GPL-2.0-only
/*
 * amdgpu-checkpoint verify: what a restore would find wrong with images, without a GPU. The restore's own code says it:
 * image/ of one image, share/ of buffers that several name, content/ of files of buffer data. Here is only what no
 * restore asks: whether all is there that belongs together.
 *
 * Images come first, since data take as long as reading them: those of a directory are read by as many threads as there
 * are processors, those of an archive by one. Images of the plugin in CRIU's tree have no checksums.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "amdgpu_plugin_util.h"
#include "content/content.h"
#include "host/host.h"
#include "share/share.h"
#include "tool/commands.h"
#include "tool/images.h"

#define MAX_THREADS	256
#define THREAD_STACK_BYTES (1u << 20)
/* Of damaged buffers of one file, for people. */
#define MAX_LINES	10

struct verify {
	struct images *images;
	bool knows_files;	/* criu's list of files was there */
	size_t nr_images, nr_image_checksums;
	size_t nr_buffers, nr_without; /* with data; that have no checksum */
	uint64_t needed_bytes;	       /* of buffer data */
	/* What threads change: */
	pthread_mutex_t lock; /* of what is printed and counted */
	size_t nr_checksums;  /* that were compared */
	size_t nr[IMAGE_UNREAD + 1]; /* problems, by what they mean */
	atomic_ullong content_bytes; /* that were read */
	atomic_size_t next_file;
};

/* @err: as image_state() takes it. @bo: the buffer that is wrong; NULL: none. */
static void problem(struct verify *v, const char *file, const struct bo *bo, int err, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
#define damaged(v, file, ...) problem(v, file, NULL, -EBADMSG, __VA_ARGS__)

static void problem(struct verify *v, const char *file, const struct bo *bo, int err, const char *fmt, ...)
{
	enum image_state state = image_state(err);
	char text[FAIL_TEXT_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	pthread_mutex_lock(&v->lock);
	v->nr[state]++;
	print_object(NULL);
	print_string("file", "", file);
	print_string("state", NULL, image_state_word(state));
	print_string("problem", ": ", text);
	if (bo) {
		print_bytes("buffer_bytes", "; buffer of ", bo->size);
		print_address("address", " at ", bo->addr);
		print_id("gpu_id", " of gpu ", bo->gpu_id);
	}
	print_text("\n");
	print_end();
	pthread_mutex_unlock(&v->lock);
}

/* What the plugin's code has refused with fail(). */
static void failed(struct verify *v, const struct image_file *file, const struct bo *bo, int err)
{
	if (err)
		problem(v, file->name, bo, err, "%s", fail_text()[0] ? fail_text() : strerror(-err));
	fail_clear();
}

/* ---- buffer data: a length, then one buffer after the other ---- */

/* So many bytes, and their CRC-32C; @copy: NULL, or where they go. */
static int read_bytes(struct verify *v, struct member *member, uint64_t size, uint8_t *copy, uint32_t *ret_crc)
{
	const uint8_t *bytes;
	int64_t n;

	for (*ret_crc = 0; size; size -= (uint64_t)n) {
		n = member_read(member, size, &bytes);
		if (n < 0)
			return (int)n;
		*ret_crc = bytes ? crc32c(*ret_crc, bytes, (size_t)n) : crc32c_zeros(*ret_crc, (uint64_t)n);
		if (copy && bytes)
			memcpy(copy, bytes, (size_t)n);
		if (copy)
			copy += n;
		else
			v->content_bytes += (uint64_t)n;
	}
	return 0;
}

/* Returns @err where it ends the walk. */
static int say_unread(struct verify *v, const struct image_file *pages, const struct bo *bo, int err, uint64_t needed)
{
	int why = err == -ENODATA ? content_check_size(pages->size, needed) : 0;

	if (why)
		failed(v, pages, bo, why);
	else
		problem(v, pages->name, bo, -EIO, "cannot be read: %s", strerror(-err));
	return err == -EBADMSG ? err : 0;
}

/* A file that is wrong from its start on has as many problems as buffers: a person is shown the first ones. */
static int compare_buffers(struct verify *v, const struct image_file *pages, const struct kfd_state *state,
			   struct member *member, uint64_t needed)
{
	size_t nr_wrong = 0;
	uint32_t crc;

	for (size_t i = 0; i < state->nr_bos; i++) {
		const struct bo *bo = &state->bos[i];
		const struct content_bo data = { .size = bo->size, .crc32c = bo->crc32c, .has_crc32c = bo->has_crc32c };
		bool is_said = print_is_json() || nr_wrong < MAX_LINES;
		int err;

		if (!kfd_state_owns_on(state, i, pages->is.gpu_id))
			continue;
		err = read_bytes(v, member, bo->size, NULL, &crc);
		if (err)
			return say_unread(v, pages, bo, err, needed);
		err = content_check_crc(&data, crc);
		nr_wrong += err != 0;
		pthread_mutex_lock(&v->lock);
		v->nr_checksums += bo->has_crc32c;
		v->nr[IMAGE_DAMAGED] += err && !is_said;
		pthread_mutex_unlock(&v->lock);
		failed(v, pages, bo, is_said ? err : 0);
	}
	pthread_mutex_lock(&v->lock);
	if (nr_wrong > MAX_LINES)
		print_text("%s: and %zu more buffers are damaged\n", pages->name, nr_wrong - MAX_LINES);
	pthread_mutex_unlock(&v->lock);
	failed(v, pages, NULL, content_check_size(pages->size, needed));
	return 0;
}

/* The state of the process whose buffer data are in the file; NULL: nothing is to be read. */
static const struct kfd_state *state_of_pages(const struct verify *v, const struct image_file *pages)
{
	bool is_freed = pages->is.kind == IMAGE_FREED;
	const struct image_file *process =
		images_find(v->images, is_freed ? IMAGE_SUSPENDED : IMAGE_KFD, pages->is.id, 0);

	if ((pages->is.kind != IMAGE_PAGES && !is_freed) || pages->err || !process)
		return NULL;
	if (is_freed)
		return process->suspended ? &process->suspended->state : NULL;
	return image_is_process(process) ? &process->kfd->state : NULL;
}

static int visit(void *arg, struct member *member)
{
	struct verify *v = arg;
	uint8_t prefix[LENGTH_PREFIX_BYTES] = { 0 };
	const struct kfd_state *state;
	struct image_file *pages;
	struct buffer_data data;
	struct image_name is;
	uint64_t needed;
	uint32_t crc;
	int err;

	if (!image_name_parse(member->name, &is) || (is.kind != IMAGE_PAGES && is.kind != IMAGE_FREED))
		return 0;
	pages = images_find(v->images, is.kind, is.id, is.gpu_id);
	state = pages ? state_of_pages(v, pages) : NULL;
	if (!state)
		return 0;
	pages->was_read = true;
	data = buffer_data_of(state, is.gpu_id);
	needed = LENGTH_PREFIX_BYTES + data.bytes;
	if (data.bytes > CONTENT_MAX_BYTES) /* which was said of its process */
		return 0;
	err = read_bytes(v, member, sizeof(prefix), prefix, &crc);
	if (err)
		return say_unread(v, pages, NULL, err, needed);
	err = content_check_prefix(prefix, needed);
	if (!err)
		return compare_buffers(v, pages, state, member, needed);
	failed(v, pages, NULL, err);
	return 0;
}

/* A file, and then the next that nobody has taken. */
static void *read_files(void *arg)
{
	struct verify *v = arg;
	size_t i;

	while ((i = v->next_file++) < v->images->nr)
		if (state_of_pages(v, &v->images->files[i]))
			images_visit(v->images, v->images->files[i].name, visit, v);
	return NULL;
}

static uint64_t read_so_far(void *arg)
{
	return ((struct verify *)arg)->content_bytes;
}

static void read_directory(struct verify *v)
{
	struct progress_line *progress = progress_start(v->needed_bytes, read_so_far, v);
	pthread_t threads[MAX_THREADS];
	size_t nr = 0, nr_wanted = 0;
	long nr_processors = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_attr_t attr;

	for (size_t i = 0; i < v->images->nr; i++)
		nr_wanted += state_of_pages(v, &v->images->files[i]) != NULL;
	nr_wanted = nr_processors > 0 && (size_t)nr_processors < nr_wanted ? (size_t)nr_processors : nr_wanted;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
	/* This thread is one of them. */
	while (nr + 1 < nr_wanted && nr < MAX_THREADS && !pthread_create(&threads[nr], &attr, read_files, v))
		nr++;
	read_files(v);
	while (nr)
		pthread_join(threads[--nr], NULL);
	pthread_attr_destroy(&attr);
	progress_stop(&progress);
}

/* ---- structure ---- */

/* The file with the data of a process on a GPU is there. */
static void verify_data(struct verify *v, const struct image_file *process, enum image_kind kind,
			const struct kfd_state *state, uint32_t gpu_id)
{
	struct buffer_data data = buffer_data_of(state, gpu_id);
	char name[IMAGE_NAME_MAX];

	v->nr_buffers += data.nr;
	v->nr_without += data.nr_without;
	v->needed_bytes += data.bytes;
	image_name_make(kind, process->is.id, gpu_id, name);
	if (data.bytes > CONTENT_MAX_BYTES)
		damaged(v, process->name, "has buffers of gpu %#x that are together larger than a file can be", gpu_id);
	else if (data.nr && !images_find(v->images, kind, process->is.id, gpu_id))
		damaged(v, process->name, "the file %s with the data of %zu buffers is missing", name, data.nr);
}

static void verify_image(struct verify *v, const struct image_file *file)
{
	/* Of itself, which image/ has compared. CRIU's plugin writes none, and its files may be longer than the image. */
	bool has_checksum = (file->kfd && file->kfd->has_crc32c) || (file->render && file->render->has_crc32c) ||
			    (file->dmabuf && file->dmabuf->has_crc32c);
	const struct gpu_process *kfd = file->kfd;
	const struct image_file *record;

	v->nr_images++;
	v->nr_image_checksums += has_checksum;
	if (has_checksum && file->size - LENGTH_PREFIX_BYTES > file->length)
		damaged(v, file->name, "has %" PRIu64 " bytes behind its end",
			file->size - LENGTH_PREFIX_BYTES - file->length);
	if (kfd && kfd->no_kfd && !images_find(v->images, IMAGE_RENDER, file->is.id, 0))
		damaged(v, file->name, "the file amdgpu-renderD-%d.img of its render node is missing", file->is.id);
	for (unsigned int i = 0; image_is_process(file) && i < kfd->nodes->nr_nodes; i++)
		if (topology_is_gpu(kfd->nodes->nodes[i]))
			verify_data(v, file, IMAGE_PAGES, &kfd->state, topology_gpu_id(kfd->nodes->nodes[i]));
	record = image_is_process(file) ? images_find(v->images, IMAGE_SUSPENDED, (int)kfd->state.pid, 0) : NULL;
	if (image_is_process(file) && (!record || !record->err))
		failed(v, file, NULL, suspend_image_check(record ? record->suspended : NULL, kfd));
}

/* ---- a suspended process: its record, and the data of the buffers that it has freed ---- */

/* The record's checksum is right. */
static void verify_suspended(struct verify *v, const struct image_file *file)
{
	const struct kfd_state *state = &file->suspended->state;
	bool has_process = !file->suspended->has_kfd;

	v->nr_images++;
	v->nr_image_checksums++;
	for (size_t i = 0; !has_process && i < v->images->nr; i++) {
		const struct gpu_process *kfd = v->images->files[i].kfd;

		has_process = v->images->files[i].err || (kfd && (int)kfd->state.pid == file->is.id);
	}
	if (!has_process)
		damaged(v, file->name, "is of a suspended process, of which no amdgpu-kfd image is there");
	for (size_t i = 0; i < state->nr_devices; i++)
		verify_data(v, file, IMAGE_FREED, state, state->devices[i].user_gpu_id);
}

static void verify_file(struct verify *v, const struct image_file *file)
{
	const struct image_file *process = images_find(v->images, IMAGE_KFD, file->is.id, 0);

	if (file->err)
		problem(v, file->name, NULL, file->err, "%s", file->problem);
	else if (image_kind_is_read(file->is.kind))
		verify_image(v, file);
	else if (file->is.kind == IMAGE_SUSPENDED)
		verify_suspended(v, file);
	else if (file->is.kind == IMAGE_FREED && !images_find(v->images, IMAGE_SUSPENDED, file->is.id, 0))
		damaged(v, file->name, "the file amdgpu-suspended-%d.img of its process is missing", file->is.id);
	else if (file->is.kind == IMAGE_DRM_PAGES)
		problem(v, file->name, NULL, -EOPNOTSUPP,
			"is of CRIU's development branch, and nothing that this plugin restores");
	else if (file->is.kind == IMAGE_PAGES && !process)
		damaged(v, file->name, "the file amdgpu-kfd-%d.img of its process is missing", file->is.id);
	else if (file->is.kind == IMAGE_PAGES && process->kfd && process->kfd->has_crc32c &&
		 topology_find_gpu(process->kfd->nodes, file->is.gpu_id) < 0)
		damaged(v, file->name, "belongs to gpu %#x, which its process does not have", file->is.gpu_id);
}

/* ---- what images say of each other ---- */

/* As the tasks of a restore do: all that is owned, then what is named. And whether all of their files are there. */
static void check_sharing(struct verify *v)
{
	struct share_table *table = share_table_new();
	const struct image_file *first = NULL, *end = v->images->files + v->images->nr;
	size_t nr_files = 0, nr_wanted = 0;

	if (!table) {
		problem(v, v->images->path, NULL, -ENOMEM, "out of memory");
		return;
	}
	for (const struct image_file *file = v->images->files; file < end; file++) {
		const struct gpu_process *kfd = file->kfd;

		nr_files += file->is.kind == IMAGE_RENDER || (kfd && !kfd->no_kfd);
		nr_wanted += kfd && kfd->nr_sharers ? kfd->nr_files : 0;
		if (!first && ((kfd && kfd->nr_sharers) || file->dmabuf))
			first = file;
		if (kfd)
			failed(v, file, NULL, share_check_owned(table, kfd));
		else if (file->dmabuf)
			failed(v, file, NULL, share_table_begin(table, file->dmabuf->nr_sharers));
	}
	for (const struct image_file *file = v->images->files; file < end; file++) {
		for (size_t i = 0; file->kfd && i < file->kfd->state.nr_bos; i++)
			failed(v, file, NULL, share_check_named(table, file->kfd->state.bos[i].share.buffer));
		for (size_t i = 0; file->render && i < file->render->objects.nr_handles; i++)
			failed(v, file, NULL, share_check_named(table, file->render->objects.handles[i].buffer));
		if (file->dmabuf)
			failed(v, file, NULL, share_check_named(table, file->dmabuf->buffer));
	}
	if (first)
		failed(v, first, NULL, share_table_check(table));
	if (nr_wanted > nr_files)
		damaged(v, first->name, "is of processes with %zu device files, and there are images of %zu", nr_wanted, nr_files);
	share_table_free(table);
}

/* ---- criu's list of files, which has the device files ---- */

static void check_criu_files(struct verify *v)
{
	_cleanup_free_ uint8_t *data = NULL;
	_cleanup_free_ uint32_t *ids = NULL;
	size_t nr = 0;
	int fd = v->images->criu_files, err = fd < 0 ? fd : 0;
	struct stat st = { 0 };

	if (!err && fstat(fd, &st))
		err = -errno;
	if (!err)
		data = malloc((size_t)st.st_size + 1);
	if (!err)
		err = data ? read_all(fd, data, (size_t)st.st_size) : -ENOMEM;
	if (!err)
		err = criu_list_unpack(data, (size_t)st.st_size, &ids, &nr);
	for (size_t i = 0; i < nr; i++) {
		static const enum image_kind kinds[] = { IMAGE_KFD, IMAGE_RENDER, IMAGE_DMABUF };
		bool is_there = false;

		for (size_t kind = 0; ids[i] <= INT32_MAX && kind < ARRAY_SIZE(kinds); kind++) {
			struct image_file *file = images_find(v->images, kinds[kind], (int)ids[i], 0);

			is_there |= file != NULL;
			if (file)
				file->is_listed = true;
		}
		if (!is_there)
			damaged(v, IMAGES_CRIU_FILES,
				"has file %#x of a device, and neither amdgpu-kfd-%u.img nor amdgpu-renderD-%u.img nor "
				"amdgpu-shared-%u.img is there", ids[i], ids[i], ids[i], ids[i]);
	}
	v->knows_files = err != -ENOENT;
	if (err == -EBADMSG)
		damaged(v, IMAGES_CRIU_FILES, "is damaged: it is no list of files as criu writes it");
	else if (err == -ELOOP)
		problem(v, IMAGES_CRIU_FILES, NULL, err, "cannot be read: it is no regular file");
	else if (err && err != -ENOENT)
		problem(v, IMAGES_CRIU_FILES, NULL, err, "cannot be read: %s", strerror(-err));
	for (size_t i = 0; !err && i < v->images->nr; i++) {
		const struct image_file *file = &v->images->files[i];

		if (!file->is_listed && image_kind_is_read(file->is.kind))
			damaged(v, file->name, "is of file %#x, which criu's files.img does not have",
				(unsigned int)file->is.id);
	}
}

/* ---- settings beside the images ---- */

static void check_settings(struct verify *v)
{
	struct settings settings;
	int err = v->images->settings;

	if (err == -ENOENT)
		return;
	if (err >= 0 && settings_load(&settings, NULL, err, NULL))
		damaged(v, SETTINGS_IMAGE_CONF, "is refused by a restore: %s", fail_text());
	else if (err == -ELOOP)
		damaged(v, SETTINGS_IMAGE_CONF, "is no regular file, which a restore would refuse");
	else if (err < 0)
		problem(v, SETTINGS_IMAGE_CONF, NULL, err, "cannot be read: %s", strerror(-err));
	fail_clear();
}

/* ---- all ---- */

static enum image_state verdict(const struct verify *v)
{
	for (enum image_state state = IMAGE_DAMAGED; state <= IMAGE_UNREAD; state++)
		if (v->nr[state])
			return state;
	return v->knows_files ? IMAGE_GOOD : IMAGE_UNREAD;
}

int command_verify(const struct arguments *arguments)
{
	static const int statuses[] = { TOOL_GOOD, TOOL_BAD, TOOL_BAD, TOOL_FAIL };
	_cleanup_(images_done) struct images images = { .fd = -1, .settings = -1, .criu_files = -1 };
	struct verify v = { .images = &images, .lock = PTHREAD_MUTEX_INITIALIZER };
	struct stat st;

	if (!stat(arguments->path, &st) && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
		return complain("%s: is a pipe, and verify reads an archive twice: give it a file", arguments->path);
	if (images_open(arguments->path, &images))
		return TOOL_FAIL;
	print_string("path", NULL, images.path);
	print_array("problems");
	for (size_t i = 0; i < images.nr; i++)
		verify_file(&v, &images.files[i]);
	check_sharing(&v);
	check_criu_files(&v);
	check_settings(&v);
	/* An archive that cannot be read to its end is not good. */
	if (images.is_archive)
		v.nr[IMAGE_UNREAD] += images_walk(&images, visit, &v) != 0;
	else
		read_directory(&v);
	for (size_t i = 0; i < images.nr; i++)
		if (state_of_pages(&v, &images.files[i]) && !images.files[i].was_read)
			problem(&v, images.files[i].name, NULL, -EIO, "cannot be read a second time");
	print_end();
	print_number("images_number", "images: ", v.nr_images);
	print_number("image_checksums", ", with a correct checksum: ", v.nr_image_checksums);
	print_number("buffers_number", "\nbuffers with data: ", v.nr_buffers);
	print_number("buffer_checksums", ", checksums compared: ", v.nr_checksums);
	print_number("without_checksum", ", without one: ", v.nr_without);
	print_bytes("content_bytes", ", read: ", v.content_bytes);
	print_bool("files_listed", v.knows_files);
	if (!v.knows_files)
		print_text("\ncriu's files.img is missing: cannot tell whether images are missing");
	print_string("verdict", "\nGPU part: ", image_state_word(verdict(&v)));
	print_text(". criu's own images were not checked\n");
	return statuses[verdict(&v)];
}
