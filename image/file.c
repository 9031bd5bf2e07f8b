// SPDX-License-Identifier: GPL-2.0-only
/* The frame of an image file: its length in front, a CRC-32C at the end of the message. */
#define _GNU_SOURCE
#include <endian.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "content/content.h"
#include "host/host.h"
#include "image/file.h"
#include "image/image.h"
#include "image/internal.h"
#include "amdgpu_plugin_util.h"

/* Nobody writes larger payloads: an image with one is damaged. */
#define MAX_PAYLOAD (1ull << 32)

/* The field crc32c at the end of a packed message: a tag of two bytes, the value. */
#define CRC_TAG	       "\xc5\x3e"
#define CRC_FIELD_SIZE 6

/* ---- files ---- */

int image_file_write(enum image_kind kind, int id, const uint8_t *payload, size_t size)
{
	_cleanup_close_ int fd = -1;
	uint8_t prefix[LENGTH_PREFIX_BYTES];
	char name[IMAGE_NAME_MAX];
	int err;

	image_name(kind, id, 0, name);
	fd = criu_image_create(name);
	if (fd < 0)
		return fd;
	length_prefix_put(prefix, size);
	err = write_all(fd, prefix, sizeof(prefix));
	if (!err)
		err = write_all(fd, payload, size);
	if (close(steal_fd(&fd)) && !err)
		err = -errno;
	return err ? fail(err, "image %s: cannot write %zu bytes: %m", name, size) : 0;
}

/* A prefix beyond the file is refused before memory is taken for it; a pipe has no size. */
static int check_length(const char *name, int fd, uint64_t size)
{
	struct stat st;

	if (size > MAX_PAYLOAD)
		return bad_image(name, "claims %" PRIu64 " bytes", size);
	if (fstat(fd, &st))
		return -errno;
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size < size + sizeof(size))
		return bad_image(name, "is truncated: %" PRIu64 " bytes of payload announced, %lld there", size,
				 (long long)st.st_size - (long long)sizeof(size));
	return 0;
}

int image_payload_read(const char *name, int fd, uint8_t **ret, size_t *ret_size)
{
	_cleanup_free_ uint8_t *payload = NULL;
	uint8_t prefix[LENGTH_PREFIX_BYTES] = { 0 };
	uint64_t size;
	int err;

	err = read_all(fd, prefix, sizeof(prefix));
	size = length_prefix_get(prefix);
	if (!err)
		err = check_length(name, fd, size);
	if (err == -EBADMSG)
		return err;
	if (!err)
		err = (payload = malloc(size + 1)) ? read_all(fd, payload, size) : -ENOMEM;
	if (err == -ENODATA)
		return bad_image(name, "is truncated");
	if (err)
		return fail(err, "image %s: cannot read: %m", name);
	*ret = steal_ptr(payload);
	*ret_size = size;
	return 0;
}

int image_file_read(enum image_kind kind, int id, char name[IMAGE_NAME_MAX], uint8_t **ret, size_t *ret_size)
{
	_cleanup_close_ int fd = -1;

	image_name(kind, id, 0, name);
	fd = criu_image_open(name);
	return fd < 0 ? fd : image_payload_read(name, fd, ret, ret_size);
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

int image_message_unpack(const char *name, const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t size,
			 void *ret)
{
	struct budget budget = { .left = MEMORY_FACTOR * (uint64_t)size + MEMORY_ALWAYS };
	ProtobufCAllocator allocator = { .alloc = budget_alloc, .free = budget_free, .allocator_data = &budget };
	ProtobufCMessage *message = protobuf_c_message_unpack(type, &allocator, size, data);

	if (!message && !budget.err)
		return bad_image(name, "is damaged: it cannot be parsed");
	if (!message)
		return fail(budget.err, "image %s: its %zu bytes need too much memory: %m", name, size);
	memcpy(ret, &message, sizeof(message));
	return 0;
}

void image_message_free(void *message)
{
	ProtobufCAllocator allocator = { .free = budget_free };
	ProtobufCMessage *unpacked;

	memcpy(&unpacked, message, sizeof(unpacked));
	protobuf_c_message_free_unpacked(unpacked, &allocator);
}

static uint32_t message_crc(const uint8_t *data, size_t size)
{
	return crc32c(0, data, size - CRC_FIELD_SIZE);
}

static int check_crc(const char *name, uint32_t saved, const uint8_t *data, size_t size)
{
	uint32_t crc;

	if (memcmp(data + size - CRC_FIELD_SIZE, CRC_TAG, 2))
		return bad_image(name, "is damaged: its CRC-32C is not at its end");
	crc = message_crc(data, size);
	return crc == saved ? 0 : bad_image(name, "is damaged: its CRC-32C is %#010x, and was %#010x", crc, saved);
}

int image_check_frame(const char *name, const uint32_t *crc, const uint32_t *id, const uint8_t *data, size_t size)
{
	struct image_name parsed;
	int err = crc ? check_crc(name, *crc, data, size) : 0;

	if (err || !id || !image_name_parse(name, &parsed) || (uint32_t)parsed.id == *id)
		return err;
	return bad_image(name, "is that of file %#x, not of file %#x", *id, (uint32_t)parsed.id);
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
	crc = htole32(message_crc(data, size));
	memcpy(data + size - sizeof(crc), &crc, sizeof(crc));
	*ret = data;
	*ret_size = size;
	return 0;
}
