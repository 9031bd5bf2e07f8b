// SPDX-License-Identifier: GPL-2.0-only
/*
 * amdgpu-image verify: everything about images that can be told without a GPU. An image of this plugin has a checksum
 * of itself and one of each buffer with contents; images of the plugin in CRIU's tree have none, so only their
 * structure and sizes are checked.
 */
#include <inttypes.h>
#include <stdarg.h>

#include "amdgpu_plugin_util.h"
#include "tool/commands.h"
#include "tool/verify.h"

void problem(struct verify *v, const char *file, const struct problem_place *place, int err, const char *fmt, ...)
{
	char text[FAIL_TEXT_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	v->nr_damaged += err == -EBADMSG;
	v->nr_unread += err != -EBADMSG;
	print_object(NULL);
	print_string("file", "", file);
	print_bool("damaged", err == -EBADMSG);
	print_string("problem", ": ", text);
	if (place && place->bo) {
		print_number("buffer", "; buffer ", place->index);
		print_id("gpu_id", " of gpu ", place->bo->gpu_id);
		print_bytes("buffer_bytes", ", ", place->bo->size);
		print_address("address", " at ", place->bo->addr);
	}
	if (place && place->to) {
		print_number("from", "; bytes ", place->from);
		print_number("to", " to ", place->to);
		print_text(" of the file");
	}
	print_text("\n");
	print_end();
}

/* ---- contents ---- */

static struct problem_place place_of(const struct kfd_image *kfd, const struct contents *contents, size_t i)
{
	return (struct problem_place){
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
	struct problem_place place = { 0 };
	size_t i = 0;

	while (i < contents->nr && contents->starts[i + 1] <= pages->size)
		i++;
	if (i < contents->nr)
		place = place_of(kfd, contents, i);
	place.from = pages->size;
	place.to = contents_end(contents);
	problem(v, pages->name, &place, -EBADMSG, "is truncated: %" PRIu64 " bytes, and needs %" PRIu64, pages->size,
		place.to);
}

static void compare(struct verify *v, const struct image_file *pages, const struct kfd_image *kfd,
		    const struct contents *contents)
{
	for (size_t i = 0; i < contents->nr; i++) {
		const struct content_bo *bo = &contents->bos[i];
		uint32_t saved = kfd->state.bos[bo->index].crc32c;
		struct problem_place place = place_of(kfd, contents, i);

		v->nr_checksums += bo->has_crc32c;
		if (bo->has_crc32c && saved != bo->crc32c)
			problem(v, pages->name, &place, -EBADMSG, "is damaged: CRC-32C is 0x%08x, and was 0x%08x",
				bo->crc32c, saved);
	}
}

static void check_contents(struct verify *v, const struct image_file *pages, const struct kfd_image *kfd,
			   const struct contents *contents)
{
	const struct problem_place place = { .from = contents->at, .to = contents->at ? contents_end(contents) : 0 };

	v->content_bytes += contents_end(contents) - LENGTH_PREFIX_BYTES;
	if (!contents->at && !contents->err)
		problem(v, pages->name, NULL, -EIO, "cannot be read a second time");
	else if (contents->err)
		problem(v, pages->name, &place, contents->err, "cannot be read: %s", strerror(-contents->err));
	else
		compare(v, pages, kfd, contents);
}

/* A file of CRIU's plugin may have bytes of an earlier dump after what its length says. */
static void check_pages(struct verify *v, const struct image_file *pages, const struct kfd_image *kfd,
			const struct contents *contents)
{
	uint64_t end = contents_end(contents);

	if (pages->err)
		return;
	if (pages->size < end)
		report_short(v, pages, kfd, contents);
	else if (!pages->has_length || pages->length != end - LENGTH_PREFIX_BYTES)
		damaged(v, pages->name, "begins with a length of %" PRIu64 " bytes, and its buffers have %" PRIu64,
			pages->length, end - LENGTH_PREFIX_BYTES);
	else if (contents_have_checksums(contents))
		check_contents(v, pages, kfd, contents);
	if (v->has_checksums && pages->size > end)
		damaged(v, pages->name, "has %" PRIu64 " bytes behind its contents", pages->size - end);
}

static void count_contents(struct verify *v, const struct contents *contents)
{
	v->nr_buffers += contents->nr;
	for (size_t i = 0; i < contents->nr; i++)
		v->nr_without += !contents->bos[i].has_crc32c;
}

static void check_gpu(struct verify *v, const struct image_file *file, uint32_t gpu_id)
{
	const struct image_file *pages = images_find(&v->images, IMAGE_PAGES, file->is.id, gpu_id);
	_cleanup_(contents_done) struct contents expected = { 0 };
	int err = contents_init(&expected, file->kfd, gpu_id);

	count_contents(v, &expected);
	if (err == -EOVERFLOW)
		damaged(v, file->name, "has buffers of gpu %#x that are together larger than a file can be", gpu_id);
	else if (err)
		problem(v, file->name, NULL, err, "%s", strerror(-err));
	else if (pages)
		check_pages(v, pages, file->kfd, v->read[pages - v->images.files].nr ?
			    &v->read[pages - v->images.files] : &expected);
	else if (expected.nr)
		damaged(v, file->name, "the file amdgpu-pages-%d-%04x.img with the contents of %zu buffers is missing",
			file->is.id, gpu_id, expected.nr);
}

/* Of a file that is there twice, the later one counts. */
static int read_pages(void *arg, struct member *member)
{
	struct verify *v = arg;
	const struct image_file *pages, *process;
	struct contents *contents;
	struct image_name is;
	int err;

	if (!image_name_parse(member->name, &is) || is.kind != IMAGE_PAGES || member->err)
		return 0;
	pages = images_find(&v->images, IMAGE_PAGES, is.id, is.gpu_id);
	process = images_find(&v->images, IMAGE_KFD, is.id, 0);
	if (!pages || !process || !image_is_process(process))
		return 0;
	contents = &v->read[pages - v->images.files];
	contents_done(contents);
	err = contents_init(contents, process->kfd, is.gpu_id);
	if (err)
		return err == -ENOMEM ? err : 0;
	return contents_have_checksums(contents) ? contents_read(contents, member) : 0;
}

/* ---- structure ---- */

static void check_process(struct verify *v, const struct image_file *file)
{
	const struct topology *nodes = file->kfd->nodes;

	if (file->kfd->render_only && !images_find(&v->images, IMAGE_RENDER, file->is.id, 0))
		damaged(v, file->name, "the file amdgpu-renderD-%d.img of its render node is missing", file->is.id);
	for (unsigned int i = 0; i < nodes->nr_nodes; i++)
		if (topology_is_gpu(nodes->nodes[i]))
			check_gpu(v, file, topology_gpu_id(nodes->nodes[i]));
}

/*
 * One wrong bit takes a checksum out of an image. That there was one is told by the others, or by what CRIU's plugin
 * does not write: the nodes of a render node's image, and dma-bufs at all.
 */
static bool had_checksum(const struct verify *v, const struct image_file *file)
{
	return v->has_checksums || file->dmabuf || (file->render && file->render->nodes);
}

static void check_image(struct verify *v, const struct image_file *file)
{
	bool has_checksum = image_has_checksum(file);

	v->nr_images++;
	v->nr_image_checksums += has_checksum;
	if (!has_checksum && had_checksum(v, file))
		damaged(v, file->name, "is damaged: it has no CRC-32C of itself, and its writer writes one");
	if (v->has_checksums && file->size - LENGTH_PREFIX_BYTES > file->length)
		damaged(v, file->name, "has %" PRIu64 " bytes behind its end",
			file->size - LENGTH_PREFIX_BYTES - file->length);
	if (image_is_process(file))
		check_process(v, file);
}

static void check_owner_of_pages(struct verify *v, const struct image_file *file)
{
	const struct image_file *process = images_find(&v->images, IMAGE_KFD, file->is.id, 0);

	if (!process)
		damaged(v, file->name, "the file amdgpu-kfd-%d.img of its process is missing", file->is.id);
	else if (v->has_checksums && process->kfd && topology_find_gpu(process->kfd->nodes, file->is.gpu_id) < 0)
		damaged(v, file->name, "is of gpu %#x, which its process does not have", file->is.gpu_id);
}

static void check_file(struct verify *v, const struct image_file *file)
{
	if (file->err)
		problem(v, file->name, NULL, file->err, "%s", file->problem);
	else if (image_kind_is_read(file->is.kind))
		check_image(v, file);
	else if (file->is.kind == IMAGE_PAGES)
		check_owner_of_pages(v, file);
	else
		problem(v, file->name, NULL, -EOPNOTSUPP,
			"is of CRIU's development branch, and nothing that this plugin restores");
}

/* ---- all ---- */

static int verdict(const struct verify *v)
{
	return v->nr_damaged ? TOOL_BAD : v->nr_unread ? TOOL_FAIL : TOOL_GOOD;
}

static void print_verdict(const struct verify *v)
{
	static const char *const words[] = { "good", "damaged", "unknown" };

	print_number("images", "images: ", v->nr_images);
	print_number("image_checksums", ", with a right checksum of themselves: ", v->nr_image_checksums);
	print_number("buffers", "\nbuffers with contents: ", v->nr_buffers);
	print_number("buffer_checksums", ", with a checksum that was compared: ", v->nr_checksums);
	print_number("without_checksum", ", without one: ", v->nr_without);
	print_bytes("content_bytes", ", read: ", v->content_bytes);
	print_bool("files_listed", v->knows_files);
	if (!v->knows_files)
		print_text("\ncriu's files.img is not there: images that nothing else refers to are not missed");
	print_string("verdict", "\n", words[verdict(v)]);
	print_text(": the GPU's part. criu's own images are not checked\n");
}

static int verify(struct verify *v)
{
	v->read = calloc(v->images.nr, sizeof(*v->read));
	if (!v->read)
		return complain("out of memory");
	/* An archive that cannot be read to its end has no verdict. */
	if (source_walk(&v->images.source, read_pages, v))
		return TOOL_FAIL;
	print_object(NULL);
	print_number("format", NULL, 2);
	print_string("path", NULL, v->images.source.path);
	print_array("problems");
	for (size_t i = 0; i < v->images.nr; i++)
		check_file(v, &v->images.files[i]);
	verify_set(v);
	print_end();
	print_verdict(v);
	print_end();
	return verdict(v);
}

int command_verify(const struct arguments *arguments)
{
	struct verify v = { 0 };
	int status;

	if (images_open(arguments->path, &v.images))
		return TOOL_FAIL;
	for (size_t i = 0; i < v.images.nr; i++) {
		const struct image_file *file = &v.images.files[i];

		v.has_checksums |= image_has_checksum(file) || (file->kfd && file->kfd->writer.plugin[0]);
	}
	status = verify(&v);
	for (size_t i = 0; v.read && i < v.images.nr; i++)
		contents_done(&v.read[i]);
	free(v.read);
	images_done(&v.images);
	return status;
}
