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
#include "tool/summary.h"
#include "tool/verify.h"

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
	unsigned int percent = 100;

	if (v->bytes_total && all < v->bytes_total)
		percent = (unsigned int)((double)all * 100 / (double)v->bytes_total);
	if (!v->progress || percent == v->percent)
		return;
	v->percent = percent;
	fprintf(stderr, "\r%3u %% of %s\033[K", percent, size_text(v->bytes_total));
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

void problem(struct verify *v, const struct problem_place *place, int err, const char *fmt, ...)
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
	make_safe(text);
	printf("%s%s%s: %s", colour(RED), safe(place->file), colour(PLAIN), text);
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
	free(contents->bos);
	free(contents->starts);
	*contents = (struct contents){ 0 };
}

static uint64_t end_of(const struct contents *contents)
{
	return contents->starts[contents->nr];
}

static bool is_content(const struct kfd_image *kfd, uint32_t gpu_id, size_t i)
{
	return kfd->state.bos[i].gpu_id == gpu_id && kfd_state_owns(&kfd->state, i);
}

/* 0, -EOVERFLOW: no file can have so much; -ENOMEM */
static int contents_init(struct contents *contents, const struct kfd_image *kfd, uint32_t gpu_id)
{
	size_t nr = 0;

	for (size_t i = 0; i < kfd->state.nr_bos; i++)
		nr += is_content(kfd, gpu_id, i);
	*contents = (struct contents){ .bos = calloc(nr + 1, sizeof(*contents->bos)) };
	if (!contents->bos)
		return -ENOMEM;
	for (size_t i = 0; i < kfd->state.nr_bos; i++)
		if (is_content(kfd, gpu_id, i))
			contents->bos[contents->nr++] = (struct content_bo){
				.index = (uint32_t)i,
				.size = kfd->state.bos[i].size,
				.has_crc32c = kfd->state.checksums[i].is_known,
			};
	return content_starts(contents->bos, nr, &contents->starts);
}

static struct problem_place place_of(const struct image_file *pages, const struct kfd_image *kfd,
				     const struct contents *contents, size_t i)
{
	return (struct problem_place){
		.file = pages->name,
		.bo = &kfd->state.bos[contents->bos[i].index],
		.index = contents->bos[i].index,
		.from = contents->starts[i],
		.to = contents->starts[i + 1],
	};
}

/* Names the first buffer that is not whole. */
static void report_short(struct verify *v, const struct image_file *pages, const struct kfd_image *kfd,
			 const struct contents *contents)
{
	struct problem_place place = { .file = pages->name };
	size_t i = 0;

	while (i < contents->nr && contents->starts[i + 1] <= pages->size)
		i++;
	if (i < contents->nr)
		place = place_of(pages, kfd, contents, i);
	place.from = pages->size;
	place.to = end_of(contents);
	problem(v, &place, -EBADMSG, "is truncated: %" PRIu64 " bytes, and needs %" PRIu64, pages->size,
		end_of(contents));
}

static void compare(struct verify *v, const struct image_file *pages, const struct kfd_image *kfd,
		    const struct contents *contents)
{
	for (size_t i = 0; i < contents->nr; i++) {
		const struct content_bo *bo = &contents->bos[i];
		uint32_t saved = kfd->state.checksums[bo->index].crc32c;
		struct problem_place place = place_of(pages, kfd, contents, i);

		v->nr_checksums += bo->has_crc32c;
		if (bo->has_crc32c && saved != bo->crc32c)
			problem(v, &place, -EBADMSG, "is damaged: CRC-32C is 0x%08x, and was 0x%08x", bo->crc32c, saved);
	}
}

static bool has_checksums(const struct contents *contents)
{
	for (size_t i = 0; i < contents->nr; i++)
		if (contents->bos[i].has_crc32c)
			return true;
	return false;
}

static struct checksum begin_reading(struct verify *v, const struct contents *contents)
{
	return (struct checksum){ .bos = contents->bos,
				  .starts = contents->starts,
				  .nr = contents->nr,
				  .progress = show_progress,
				  .arg = v };
}

static void end_reading(struct verify *v, const struct checksum *sum, int err, struct contents *contents)
{
	contents->err = err;
	contents->at = sum->at;
	v->bytes_done += end_of(contents) - LENGTH_PREFIX_BYTES;
}

static void read_file(struct verify *v, const struct image_file *pages, struct contents *contents)
{
	_cleanup_close_ int fd = images_open_file(&v->images, pages->name);
	struct checksum sum = begin_reading(v, contents);

	end_reading(v, &sum, fd < 0 ? fd : checksum_file(&sum, fd), contents);
}

/* Those of an archive have been read already, and it has not changed since. */
static void check_contents(struct verify *v, const struct image_file *pages, const struct kfd_image *kfd,
			   struct contents *contents)
{
	struct problem_place place = { .file = pages->name };
	struct contents *read = v->read ? &v->read[pages - v->images.files] : contents;

	if (!v->read)
		read_file(v, pages, contents);
	if (read->nr != contents->nr) {
		problem(v, &place, -EIO, "cannot be read a second time");
	} else if (read->err) {
		place.from = read->at;
		place.to = read->at ? end_of(contents) : 0;
		problem(v, &place, read->err, "cannot be read: %s", strerror(-read->err));
	} else {
		compare(v, pages, kfd, read);
	}
}

static int read_member(struct checksum *sum, struct archive_member *member, uint64_t size)
{
	const void *data;
	uint64_t at;
	size_t n;
	int r = 1;

	while (!checksum_is_whole(sum) && (r = archive_member_next(member, &data, &n, &at)) > 0) {
		if (at < sum->at)
			return -EIO;
		checksum_add(sum, NULL, at - sum->at);
		checksum_add(sum, data, n);
	}
	if (!r && size > sum->at)
		checksum_add(sum, NULL, size - sum->at);
	return r < 0 ? r : checksum_is_whole(sum) ? 0 : -ENODATA;
}

/* A file that is there twice is read twice, and the later one counts, as for the images. */
static int visit_pages(void *arg, const struct image_name *is, struct archive_member *member)
{
	struct verify *v = arg;
	const struct image_file *pages = images_find(&v->images, IMAGE_PAGES, is->id, is->gpu_id);
	const struct image_file *process = images_find(&v->images, IMAGE_KFD, is->id, 0);
	struct contents *contents;
	struct checksum sum;
	int err;

	if (!pages || !process || !image_is_process(process))
		return 0;
	contents = &v->read[pages - v->images.files];
	contents_done(contents);
	err = contents_init(contents, process->kfd, is->gpu_id);
	if (err)
		contents_done(contents);
	if (err || !has_checksums(contents))
		return err == -EOVERFLOW ? 0 : err;
	sum = begin_reading(v, contents);
	err = read_member(&sum, member, pages->size);
	end_reading(v, &sum, err, contents);
	return err == -EBADMSG ? err : 0;
}

/* ---- structure ---- */

/* A file of CRIU's plugin may have bytes of an earlier dump after what its length says. */
static void check_pages(struct verify *v, const struct image_file *file, const struct image_file *pages,
			struct contents *contents)
{
	struct problem_place place = { .file = pages->name };
	uint64_t end = end_of(contents);

	if (pages->err)
		return;
	if (pages->size < end)
		report_short(v, pages, file->kfd, contents);
	else if (!pages->has_length || pages->length != end - LENGTH_PREFIX_BYTES)
		problem(v, &place, -EBADMSG, "begins with a length of %" PRIu64 " bytes, and its buffers have %" PRIu64,
			pages->length, end - LENGTH_PREFIX_BYTES);
	else if (has_checksums(contents))
		check_contents(v, pages, file->kfd, contents);
	if (v->has_checksums && pages->size > end)
		problem(v, &place, -EBADMSG, "has %" PRIu64 " bytes behind its contents", pages->size - end);
}

static void check_gpu(struct verify *v, const struct image_file *file, const struct gpu_sum *gpu)
{
	uint32_t gpu_id = topology_gpu_id(gpu->node);
	const struct image_file *pages = images_find(&v->images, IMAGE_PAGES, file->is.id, gpu_id);
	_cleanup_(contents_done) struct contents contents = { 0 };
	struct problem_place place = { .file = file->name };
	int err = contents_init(&contents, file->kfd, gpu_id);

	v->nr_buffers += gpu->nr_contents;
	v->nr_without += gpu->nr_contents - gpu->nr_checksums;
	if (err == -EOVERFLOW)
		problem(v, &place, -EBADMSG, "has buffers of gpu %#x that are together larger than a file can be",
			gpu_id);
	else if (err)
		problem(v, &place, err, "%s", strerror(-err));
	else if (pages)
		check_pages(v, file, pages, &contents);
	else if (gpu->nr_contents)
		problem(v, &place, -EBADMSG,
			"the file amdgpu-pages-%d-%04x.img with the contents of %zu buffers is missing", file->is.id,
			gpu_id, gpu->nr_contents);
}

static void check_process(struct verify *v, const struct image_file *file)
{
	struct problem_place place = { .file = file->name };
	struct summary summary;

	if (file->kfd->render_only && !images_find(&v->images, IMAGE_RENDER, file->is.id, 0))
		problem(v, &place, -EBADMSG, "the file amdgpu-renderD-%d.img of its render node is missing",
			file->is.id);
	if (summary_init(&summary, file->kfd)) {
		problem(v, &place, -ENOMEM, "out of memory");
		return;
	}
	for (size_t i = 0; i < summary.nr_gpus; i++)
		check_gpu(v, file, &summary.gpus[i]);
	summary_done(&summary);
}

/* One wrong bit takes a checksum out of an image, and only the others tell that there was one. */
static void check_image(struct verify *v, const struct image_file *file)
{
	bool has_checksum = image_has_checksum(file);
	struct problem_place place = { .file = file->name };

	v->nr_images++;
	v->nr_image_checksums += has_checksum;
	if (!has_checksum && (v->has_checksums || file->dmabuf))
		problem(v, &place, -EBADMSG, "is damaged: it has no CRC-32C of itself, and its writer writes one");
	if (v->has_checksums && file->size - LENGTH_PREFIX_BYTES > file->length)
		problem(v, &place, -EBADMSG, "has %" PRIu64 " bytes behind its end",
			file->size - LENGTH_PREFIX_BYTES - file->length);
}

static void check_owned_pages(struct verify *v, const struct image_file *file)
{
	const struct image_file *process = images_find(&v->images, IMAGE_KFD, file->is.id, 0);
	struct problem_place place = { .file = file->name };

	if (!process)
		problem(v, &place, -EBADMSG, "the file amdgpu-kfd-%d.img of its process is missing", file->is.id);
	else if (v->has_checksums && process->kfd && topology_find_gpu(process->kfd->nodes, file->is.gpu_id) < 0)
		problem(v, &place, -EBADMSG, "is of gpu %#x, which its process does not have", file->is.gpu_id);
}

static void check_file(struct verify *v, const struct image_file *file)
{
	struct problem_place place = { .file = file->name };

	if (file->err)
		problem(v, &place, file->err, "%s", file->problem);
	else if (image_kind_is_read(file->is.kind))
		check_image(v, file);
	else if (file->is.kind == IMAGE_PAGES)
		check_owned_pages(v, file);
	else
		problem(v, &place, -EOPNOTSUPP,
			"is of CRIU's development branch, and nothing that this plugin restores");
	if (!file->err && image_is_process(file))
		check_process(v, file);
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
	json_bool(&v->out, "files_listed", v->knows_files);
	json_end(&v->out);
}

static void counts_text(const struct verify *v)
{
	size_t not_compared = v->nr_buffers - v->nr_checksums - v->nr_without;

	if (v->nr_checksums == v->nr_buffers && v->nr_image_checksums == v->nr_images) {
		printf("checked: structure, sizes and checksums of %zu images and %zu buffers (%s)\n", v->nr_images,
		       v->nr_buffers, size_text(v->bytes_done));
		return;
	}
	printf("checked: structure and sizes of %zu images and %zu buffers; checksums of %zu images and %zu buffers",
	       v->nr_images, v->nr_buffers, v->nr_image_checksums, v->nr_checksums);
	if (not_compared)
		printf(": %zu images and %zu buffers have none, %zu buffers could not be compared\n",
		       v->nr_images - v->nr_image_checksums, v->nr_without, not_compared);
	else
		puts(": the others have none");
}

static void verdict_text(const struct verify *v)
{
	counts_text(v);
	if (!v->knows_files)
		puts("criu's files.img is not there: images that nothing else refers to are not missed");
	if (v->nr_damaged)
		printf("%sdamaged%s\n", colour(RED), colour(PLAIN));
	else if (v->nr_unread)
		printf("%snot all could be checked%s\n", colour(YELLOW), colour(PLAIN));
	else
		printf("%sgood%s: the GPU's part. criu's own images are not checked\n", colour(GREEN), colour(PLAIN));
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
	check_set(v);
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

static bool has_writer(const struct image_file *file)
{
	return file->kfd && file->kfd->writer.plugin[0];
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
	for (size_t i = 0; i < v.images.nr; i++) {
		v.bytes_total += v.images.files[i].is.kind == IMAGE_PAGES ? v.images.files[i].length : 0;
		v.has_checksums |= image_has_checksum(&v.images.files[i]) || has_writer(&v.images.files[i]);
	}
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
