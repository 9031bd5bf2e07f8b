/* SPDX-License-Identifier: GPL-2.0-only */
/* For tests that change what an image says and expect it to be refused. */
#ifndef UNIT_IMAGE_MESSAGE_H
#define UNIT_IMAGE_MESSAGE_H

#include "image/image.h"
#include "criu-amdgpu.pb-c.h"

/* What is packed for an image, without its checksum; frees its nodes. */
static CriuKfd *message_of(struct gpu_process *image)
{
	uint8_t *data = NULL;
	CriuKfd *msg;
	size_t size;

	assert_int_equal(kfd_image_pack(image, 7, &data, &size), 0);
	msg = criu_kfd__unpack(NULL, size, data);
	assert_non_null(msg);
	msg->has_crc32c = false;
	free(data);
	topology_free(image->nodes);
	image->nodes = NULL;
	return msg;
}

/* What comes of it, or NULL after -EBADMSG and one error line. Frees it. */
static struct gpu_process *message_unpack(CriuKfd *msg)
{
	struct gpu_process *back = NULL;
	size_t size = criu_kfd__get_packed_size(msg);
	uint8_t *data = malloc(size);
	int err;

	criu_kfd__pack(msg, data);
	log_clear();
	err = kfd_image_unpack("sample", data, size, &back);
	assert_true(err ? !back && err == -EBADMSG && log_errors == 1 : !log_errors);
	free(data);
	criu_kfd__free_unpacked(msg, NULL);
	return back;
}

/* Frees it. */
static void message_refused(CriuKfd *msg, const char *text)
{
	assert_null(message_unpack(msg));
	if (!strstr(log_text, text))
		fail_msg("log is \"%s\", expected \"%s\"", log_text, text);
}

/* A message is refused with @text after @change, a statement about msg. */
#define refused(message, change, text)    \
	do {                              \
		CriuKfd *msg = (message); \
		change;                   \
		message_refused(msg, text); \
	} while (0)

#endif
