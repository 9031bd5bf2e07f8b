// SPDX-License-Identifier: GPL-2.0-only
/*
 * SVM ranges: attributes that are set and asked for over any stretch of memory,
 * what they must not touch, access by an engine, and their end with the memory.
 */
#include "kfd_test.h"

#define MAX_ATTRS 8
#define UNDEFINED 0xffffffffu

enum { PREFERRED, PREFETCH, ACCESS, IN_PLACE, NO_ACCESS, SET_FLAGS, CLR_FLAGS, GRANULARITY };
enum { HOST_ACCESS = 1, COHERENT = 2, GPU_RO = 8, GPU_EXEC = 16, ALWAYS_MAPPED = 64 };

static int kfd, drm_fd;
static struct node gpu;

struct svm {
	struct kfd_ioctl_svm_args args;
	struct kfd_ioctl_svm_attribute attrs[MAX_ATTRS];
};

static int svm_call(uint32_t op, uint64_t start, uint64_t size, struct kfd_ioctl_svm_attribute *attrs, uint32_t n)
{
	struct svm svm = { .args = { .start_addr = start, .size = size, .op = op, .nattr = n } };
	int ret;

	memcpy(svm.attrs, attrs, n * sizeof(*attrs));
	ret = ioctl(kfd, NR_SVM(n), &svm);
	memcpy(attrs, svm.attrs, n * sizeof(*attrs));
	return ret;
}

static int set(uint64_t start, uint64_t size, uint32_t type, uint32_t value)
{
	struct kfd_ioctl_svm_attribute attr = { .type = type, .value = value };

	return svm_call(KFD_IOCTL_SVM_OP_SET_ATTR, start, size, &attr, 1);
}

/* The attribute's value; for access its type. */
static uint32_t get(uint64_t start, uint64_t size, uint32_t type)
{
	struct kfd_ioctl_svm_attribute attr = { .type = type, .value = type == ACCESS ? gpu.gpu_id : 0 };

	must(svm_call(KFD_IOCTL_SVM_OP_GET_ATTR, start, size, &attr, 1), "SVM GET_ATTR");
	return type == ACCESS ? attr.type : attr.value;
}

static uint64_t memory(uint64_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		err(1, "mmap");
	return (uintptr_t)p;
}

static void check_errors(uint64_t va)
{
	struct svm svm = { .args = { .start_addr = va, .size = PAGE, .nattr = 2 } };
	struct buffer b = buffer_new(kfd, drm_fd, gpu.gpu_id, PAGE, GTT_RW);
	uint64_t hole = memory(3 * PAGE);

	check_errno(ioctl(kfd, NR_SVM(1), &svm), EINVAL, "more attributes than the struct has room for");
	check_errno(ioctl(kfd, 0xc0104b20u, &svm), EINVAL, "a struct that is too short");
	check_errno(set(va + 1, PAGE, GRANULARITY, 9), EINVAL, "an odd address");
	check_errno(set(va, PAGE - 1, GRANULARITY, 9), EINVAL, "an odd size");
	check_errno(set(0, PAGE, GRANULARITY, 9), EINVAL, "address 0");
	check_errno(set(va, 0, GRANULARITY, 9), EINVAL, "size 0");
	check_errno(svm_call(2, va, PAGE, svm.attrs, 1), EINVAL, "an unknown operation");
	check_errno(set(va, PAGE, 8, 0), EINVAL, "an unknown attribute");
	check_errno(set(va, PAGE, ACCESS, 0xfffe), EINVAL, "access of no GPU");
	check_errno(set(va, PAGE, PREFERRED, 0xfffe), EINVAL, "a preferred location that is no GPU");
	check_errno(set(va, PAGE, PREFETCH, UNDEFINED), EINVAL, "an undefined prefetch location");
	munmap((void *)(hole + PAGE), PAGE);
	check_errno(set(hole, 3 * PAGE, GRANULARITY, 9), EFAULT, "memory with a hole");
	check_errno(set(b.va, PAGE, GRANULARITY, 9), EFAULT, "a device's memory");
	munmap((void *)b.va, PAGE);
	must((long)mmap((void *)b.va, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), "mmap");
	check_errno(set(b.va, PAGE, GRANULARITY, 9), EADDRINUSE, "memory at whose address a buffer is mapped");
	buffer_free(kfd, &b);
}

static void check_defaults(uint64_t va)
{
	check_u64(get(va, 4 * PAGE, PREFERRED), UNDEFINED, "preferred location of unregistered memory");
	check_u64(get(va, 4 * PAGE, PREFETCH), UNDEFINED, "prefetch location of unregistered memory");
	check_u64(get(va, 4 * PAGE, SET_FLAGS), HOST_ACCESS | COHERENT, "flags of unregistered memory");
	check_u64(get(va, 4 * PAGE, CLR_FLAGS), ~(uint32_t)(HOST_ACCESS | COHERENT), "... and those that are not set");
	check_u64(get(va, 4 * PAGE, GRANULARITY), 9, "granularity of unregistered memory");
	check_u64(get(va, 4 * PAGE, ACCESS), NO_ACCESS, "access to unregistered memory");
}

static void check_attributes(uint64_t va)
{
	struct kfd_ioctl_svm_attribute query = { .type = NO_ACCESS, .value = gpu.gpu_id };
	struct kfd_ioctl_svm_attribute several[4] = {
		{ PREFERRED, gpu.gpu_id },
		{ ACCESS, gpu.gpu_id },
		{ SET_FLAGS, GPU_EXEC },
		{ CLR_FLAGS, COHERENT },
	};

	check_errno(svm_call(KFD_IOCTL_SVM_OP_SET_ATTR, va + PAGE, 2 * PAGE, several, 4), 0, "several attributes");
	check_u64(get(va + PAGE, 2 * PAGE, PREFERRED), gpu.gpu_id, "preferred location");
	check_u64(get(va + PAGE, 2 * PAGE, ACCESS), ACCESS, "access");
	check_u64(get(va + PAGE, 2 * PAGE, SET_FLAGS), HOST_ACCESS | GPU_EXEC, "flags");
	check_errno(set(va + 2 * PAGE, 2 * PAGE, GRANULARITY, 5), 0, "a range that overlaps");
	check_u64(get(va + PAGE, PAGE, GRANULARITY), 9, "... changes nothing before it");
	check_u64(get(va + 2 * PAGE, PAGE, GRANULARITY), 5, "... but what it covers");
	check_u64(get(va + PAGE, 2 * PAGE, GRANULARITY), 5, "the least granularity counts");
	check_u64(get(va + 2 * PAGE, PAGE, PREFERRED), gpu.gpu_id, "other attributes stay in the overlap");
	check_u64(get(va + 3 * PAGE, PAGE, PREFERRED), UNDEFINED, "... and have their default in what is new");
	check_u64(get(va + 2 * PAGE, 2 * PAGE, PREFERRED), UNDEFINED, "different locations are undefined");
	check_u64(get(va + 2 * PAGE, 2 * PAGE, SET_FLAGS), HOST_ACCESS, "flags that all have");
	check_u64(get(va + 2 * PAGE, 2 * PAGE, CLR_FLAGS), ~(uint32_t)(HOST_ACCESS | GPU_EXEC | COHERENT),
		  "flags that none has");
	check_u64(get(va + 2 * PAGE, 2 * PAGE, ACCESS), NO_ACCESS, "access to all");
	must(set(va + 2 * PAGE, 2 * PAGE, IN_PLACE, gpu.gpu_id), "SVM");
	check_u64(get(va + 2 * PAGE, 2 * PAGE, ACCESS), IN_PLACE, "access in place");
	check_errno(svm_call(KFD_IOCTL_SVM_OP_GET_ATTR, va, PAGE, &query, 1), EINVAL, "asking for no access");
	must(set(va, 4 * PAGE, NO_ACCESS, gpu.gpu_id), "SVM");
	check_u64(get(va, 4 * PAGE, ACCESS), NO_ACCESS, "access taken away");
}

static void check_buffers(uint64_t va)
{
	uint64_t offset = va, handle;

	check_errno(kfd_alloc(kfd, gpu.gpu_id, va, PAGE, GTT_RW, NULL, &handle), EADDRINUSE,
		    "ALLOC at the address of an SVM range");
	check_errno(kfd_alloc(kfd, gpu.gpu_id, reserve(PAGE), PAGE, MEM_USERPTR | MEM_WRITABLE, &offset, &handle),
		    EADDRINUSE, "ALLOC of a range's memory");
}

/* ---- access ---- */

static bool copy_works(uint64_t dst, uint64_t src)
{
	struct sdma_queue q = sdma_new(kfd, drm_fd, gpu.gpu_id);
	bool ok;

	sdma_copy(&q, dst, src, 2 * PAGE);
	sdma_ring_doorbell(&q);
	ok = sdma_drain(&q, 1000);
	sdma_free(&q, kfd);
	return ok;
}

struct access_case {
	const char *what;
	bool works;
	/* What is said of both, of the two halves of the target, and of it all. */
	bool source, first, second, read_only, backwards, replaced;
};

/* After a fault no queue of the process runs any more: each copy has a process of its own. */
static void check_copy(const void *arg)
{
	const struct access_case *c = arg;
	uint64_t a, b;

	kfd = kfd_open();
	drm_fd = render_open(gpu.render_minor);
	must(kfd_acquire(kfd, drm_fd, gpu.gpu_id), "ACQUIRE_VM");
	a = memory(2 * PAGE);
	b = memory(2 * PAGE);
	memset((void *)a, 0x77, 2 * PAGE);
	if (c->source)
		must(set(a, 2 * PAGE, ACCESS, gpu.gpu_id), "SVM");
	if (c->first)
		must(set(b, PAGE, ACCESS, gpu.gpu_id), "SVM");
	if (c->second)
		must(set(b + PAGE, PAGE, IN_PLACE, gpu.gpu_id), "SVM");
	if (c->read_only)
		must(set(b, 2 * PAGE, SET_FLAGS, GPU_RO), "SVM");
	if (c->replaced) {
		munmap((void *)a, PAGE);
		must((long)mmap((void *)a, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		     "mmap");
		check_u64(get(a, PAGE, ACCESS), NO_ACCESS, "a range ends where its memory is unmapped");
		check_u64(get(a + PAGE, PAGE, ACCESS), ACCESS, "... and is left where it is not");
	}
	check_true(copy_works(c->backwards ? a : b, c->backwards ? b : a) == c->works, "%s", c->what);
	if (c->works)
		check_true(!memcmp((void *)a, (void *)b, 2 * PAGE), "... and the bytes are right");
}

static void check_access(void)
{
	static const struct access_case cases[] = {
		{ .what = "without access an engine faults" },
		{ .what = "... also when a part has access", .source = true, .first = true },
		{ .what = "with access it copies, across ranges", .works = true, .source = true, .first = true, .second = true },
		{ .what = "a range that is read-only for GPUs is", .source = true, .first = true, .second = true,
		  .read_only = true },
		{ .what = "... and can be read", .works = true, .source = true, .first = true, .second = true,
		  .read_only = true, .backwards = true },
		{ .what = "... and the engine knows", .source = true, .first = true, .second = true, .backwards = true,
		  .replaced = true },
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		conformance_in_process(check_copy, &cases[i]);
}

static void check_forgotten(uint64_t va)
{
	munmap((void *)va, 4 * PAGE);
	must((long)mmap((void *)va, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
	     "mmap");
	check_u64(get(va, 4 * PAGE, SET_FLAGS), HOST_ACCESS | COHERENT,
		  "new memory at an old address has the defaults");
}

int main(void)
{
	uint64_t va;

	gpu = node_gpu(0);
	kfd = kfd_open();
	drm_fd = render_open(gpu.render_minor);
	va = memory(4 * PAGE);
	check_errno(set(va, PAGE, ACCESS, gpu.gpu_id), EINVAL, "SVM before ACQUIRE_VM");
	must(kfd_acquire(kfd, drm_fd, gpu.gpu_id), "ACQUIRE_VM");
	check_errors(va);
	check_defaults(va);
	check_attributes(va);
	check_buffers(va);
	check_access();
	check_forgotten(va);
	return conformance_end();
}
