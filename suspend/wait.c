// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether GPUs have room for a resume, and the order of those that wait for it. The driver is asked, and nothing is
 * allocated while it says no: what is allocated and freed again would keep running jobs from memory of theirs.
 *
 * Each resume that waits has a file beside the records, named by the time since which it waits, with what it needs. The
 * file is locked as long as the waiter lives: one that is not is removed by the next that reads it. The first is served
 * first: what it needs is not there for the others. A resume that is tried again and again, as by follow, keeps its
 * place from one try to the next. A resume that does not wait has no file: it ends at once, and does not take what
 * others wait for.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <sys/file.h>
#include <time.h>

#include "suspend/internal.h"

#define RUN	  RUN_ROOT SUSPEND_RUN
#define FILE_NAME "wait.%016" PRIx64
#define WAIT_USEC 500000

/* What a resume needs on one GPU. */
struct need {
	uint64_t minor, bytes;
};

/* ---- what is needed ---- */

/* On one GPU by all processes of the call. What is in the middle has some of its memory already: it is only tried. */
static uint64_t needed_on(const struct batch *batch, const struct topology_node *node)
{
	uint64_t bytes = 0;

	for (struct process *process = NULL; (process = batch_next(batch, process));) {
		const struct kfd_state *state = &process->gpu.state;

		if (process->head.phase != PHASE_SUSPENDED)
			continue;
		for (size_t j = 0; j < state->nr_devices; j++)
			if (kfd_state_gpu(state, batch->machine, state->devices[j].user_gpu_id) == node)
				bytes += freed_on(state, process->plan, state->devices[j].user_gpu_id);
	}
	return bytes;
}

/* ---- those that wait ---- */

static int open_run(void)
{
	return open(RUN, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* By those that wait since before @before, on a GPU. */
static uint64_t needed_before(uint64_t before, uint32_t minor)
{
	int fd = open_run();
	_cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	uint64_t bytes = 0;

	while (dir && (entry = readdir(dir))) {
		_cleanup_close_ int file = -1;
		struct need need;
		uint64_t since;
		int end = 0;

		if (sscanf(entry->d_name, "wait.%16" SCNx64 "%n", &since, &end) != 1 || entry->d_name[end] || since >= before)
			continue;
		file = openat(fd, entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (file >= 0 && !flock(file, LOCK_EX | LOCK_NB))
			unlinkat(fd, entry->d_name, 0);
		else
			while (file >= 0 && read(file, &need, sizeof(need)) == sizeof(need))
				bytes += need.minor == minor ? need.bytes : 0;
	}
	return bytes;
}

static int write_needs(const struct batch *batch, int fd)
{
	_cleanup_free_ struct need *needs = NULL;
	size_t nr = 0;
	int err = 0;

	for (unsigned int i = 0; !err && i < batch->machine->nr_nodes; i++) {
		const struct need need = {
			.minor = topology_minor(batch->machine->nodes[i]),
			.bytes = topology_is_gpu(batch->machine->nodes[i]) ? needed_on(batch, batch->machine->nodes[i]) : 0,
		};

		if (need.bytes)
			err = array_add(needs, nr, need);
	}
	if (!err && pwrite(fd, needs, nr * sizeof(*needs), 0) != (ssize_t)(nr * sizeof(*needs)))
		err = errno_or_eio();
	return err;
}

/* Nobody sees the file before it is locked and complete; else nobody waits for this one. @batch NULL: no needs. */
static void join(struct suspend_waiter *waiter, const struct batch *batch)
{
	_cleanup_close_ int dir = open_run(), fd = -1;
	struct timespec now;
	char name[64], made[80];

	if (dir < 0)
		return;
	clock_gettime(CLOCK_BOOTTIME, &now);
	waiter->since = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	snprintf(name, sizeof(name), FILE_NAME, waiter->since);
	snprintf(made, sizeof(made), "%s.%d.new", name, getpid());
	fd = openat(dir, made, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB) && !(batch && write_needs(batch, fd)) && !linkat(dir, made, dir, name, 0))
		waiter->fd = steal_fd(&fd);
	unlinkat(dir, made, 0);
}

void suspend_waiter_join(struct suspend_waiter *waiter)
{
	if (!waiter->since)
		join(waiter, NULL);
}

void suspend_waiter_leave(struct suspend_waiter *waiter)
{
	_cleanup_close_ int dir = -1;
	char name[64];

	if (waiter->fd < 0)
		return;
	dir = open_run();
	snprintf(name, sizeof(name), FILE_NAME, waiter->since);
	unlinkat(dir, name, 0);
	cleanup_close(&waiter->fd);
}

/* A place that is kept for the next try holds back others only where memory is what this one lacks. */
void wait_end(struct batch *batch)
{
	if (!batch->keeps_waiter)
		suspend_waiter_leave(&batch->waiter);
	else if (!batch->lacks_memory && batch->waiter.fd >= 0 && ftruncate(batch->waiter.fd, 0))
		pr_warn("%s: its place among those that wait for memory cannot be cleared: %s\n", SUSPEND_RUN,
			strerror(errno));
}

/* ---- what is there ---- */

/* What a GPU has and is to have, for this resume and for those before it. */
struct lack {
	const struct topology_node *node;
	uint64_t needed, free, wanted;
};

/*
 * What a process could have. The driver's figure lacks what the KFD would take from graphics, and the KFD's what small
 * buffers leave. False where nothing is known.
 */
static bool ask_free(int sysfs, int *kfd, const struct topology_node *node, uint64_t needed, uint64_t *ret)
{
	struct gpu_usage usage = { 0 };
	uint64_t available = 0;

	usage_read_vram(sysfs, node, &usage);
	*ret = usage.vram_free;
	if (!usage.vram_known || usage.vram_free >= needed)
		return usage.vram_known;
	if (*kfd < 0)
		*kfd = kfd_open();
	fail_clear();
	if (*kfd >= 0 && !kfd_available(*kfd, topology_gpu_id(node), &available) && available > *ret)
		*ret = available;
	return true;
}

/* *ret: of the GPU that has too little. */
static bool has_room(const struct batch *batch, int *kfd, struct lack *ret)
{
	_cleanup_close_ int sysfs = open("/sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (unsigned int i = 0; i < batch->machine->nr_nodes; i++) {
		const struct topology_node *node = batch->machine->nodes[i];
		struct lack lack = { .node = node, .needed = topology_is_gpu(node) ? needed_on(batch, node) : 0 };
		bool is_known;

		if (!lack.needed)
			continue;
		lack.wanted = needed_before(batch->waiter.since ? batch->waiter.since : UINT64_MAX, topology_minor(node));
		is_known = ask_free(sysfs, kfd, node, lack.needed + lack.wanted, &lack.free);
		*ret = lack;
		if (is_known && (lack.free < lack.needed || lack.free - lack.needed < lack.wanted))
			return false;
	}
	return true;
}

static bool is_there(const struct batch *batch)
{
	for (struct process *process = NULL; (process = batch_next(batch, process));)
		if (!record_is_alive(&process->head))
			return false;
	return true;
}

int wait_for_vram(struct batch *batch)
{
	_cleanup_close_ int kfd = -1;
	struct lack lack = { 0 };
	char others[80] = "";

	while ((batch->lacks_memory = !has_room(batch, &kfd, &lack))) {
		bool is_over = monotonic_seconds() >= batch->wait_until || !is_there(batch);

		if ((!is_over || batch->keeps_waiter) && !batch->waiter.since)
			join(&batch->waiter, batch);
		else if (batch->keeps_waiter && batch->waiter.fd >= 0)
			write_needs(batch, batch->waiter.fd);
		if (is_over)
			break;
		usleep(WAIT_USEC);
	}
	if (!batch->lacks_memory)
		return 0;
	if (lack.wanted)
		snprintf(others, sizeof(others), ", for %" PRIu64 " bytes of which others wait before this one",
			 lack.wanted);
	return fail(-ENOMEM, "pid %d: gpu %#x has too little memory free: %" PRIu64 " bytes of %" PRIu64
		    "%s: the process stays suspended; end what uses the GPU (--wait SECONDS waits for that)",
		    batch_next(batch, NULL)->head.pid, topology_gpu_id(lack.node), lack.free, lack.needed, others);
}

int wait_fail(const struct batch *batch)
{
	return fail(-ENOMEM,
		    "pid %d: its GPUs have too little memory free, though the driver's figures say otherwise: the process stays "
		    "suspended; end what uses them (--wait SECONDS waits for that)",
		    batch_next(batch, NULL)->head.pid);
}
