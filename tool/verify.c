// SPDX-License-Identifier: GPL-2.0-only
/*
 * amdgpu-image verify: everything about images that can be told without a GPU. An image of this plugin has a checksum
 * of itself and one of each buffer with contents; images of the plugin in CRIU's tree have none, so only their
 * structure and sizes are checked.
 */
#include <inttypes.h>
#include <stdarg.h>

#include "amdgpu_plugin_util.h"
#include "tool/checksum.h"
#include "tool/commands.h"
#include "tool/json.h"
#include "tool/sharing.h"
#include "tool/summary.h"

/* Where something is wrong. */
struct problem_place {
	const char *file;
	const struct kfd_criu_bo_bucket *bo; /* NULL: no buffer in particular */
	size_t index;			     /* of the buffer in its process */
	uint64_t from, to;		     /* bytes of the file; both 0: all of it */
};

/* The buffers of a GPU with contents, in the order of the file. */
struct contents {
	struct buffer_range *ranges;
	size_t *index; /* of each buffer in the process */
	size_t nr;
	uint64_t end; /* of the file */
	struct checksum_error error;
};

struct verify {
	const char *path;
	struct images images;
	struct contents *read; /* of an archive: for each file of images, what was read of it; empty for most */
	bool json;
	struct json out;
	bool progress;				      /* is shown */
	uint64_t bytes_total, bytes_done, bytes_file; /* of contents to read; before this file; of this file */
	size_t nr_images, nr_image_checksums;
	size_t nr_buffers, nr_checksums;
	size_t nr_damaged, nr_unread;
};

/* ---- what is said ---- */

static void clear_progress(const struct verify *v)
{
	if (v->progress)
		fputs("\r\033[K", stderr);
}

static void show_progress(void *arg, uint64_t done)
{
	struct verify *v = arg;
	uint64_t all = v->bytes_done + done;

	if (v->progress && v->bytes_total)
		fprintf(stderr, "\r%3u %% of %s\033[K", (unsigned int)((double)all * 100 / (double)v->bytes_total),
			size_text(v->bytes_total));
}

static void problem_json(struct verify *v, const struct problem_place *place, int err, const char *text)
{
	json_object(&v->out, NULL);
	json_string(&v->out, "file", place->file);
	json_bool(&v->out, "damaged", err == -EBADMSG);
	json_string(&v->out, "problem", text);
	if (place->bo) {
		json_number(&v->out, "gpu_id", place->bo->gpu_id);
		json_number(&v->out, "buffer", place->index);
		json_hex(&v->out, "address", place->bo->addr);
		json_number(&v->out, "buffer_bytes", place->bo->size);
	}
	if (place->to) {
		json_number(&v->out, "from", place->from);
		json_number(&v->out, "to", place->to);
	}
	json_end(&v->out);
}

/* @err: -EBADMSG, damaged; any other: it could not be looked at. */
static void problem(struct verify *v, const struct problem_place *place, int err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static void problem(struct verify *v, const struct problem_place *place, int err, const char *fmt, ...)
{
	char text[CAUGHT_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	v->nr_damaged += err == -EBADMSG;
	v->nr_unread += err != -EBADMSG;
	clear_progress(v);
	if (v->json) {
		problem_json(v, place, err, text);
		return;
	}
	printf("%s%s%s: %s", colour(RED), place->file, colour(PLAIN), text);
	if (place->bo)
		printf("; buffer %zu of gpu %#x, %s at %#" PRIx64, place->index, place->bo->gpu_id,
		       size_text(place->bo->size), place->bo->addr);
	if (place->to)
		printf("; bytes %" PRIu64 " to %" PRIu64 " of the file", place->from, place->to);
	putchar('\n');
}

/* ---- contents ---- */

static void contents_done(struct contents *contents)
{
	free(contents->ranges);
	free(contents->index);
	*contents = (struct contents){ 0 };
}

static bool is_content(const struct kfd_image *kfd, uint32_t gpu_id, size_t i)
{
	return kfd->state.bos[i].gpu_id == gpu_id && kfd_state_owns(&kfd->state, i);
}

/* The sums cannot overflow: the image would have been refused. */
static int contents_init(struct contents *contents, const struct kfd_image *kfd, uint32_t gpu_id)
{
	size_t nr = 0;

	for (size_t i = 0; i < kfd->state.nr_bos; i++)
		nr += is_content(kfd, gpu_id, i);
	*contents = (struct contents){
		.ranges = calloc(nr + 1, sizeof(*contents->ranges)),
		.index = calloc(nr + 1, sizeof(*contents->index)),
		.end = LENGTH_PREFIX_BYTES,
	};
	if (!contents->ranges || !contents->index)
		return -ENOMEM;
	for (size_t i = 0; i < kfd->state.nr_bos; i++) {
		uint64_t size = kfd->state.bos[i].size;

		if (!is_content(kfd, gpu_id, i))
			continue;
		contents->ranges[contents->nr] = (struct buffer_range){ .from = contents->end, .size = size };
		contents->index[contents->nr++] = i;
		contents->end += size;
	}
	return 0;
}

static struct problem_place place_of(const struct image_file *pages, const struct kfd_image *kfd,
				     const struct contents *contents, size_t i)
{
	return (struct problem_place){
		.file = pages->name,
		.bo = &kfd->state.bos[contents->index[i]],
		.index = contents->index[i],
		.from = contents->ranges[i].from,
		.to = contents->ranges[i].from + contents->ranges[i].size,
	};
}

/* The first buffer that is not whole in a file of @size bytes. */
static void report_short(struct verify *v, const struct image_file *pages, const struct kfd_image *kfd,
			 const struct contents *contents, uint64_t size)
{
	size_t i = 0;

	while (i < contents->nr && contents->ranges[i].from + contents->ranges[i].size <= size)
		i++;
	if (i < contents->nr) {
		struct problem_place place = place_of(pages, kfd, contents, i);

		place.from = size;
		place.to = contents->end;
		problem(v, &place, -EBADMSG, "is truncated: %" PRIu64 " bytes, and needs %" PRIu64, size,
			contents->end);
	}
}

static void compare(struct verify *v, const struct image_file *pages, const struct kfd_image *kfd,
		    const struct contents *contents)
{
	for (size_t i = 0; i < contents->nr; i++) {
		const struct kfd_checksum *saved = &kfd->state.checksums[contents->index[i]];
		struct problem_place place = place_of(pages, kfd, contents, i);

		v->nr_checksums += saved->is_known;
		if (saved->is_known && saved->crc32c != contents->ranges[i].crc32c)
			problem(v, &place, -EBADMSG, "is damaged: CRC-32C is %#010x, and was %#010x",
				contents->ranges[i].crc32c, saved->crc32c);
	}
}

static bool has_checksums(const struct kfd_image *kfd, const struct contents *contents)
{
	for (size_t i = 0; i < contents->nr; i++)
		if (kfd->state.checksums[contents->index[i]].is_known)
			return true;
	return false;
}

static int read_file(struct verify *v, const struct image_file *pages, struct contents *contents)
{
	_cleanup_close_ int fd = images_open_file(&v->images, pages->name);

	if (fd < 0) {
		contents->error = (struct checksum_error){ .err = fd };
		return fd;
	}
	checksum_ranges(fd, contents->ranges, contents->nr, show_progress, v, &contents->error);
	v->bytes_done += contents->end - LENGTH_PREFIX_BYTES;
	return contents->error.err;
}

/* Those of an archive have been read already, and it has not changed since. */
static void check_contents(struct verify *v, const struct image_file *pages, const struct kfd_image *kfd,
			   struct contents *contents)
{
	struct problem_place place = { .file = pages->name };
	struct contents *read = v->read ? &v->read[pages - v->images.files] : NULL;

	if (read && read->nr != contents->nr) {
		problem(v, &place, -EIO, "cannot be read a second time");
		return;
	}
	if (!(read ? read->error.err : read_file(v, pages, contents))) {
		compare(v, pages, kfd, read ? read : contents);
		return;
	}
	read = read ? read : contents;
	place.from = read->error.at;
	place.to = read->error.at ? contents->end : 0;
	problem(v, &place, read->error.err, "cannot be read: %s", strerror(-read->error.err));
}

static ssize_t read_member(void *member, void *buffer, size_t size)
{
	return archive_member_read(member, buffer, size);
}

static const struct image_file *process_of(const struct images *images, int id)
{
	for (size_t i = 0; i < images->nr; i++)
		if (images->files[i].is.kind == IMAGE_KFD && images->files[i].is.id == id)
			return &images->files[i];
	return NULL;
}

/* A file that is there twice is read twice, and the later one counts, as for the images. */
static int visit_pages(void *arg, const struct image_name *is, struct archive_member *member)
{
	struct verify *v = arg;
	const struct image_file *pages = images_pages(&v->images, is->id, is->gpu_id);
	const struct image_file *process = process_of(&v->images, is->id);
	uint8_t prefix[LENGTH_PREFIX_BYTES];
	struct contents *contents;
	ssize_t n;
	int err;

	if (!pages || !process || !image_is_process(process))
		return 0;
	contents = &v->read[pages - v->images.files];
	contents_done(contents);
	err = contents_init(contents, process->kfd, is->gpu_id);
	if (err || !has_checksums(process->kfd, contents))
		return err;
	n = archive_member_read(member, prefix, sizeof(prefix));
	if (n < 0)
		return (int)n;
	err = checksum_stream(read_member, member, contents->ranges, contents->nr, show_progress, v, &contents->error);
	v->bytes_done += contents->end - LENGTH_PREFIX_BYTES;
	return err == -ENODATA ? 0 : err;
}

/* ---- structure ---- */

/* A file of CRIU's plugin may have bytes of an earlier dump after what its length says. */
static void check_pages(struct verify *v, const struct image_file *file, const struct image_file *pages,
			struct contents *contents)
{
	struct problem_place place = { .file = pages->name };

	if (pages->err)
		return;
	if (pages->size < contents->end)
		report_short(v, pages, file->kfd, contents, pages->size);
	else if (!pages->has_length || pages->length != contents->end - LENGTH_PREFIX_BYTES)
		problem(v, &place, -EBADMSG, "begins with a length of %" PRIu64 " bytes, and its buffers have %" PRIu64,
			pages->length, contents->end - LENGTH_PREFIX_BYTES);
	else if (has_checksums(file->kfd, contents))
		check_contents(v, pages, file->kfd, contents);
}

static void check_gpu(struct verify *v, const struct image_file *file, const struct gpu_sum *gpu)
{
	uint32_t gpu_id = topology_gpu_id(gpu->node);
	const struct image_file *pages = images_pages(&v->images, file->is.id, gpu_id);
	_cleanup_(contents_done) struct contents contents = { 0 };
	struct problem_place place = { .file = file->name };

	v->nr_buffers += gpu->nr_contents;
	if (!pages && gpu->nr_contents) {
		problem(v, &place, -EBADMSG,
			"the file amdgpu-pages-%d-%04x.img with the contents of %zu buffers is missing", file->is.id,
			gpu_id, gpu->nr_contents);
		return;
	}
	if (!pages)
		return;
	if (contents_init(&contents, file->kfd, gpu_id)) {
		problem(v, &place, -ENOMEM, "out of memory");
		return;
	}
	check_pages(v, file, pages, &contents);
}

static bool has_render_image(const struct images *images, int id)
{
	for (size_t i = 0; i < images->nr; i++)
		if (images->files[i].is.kind == IMAGE_RENDER && images->files[i].is.id == id)
			return true;
	return false;
}

static void check_process(struct verify *v, const struct image_file *file)
{
	struct problem_place place = { .file = file->name };
	struct summary summary;

	if (file->kfd->render_only && !has_render_image(&v->images, file->is.id))
		problem(v, &place, -EBADMSG, "the file amdgpu-renderD-%d.img of its render node is missing",
			file->is.id);

	if (file->kfd->writer.plugin[0] && !file->kfd->has_crc32c)
		problem(v, &place, -EBADMSG, "is damaged: it has no CRC-32C of itself, and its writer writes one");
	if (summary_init(&summary, file->kfd)) {
		problem(v, &place, -ENOMEM, "out of memory");
		return;
	}
	for (size_t i = 0; i < summary.nr_gpus; i++)
		check_gpu(v, file, &summary.gpus[i]);
	summary_done(&summary);
}

static void check_file(struct verify *v, const struct image_file *file)
{
	struct problem_place place = { .file = file->name };
	const struct image_file *process = process_of(&v->images, file->is.id);

	v->nr_images += file->kfd || file->render || file->dmabuf || file->heir;
	v->nr_image_checksums += (file->kfd && file->kfd->has_crc32c) || (file->render && file->render->has_crc32c) ||
				 (file->dmabuf && file->dmabuf->has_crc32c) || (file->heir && file->heir->has_crc32c);
	if (file->err)
		problem(v, &place, file->err, "%s", file->problem);
	else if (image_is_process(file))
		check_process(v, file);
	else if (file->is.kind == IMAGE_PAGES && !process)
		problem(v, &place, -EBADMSG, "the file amdgpu-kfd-%d.img of its process is missing", file->is.id);
	else if (file->is.kind == IMAGE_DRM_PAGES)
		problem(v, &place, -EOPNOTSUPP,
			"is of CRIU's development branch, and nothing that this plugin restores");
}

/* ---- what images say of each other ---- */

static void check_owner(struct verify *v, const struct shared_buffer *buffer)
{
	struct problem_place place = { .file = buffer->refs[0].file->name };

	if (!buffer->nr[SHARING_OWNER])
		problem(v, &place, -EBADMSG, "has buffer %u of another process, and no image has its contents",
			buffer->number);
	else if (buffer->nr[SHARING_OWNER] > 1)
		problem(v, &place, -EBADMSG, "owns buffer %u, and so does %s", buffer->number,
			buffer->refs[1].file->name);
	else if (buffer->nr[SHARING_HEIR] && !buffer->refs->file->kfd->state.shares[buffer->refs->bo].lent)
		problem(v, &place, -EBADMSG, "owns buffer %u, and does not say that another process has mapped it",
			buffer->number);
}

/* Each says how many they are. */
static void check_sharers(struct verify *v)
{
	const struct image_file *first = NULL;
	struct problem_place place = { 0 };
	size_t nr = 0;

	for (size_t i = 0; i < v->images.nr; i++) {
		const struct image_file *file = &v->images.files[i];

		if (!file->kfd || !file->kfd->nr_sharers)
			continue;
		first = first ? first : file;
		nr++;
	}
	for (size_t i = 0; i < v->images.nr; i++) {
		const struct image_file *file = &v->images.files[i];

		place.file = file->name;
		if (file->heir && file->heir->nr_sharers != nr)
			problem(v, &place, -EBADMSG,
				"is of a dump in which %u processes share buffers, and there are %zu of them",
				file->heir->nr_sharers, nr);
	}
	place.file = first ? first->name : NULL;
	if (first && first->kfd->nr_sharers != nr)
		problem(v, &place, -EBADMSG,
			"is of a dump in which %u processes share buffers, and there are %zu of them",
			first->kfd->nr_sharers, nr);
}

static void check_sharing(struct verify *v)
{
	struct problem_place place = { .file = v->path };
	struct shared_buffer buffer;
	struct sharing sharing;
	size_t at = 0;

	if (sharing_init(&sharing, &v->images)) {
		problem(v, &place, -ENOMEM, "out of memory");
		return;
	}
	while (sharing_next(&sharing, &at, &buffer))
		check_owner(v, &buffer);
	sharing_done(&sharing);
	check_sharers(v);
}

/* ---- all ---- */

static int verdict(const struct verify *v)
{
	return v->nr_damaged ? TOOL_BAD : v->nr_unread ? TOOL_FAIL : TOOL_GOOD;
}

static void verdict_json(struct verify *v)
{
	static const char *const words[] = { "good", "damaged", "unknown" };

	json_end(&v->out);
	json_string(&v->out, "verdict", words[verdict(v)]);
	json_number(&v->out, "images", v->nr_images);
	json_number(&v->out, "image_checksums", v->nr_image_checksums);
	json_number(&v->out, "buffers", v->nr_buffers);
	json_number(&v->out, "buffer_checksums", v->nr_checksums);
	json_number(&v->out, "content_bytes", v->bytes_done);
	json_end(&v->out);
}

static void verdict_text(const struct verify *v)
{
	if (v->nr_checksums == v->nr_buffers && v->nr_image_checksums == v->nr_images)
		printf("checked: structure, sizes and checksums of %zu images and %zu buffers (%s)\n", v->nr_images,
		       v->nr_buffers, size_text(v->bytes_done));
	else
		printf("checked: structure and sizes of %zu images and %zu buffers; "
		       "checksums of %zu images and %zu buffers: the others have none\n",
		       v->nr_images, v->nr_buffers, v->nr_image_checksums, v->nr_checksums);
	if (v->nr_damaged)
		printf("%sdamaged%s\n", colour(RED), colour(PLAIN));
	else if (v->nr_unread)
		printf("%snot all could be checked%s\n", colour(YELLOW), colour(PLAIN));
	else
		printf("%sgood%s\n", colour(GREEN), colour(PLAIN));
}

static void verify(struct verify *v)
{
	if (v->json) {
		json_object(&v->out, NULL);
		json_number(&v->out, "format", 1);
		json_string(&v->out, "path", v->path);
		json_array(&v->out, "problems");
	}
	for (size_t i = 0; i < v->images.nr; i++)
		check_file(v, &v->images.files[i]);
	check_sharing(v);
	clear_progress(v);
	if (v->json)
		verdict_json(v);
	else
		verdict_text(v);
}

/* To be called first: an archive that cannot be read to its end has no verdict. */
static int read_archive(struct verify *v)
{
	v->read = calloc(v->images.nr, sizeof(*v->read));
	if (!v->read)
		return complain("out of memory");
	return archive_visit_pages(v->path, v->images.archive, visit_pages, v) ? TOOL_FAIL : TOOL_GOOD;
}

int command_verify(const struct arguments *arguments)
{
	struct verify v = {
		.path = arguments->path,
		.json = arguments->json,
		.out.out = stdout,
		.progress = isatty(STDERR_FILENO),
	};
	int status = TOOL_GOOD;

	if (images_open(arguments->path, &v.images))
		return TOOL_FAIL;
	for (size_t i = 0; i < v.images.nr; i++)
		if (v.images.files[i].is.kind == IMAGE_PAGES)
			v.bytes_total += v.images.files[i].length;
	if (v.images.archive >= 0)
		status = read_archive(&v);
	if (status == TOOL_GOOD) {
		verify(&v);
		status = verdict(&v);
	}
	for (size_t i = 0; v.read && i < v.images.nr; i++)
		contents_done(&v.read[i]);
	free(v.read);
	images_done(&v.images);
	return status;
}
