// SPDX-License-Identifier: GPL-2.0-only
/* Compiled code: loaded by the runtime, and put into its queues. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "gpujob_busy.h"
#include "hsajob.h"
#include "report.h"

static int symbol_ask(hsa_executable_symbol_t symbol, hsa_executable_symbol_info_t info, void *ret)
{
	return hsa_must(hsa_executable_symbol_get_info(symbol, info, ret), "hsa_executable_symbol_get_info");
}

static int symbol_find(struct hsa_kernel *kernel, const struct hsa_gpu *gpu, const char *name)
{
	hsa_executable_symbol_t symbol;
	int err = hsa_must(hsa_executable_get_symbol_by_name(kernel->executable, name, &gpu->agent, &symbol),
		       "looking for the kernel");

	err = err ? err : symbol_ask(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &kernel->object);
	err = err ? err : symbol_ask(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE, &kernel->private_bytes);
	return err ? err : symbol_ask(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, &kernel->group_bytes);
}

int hsa_kernel_load(struct hsa_kernel *kernel, const struct hsa_gpu *gpu, const char *path, const char *name)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;
	hsa_code_object_reader_t reader;

	if (fd < 0)
		return report(errno, "%s: %m", path);
	err = hsa_must(hsa_code_object_reader_create_from_file(fd, &reader), "reading code");
	err = err ? err : hsa_must(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT,
							     NULL, &kernel->executable), "hsa_executable_create_alt");
	err = err ? err : hsa_must(hsa_executable_load_agent_code_object(kernel->executable, gpu->agent, reader,
									 NULL, NULL), "loading code");
	err = err ? err : hsa_must(hsa_executable_freeze(kernel->executable, NULL), "hsa_executable_freeze");
	err = err ? err : hsa_must(hsa_code_object_reader_destroy(reader), "giving back code");
	close(fd);
	return err ? err : symbol_find(kernel, gpu, name);
}

void hsa_kernel_put(const struct hsa_kernel *kernel, hsa_queue_t *queue, uint32_t items, void *arguments, hsa_signal_t done)
{
	hsa_kernel_dispatch_packet_t *ring = queue->base_address;
	uint64_t number = hsa_queue_add_write_index_relaxed(queue, 1);
	hsa_kernel_dispatch_packet_t packet = {
		.setup = 1 << HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS,
		.workgroup_size_x = BUSY_GROUP,
		.workgroup_size_y = 1,
		.workgroup_size_z = 1,
		.grid_size_x = items,
		.grid_size_y = 1,
		.grid_size_z = 1,
		.private_segment_size = kernel->private_bytes,
		.group_segment_size = kernel->group_bytes,
		.kernel_object = kernel->object,
		.kernarg_address = arguments,
		.completion_signal = done,
	};
	uint16_t header = HSA_PACKET_TYPE_KERNEL_DISPATCH << HSA_PACKET_HEADER_TYPE |
			  HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
			  HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;

	memcpy((uint8_t *)&ring[number % HSA_PACKETS] + sizeof(header), (uint8_t *)&packet + sizeof(header),
	       sizeof(packet) - sizeof(header));
	__atomic_store_n(&ring[number % HSA_PACKETS].header, header, __ATOMIC_RELEASE);
	hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)number);
}
