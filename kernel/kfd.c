// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ioctls of /dev/kfd, one function for each operation of the CRIU ioctl. What the kernel saves is
 * opaque here: sizes are kept, the bytes are never looked at.
 *
 * Creating an event without a page tells by which gpu id the kernel maps /dev/kfd: kernels that map by the user's id
 * refuse it.
 */
#include <fcntl.h>
#include <unistd.h>

#include "kernel/machine.h"
#include "kernel/driver.h"
#include "kernel/kfd.h"
#include "amdgpu_plugin_util.h"

/* Bounds against a broken kernel or image, far above what a process can have. */
#define MAX_DEVICES 256
#define MAX_BOS	    (16u << 20)
#define MAX_PRIV    (16ull << 30)

/* The driver needs up to 20 s for a reset, half of them until it gives up on queues that do not stop. */
#define RESET_ATTEMPTS 600
#define RESET_USEC     100000

static int criu_op(int fd, enum kfd_criu_op op, struct kfd_ioctl_criu_args *args)
{
	args->op = op;
	return call_ioctl(fd, AMDKFD_IOC_CRIU_OP, args);
}

/* What the user can do about an errno that has one cause only. */
static const char *hint(int err)
{
	switch (err) {
	case -EACCES:
		return " (CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN is needed in the initial user namespace)";
	case -EBADF:
		return " (the file belongs to a process that is not being dumped)";
	case -EOPNOTSUPP:
		return " (this kernel cannot save a queue of that kind)";
	case -ENODEV:
		return " (the process has no GPU)";
	default:
		return "";
	}
}

static struct kfd_rules rules_of(bool since_7_3)
{
	return (struct kfd_rules){ .maps_by_user_id = since_7_3, .wants_event_page = since_7_3 };
}

/*
 * Kernels that make the page for signals by themselves are those that map by actual ids: one event tells both. Linux 7.3 is
 * known by its release, and not asked: it logs an error where there is no page.
 */
struct kfd_rules kfd_ask_rules(int fd)
{
	struct kfd_ioctl_create_event_args event = { .event_type = KFD_IOC_EVENT_SIGNAL };
	struct kfd_ioctl_destroy_event_args gone = { 0 };
	struct driver_release driver;
	int err;

	driver_ask_release(DRIVER_VERSION_FILE, &driver);
	if (!driver.dkms && !driver_may_be_any(&driver) && driver_is_since(&driver, 7, 3))
		return rules_of(true);
	err = call_ioctl(fd, AMDKFD_IOC_CREATE_EVENT, &event);
	if (err)
		return rules_of(err == -ENOMEM || driver_is_since(&driver, 7, 3));
	gone.event_id = event.event_id;
	call_ioctl(fd, AMDKFD_IOC_DESTROY_EVENT, &gone);
	return rules_of(false);
}

/*
 * No process gets in while the driver resets a GPU, whosesoever it is: EAGAIN by kfd_open() in Linux 6.1, later EINVAL by
 * kfd_create_process(). In Linux 7.2 and later, EINVAL also says that there is no GPU that the process may use.
 */
static bool is_reset(int err)
{
	_cleanup_close_ int nodes = -1;
	_cleanup_free_ int *numbers = NULL;
	size_t nr = 0;

	if (!(err == -EAGAIN || err == -EINVAL))
		return false;
	nodes = open("/sys/class/kfd/kfd/topology/nodes", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (nodes < 0 || list_numbers(nodes, ".", &numbers, &nr))
		return true;
	for (size_t i = 0; i < nr; i++) {
		uint64_t gpu_id;
		char path[32];

		snprintf(path, sizeof(path), "%d/gpu_id", numbers[i]);
		if (!read_number_at(nodes, path, &gpu_id) && gpu_id)
			return true;
	}
	return false;
}

int kfd_open_as(int flags)
{
	unsigned int i;
	dev_t number;
	int fd;

	if (!device_kfd_number(&number))
		return fail(-ENODEV, "cannot open /dev/kfd: %m");
	for (i = 0; is_reset(fd = device_open("/dev/kfd", number, flags)) && i < RESET_ATTEMPTS; i++)
		usleep(RESET_USEC);
	if (i)
		pr_info("waited %u ms for /dev/kfd, which cannot be opened while the driver resets a GPU\n",
			i * (RESET_USEC / 1000));
	if (is_reset(fd))
		return fail(fd, "cannot open /dev/kfd, tried for %u s: the driver is resetting a GPU, or the reset has failed: "
			    "try again when the kernel's log says that it has succeeded",
			    RESET_ATTEMPTS / (1000000 / RESET_USEC));
	if (fd == -EINVAL)
		return fail(fd, "cannot open /dev/kfd: there is no GPU that this process may use");
	return fd < 0 ? fail(fd, "cannot open /dev/kfd: %m") : fd;
}

int kfd_open(void)
{
	return kfd_open_as(O_RDWR);
}

int kfd_open_for(const uint32_t *minors, size_t nr_minors, size_t nr_visible, const struct hide_keeper *keeper)
{
	struct kfd_ioctl_get_process_apertures_new_args args = { 0 };
	bool hides = nr_visible > nr_minors;
	_cleanup_close_ int fd = -1;
	struct hide hide;
	int err = hides ? hide_begin(minors, nr_minors, keeper, &hide) : 0;

	if (err)
		return fail_in(err, "the process had %zu GPUs and would see %zu here, which the kernel does not allow: "
			       "restore it in a device cgroup that allows %zu GPUs; the others cannot be hidden from it",
			       nr_minors, nr_visible, nr_minors);
	fd = kfd_open();
	err = hides ? hide_end(&hide) : 0;
	if (err || fd < 0)
		return err ? err : fd;
	if (hides)
		pr_info("%zu of %zu GPUs are hidden from the process\n", nr_visible - nr_minors, nr_visible);
	/* How many GPUs the caller's process has was decided when it first opened /dev/kfd. */
	err = call_ioctl(fd, AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &args);
	if (err)
		return fail(err, "cannot ask the KFD for the number of the process' GPUs: %m");
	if (args.num_of_nodes == nr_minors)
		return steal_fd(&fd);
	return fail(-ENODEV, "the process had %zu GPUs and sees %u here, which the kernel does not allow: restore it in a "
		    "device cgroup that allows it to use %zu GPUs", nr_minors, args.num_of_nodes, nr_minors);
}

int kfd_check_version(int fd)
{
	struct kfd_ioctl_get_version_args version = { 0 };
	int err = call_ioctl(fd, AMDKFD_IOC_GET_VERSION, &version);

	if (err)
		return fail(err, "cannot ask the KFD for its version: %m");
	if (version.major_version == KFD_MIN_MAJOR && version.minor_version >= KFD_MIN_MINOR)
		return 0;
	return fail(-EOPNOTSUPP, "KFD interface %u.%u cannot checkpoint: %d.%d or a later minor (Linux 5.18) is needed",
		    version.major_version, version.minor_version, KFD_MIN_MAJOR, KFD_MIN_MINOR);
}

int kfd_pause(int fd, pid_t pid, struct kfd_state *state)
{
	struct kfd_ioctl_criu_args args = { 0 };
	int err = criu_op(fd, KFD_CRIU_OP_PROCESS_INFO, &args);

	if (err)
		return fail(err, "pid %d: cannot stop its GPU queues: %m%s", pid,
			    hint(err));
	if (!args.num_devices || args.num_devices > MAX_DEVICES || args.num_bos > MAX_BOS || !args.priv_data_size ||
	    args.priv_data_size > MAX_PRIV) {
		kfd_unpause(fd);
		return fail(-EPROTO, "pid %d: impossible counts from the KFD: %u devices, %u BOs, %llu bytes", pid,
			    args.num_devices, args.num_bos, (unsigned long long)args.priv_data_size);
	}
	*state = (struct kfd_state){
		.pid = args.pid,
		.nr_devices = args.num_devices,
		.nr_bos = args.num_bos,
		.nr_records = args.num_bos,
		.nr_objects = args.num_objects,
		.priv_size = args.priv_data_size,
	};
	return 0;
}

int kfd_unpause(int fd)
{
	struct kfd_ioctl_criu_args args = { 0 };

	return criu_op(fd, KFD_CRIU_OP_UNPAUSE, &args);
}

#define BUCKET_FIELDS(X) X(addr) X(size) X(offset) X(restored_offset) X(gpu_id) X(alloc_flags) X(dmabuf_fd)

/* CHECKPOINT and RESTORE with the kernel's own structs for BOs; it wants all three pointers, also for zero BOs. */
static int exchange_state(int fd, enum kfd_criu_op op, struct kfd_state *state)
{
	_cleanup_free_ struct kfd_criu_bo_bucket *buckets = calloc(state->nr_bos + 1, sizeof(*buckets));
	struct kfd_ioctl_criu_args args = {
		.devices = (uintptr_t)state->devices,
		.bos = (uintptr_t)buckets,
		.priv_data = (uintptr_t)state->priv_data,
		.priv_data_size = state->priv_size,
		.num_devices = state->nr_devices,
		.num_bos = state->nr_bos,
		.num_objects = state->nr_objects,
	};
	int err;

	if (!buckets)
		return -ENOMEM;
	for (size_t i = 0; i < state->nr_bos; i++) {
		const struct bo *from = &state->bos[i];
		struct kfd_criu_bo_bucket *to = &buckets[i];

		BUCKET_FIELDS(COPY)
	}
	err = criu_op(fd, op, &args);
	if (err)
		return err;
	for (size_t i = 0; i < state->nr_bos; i++) {
		const struct kfd_criu_bo_bucket *from = &buckets[i];
		struct bo *to = &state->bos[i];

		BUCKET_FIELDS(COPY)
	}
	/* The kernel hands out inheritable dma-bufs, and criu starts other programs. */
	for (size_t i = 0; i < state->nr_bos; i++)
		if (state->bos[i].dmabuf_fd != KFD_NO_FD && fcntl(state->bos[i].dmabuf_fd, F_SETFD, FD_CLOEXEC))
			return -errno;
	return 0;
}

/* With the counts in *state. No message. */
static int take_state(int fd, struct kfd_state *state)
{
	int err;

	state->devices = calloc(state->nr_devices, sizeof(*state->devices));
	state->bos = kfd_bos_new(state->nr_bos);
	state->priv_data = calloc(1, state->priv_size);
	if (!state->devices || !state->bos || !state->priv_data)
		return -ENOMEM;
	err = exchange_state(fd, KFD_CRIU_OP_CHECKPOINT, state);
	if (!err)
		err = records_read(state, state->nr_devices);
	if (!err)
		records_drop_placeholders(state);
	return err;
}

int kfd_checkpoint(int fd, pid_t pid, struct kfd_state *state)
{
	int err = take_state(fd, state);

	if (err)
		return fail(err, "pid %d: cannot take its GPU state (%u GPUs, %u BOs, %llu bytes): %m%s", pid,
			    state->nr_devices, state->nr_bos, (unsigned long long)state->priv_size, hint(err));
	return 0;
}

/* With the counts that PROCESS_INFO would give. No message. */
static int checkpoint_with(int fd, const struct kfd_state *state, uint32_t nr_bos, struct kfd_state *ret)
{
	int err;

	*ret = (struct kfd_state){
		.pid = state->pid,
		.nr_devices = state->nr_devices,
		.nr_objects = state->nr_objects,
		.nr_bos = nr_bos,
		.nr_records = nr_bos,
		.priv_size = state->priv_size + BO_RECORD_SIZE * ((uint64_t)nr_bos - state->nr_records),
	};
	err = take_state(fd, ret);
	if (err)
		kfd_state_done(ret);
	return err;
}

/* The kernel wants the counts of PROCESS_INFO, which cannot be asked again: it would stop the queues once more. */
int kfd_checkpoint_again(int fd, pid_t pid, const struct kfd_state *state, uint32_t nr_bos, uint32_t max_difference,
			 struct kfd_state *ret)
{
	int err = checkpoint_with(fd, state, nr_bos, ret);

	/* A RESTORE may have left a placeholder for each queue. */
	for (uint32_t i = 1; err == -EINVAL && i <= max_difference + state->nr_queues; i++) {
		err = checkpoint_with(fd, state, nr_bos + i, ret);
		if (err == -EINVAL && i <= nr_bos && i <= max_difference)
			err = checkpoint_with(fd, state, nr_bos - i, ret);
	}
	if (!err && (ret->nr_records > nr_bos + max_difference || ret->nr_records + max_difference < nr_bos)) {
		kfd_state_done(ret);
		err = -EINVAL;
	}
	if (!err)
		return 0;
	return fail(err, "pid %d: cannot ask which buffers it has now: %m%s", pid,
		    hint(err));
}

/* An attempt that no kernel can complete: one that takes zero BOs gets as far as the state, whose address is bad. */
bool kfd_restores_without_bos(int fd)
{
	struct kfd_ioctl_criu_args args = { .devices = 1, .num_devices = 1, .priv_data = 1, .priv_data_size = 8 };

	return criu_op(fd, KFD_CRIU_OP_RESTORE, &args) != -EINVAL;
}

int kfd_restore(int fd, struct kfd_state *state)
{
	int err = exchange_state(fd, KFD_CRIU_OP_RESTORE, state);
	const char *advice = "";

	if (err == -EBUSY)
		advice = " (another process holds an SDMA queue that this one had: end that one, or choose another GPU by "
			 "KFD_DEVICE_MAP)";
	/* On gfx94x and later, releases give every second SDMA engine other doorbells. */
	if (err == -EINVAL)
		advice = " (releases of Linux differ in the doorbells of SDMA queues, among others: restore it on the release "
			 "where it was dumped)";
	return err ? fail(err, "cannot restore the GPU state of pid %u (%u GPUs, %u BOs, %u objects): %m%s", state->pid,
			  state->nr_devices, state->nr_bos, state->nr_objects, advice) : 0;
}

int kfd_resume(int fd, pid_t pid)
{
	struct kfd_ioctl_criu_args args = { .pid = (uint32_t)pid };
	int err = criu_op(fd, KFD_CRIU_OP_RESUME, &args);

	/* The driver forgets the rest of what it was to do, so that asking again would lose it. */
	if (err)
		return fail(err, "pid %d: cannot resume its GPU queues: %m%s", pid,
			    err == -EAGAIN ? " (memory of SVM ranges was moved meanwhile): restore again" : "");
	return 0;
}

/* ---- buffers besides those of CRIU_OP ---- */

int kfd_import_dmabuf(int kfd, uint32_t gpu_id, uint64_t va, int dmabuf_fd, uint64_t *ret_handle)
{
	struct kfd_ioctl_import_dmabuf_args args = { .va_addr = va, .gpu_id = gpu_id, .dmabuf_fd = (uint32_t)dmabuf_fd };
	int err = call_ioctl(kfd, AMDKFD_IOC_IMPORT_DMABUF, &args);

	if (!err)
		*ret_handle = args.handle;
	return err;
}

int kfd_map(int kfd, uint64_t handle, const uint32_t *gpu_ids, uint32_t nr_gpus)
{
	struct kfd_ioctl_map_memory_to_gpu_args args = {
		.handle = handle,
		.device_ids_array_ptr = (uintptr_t)gpu_ids,
		.n_devices = nr_gpus,
	};

	return nr_gpus ? call_ioctl(kfd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &args) : 0;
}

int kfd_free(int kfd, uint64_t handle)
{
	struct kfd_ioctl_free_memory_of_gpu_args args = { .handle = handle };

	return call_ioctl(kfd, AMDKFD_IOC_FREE_MEMORY_OF_GPU, &args);
}

int kfd_dmabuf_gpu(int kfd, int dmabuf_fd, uint32_t *ret_gpu_id)
{
	uint8_t metadata[KFD_METADATA_MAX]; /* with less room than it needs, the call fails */
	struct kfd_ioctl_get_dmabuf_info_args args = {
		.metadata_ptr = (uintptr_t)metadata, .metadata_size = sizeof(metadata), .dmabuf_fd = (uint32_t)dmabuf_fd,
	};
	int err = call_ioctl(kfd, AMDKFD_IOC_GET_DMABUF_INFO, &args);

	if (!err)
		*ret_gpu_id = args.gpu_id;
	return err;
}

int kfd_available(int kfd, uint32_t gpu_id, uint64_t *ret)
{
	struct kfd_ioctl_get_available_memory_args args = { .gpu_id = gpu_id };
	int err = call_ioctl(kfd, AMDKFD_IOC_AVAILABLE_MEMORY, &args);

	if (!err)
		*ret = args.available;
	return err;
}

bool kfd_can_export(int kfd)
{
	struct kfd_ioctl_get_version_args version = { 0 };

	/* A KFD that does not answer is taken for a later one. */
	return call_ioctl(kfd, AMDKFD_IOC_GET_VERSION, &version) || version.major_version > 1 || version.minor_version >= 12;
}
