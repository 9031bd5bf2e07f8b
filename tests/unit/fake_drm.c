// SPDX-License-Identifier: GPL-2.0-only
/*
 * The stand-in for libdrm_amdgpu: objects, address spaces, contexts. The rings and the
 * packets are in fake_drm_ring.c.
 *
 * One lock guards everything but the copying itself. Addresses are never used twice, so
 * that what is used after its unmapping is noticed. A call that releases something does so
 * even when it is made to fail, as close() would; UNMAP alone leaves the mapping, which
 * goes with its BO then.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <fcntl.h>

#include <libdrm/amdgpu.h>
#include <libdrm/amdgpu_drm.h>

#include "amdgpu_plugin_util.h"
#include "fake_drm.h"
#include "fake_drm_internal.h"

#define VA_START   0x10000u
#define VA_END	   (1ull << 47)

struct fake_drm fake = { .lock = PTHREAD_MUTEX_INITIALIZER };
_Thread_local int fake_drm_depth;

void fake_violation(const char *fmt, ...)
{
	va_list args;

	if (fake.violation[0])
		return;
	va_start(args, fmt);
	vsnprintf(fake.violation, sizeof(fake.violation), fmt, args);
	va_end(args);
}

/* Each library function begins with this: takes the lock, counts, and says with what error it is to fail. */
static int enter(const char *function)
{
	fake_drm_depth++;
	pthread_mutex_lock(&fake.lock);
	fake.calls++;
	if (fake.calls != fake.config.fail_call)
		return 0;
	fake.failed_call = function;
	return fake.config.fail_err;
}

static int leave(int err)
{
	pthread_mutex_unlock(&fake.lock);
	fake_drm_depth--;
	return err;
}

#define ENTER() enter(__func__)

static void *new_object(size_t bytes)
{
	void *p = calloc(1, bytes);

	if (!p)
		abort(); /* of a test program */
	fake.live++;
	return p;
}

static void free_object(void *p)
{
	free(p);
	fake.live--;
}

/* ---- what tests ask ---- */

void fake_drm_begin(const struct fake_drm_config *config)
{
	pthread_mutex_lock(&fake.lock);
	if (fake.live)
		fake_violation("%zu objects were left by the test before", fake.live);
	else
		fake.violation[0] = '\0';
	fake.config = *config;
	if (!fake.config.family_id)
		fake.config.family_id = AMDGPU_FAMILY_AI;
	fake.calls = 0;
	fake.failed_call = NULL;
	fake.mapped = 0;
	fake.peak_mapped = 0;
	fake.submissions = 0;
	fake.rings_used = 0;
	fake.user_pages_listed = 0;
	fake.fill_bytes = 0;
	fake.copy_bytes = 0;
	pthread_mutex_unlock(&fake.lock);
}

#define GETTER(type, name, field)                 \
	type name(void)                           \
	{                                         \
		type ret;                         \
                                                  \
		pthread_mutex_lock(&fake.lock);   \
		ret = field;                      \
		pthread_mutex_unlock(&fake.lock); \
		return ret;                       \
	}

GETTER(unsigned int, fake_drm_calls, fake.calls)
GETTER(const char *, fake_drm_failed_call, fake.failed_call)
GETTER(size_t, fake_drm_live_objects, fake.live)
GETTER(size_t, fake_drm_peak_mapped, fake.peak_mapped)
GETTER(unsigned int, fake_drm_submissions, fake.submissions)
GETTER(unsigned int, fake_drm_rings_used, fake.rings_used)
GETTER(uint64_t, fake_drm_user_pages_listed, fake.user_pages_listed)
GETTER(uint64_t, fake_drm_fill_bytes, fake.fill_bytes)
GETTER(uint64_t, fake_drm_copy_bytes, fake.copy_bytes)
GETTER(const char *, fake_drm_violation, fake.violation[0] ? fake.violation : NULL)

/* ---- devices ---- */

static struct amdgpu_device *find_device(const struct stat *st)
{
	for (struct amdgpu_device *d = fake.devices; d; d = d->next)
		if (d->st_dev == st->st_dev && d->st_ino == st->st_ino)
			return d;
	return NULL;
}

int amdgpu_device_initialize(int fd, uint32_t *major, uint32_t *minor, amdgpu_device_handle *ret)
{
	struct amdgpu_device *d;
	struct stat st;
	int err = ENTER();

	if (!err && fstat(fd, &st) < 0)
		err = -errno;
	if (err)
		return leave(err);
	d = find_device(&st);
	if (!d) {
		d = new_object(sizeof(*d));
		d->st_dev = st.st_dev;
		d->st_ino = st.st_ino;
		d->next_va = VA_START;
		d->next = fake.devices;
		fake.devices = d;
		fake_rings_start(d);
	}
	d->references++;
	*major = 3;
	*minor = 64;
	*ret = d;
	return leave(0);
}

int amdgpu_device_deinitialize(amdgpu_device_handle d)
{
	struct amdgpu_device **link = &fake.devices;
	int err = ENTER();

	if (--d->references)
		return leave(err);
	if (d->bos || d->nr_contexts)
		fake_violation("device closed with BOs or contexts open");
	while (*link != d)
		link = &(*link)->next;
	*link = d->next;
	fake_rings_stop(d);
	free(d->mappings);
	free_object(d);
	return leave(err);
}

int amdgpu_query_gpu_info(amdgpu_device_handle d, struct amdgpu_gpu_info *info)
{
	int err = ENTER();

	(void)d;
	if (!err)
		*info = (struct amdgpu_gpu_info){ .family_id = fake.config.family_id };
	return leave(err);
}

int amdgpu_query_hw_ip_info(amdgpu_device_handle d, unsigned type, unsigned instance,
			    struct drm_amdgpu_info_hw_ip *info)
{
	int err = ENTER();

	(void)d;
	if (!err && (type != AMDGPU_HW_IP_DMA || instance))
		err = -EINVAL;
	if (!err)
		*info = (struct drm_amdgpu_info_hw_ip){ .hw_ip_version_major = 4,
							.ib_start_alignment = FAKE_IB_START_ALIGN,
							.ib_size_alignment = 4,
							.available_rings = fake.config.rings };
	return leave(err);
}

/* ---- BOs ---- */

static struct amdgpu_bo *add_bo(struct amdgpu_device *d, uint8_t *mem, uint64_t bytes)
{
	struct amdgpu_bo *bo = new_object(sizeof(*bo));

	bo->device = d;
	bo->mem = mem;
	bo->bytes = bytes;
	bo->references = 1;
	bo->next = d->bos;
	if (d->bos)
		d->bos->prev = bo;
	d->bos = bo;
	return bo;
}

int amdgpu_bo_import(amdgpu_device_handle d, enum amdgpu_bo_handle_type type, uint32_t fd,
		     struct amdgpu_bo_import_result *ret)
{
	struct amdgpu_bo *bo;
	struct stat st;
	void *mapped = NULL;
	uint8_t *mem;
	int prot, err = ENTER();

	if (!err && (type != amdgpu_bo_handle_type_dma_buf_fd || fstat((int)fd, &st) < 0))
		err = -EBADF;
	if (!err && fake.config.may_import && !fake.config.may_import(d->st_ino, (int)fd))
		err = -EOPNOTSUPP;
	if (err)
		return leave(err);
	for (bo = d->bos; bo; bo = bo->next)
		if (bo->imported && bo->st_ino == st.st_ino && bo->st_dev == st.st_dev) {
			bo->references++;
			*ret = (struct amdgpu_bo_import_result){ .buf_handle = bo, .alloc_size = bo->bytes };
			return leave(0);
		}
	if (fake.config.memory_of)
		mapped = fake.config.memory_of((int)fd);
	prot = (fcntl((int)fd, F_GETFL) & O_ACCMODE) == O_RDONLY ? PROT_READ : PROT_READ | PROT_WRITE;
	mem = mapped ? mapped : mmap(NULL, (size_t)st.st_size, prot, MAP_SHARED, (int)fd, 0);
	if (mem == MAP_FAILED)
		return leave(-ENOMEM);
	bo = add_bo(d, mem, (uint64_t)st.st_size);
	bo->imported = true;
	bo->owns_mem = !mapped;
	bo->st_dev = st.st_dev;
	bo->st_ino = st.st_ino;
	*ret = (struct amdgpu_bo_import_result){ .buf_handle = bo, .alloc_size = bo->bytes };
	return leave(0);
}

int amdgpu_create_bo_from_user_mem(amdgpu_device_handle d, void *cpu, uint64_t size, amdgpu_bo_handle *ret)
{
	int err = ENTER();

	if (!err && ((uintptr_t)cpu % PAGE_BYTES || size % PAGE_BYTES || !size))
		err = -EINVAL;
	if (!err && fake.config.registers)
		fake.config.registers(cpu, size);
	if (!err) {
		*ret = add_bo(d, cpu, size);
		(*ret)->is_user = true;
	}
	return leave(err);
}

int amdgpu_bo_alloc(amdgpu_device_handle d, struct amdgpu_bo_alloc_request *request, amdgpu_bo_handle *ret)
{
	uint64_t bytes = (request->alloc_size + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	int err = ENTER();
	void *mem;

	if (!err && (request->preferred_heap != AMDGPU_GEM_DOMAIN_GTT || !bytes))
		err = -EINVAL;
	if (err)
		return leave(err);
	mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return leave(-ENOMEM);
	*ret = add_bo(d, mem, bytes);
	(*ret)->owns_mem = true;
	return leave(0);
}

static void drop_mappings_of(struct amdgpu_bo *bo)
{
	struct amdgpu_device *d = bo->device;

	for (size_t i = d->first_mapping; bo->nr_mappings && i < d->nr_mappings; i++)
		if (d->mappings[i].bo == bo)
			fake_unmap(d, &d->mappings[i]);
}

int amdgpu_bo_free(amdgpu_bo_handle bo)
{
	struct amdgpu_device *d = bo->device;
	int err = ENTER();

	if (--bo->references)
		return leave(err);
	if (bo->pending && !d->hung)
		fake_violation("a BO is freed while a submission uses it");
	if (bo->cpu_maps)
		fake_violation("a BO is freed while the CPU has it mapped");
	drop_mappings_of(bo);
	if (bo->prev)
		bo->prev->next = bo->next;
	else
		d->bos = bo->next;
	if (bo->next)
		bo->next->prev = bo->prev;
	if (bo->owns_mem)
		munmap(bo->mem, bo->bytes);
	free_object(bo);
	return leave(err);
}

int amdgpu_bo_cpu_map(amdgpu_bo_handle bo, void **cpu)
{
	int err = ENTER();

	if (err)
		return leave(err);
	bo->cpu_maps++;
	fake.live++;
	*cpu = bo->mem;
	return leave(0);
}

int amdgpu_bo_cpu_unmap(amdgpu_bo_handle bo)
{
	int err = ENTER();

	if (!bo->cpu_maps)
		return leave(-EINVAL);
	bo->cpu_maps--;
	fake.live--;
	return leave(err);
}

/* ---- address space ---- */

int amdgpu_va_range_alloc(amdgpu_device_handle d, enum amdgpu_gpu_va_range type, uint64_t size, uint64_t align,
			  uint64_t required, uint64_t *address, amdgpu_va_handle *ret, uint64_t flags)
{
	struct amdgpu_va *va;
	int err = ENTER();

	if (!err && (type != amdgpu_gpu_va_range_general || !size || size % PAGE_BYTES || required || flags))
		err = -EINVAL;
	if (err)
		return leave(err);
	if (align < PAGE_BYTES)
		align = PAGE_BYTES;
	d->next_va = (d->next_va + align - 1) / align * align;
	if (size > VA_END - d->next_va)
		return leave(-ENOMEM);
	va = new_object(sizeof(*va));
	va->device = d;
	va->address = d->next_va;
	va->bytes = size;
	d->next_va += size + PAGE_BYTES; /* an unmapped page between all */
	*address = va->address;
	*ret = va;
	return leave(0);
}

int amdgpu_va_range_free(amdgpu_va_handle va)
{
	int err = ENTER();

	free_object(va);
	return leave(err);
}

static int map(struct amdgpu_bo *bo, uint64_t bytes, uint64_t address)
{
	struct amdgpu_device *d = bo->device;
	size_t i;

	if (d->nr_mappings == d->max_mappings) {
		d->max_mappings = d->max_mappings ? 2 * d->max_mappings : 64;
		d->mappings = realloc(d->mappings, d->max_mappings * sizeof(*d->mappings));
		if (!d->mappings)
			abort();
	}
	for (i = d->nr_mappings; i > d->first_mapping && d->mappings[i - 1].address > address; i--)
		d->mappings[i] = d->mappings[i - 1];
	d->mappings[i] = (struct fake_mapping){ .bo = bo, .address = address, .bytes = bytes };
	d->nr_mappings++;
	if (i > d->first_mapping && d->mappings[i - 1].bo &&
	    d->mappings[i - 1].address + d->mappings[i - 1].bytes > address)
		fake_violation("overlapping mappings at %#llx", (unsigned long long)address);
	bo->nr_mappings++;
	fake.live++;
	if (++fake.mapped > fake.peak_mapped)
		fake.peak_mapped = fake.mapped;
	return 0;
}

void fake_unmap(struct amdgpu_device *d, struct fake_mapping *mapping)
{
	mapping->bo->nr_mappings--;
	mapping->bo = NULL;
	fake.live--;
	fake.mapped--;
	while (d->first_mapping < d->nr_mappings && !d->mappings[d->first_mapping].bo)
		d->first_mapping++;
}

struct fake_mapping *fake_find_mapping(struct amdgpu_device *d, uint64_t address)
{
	size_t low = d->first_mapping, high = d->nr_mappings;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (d->mappings[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == d->first_mapping || !d->mappings[low - 1].bo)
		return NULL;
	if (address - d->mappings[low - 1].address >= d->mappings[low - 1].bytes)
		return NULL;
	return &d->mappings[low - 1];
}

static int unmap(struct amdgpu_bo *bo, uint64_t bytes, uint64_t address)
{
	struct fake_mapping *mapping = fake_find_mapping(bo->device, address);

	if (!mapping || mapping->bo != bo || mapping->address != address || mapping->bytes != bytes) {
		fake_violation("UNMAP of %llu bytes at %#llx is no mapping of the BO", (unsigned long long)bytes,
			       (unsigned long long)address);
		return -EINVAL;
	}
	/* Of several mappings it may be another one that is used. */
	if (bo->pending && bo->nr_mappings == 1 && !bo->device->hung)
		fake_violation("a BO is unmapped while a submission uses it");
	fake_unmap(bo->device, mapping);
	return 0;
}

int amdgpu_bo_va_op(amdgpu_bo_handle bo, uint64_t offset, uint64_t size, uint64_t address, uint64_t flags, uint32_t op)
{
	uint64_t bytes = (size + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	int err = ENTER();

	if (!err && (offset || flags || !size || address % PAGE_BYTES || address < VA_START))
		err = -EINVAL;
	/* Memory behind a BO is whole pages. */
	if (!err && bytes > (bo->bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES)
		err = -EINVAL;
	if (!err && op == AMDGPU_VA_OP_MAP)
		err = map(bo, bytes, address);
	else if (!err && op == AMDGPU_VA_OP_UNMAP)
		err = unmap(bo, bytes, address);
	else if (!err)
		err = -EINVAL;
	return leave(err);
}

/* ---- contexts, lists, submissions ---- */

int amdgpu_cs_ctx_create(amdgpu_device_handle d, amdgpu_context_handle *ret)
{
	int err = ENTER();

	if (err)
		return leave(err);
	*ret = new_object(sizeof(**ret));
	(*ret)->device = d;
	d->nr_contexts++;
	return leave(0);
}

int amdgpu_cs_ctx_free(amdgpu_context_handle context)
{
	int err = ENTER();

	context->device->nr_contexts--;
	fake_rings_drop(context);
	free_object(context);
	return leave(err);
}

int amdgpu_cs_query_reset_state2(amdgpu_context_handle context, uint64_t *flags)
{
	int err = ENTER();

	(void)context;
	if (!err)
		*flags = fake.config.reset;
	return leave(err);
}

int amdgpu_bo_list_create(amdgpu_device_handle d, uint32_t nr, amdgpu_bo_handle *bos, uint8_t *prios,
			  amdgpu_bo_list_handle *ret)
{
	struct amdgpu_bo_list *list;
	int err = ENTER();

	(void)d;
	(void)prios;
	if (err)
		return leave(err);
	list = new_object(sizeof(*list));
	list->nr = nr;
	list->bos = calloc(nr, sizeof(*list->bos));
	if (!list->bos)
		abort();
	memcpy(list->bos, bos, nr * sizeof(*bos));
	for (uint32_t i = 0; i < nr; i++)
		fake.user_pages_listed += bos[i]->is_user ? bos[i]->bytes / PAGE_BYTES : 0;
	*ret = list;
	return leave(0);
}

int amdgpu_bo_list_destroy(amdgpu_bo_list_handle list)
{
	int err = ENTER();

	free(list->bos);
	free_object(list);
	return leave(err);
}

int amdgpu_cs_submit(amdgpu_context_handle context, uint64_t flags, struct amdgpu_cs_request *request, uint32_t nr)
{
	int err = ENTER();

	if (!err &&
	    (flags || nr != 1 || request->number_of_ibs != 1 || request->ip_type != AMDGPU_HW_IP_DMA ||
	     request->ip_instance || request->ring >= FAKE_DRM_MAX_RINGS || !(fake.config.rings >> request->ring & 1)))
		err = -EINVAL;
	if (!err)
		err = fake_ring_submit(context, request);
	return leave(err);
}

int amdgpu_cs_query_fence_status(struct amdgpu_cs_fence *fence, uint64_t timeout_ns, uint64_t flags, uint32_t *expired)
{
	uint64_t now = kernel_time_in(0, 0);
	int err = ENTER();

	if (!err && (flags != AMDGPU_QUERY_FENCE_TIMEOUT_IS_ABSOLUTE || fence->ip_type != AMDGPU_HW_IP_DMA || fence->ring >= FAKE_DRM_MAX_RINGS))
		err = -EINVAL;
	if (!err)
		*expired = fake_ring_wait(fence, timeout_ns > now ? timeout_ns - now : 0);
	return leave(err);
}
