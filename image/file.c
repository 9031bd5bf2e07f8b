// SPDX-License-Identifier: GPL-2.0-only
/* Image files: their names, and their frame: the length in front, a CRC-32C at the end of the message. */
#define _GNU_SOURCE
#include <endian.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "content/content.h"
#include "host/host.h"
#include "image/internal.h"

/* Nobody writes larger payloads: an image with one is damaged. */
#define MAX_PAYLOAD (1ull << 32)

/* The field crc32c at the end of a packed message: a tag of two bytes, the value. */
#define CRC_TAG	       "\xc5\x3e"
#define CRC_FIELD_SIZE 6

/* ---- names ---- */

/* Of the file's number and, for buffer data, the user gpu id. */
static const char *const formats[] = {
	[IMAGE_KFD] = "amdgpu-kfd-%d.img",
	[IMAGE_RENDER] = "amdgpu-renderD-%d.img",
	[IMAGE_PAGES] = "amdgpu-pages-%d-%04x.img",
	[IMAGE_DMABUF] = "amdgpu-shared-%d.img",
	[IMAGE_SUSPENDED] = "amdgpu-suspended-%d.img",
	[IMAGE_FREED] = "amdgpu-freed-%d-%04x.img",
	[IMAGE_DMABUF_OLD] = "amdgpu-dmabuf_%d.img",
};

void image_name_make(enum image_kind kind, int id, uint32_t gpu_id, char ret[IMAGE_NAME_MAX])
{
	snprintf(ret, IMAGE_NAME_MAX, formats[kind], id, gpu_id);
}

/* A name is one of ours when what it says, written again, gives the same name. */
bool image_name_parse(const char *name, struct image_name *ret)
{
	char made[IMAGE_NAME_MAX];
	unsigned int minor, bo;

	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		size_t numbers = strcspn(formats[i], "%");

		*ret = (struct image_name){ .kind = (enum image_kind)i };
		if (strncmp(name, formats[i], numbers) || sscanf(name + numbers, "%9d-%8x", &ret->id, &ret->gpu_id) < 1)
			continue;
		image_name_make(ret->kind, ret->id, ret->gpu_id, made);
		ret->kind = ret->kind == IMAGE_DMABUF_OLD ? IMAGE_DMABUF : ret->kind;
		return ret->id >= 0 && !strcmp(name, made);
	}
	*ret = (struct image_name){ .kind = IMAGE_DRM_PAGES };
	if (sscanf(name, "amdgpu-drm-pages-%9d-%9u-%8x", &ret->id, &minor, &bo) != 3)
		return false;
	snprintf(made, sizeof(made), "amdgpu-drm-pages-%d-%u-%04x.img", ret->id, minor, bo);
	return ret->id >= 0 && !strcmp(name, made);
}

/* ---- files ---- */

int image_file_write(enum image_kind kind, int id, struct image_payload *payload)
{
	uint8_t prefix[LENGTH_PREFIX_BYTES];
	int fd, err;

	image_name_make(kind, id, 0, payload->name);
	/* A restore would not read it. */
	if (payload->size > MAX_PAYLOAD)
		return fail(-EFBIG, "image %s: would have %zu bytes, more than a restore reads (%llu)", payload->name,
			    payload->size, MAX_PAYLOAD);
	fd = criu_image_create(payload->name);
	if (fd < 0)
		return fd;
	length_prefix_put(prefix, payload->size);
	err = write_all(fd, prefix, sizeof(prefix));
	if (!err)
		err = write_all(fd, payload->data, payload->size);
	if (close(fd) && !err)
		err = -errno;
	if (err)
		return fail(err, "image %s: cannot write %zu bytes: %m", payload->name, payload->size);
	return 0;
}

static int fail_read(const char *name, int err)
{
	return err == -ENODATA ? bad_image(name, "is truncated") : fail(err, "image %s: cannot read: %m", name);
}

int image_payload_read(const char *name, int fd, uint8_t **ret, size_t *ret_size)
{
	_cleanup_free_ uint8_t *payload = NULL;
	uint8_t prefix[LENGTH_PREFIX_BYTES];
	struct stat st;
	uint64_t size;
	int err = read_all(fd, prefix, sizeof(prefix));

	if (err)
		return fail_read(name, err);
	size = length_prefix_get(prefix);
	/* A prefix beyond the file is refused before memory is taken for it; a pipe has no size. */
	if (size > MAX_PAYLOAD)
		return bad_image(name, "claims %" PRIu64 " bytes", size);
	if (fstat(fd, &st))
		return fail_read(name, -errno);
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size < size + sizeof(size))
		return bad_image(name, "is truncated: its header says %" PRIu64 " bytes, and %lld follow", size,
				 (long long)st.st_size - (long long)sizeof(size));
	payload = malloc(size + 1);
	err = payload ? read_all(fd, payload, size) : -ENOMEM;
	if (err)
		return fail_read(name, err);
	*ret = steal_ptr(payload);
	*ret_size = size;
	return 0;
}

int image_file_read(enum image_kind kind, int id, struct image_payload *ret)
{
	_cleanup_close_ int fd = -1;

	image_name_make(kind, id, 0, ret->name);
	fd = criu_image_open(ret->name);
	return fd < 0 ? fd : image_payload_read(ret->name, fd, &ret->data, &ret->size);
}

void image_payload_done(struct image_payload *payload)
{
	free(payload->data);
}

/* ---- messages ---- */

/*
 * protobuf-c makes up to 100 bytes of 4, before anything can be checked. The images with most of the smallest parts
 * that are accepted stay below this.
 */
#define MEMORY_FACTOR 8
#define MEMORY_ALWAYS (64u << 20)

struct budget {
	uint64_t left; /* bytes */
	int err;
};

static void *budget_alloc(void *arg, size_t size)
{
	struct budget *budget = arg;
	void *ret = size > budget->left ? NULL : malloc(size);

	if (!ret) {
		budget->err = size > budget->left ? -EFBIG : -ENOMEM;
		return NULL;
	}
	budget->left -= size;
	return ret;
}

static void budget_free(void *arg, void *data)
{
	(void)arg;
	free(data);
}

/* 0; no message: -EBADMSG, -EFBIG where it needs more memory than its size allows, or -ENOMEM. */
static int unpack(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t size, ProtobufCMessage **ret)
{
	struct budget budget = { .left = MEMORY_FACTOR * (uint64_t)size + MEMORY_ALWAYS };
	ProtobufCAllocator allocator = { .alloc = budget_alloc, .free = budget_free, .allocator_data = &budget };

	*ret = protobuf_c_message_unpack(type, &allocator, size, data);
	return *ret ? 0 : budget.err ?: -EBADMSG;
}

void image_message_free(void *message)
{
	ProtobufCAllocator allocator = { .free = budget_free };
	ProtobufCMessage *unpacked;

	memcpy(&unpacked, message, sizeof(unpacked));
	protobuf_c_message_free_unpacked(unpacked, &allocator);
}

/* The value of an optional number of 32 bits; NULL: the message does not have it. */
static const uint32_t *optional_number(const ProtobufCMessage *message, const char *field_name)
{
	const ProtobufCFieldDescriptor *field =
		protobuf_c_message_descriptor_get_field_by_name(message->descriptor, field_name);
	const char *start = (const char *)message;

	return *(const protobuf_c_boolean *)(start + field->quantifier_offset) ?
		       (const uint32_t *)(start + field->offset) : NULL;
}

static int check_frame(const char *name, const ProtobufCMessage *message, const char *id_field, const uint8_t *data,
		       size_t size)
{
	const uint32_t *saved = optional_number(message, "crc32c"), *id = optional_number(message, id_field);
	uint32_t crc = saved ? crc32c(0, data, size - CRC_FIELD_SIZE) : 0;
	struct image_name parsed;

	if (saved && memcmp(data + size - CRC_FIELD_SIZE, CRC_TAG, 2))
		return bad_image(name, "is damaged: its CRC-32C is not at its end");
	if (saved && crc != *saved)
		return bad_image(name, "is damaged: its CRC-32C is %#010x, and was %#010x", crc, *saved);
	if (!id || !image_name_parse(name, &parsed) || (uint32_t)parsed.id == *id)
		return 0;
	return bad_image(name, "belongs to file %#x, not to file %#x", *id, (uint32_t)parsed.id);
}

/* ---- what a later version of this plugin saves ---- */

/* In criu-amdgpu.proto, fields of this plugin alone have numbers from here on. */
#define FIRST_OWN_FIELD 100

static bool has_unknown_fields(const ProtobufCMessage *message);

/* Whether one of the messages that are in a field has some. */
static bool parts_have_unknown_fields(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	const char *start = (const char *)message;
	bool is_array = field->label == PROTOBUF_C_LABEL_REPEATED;
	ProtobufCMessage *const *parts = (ProtobufCMessage *const *)(start + field->offset);
	size_t nr = is_array ? *(const size_t *)(start + field->quantifier_offset) : *parts != NULL;

	if (is_array)
		memcpy(&parts, start + field->offset, sizeof(parts));
	for (size_t i = 0; i < nr; i++)
		if (has_unknown_fields(parts[i]))
			return true;
	return false;
}

/* CRIU's plugin may have fields below that are not known here, and images of it are restored without these. */
static bool has_unknown_fields(const ProtobufCMessage *message)
{
	const ProtobufCMessageDescriptor *type = message->descriptor;

	for (unsigned int i = 0; i < message->n_unknown_fields; i++)
		if (message->unknown_fields[i].tag >= FIRST_OWN_FIELD)
			return true;
	for (unsigned int i = 0; i < type->n_fields; i++)
		if (type->fields[i].type == PROTOBUF_C_TYPE_MESSAGE && parts_have_unknown_fields(message, &type->fields[i]))
			return true;
	return false;
}

static int check_fields(const char *name, const ProtobufCMessage *message)
{
	const CriuKfd *kfd = message->descriptor == &criu_kfd__descriptor ? (const CriuKfd *)message : NULL;
	const char *version = kfd && kfd->writer ? kfd->writer->plugin : NULL;

	if (!has_unknown_fields(message))
		return 0;
	if (!optional_number(message, "crc32c"))
		return bad_image(name, "is damaged: it has no CRC-32C of itself, and its writer writes one");
	return fail(-EOPNOTSUPP, "image %s: was written by version %.40s of the plugin, and version %s does not know all "
		    "that it has: use that version", name, version ? version : "(unknown)", plugin_version);
}

int image_message_unpack(const char *name, const ProtobufCMessageDescriptor *type, const char *id_field,
			 const uint8_t *data, size_t size, void *ret)
{
	_cleanup_message_ ProtobufCMessage *message = NULL;
	int err = unpack(type, data, size, &message);

	if (err == -EBADMSG)
		return bad_image(name, "is damaged: it cannot be parsed");
	if (err)
		return fail(err, "image %s: its %zu bytes need too much memory: %m", name, size);
	err = check_frame(name, message, id_field, data, size);
	if (!err)
		err = check_fields(name, message);
	if (err)
		return err;
	memcpy(ret, &message, sizeof(message));
	message = NULL;
	return 0;
}

/* @message has the field crc32c, with whatever value. */
int image_message_pack(const ProtobufCMessage *message, uint8_t **ret, size_t *ret_size)
{
	uint32_t crc;
	size_t size = protobuf_c_message_get_packed_size(message);
	uint8_t *data = malloc(size + 1);

	if (!data)
		return -ENOMEM;
	protobuf_c_message_pack(message, data);
	crc = htole32(crc32c(0, data, size - CRC_FIELD_SIZE));
	memcpy(data + size - sizeof(crc), &crc, sizeof(crc));
	*ret = data;
	*ret_size = size;
	return 0;
}

/* ---- criu's list of open files: a magic number, and for each file its length and a message ---- */

static const uint8_t list_magic[8] = { 0x19, 0x43, 0x56, 0x54, 0x38, 0x31, 0x30, 0x56 };

/* CRIU's FD_TYPES__EXT. */
#define TYPE_EXT 16

int criu_list_unpack(const uint8_t *data, size_t size, uint32_t **ret_ids, size_t *ret_nr)
{
	const uint8_t *end = data + size;
	uint32_t length;

	if (size < sizeof(list_magic) || memcmp(data, list_magic, sizeof(list_magic)))
		return -EBADMSG;
	for (data += sizeof(list_magic); data < end; data += length) {
		_cleanup_message_ ProtobufCMessage *message = NULL;
		const CriuFileEntry *entry;
		int err;

		if ((size_t)(end - data) < sizeof(length))
			return -EBADMSG;
		memcpy(&length, data, sizeof(length));
		length = le32toh(length);
		data += sizeof(length);
		err = length > (size_t)(end - data) ? -EBADMSG : unpack(&criu_file_entry__descriptor, data, length, &message);
		entry = (const CriuFileEntry *)message;
		if (!err && entry->type == TYPE_EXT)
			err = array_add(*ret_ids, *ret_nr, entry->id);
		if (err)
			return err;
	}
	return 0;
}
