// SPDX-License-Identifier: GPL-2.0-only
/*
 * hsajob's kernels: loaded by the runtime, one in each process, in the memory of the other one, which it opens by IPC.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "gpujob_busy.h"
#include "hsajob.h"
#include "report.h"

#define PACKETS 64u

/* As busy.cl has them; the gate lies behind, since all of it is the host's memory. */
struct hsa_code_arguments {
	uint32_t *words;
	double *sums;
	uint32_t *done, *rounds;
	const uint32_t *gate;
	uint32_t least;
	uint8_t hidden[256]; /* of the compiler */
	uint32_t open;
};

static int copy(struct hsa_code *code, void *to, hsa_agent_t to_agent, const void *from, hsa_agent_t from_agent)
{
	const hsa_signal_t none = { 0 };
	int err = hsa_copy(to, to_agent, from, from_agent, sizeof(*code->host), none, code->copied);

	return err ? err : hsa_wait(code->gpu, code->copied, code->share->job->timeout, "a copy of what a kernel computes");
}

/* ---- memory of both processes ---- */

static hsa_amd_ipc_memory_t *handle_of(const struct hsa_code *code, unsigned int process)
{
	_Static_assert(2 * sizeof(hsa_amd_ipc_memory_t) <= sizeof(code->share->pair.control->token), "two handles fit");
	return (hsa_amd_ipc_memory_t *)code->share->pair.control->token + process;
}

/* Whole pages, as IPC wants them. */
static size_t memory_bytes(void)
{
	return (sizeof(struct busy) + 4095) & ~(size_t)4095;
}

static int exchange(struct hsa_code *code)
{
	struct pair *pair = &code->share->pair;
	struct hsa_job *job = code->share->job;
	int err = pair_meet(pair); /* nobody needs the earlier handle any more */

	err = err ? err : hsa_must(hsa_amd_ipc_memory_create(code->own, memory_bytes(), handle_of(code, pair->number)),
			       "hsa_amd_ipc_memory_create");
	err = err ? err : pair_meet(pair);
	if (err)
		return err;
	return hsa_must(hsa_amd_ipc_memory_attach(handle_of(code, !pair->number), memory_bytes(), job->nr_gpus, job->agents,
						  (void **)&code->others), "hsa_amd_ipc_memory_attach");
}

/* ---- the kernel ---- */

static int symbol_ask(hsa_executable_symbol_t symbol, hsa_executable_symbol_info_t info, void *ret)
{
	return hsa_must(hsa_executable_symbol_get_info(symbol, info, ret), "hsa_executable_symbol_get_info");
}

static int symbol_find(struct hsa_code *code)
{
	hsa_executable_symbol_t symbol;
	int err = hsa_must(hsa_executable_get_symbol_by_name(code->executable, "busy.kd", &code->gpu->agent, &symbol),
		       "looking for the kernel");

	err = err ? err : symbol_ask(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &code->object);
	return err ? err : symbol_ask(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, &code->group_bytes);
}

static int load(struct hsa_code *code)
{
	int fd = open(code->path, O_RDONLY | O_CLOEXEC), err;
	hsa_code_object_reader_t reader;

	if (fd < 0)
		return report(errno, "%s: %m", code->path);
	err = hsa_must(hsa_code_object_reader_create_from_file(fd, &reader), "reading code");
	err = err ? err : hsa_must(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT,
							     NULL, &code->executable), "hsa_executable_create_alt");
	err = err ? err : hsa_must(hsa_executable_load_agent_code_object(code->executable, code->gpu->agent, reader,
									 NULL, NULL), "loading code");
	err = err ? err : hsa_must(hsa_executable_freeze(code->executable, NULL), "hsa_executable_freeze");
	err = err ? err : hsa_must(hsa_code_object_reader_destroy(reader), "giving back code");
	close(fd);
	return err ? err : symbol_find(code);
}

static void dispatch(struct hsa_code *code)
{
	hsa_kernel_dispatch_packet_t *ring = code->queue->base_address;
	uint64_t number = hsa_queue_add_write_index_relaxed(code->queue, 1);
	hsa_kernel_dispatch_packet_t packet = {
		.setup = 1 << HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS,
		.workgroup_size_x = BUSY_GROUP,
		.workgroup_size_y = 1,
		.workgroup_size_z = 1,
		.grid_size_x = BUSY_ITEMS,
		.grid_size_y = 1,
		.grid_size_z = 1,
		.group_segment_size = code->group_bytes,
		.kernel_object = code->object,
		.kernarg_address = code->arguments,
		.completion_signal = code->done,
	};
	uint16_t header = HSA_PACKET_TYPE_KERNEL_DISPATCH << HSA_PACKET_HEADER_TYPE |
			  HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
			  HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;

	memcpy((uint8_t *)&ring[number % PACKETS] + sizeof(header), (uint8_t *)&packet + sizeof(header),
	       sizeof(packet) - sizeof(header));
	__atomic_store_n(&ring[number % PACKETS].header, header, __ATOMIC_RELEASE);
	hsa_signal_store_screlease(code->queue->doorbell_signal, (hsa_signal_value_t)number);
}

/* Its own memory is ready for the other process before that one's kernel begins. */
static int start(struct hsa_code *code, uint64_t generation)
{
	struct busy *others = code->others;
	int err;

	busy_start(code->host, generation);
	err = copy(code, code->own, code->gpu->agent, code->host, code->share->job->host);
	err = err ? err : pair_meet(&code->share->pair);
	if (err)
		return err;
	*code->arguments = (struct hsa_code_arguments){
		.words = others->words,
		.sums = others->sums,
		.done = &others->done,
		.rounds = others->rounds,
		.gate = &code->arguments->open,
		.least = BUSY_LEAST,
	};
	hsa_signal_store_relaxed(code->done, 1);
	dispatch(code);
	return 0;
}

static int end(struct hsa_code *code, uint64_t generation)
{
	int err;

	__atomic_store_n(&code->arguments->open, 1, __ATOMIC_RELEASE);
	err = hsa_wait(code->gpu, code->done, code->share->job->timeout, "a kernel");
	err = err ? err : pair_meet(&code->share->pair);
	memset(code->host, 0, sizeof(*code->host));
	err = err ? err : copy(code, code->host, code->share->job->host, code->own, code->gpu->agent);
	return err ? err : busy_check(code->host, generation, code->share->pair.number);
}

int hsa_code_open(struct hsa_code *code, struct hsa_share *share, uint64_t generation)
{
	struct hsa_job *job = share->job;
	int err;

	code->share = share;
	code->gpu = &job->gpus[share->pair.number % job->nr_gpus];
	err = hsa_allocate(job, code->gpu->vram, memory_bytes(), (void **)&code->own);
	err = err ? err : hsa_allocate(job, job->memory, memory_bytes(), (void **)&code->host);
	err = err ? err : hsa_allocate(job, job->memory, sizeof(*code->arguments), (void **)&code->arguments);
	err = err ? err : hsa_must(hsa_signal_create(1, 0, NULL, &code->done), "creating a signal");
	err = err ? err : hsa_must(hsa_signal_create(1, 0, NULL, &code->copied), "creating a signal");
	err = err ? err : hsa_must(hsa_queue_create(code->gpu->agent, PACKETS, HSA_QUEUE_TYPE_SINGLE, NULL, NULL,
						    UINT32_MAX, UINT32_MAX, &code->queue), "hsa_queue_create");
	err = err ? err : load(code);
	err = err ? err : exchange(code);
	return err ? err : start(code, generation);
}

int hsa_code_round(struct hsa_code *code, uint64_t generation)
{
	int err = end(code, generation);

	return err ? err : start(code, generation + 1);
}

int hsa_code_close(struct hsa_code *code, uint64_t generation)
{
	int err = end(code, generation);

	err = err ? err : hsa_must(hsa_amd_ipc_memory_detach(code->others), "hsa_amd_ipc_memory_detach");
	err = err ? err : pair_meet(&code->share->pair);
	err = err ? err : hsa_must(hsa_queue_destroy(code->queue), "hsa_queue_destroy");
	err = err ? err : hsa_must(hsa_executable_destroy(code->executable), "hsa_executable_destroy");
	err = err ? err : hsa_must(hsa_signal_destroy(code->done), "destroying a signal");
	err = err ? err : hsa_must(hsa_signal_destroy(code->copied), "destroying a signal");
	err = err ? err : hsa_must(hsa_amd_memory_pool_free(code->own), "freeing memory");
	err = err ? err : hsa_must(hsa_amd_memory_pool_free(code->host), "freeing memory");
	return err ? err : hsa_must(hsa_amd_memory_pool_free(code->arguments), "freeing memory");
}
