// SPDX-License-Identifier: GPL-2.0-only
/*
 * What images say of each other: each shared buffer has one owner, and all that belongs together is there. Which device
 * files there were is in files.img, criu's own list: a magic number of 8 bytes, and for each file its length and a
 * protobuf message that begins with its type and its id.
 */
#include <endian.h>
#include <sys/stat.h>

#include "amdgpu_plugin_util.h"
#include "tool/print.h"
#include "tool/verify.h"

/* ---- shared buffers ---- */

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

/* ---- criu's list of files ---- */

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

static void check_files(struct verify *v)
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

void verify_set(struct verify *v)
{
	check_sharing(v);
	check_files(v);
}
