// SPDX-License-Identifier: GPL-2.0-only
/*
 * amdgpu-image verify: everything about images that can be told without a GPU. An image of this plugin has a checksum
 * of itself and one of each buffer with contents; images of the plugin in CRIU's tree have none, so only their
 * structure and sizes are checked.
 */
#include <endian.h>
#include <inttypes.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "amdgpu_plugin_util.h"
#include "content/content.h"
#include "tool/commands.h"
#include "tool/images.h"

struct verify {
	struct images images;
	struct contents *read;	/* for each file of images: what was read of it; {} for most */
	bool has_checksums;	/* the images are of a plugin that gives each one */
	bool knows_files;	/* criu's list of files was there */
	size_t nr_images, nr_image_checksums;
	size_t nr_buffers, nr_checksums, nr_without; /* with contents; compared; that have none */
	uint64_t content_bytes;			     /* that were read */
	size_t nr_damaged, nr_unread;
};

/* @err: -EBADMSG, damaged; any other: it could not be looked at. @bo: the buffer that is wrong; NULL: none. */
static void problem(struct verify *v, const char *file, const struct bo *bo, int err, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
#define damaged(v, file, ...) problem(v, file, NULL, -EBADMSG, __VA_ARGS__)

static void problem(struct verify *v, const char *file, const struct bo *bo, int err, const char *fmt, ...)
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
	if (bo) {
		print_bytes("buffer_bytes", "; buffer of ", bo->size);
		print_address("address", " at ", bo->addr);
		print_id("gpu_id", " of gpu ", bo->gpu_id);
	}
	print_text("\n");
	print_end();
}

/* ---- contents: a length, then one buffer after the other ---- */

struct contents {
	struct content_bo *bos; /* in the order of the file; index: which buffer of the process */
	size_t nr;
	uint64_t *starts; /* content_starts() */
	uint8_t length[LENGTH_PREFIX_BYTES];
	bool have_checksums;
	size_t bo;   /* which comes next while the file is read */
	uint64_t at; /* up to where it was read */
	int err;     /* of reading: -errno */
};

static void contents_done(struct contents *contents)
{
	free(contents->bos);
	free(contents->starts);
	*contents = (struct contents){ 0 };
}

/* 0; -EOVERFLOW: no file has so much; -EINVAL: an empty buffer; -ENOMEM. No message. *ret is empty after an error. */
static int contents_init(struct contents *ret, const struct kfd_image *kfd, uint32_t gpu_id)
{
	size_t nr = 0;
	int err;

	for (size_t i = 0; i < kfd->state.nr_bos; i++)
		nr += kfd_state_owns_on(&kfd->state, i, gpu_id);
	*ret = (struct contents){ .bos = calloc(nr + 1, sizeof(*ret->bos)) };
	if (!ret->bos)
		return -ENOMEM;
	for (size_t i = 0; i < kfd->state.nr_bos; i++) {
		if (!kfd_state_owns_on(&kfd->state, i, gpu_id))
			continue;
		ret->bos[ret->nr++] = (struct content_bo){
			.index = (uint32_t)i,
			.size = kfd->state.bos[i].size,
			.has_crc32c = kfd->state.bos[i].has_crc32c,
		};
		ret->have_checksums |= kfd->state.bos[i].has_crc32c;
	}
	err = content_starts(ret->bos, nr, &ret->starts);
	if (err)
		contents_done(ret);
	return err;
}

static uint64_t contents_end(const struct contents *contents)
{
	return contents->starts[contents->nr];
}

/* The next bytes of the file; @bytes NULL: zeros. What is behind the last buffer is passed over. */
static void add(struct contents *contents, const uint8_t *bytes, uint64_t size)
{
	while (size && contents->at < contents_end(contents)) {
		bool in_length = contents->at < LENGTH_PREFIX_BYTES;
		uint64_t end = contents->starts[in_length ? 0 : contents->bo + 1];
		uint64_t n = size < end - contents->at ? size : end - contents->at;
		struct content_bo *bo = &contents->bos[contents->bo];

		if (in_length && bytes)
			memcpy(contents->length + contents->at, bytes, n);
		else if (!in_length)
			bo->crc32c = bytes ? crc32c(bo->crc32c, bytes, n) : crc32c_zeros(bo->crc32c, n);
		bytes = bytes ? bytes + n : NULL;
		size -= n;
		contents->at += n;
		contents->bo += !in_length && contents->at == end;
	}
}

/* Reads the length, and all where there is something to compare it with. -EBADMSG ends the walk. */
static int contents_read(struct contents *contents, struct member *member)
{
	uint64_t at, wanted = contents->have_checksums ? contents_end(contents) : LENGTH_PREFIX_BYTES;
	const void *data;
	size_t n;
	int r = 1;

	while (contents->at < wanted && (r = member_read(member, &data, &n, &at)) > 0) {
		if (at < contents->at) {
			r = -EIO;
			break;
		}
		add(contents, NULL, at - contents->at);
		add(contents, data, n);
	}
	if (!r && member->size > contents->at)
		add(contents, NULL, member->size - contents->at);
	contents->err = r < 0 ? r : contents->at < wanted ? -ENODATA : 0;
	return r == -EBADMSG ? r : 0;
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
	return contents_read(contents, member);
}

static const struct bo *bucket(const struct kfd_image *kfd, const struct contents *contents, size_t i)
{
	return i < contents->nr ? &kfd->state.bos[contents->bos[i].index] : NULL;
}

static void compare(struct verify *v, const struct image_file *pages, const struct kfd_image *kfd,
		    const struct contents *contents)
{
	v->content_bytes += contents_end(contents) - LENGTH_PREFIX_BYTES;
	for (size_t i = 0; i < contents->nr; i++) {
		const struct content_bo *bo = &contents->bos[i];
		uint32_t saved = kfd->state.bos[bo->index].crc32c;

		v->nr_checksums += bo->has_crc32c;
		if (bo->has_crc32c && saved != bo->crc32c)
			problem(v, pages->name, bucket(kfd, contents, i), -EBADMSG,
				"is damaged: CRC-32C is 0x%08x, and was 0x%08x", bo->crc32c, saved);
	}
}

/* A file of CRIU's plugin may have bytes of an earlier dump after what its length says. */
static void check_pages(struct verify *v, const struct image_file *pages, const struct kfd_image *kfd,
			const struct contents *contents)
{
	uint64_t end = contents_end(contents), length = length_prefix_get(contents->length);
	size_t whole = 0;

	if (pages->err)
		return;
	while (whole < contents->nr && contents->starts[whole + 1] <= pages->size)
		whole++;
	if (pages->size < end)
		problem(v, pages->name, bucket(kfd, contents, whole), -EBADMSG,
			"is truncated: %" PRIu64 " bytes, and needs %" PRIu64, pages->size, end);
	else if (contents->err || !contents->at)
		problem(v, pages->name, bucket(kfd, contents, contents->bo), contents->err ? contents->err : -EIO,
			"cannot be read%s%s", contents->err ? ": " : " a second time",
			contents->err ? strerror(-contents->err) : "");
	else if (length != end - LENGTH_PREFIX_BYTES)
		damaged(v, pages->name, "begins with a length of %" PRIu64 " bytes, and its buffers have %" PRIu64,
			length, end - LENGTH_PREFIX_BYTES);
	else if (contents->have_checksums)
		compare(v, pages, kfd, contents);
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
		check_pages(v, pages, file->kfd,
			    v->read[pages - v->images.files].starts ? &v->read[pages - v->images.files] : &expected);
	else if (expected.nr)
		damaged(v, file->name, "the file amdgpu-pages-%d-%04x.img with the contents of %zu buffers is missing",
			file->is.id, gpu_id, expected.nr);
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

/* ---- what images say of each other: each shared buffer has one owner, and all that belongs together is there ---- */

/* Who has a buffer that has a number, in the order in which a buffer's are listed. */
enum role { OWNER, IMPORTER, HOLDER };

struct ref {
	uint32_t buffer;
	enum role role;
	const struct image_file *file;
};

struct refs {
	struct ref *list;
	size_t nr;
	bool cut; /* out of memory */
};

static void add_ref(struct refs *refs, const struct image_file *file, uint32_t buffer, enum role role)
{
	refs->cut |= buffer && array_add(refs->list, refs->nr, (struct ref){ buffer, role, file });
}

static void add_refs(struct refs *refs, const struct image_file *file)
{
	const struct kfd_state *state = file->kfd ? &file->kfd->state : NULL;

	for (size_t i = 0; state && i < state->nr_bos; i++)
		add_ref(refs, file, state->bos[i].share.buffer, kfd_state_owns(state, i) ? OWNER : IMPORTER);
	for (size_t i = 0; file->render && i < file->render->objects.nr_handles; i++)
		add_ref(refs, file, file->render->objects.handles[i].buffer, HOLDER);
	if (file->dmabuf)
		add_ref(refs, file, file->dmabuf->buffer, HOLDER);
}

static int compare_refs(const void *a, const void *b)
{
	const struct ref *x = a, *y = b;

	if (x->buffer != y->buffer)
		return x->buffer < y->buffer ? -1 : 1;
	if (x->role != y->role)
		return x->role < y->role ? -1 : 1;
	return (x->file > y->file) - (x->file < y->file);
}

static void check_owners(struct verify *v, const struct refs *refs)
{
	for (size_t i = 0; i < refs->nr; i++) {
		const struct ref *ref = &refs->list[i], *next = i + 1 < refs->nr ? ref + 1 : NULL;
		bool is_first = !i || ref[-1].buffer != ref->buffer;

		if (is_first && ref->role != OWNER)
			damaged(v, ref->file->name, "has buffer %u of another process, and no image has its contents",
				ref->buffer);
		else if (is_first && next && next->buffer == ref->buffer && next->role == OWNER)
			damaged(v, ref->file->name, "owns buffer %u, and so does %s", ref->buffer, next->file->name);
	}
}

/* How many processes share, as each image says that has part in it; 0: has none. */
static uint32_t sharers_of(const struct image_file *file)
{
	return file->kfd ? file->kfd->nr_sharers : file->dmabuf ? file->dmabuf->nr_sharers : 0;
}

static void check_sharers(struct verify *v)
{
	size_t nr = 0, nr_files = 0, nr_wanted = 0;
	const char *first = NULL;

	for (size_t i = 0; i < v->images.nr; i++) {
		const struct image_file *file = &v->images.files[i];

		nr_files += file->is.kind == IMAGE_RENDER || (file->kfd && !file->kfd->render_only);
		if (!file->kfd || !file->kfd->nr_sharers)
			continue;
		nr++;
		nr_wanted += file->kfd->nr_files;
		first = first ? first : file->name;
	}
	if (nr_wanted > nr_files)
		damaged(v, first, "is of processes with %zu device files, and there are images of %zu", nr_wanted,
			nr_files);
	for (size_t i = 0; i < v->images.nr; i++) {
		uint32_t said = sharers_of(&v->images.files[i]);

		if (said && said != nr)
			damaged(v, v->images.files[i].name,
				"is of a dump in which %u processes share buffers, and there are %zu of them", said,
				nr);
	}
}

static void check_sharing(struct verify *v)
{
	struct refs refs = { 0 };

	for (size_t i = 0; i < v->images.nr; i++)
		add_refs(&refs, &v->images.files[i]);
	if (refs.cut)
		problem(v, v->images.path, NULL, -ENOMEM, "out of memory");
	else if (refs.nr)
		qsort(refs.list, refs.nr, sizeof(*refs.list), compare_refs);
	if (!refs.cut)
		check_owners(v, &refs);
	free(refs.list);
	check_sharers(v);
}

/*
 * ---- criu's list of files, which has the device files: a magic number of 8 bytes, and for each file its length and a
 * protobuf message that begins with its type and its id ----
 */

static const uint8_t files_magic[8] = { 0x19, 0x43, 0x56, 0x54, 0x38, 0x31, 0x30, 0x56 };

/* Tags of the first two fields, and the type of a plugin's file. */
#define TAG_TYPE 0x08
#define TAG_ID	 0x10
#define TYPE_EXT 16

/* A number of 32 bits behind its tag. */
static bool take_number(const uint8_t **p, const uint8_t *end, uint8_t tag, uint32_t *ret)
{
	*ret = 0;
	if (*p == end || *(*p)++ != tag)
		return false;
	for (unsigned int shift = 0; *p < end && shift < 35; shift += 7) {
		*ret |= (uint32_t)(**p & 0x7f) << shift;
		if (!(*(*p)++ & 0x80))
			return true;
	}
	return false;
}

static const struct image_file *find_device_file(const struct images *images, int id)
{
	static const enum image_kind kinds[] = { IMAGE_KFD, IMAGE_RENDER, IMAGE_DMABUF };
	const struct image_file *found = NULL;

	for (size_t i = 0; !found && i < ARRAY_SIZE(kinds); i++)
		found = images_find(images, kinds[i], id, 0);
	return found;
}

/* Notes that the images are listed that are of this file. */
static void check_listed(struct verify *v, uint32_t id, bool *is_listed)
{
	const struct image_file *file = id > INT32_MAX ? NULL : find_device_file(&v->images, (int)id);

	if (!file)
		damaged(v, IMAGES_FILES,
			"has file %#x of a device, and neither amdgpu-kfd-%u.img nor amdgpu-renderD-%u.img nor "
			"amdgpu-shared-%u.img is there", id, id, id, id);
	for (; file && file < v->images.files + v->images.nr && (uint32_t)file->is.id == id; file++)
		is_listed[file - v->images.files] = true;
}

static int check_list(struct verify *v, const uint8_t *data, size_t size, bool *is_listed)
{
	const uint8_t *p = data + sizeof(files_magic), *end = data + size;

	if (size < sizeof(files_magic) || memcmp(data, files_magic, sizeof(files_magic)))
		return -EBADMSG;
	while (p < end) {
		const uint8_t *field = p + sizeof(uint32_t);
		uint32_t length, type, id;

		if ((size_t)(end - p) < sizeof(length))
			return -EBADMSG;
		memcpy(&length, p, sizeof(length));
		length = le32toh(length);
		if (length > (size_t)(end - field))
			return -EBADMSG;
		p = field + length;
		if (!take_number(&field, p, TAG_TYPE, &type) || !take_number(&field, p, TAG_ID, &id))
			return -EBADMSG;
		if (type == TYPE_EXT)
			check_listed(v, id, is_listed);
	}
	return 0;
}

/* *ret is the caller's. 0 or -errno. */
static int read_list(const struct images *images, uint8_t **ret, size_t *ret_size)
{
	_cleanup_close_ int fd = images_open_other(images, IMAGES_FILES);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return fd < 0 ? fd : -errno;
	*ret_size = (size_t)st.st_size;
	*ret = malloc(*ret_size + 1);
	return *ret ? read_all(fd, *ret, *ret_size) : -ENOMEM;
}

static void check_unlisted(struct verify *v, const bool *is_listed)
{
	for (size_t i = 0; i < v->images.nr; i++) {
		const struct image_file *file = &v->images.files[i];

		if (!is_listed[i] && image_kind_is_read(file->is.kind))
			damaged(v, file->name, "is of file %#x, which criu's files.img does not have",
				(unsigned int)file->is.id);
	}
}

static void check_criu_files(struct verify *v)
{
	_cleanup_free_ bool *is_listed = calloc(v->images.nr + 1, sizeof(*is_listed));
	_cleanup_free_ uint8_t *data = NULL;
	size_t size = 0;
	int err = is_listed ? read_list(&v->images, &data, &size) : -ENOMEM;

	v->knows_files = err != -ENOENT;
	if (err == -ENOENT)
		return;
	err = err ? err : check_list(v, data, size, is_listed);
	if (err == -EBADMSG)
		damaged(v, IMAGES_FILES, "is damaged: it is no list of files as criu writes it");
	else if (err)
		problem(v, IMAGES_FILES, NULL, err, "cannot be read: %s", strerror(-err));
	else
		check_unlisted(v, is_listed);
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
	for (size_t i = 0; i < v->images.nr; i++) {
		const struct image_file *file = &v->images.files[i];

		v->has_checksums |= image_has_checksum(file) || (file->kfd && file->kfd->writer.plugin[0]);
	}
	/* An archive that cannot be read to its end has no verdict. */
	if (images_walk(&v->images, read_pages, v))
		return TOOL_FAIL;
	print_object(NULL);
	print_string("path", NULL, v->images.path);
	print_array("problems");
	for (size_t i = 0; i < v->images.nr; i++)
		check_file(v, &v->images.files[i]);
	check_sharing(v);
	check_criu_files(v);
	print_end();
	print_verdict(v);
	print_end();
	return verdict(v);
}

int command_verify(const struct arguments *arguments)
{
	struct verify v = { 0 };
	int status = TOOL_FAIL;

	if (!images_open(arguments->path, &v.images))
		status = verify(&v);
	for (size_t i = 0; v.read && i < v.images.nr; i++)
		contents_done(&v.read[i]);
	free(v.read);
	images_done(&v.images);
	return status;
}
