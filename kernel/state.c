// SPDX-License-Identifier: GPL-2.0-only
/* What a struct kfd_state owns, what follows from it, and the records in it. */
#include "amdgpu_plugin_util.h"
#include "kernel/state.h"

struct bo *kfd_bos_new(size_t nr)
{
	struct bo *bos = calloc(nr + 1, sizeof(*bos));

	for (size_t i = 0; bos && i < nr; i++)
		bos[i].dmabuf_fd = KFD_NO_FD;
	return bos;
}

void kfd_close_dmabufs(struct kfd_state *state)
{
	for (size_t i = 0; state->bos && i < state->nr_bos; i++) {
		if (state->bos[i].dmabuf_fd != KFD_NO_FD)
			close(state->bos[i].dmabuf_fd);
		state->bos[i].dmabuf_fd = KFD_NO_FD;
	}
}

void kfd_state_done(struct kfd_state *state)
{
	kfd_close_dmabufs(state);
	free(state->devices);
	free(state->bos);
	free(state->priv_data);
	free(state->queues);
	free(state->ranges);
	free(state->placeholders);
	*state = (struct kfd_state){ 0 };
}

bool kfd_state_shares(const struct kfd_state *state)
{
	for (size_t i = 0; i < state->nr_bos; i++)
		if (state->bos[i].share.buffer)
			return true;
	return false;
}

const struct topology_node *kfd_state_gpu(const struct kfd_state *state, const struct topology *machine, uint32_t user_id)
{
	int node = -1;

	for (uint32_t i = 0; node < 0 && i < state->nr_devices; i++)
		if (state->devices[i].user_gpu_id == user_id)
			node = topology_find_gpu(machine, state->devices[i].actual_gpu_id);
	return node < 0 ? NULL : machine->nodes[node];
}

uint64_t kfd_state_vram_needed(const struct kfd_state *state, uint32_t user_id)
{
	uint64_t needed = 0;

	for (size_t i = 0; state && i < state->nr_bos; i++)
		if (state->bos[i].alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM && kfd_state_owns_on(state, i, user_id))
			needed += state->bos[i].size;
	return needed;
}

/* ---- records ---- */

/*
 * The records of CHECKPOINT's priv_data: process, devices, BOs, then queues, events and SVM ranges, each of which
 * begins with its kind. Sizes and offsets are those of the structs kfd_criu_*_priv_data of Linux' kfd_priv.h and
 * kfd_svm.h, unchanged from 5.18 to 7.3. Each byte belongs to a record, so a layout that is not this one shows.
 */
#define KNOWN_VERSION 1u /* KFD_CRIU_PRIV_VERSION */

#define PROCESS_SIZE 8u
#define PROCESS_XNACK_AT 4u
#define DEVICE_SIZE  8u
#define EVENT_SIZE   64u
#define SVM_SIZE     24u
#define SVM_ATTR     8u
#define PLACEHOLDER_BYTES 4096u
#define SVM_COMMON_ATTRS 4u /* besides one for each device */

enum object_kind { OBJECT_QUEUE, OBJECT_EVENT, OBJECT_SVM_RANGE };

static uint32_t get_u32(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

static uint64_t get_u64(const uint8_t *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* Where the reading is. */
struct reader {
	const uint8_t *bytes;
	uint64_t size, at;
};

/* The next @size bytes, NULL when they are not there. */
static const uint8_t *take_bytes(struct reader *reader, uint64_t size)
{
	const uint8_t *ret = reader->bytes + reader->at;

	if (size > reader->size - reader->at)
		return NULL;
	reader->at += size;
	return ret;
}

/* ---- queues ---- */

/* Offsets of cp_hqd_cntl_stack_offset and so on in struct v9_mqd of Linux' v9_structs.h. */
#define MQD_STACK_OFFSET_AT 696u
#define MQD_STACK_SIZE_AT   700u
#define MQD_WAVE_OFFSET_AT  704u

static void read_mqds(const uint8_t *mqd, struct queue_record *ret)
{
	ret->nr_mqds = ret->mqd_size / COMPUTE_MQD_SIZE;
	ret->mqd_stack_size = get_u32(mqd + MQD_STACK_SIZE_AT);
	ret->mqd_stack_offset = UINT32_MAX;
	for (uint32_t i = 0; i < ret->nr_mqds; i++, mqd += COMPUTE_MQD_SIZE) {
		uint32_t offset = get_u32(mqd + MQD_STACK_OFFSET_AT), wave = get_u32(mqd + MQD_WAVE_OFFSET_AT);

		if (get_u32(mqd + MQD_STACK_SIZE_AT) != ret->mqd_stack_size)
			ret->mqd_stack_size = 0;
		ret->mqd_stack_offset = offset < ret->mqd_stack_offset ? offset : ret->mqd_stack_offset;
		ret->mqd_wave_offset = wave > ret->mqd_wave_offset ? wave : ret->mqd_wave_offset;
	}
}

static int read_queue(struct kfd_state *state, struct reader *reader)
{
	struct queue_record queue = { .at = reader->at };
	const uint8_t *bytes = take_bytes(reader, QUEUE_RECORD_SIZE);

	if (!bytes)
		return -EPROTO;
	queue.ring_address = get_u64(bytes + 8);
	queue.ring_size = get_u64(bytes + 16);
	queue.read_address = get_u64(bytes + 24);
	queue.write_address = get_u64(bytes + 32);
	queue.eop_address = get_u64(bytes + 48);
	queue.cwsr_address = get_u64(bytes + 56);
	queue.gpu_id = get_u32(bytes + 64);
	queue.type = get_u32(bytes + 68);
	queue.format = get_u32(bytes + 72);
	queue.number = get_u32(bytes + 76);
	queue.priority = get_u32(bytes + 80);
	queue.percent = get_u32(bytes + 84);
	queue.doorbell = get_u32(bytes + 88);
	queue.gws = get_u32(bytes + 92);
	queue.eop_size = get_u32(bytes + 100);
	queue.cwsr_size = get_u32(bytes + 104);
	queue.ctl_stack_size = get_u32(bytes + QUEUE_STACK_SIZE_AT);
	queue.mqd_size = get_u32(bytes + QUEUE_MQD_SIZE_AT);
	queue.mqd = take_bytes(reader, (uint64_t)queue.mqd_size + queue.ctl_stack_size);
	if (!queue.mqd)
		return -EPROTO;
	if (queue.type == QUEUE_TYPE_COMPUTE && queue.mqd_size && queue.mqd_size % COMPUTE_MQD_SIZE == 0)
		read_mqds(queue.mqd, &queue);
	return array_add(state->queues, state->nr_queues, queue);
}

/* ---- events ---- */

#define EVENT_PAGE_AT	 8u /* handle of the BO that the page is in; of the first event alone */
#define EVENT_TYPE_AT	 24u
#define EVENT_TYPE_SIGNAL 0u
#define EVENT_TYPE_DEBUG  5u

static int read_event(struct kfd_state *state, struct reader *reader)
{
	const uint8_t *bytes = take_bytes(reader, EVENT_SIZE);
	uint32_t type;

	if (!bytes)
		return -EPROTO;
	type = get_u32(bytes + EVENT_TYPE_AT);
	state->nr_events++;
	state->nr_signals += type == EVENT_TYPE_SIGNAL || type == EVENT_TYPE_DEBUG;
	state->has_event_page |= get_u64(bytes + EVENT_PAGE_AT) != 0;
	return 0;
}

/* ---- SVM ranges ---- */

/* Attributes of SVM ranges (linux/kfd_ioctl.h). */
#define ATTR_PREFETCH_LOCATION 1u
#define ATTR_ACCESS_IN_PLACE   3u
#define ATTR_SET_FLAGS	       5u
#define FLAG_ALWAYS_MAPPED     0x40u
#define LOCATION_SYSTEM	       0u
#define LOCATION_UNDEFINED     UINT32_MAX

/* What makes the driver map it at once (svm_range_validate_and_map()). */
static bool maps_at_once(uint32_t type, uint32_t value)
{
	return type == ATTR_ACCESS_IN_PLACE || (type == ATTR_SET_FLAGS && value & FLAG_ALWAYS_MAPPED) ||
	       (type == ATTR_PREFETCH_LOCATION && value != LOCATION_SYSTEM && value != LOCATION_UNDEFINED);
}

static int read_svm_range(struct kfd_state *state, struct reader *reader, uint32_t nr_devices)
{
	uint64_t nr_attrs = SVM_COMMON_ATTRS + (uint64_t)nr_devices;
	const uint8_t *bytes = take_bytes(reader, SVM_SIZE + SVM_ATTR * nr_attrs);
	struct svm_range range = { .on_demand = get_u32(state->priv_data + PROCESS_XNACK_AT) };

	if (!bytes)
		return -EPROTO;
	/* In pages of 4 KiB. */
	range.start = get_u64(bytes + 8) << 12;
	range.size = get_u64(bytes + 16) << 12;
	for (const uint8_t *attr = bytes + SVM_SIZE; attr < bytes + SVM_SIZE + SVM_ATTR * nr_attrs; attr += SVM_ATTR)
		range.on_demand = range.on_demand && !maps_at_once(get_u32(attr), get_u32(attr + 4));
	return array_add(state->ranges, state->nr_ranges, range);
}

/* ---- all ---- */

int records_read(struct kfd_state *state, uint32_t nr_devices)
{
	struct reader reader = { state->priv_data, state->priv_size, 0 };
	const uint8_t *process = take_bytes(&reader, PROCESS_SIZE);
	int err;

	state->version = process ? get_u32(process) : 0;
	err = state->version == KNOWN_VERSION && take_bytes(&reader, (uint64_t)nr_devices * DEVICE_SIZE) ? 0 : -EPROTO;
	state->bos_at = reader.at;
	if (!err && !take_bytes(&reader, (uint64_t)state->nr_records * BO_RECORD_SIZE))
		err = -EPROTO;
	if (err)
		state->bos_at = 0;
	for (uint32_t i = 0; !err && i < state->nr_objects; i++) {
		bool is_there = reader.size - reader.at >= sizeof(uint32_t);

		switch (is_there ? get_u32(reader.bytes + reader.at) : UINT32_MAX) {
		case OBJECT_QUEUE:
			err = read_queue(state, &reader);
			break;
		case OBJECT_EVENT:
			err = read_event(state, &reader);
			break;
		case OBJECT_SVM_RANGE:
			err = read_svm_range(state, &reader, nr_devices);
			break;
		default:
			err = -EPROTO;
		}
	}
	if (!err && reader.at != reader.size)
		err = -EPROTO;
	state->is_known = !err;
	return err == -EPROTO ? 0 : err;
}

/* ---- bytes that come and go ---- */

/* Queues keep their places when @by bytes have come at @at, or have gone. */
static void move_queues(struct kfd_state *state, uint64_t at, uint64_t by)
{
	for (uint32_t i = 0; i < state->nr_queues; i++) {
		struct queue_record *queue = &state->queues[i];

		queue->at += queue->at >= at ? by : 0;
		queue->mqd = state->priv_data + queue->at + QUEUE_RECORD_SIZE;
	}
}

int records_insert(struct kfd_state *state, uint64_t at, uint64_t size)
{
	uint8_t *grown = reallocarray(state->priv_data, state->priv_size + size, 1);

	if (!grown)
		return -ENOMEM;
	memmove(grown + at + size, grown + at, state->priv_size - at);
	memset(grown + at, 0, size);
	state->priv_data = grown;
	state->priv_size += size;
	move_queues(state, at, size);
	return 0;
}

void records_cut(struct kfd_state *state, uint64_t at, uint64_t size)
{
	memmove(state->priv_data + at, state->priv_data + at + size, state->priv_size - at - size);
	state->priv_size -= size;
	move_queues(state, at, -size);
}

void records_empty_mqds(struct kfd_state *state, struct queue_record *queue, uint32_t stack_size)
{
	uint8_t *mqds = state->priv_data + queue->at + QUEUE_RECORD_SIZE;

	for (uint32_t i = 0; i < queue->nr_mqds; i++, mqds += COMPUTE_MQD_SIZE)
		for (uint32_t at = MQD_STACK_OFFSET_AT; at <= MQD_WAVE_OFFSET_AT; at += sizeof(stack_size))
			memcpy(mqds + at, &stack_size, sizeof(stack_size));
	queue->mqd_stack_size = queue->mqd_stack_offset = queue->mqd_wave_offset = stack_size;
}

/* ---- BOs ---- */

#define BO_HANDLE_AT 8u
#define BO_MAPPED_AT 12u

int records_bo(const struct kfd_state *state, size_t i, struct bo_record *ret)
{
	const uint8_t *bytes = state->priv_data + state->bos_at + i * BO_RECORD_SIZE;

	if (i >= state->nr_records || !state->bos_at)
		return -EPROTO;
	ret->user_address = get_u64(bytes);
	ret->handle = get_u32(bytes + BO_HANDLE_AT);
	memcpy(ret->mapped_gpus, bytes + BO_MAPPED_AT, sizeof(ret->mapped_gpus));
	return 0;
}

int records_numbers(const struct kfd_state *state, struct bo_number **ret)
{
	_cleanup_free_ struct bo_number *numbers = calloc((size_t)state->nr_records + 1, sizeof(*numbers));
	struct bo_record record;

	if (!numbers)
		return -ENOMEM;
	for (uint32_t i = 0; i < state->nr_records; i++) {
		int err = records_bo(state, i, &record);

		if (err)
			return err;
		numbers[i] = (struct bo_number){ kfd_handle(state->bos[i].gpu_id, record.handle), i };
	}
	qsort(numbers, state->nr_records, sizeof(*numbers), compare_u64);
	*ret = steal_ptr(numbers);
	return 0;
}

uint32_t records_nr_mapped(const struct bo_record *bo)
{
	uint32_t nr = 0;

	while (nr < ARRAY_SIZE(bo->mapped_gpus) && bo->mapped_gpus[nr])
		nr++;
	return nr;
}

bool records_map_bo(const struct kfd_state *state, size_t i, uint32_t gpu_id)
{
	struct bo_record bo;

	if (records_bo(state, i, &bo))
		return false;
	for (uint32_t k = 0; k < records_nr_mapped(&bo); k++)
		if (bo.mapped_gpus[k] == gpu_id)
			return true;
	return false;
}

static void make_placeholder(const struct placeholder *placeholder, struct bo *bo, uint8_t *record)
{
	const uint64_t no_memory = RECORDS_NO_MEMORY;
	bool is_mapped = placeholder->address;

	*bo = (struct bo){
		.addr = placeholder->address,
		.size = is_mapped ? placeholder->size : PLACEHOLDER_BYTES,
		.gpu_id = placeholder->gpu_id,
		.alloc_flags = (is_mapped ? KFD_IOC_ALLOC_MEM_FLAGS_USERPTR : KFD_IOC_ALLOC_MEM_FLAGS_GTT) |
			       KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE,
		.dmabuf_fd = KFD_NO_FD,
	};
	memcpy(record + BO_HANDLE_AT, &placeholder->handle, sizeof(placeholder->handle));
	if (!is_mapped)
		return;
	memcpy(record, &no_memory, sizeof(no_memory));
	memcpy(record + BO_MAPPED_AT, &placeholder->gpu_id, sizeof(placeholder->gpu_id));
}

int records_select(const struct kfd_state *state, const bool *keep, const struct placeholder *placeholders,
		   size_t nr_placeholders, struct kfd_state *ret)
{
	const uint8_t *from = state->priv_data + state->bos_at;
	uint8_t *to;
	size_t nr = 0;

	*ret = (struct kfd_state){ 0 };
	if (!state->bos_at)
		return -EPROTO;
	*ret = (struct kfd_state){
		.pid = state->pid,
		.nr_devices = state->nr_devices,
		.nr_objects = state->nr_objects,
		.devices = state->devices,
		.bos_at = state->bos_at,
		.placeholders = state->placeholders,
		.nr_placeholders = state->nr_placeholders,
		.nr_bos = (uint32_t)nr_placeholders,
	};
	for (size_t i = 0; i < state->nr_records; i++)
		ret->nr_bos += !keep || keep[i];
	ret->nr_records = ret->nr_bos;
	ret->priv_size = state->priv_size - (uint64_t)BO_RECORD_SIZE * state->nr_records + (uint64_t)BO_RECORD_SIZE * ret->nr_bos;
	ret->bos = kfd_bos_new(ret->nr_bos);
	ret->priv_data = calloc(1, ret->priv_size);
	if (!ret->bos || !ret->priv_data)
		return -ENOMEM;
	memcpy(ret->priv_data, state->priv_data, state->bos_at);
	to = ret->priv_data + state->bos_at;
	for (size_t i = 0; i < state->nr_records; i++, from += BO_RECORD_SIZE) {
		if (keep && !keep[i])
			continue;
		ret->bos[nr++] = state->bos[i];
		memcpy(to, from, BO_RECORD_SIZE);
		to += BO_RECORD_SIZE;
	}
	for (size_t i = 0; i < nr_placeholders; i++, to += BO_RECORD_SIZE)
		make_placeholder(&placeholders[i], &ret->bos[nr++], to);
	memcpy(to, from, state->priv_size - (size_t)(from - state->priv_data));
	return 0;
}

void records_take_results(struct kfd_state *state, const bool *keep, struct kfd_state *selection)
{
	size_t nr = 0;

	for (size_t i = 0; i < state->nr_records; i++) {
		if (keep && !keep[i])
			continue;
		state->bos[i].restored_offset = selection->bos[nr].restored_offset;
		state->bos[i].dmabuf_fd = selection->bos[nr].dmabuf_fd;
		selection->bos[nr++].dmabuf_fd = KFD_NO_FD;
	}
}

void records_selection_done(struct kfd_state *selection)
{
	selection->devices = NULL;
	selection->placeholders = NULL;
	kfd_state_done(selection);
}

void records_drop_placeholders(struct kfd_state *state)
{
	struct bo_record bo;

	for (size_t i = state->nr_bos; i-- > 0;) {
		if (records_bo(state, i, &bo) || bo.user_address != RECORDS_NO_MEMORY)
			continue;
		records_cut(state, state->bos_at + i * BO_RECORD_SIZE, BO_RECORD_SIZE);
		memmove(&state->bos[i], &state->bos[i + 1], (state->nr_bos - i - 1) * sizeof(*state->bos));
		state->nr_records = --state->nr_bos;
	}
}

bool records_have_sdma_queue(const struct kfd_state *state, uint32_t gpu_id)
{
	for (uint32_t i = 0; i < state->nr_queues; i++)
		if (state->queues[i].gpu_id == gpu_id && state->queues[i].type != QUEUE_TYPE_COMPUTE)
			return true;
	return false;
}

void kfd_state_work(const struct kfd_state *state, const struct topology *nodes, struct gpu_work *ret)
{
	for (unsigned int i = 0; i < nodes->nr_nodes; i++)
		ret[i] = (struct gpu_work){ .vram_needed = kfd_state_vram_needed(state, topology_gpu_id(nodes->nodes[i])) };
	for (uint32_t i = 0; state && i < state->nr_queues; i++) {
		int node = topology_find_gpu(nodes, state->queues[i].gpu_id);

		if (node >= 0)
			ret[node].has_queues = true;
	}
}
