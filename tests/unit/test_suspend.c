// SPDX-License-Identifier: GPL-2.0-only
/*
 * Suspend and resume against a process, a KFD and a disk that are a table in shared memory. Each call of theirs fails
 * once, or is the last one of the command, before or after it has its effect: what is left has to be stopped where it
 * has lost anything, and a resume has to bring all back.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "unit.h"
#include "amdgpu_plugin_drm.h"
#include "kernel/kernel.h"
#include "log_stub.h"
#include "machine_text.h"
#include "pages/pages.h"
#include "remove_all.h"
#include "share/share.h"
#include "stopped/stopped.h"
#include "suspend/suspend.h"

#define PID	     5242880 /* and those after it: more than Linux has */
#define MAX_NR	     2
#define CHILD	     (PID + 8) /* of the first */
#define GPU	     0x1234u
#define MINOR	     128u
#define KFD	     5
#define RENDER	     6
#define NR_BOS	     8
#define MAX_BOS	     64
#define NR_VMAS	     2
#define NR_HANDLES   8 /* numbers of the render file */
#define PLACEHOLDER  UINT32_MAX
#define PAGE	     4096u
#define CGROUP_ABOVE "/sys/fs/cgroup/engine"
#define HOME	     CGROUP_ABOVE "/job"
#define HOME_OUTSIDE "/sys/fs/cgroup/container/engine/job" /* the same, seen from above a cgroup namespace */
#define PARENT	     (PID - 1)
#define MEMORY	     0x7000000000u
#define VRAM	     (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC)
#define GTT	     (KFD_IOC_ALLOC_MEM_FLAGS_GTT | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE)

/* ---- the process ---- */

struct buffer {
	bool there, is_mapped;
	uint64_t address, size;
	uint32_t number, flags, contents;
	uint64_t offset; /* of mappings: another one each time that it is made */
};

struct mapping {
	uint64_t start, end, offset;
	int prot;
	bool is_covered, dontfork;
	int key;
};

struct handle {
	bool there, is_mapped[2];
	uint32_t bo; /* its number, or PLACEHOLDER */
};

static struct model {
	struct buffer bos[MAX_BOS]; /* ascending numbers */
	size_t nr;
	struct mapping vmas[NR_VMAS];
	struct handle handles[NR_HANDLES];
	bool shares_file;	/* a forked child has the render file, too */
	bool is_ring_in_vmm;
	bool is_unlisted; /* its handles, as before Linux 6.18 */
	bool is_traced; /* by another command */
	bool has_closed_kfd; /* no_kfd, and what it has on GPUs is still there */
	bool no_kfd, queues_stand, stopped, held, in_call, marked, memory_mapped;
	bool alone[MAX_BOS];
	bool is_parent_stopped, parent_looks;		 /* parent_looks: it stops itself when the process is stopped, and
							    continues it when it is continued */
	bool is_parent_stopped_late; /* by others, while data are copied */
	bool is_parent_marked; /* it is suspended itself */
	bool no_cgroups, has_own, is_in_own;		 /* has_own: the cgroup of its own is there */
	bool is_seen_outside;
	bool frozen[3], is_thawed_meanwhile;		 /* the cgroup above, the one that it was in, its own */
	bool has_ended;
	bool is_killed;	    /* nobody waits for it */
	bool ends_unheld;   /* before it is seized */
	bool is_replaced, was_replaced; /* by another process of the same number, when it is seized */
	unsigned int exits; /* so many questions later it has ended */
	bool is_continued;				 /* while it is held */
	bool has_stop_pending;				 /* SIGSTOP that it has not taken */
	unsigned int freezes_at, freezes_own;		 /* an engine, in the n-th call; 0: never */
	unsigned int nr_asked;
	unsigned int pauses, copies, nr_saved;
	bool has_child; /* which has inherited the mapping of buffer 3 */
	unsigned int allocations;
	bool is_room_unknown;
	unsigned int losses, loses_at_fill; /* loses_at_fill: so many fills are followed by a reset */
	bool has_token;	 /* of IPC, which goes with buffer 3 */
	bool is_limited; /* it can make no calls */
	uint64_t room, next_offset; /* bytes of VRAM that are free */
	uint8_t memory[INJECT_MEMORY];
} * models, *model, fresh[MAX_NR]; /* model: of the process that a call is about; what the test asks is the first's */

/* How a run goes, with so many processes. */
static struct run {
	int nr;
	unsigned int nr_points, die_at, fail_at, nr_holds;
	unsigned int kill_at; /* the second process is killed */
	unsigned int continue_at, stop_at; /* others send the first one SIGCONT or SIGSTOP */
	bool is_merged;			   /* a SIGSTOP was pending already */
	bool no_room;
	bool is_advised;       /* a resume, by the command's words */
	bool is_reaped;	       /* who is killed is gone as soon as a call shows it */
	bool is_kfd_unreadable; /* what its sysfs says */
	bool has_sharer;       /* the two processes have one table of descriptors */
	bool is_kfd_inherited; /* the first one's /dev/kfd, by the second, whose pid is lower */
	bool is_container; /* the command sees a pid namespace alone */
	bool is_slow; /* copies take 30 s */
	unsigned int timeout_seconds;
	uint32_t reset_minor; /* of the last resume's report */
	char wrong[256];
} * now;

static void select_pid(pid_t pid)
{
	assert_true(pid >= PID && pid < PID + now->nr);
	model = &models[pid - PID];
}

static const struct model *fresh_one(void)
{
	return &fresh[model - models];
}

static char directory[] = "/tmp/suspend.XXXXXX", records[64], contents[64];

static void __attribute__((format(printf, 1, 2))) say_wrong(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	if (!now->wrong[0])
		vsnprintf(now->wrong, sizeof(now->wrong), fmt, args);
	va_end(args);
}

/* A number has a gap before it, a queue's ring, a shared one, GTT. */
static void make_one(void)
{
	static const struct buffer bos[NR_BOS] = {
		{ true, true, 0x10000, 4 * PAGE, 0, VRAM, 10, 0x100000 },
		{ true, true, 0x20000, 2 * PAGE, 1, GTT, 11, 0x200000 },
		{ true, true, 0x30000, 16 * PAGE, 3, VRAM, 13, 0x300000 },
		{ true, true, 0x40000, PAGE, 4, VRAM, 14, 0x400000 },
		{ true, true, 0x50000, 8 * PAGE, 7, VRAM, 17, 0x500000 },
		{ true, true, 0x60000, PAGE, 8, VRAM, 18, 0x600000 },
		{ true, false, 0x70000, 2 * PAGE, 11, VRAM, 21, 0x700000 },
		{ true, false, 0, 4 * PAGE, 13, VRAM, 23, 0x800000 },
	};

	memcpy(model->bos, bos, sizeof(bos));
	model->has_token = true;
	model->nr = NR_BOS;
	for (size_t i = 0; i < NR_BOS; i++)
		model->alone[i] = i != 3;
	model->vmas[0] =
		(struct mapping){ 0x30000, 0x30000 + 16 * PAGE, bos[2].offset, PROT_READ | PROT_WRITE, false, true, 0 };
	model->vmas[1] =
		(struct mapping){ 0x50000, 0x50000 + 4 * PAGE, bos[4].offset + 4 * PAGE, PROT_READ, false, false, 3 };
	/* Of GTT, of VMM at two addresses, of VRAM with an address, with gaps. */
	model->handles[2] = (struct handle){ .there = true, .bo = 1 };
	model->handles[4] = (struct handle){ true, { true, true }, 13 };
	model->handles[6] = (struct handle){ .there = true, .bo = 3 };
	model->next_offset = 0x10000000;
	model->room = 1 << 20;
	for (size_t i = 0; i < NR_BOS; i++)
		model->bos[i].contents += 100 * (uint32_t)(model - models);
	fresh[model - models] = *model;
}

static void make_processes(int nr)
{
	memset(models, 0, MAX_NR * sizeof(*models));
	*now = (struct run){ .nr = nr };
	for (int i = nr - 1; i >= 0; i--) {
		model = &models[i];
		make_one();
	}
}

/* A process that is killed; its cgroup stays. */
static void end_process(int number)
{
	models[number].has_ended = true;
	models[number].is_in_own = false;
}

static void make_process(void)
{
	make_processes(1);
}

/* What must never be: a process that may run, and has lost something. */
static bool is_whole(const char **why)
{
	*why = NULL;
	for (size_t i = 0; i < NR_BOS; i++) {
		const struct buffer *is = &model->bos[i], *then = &fresh_one()->bos[i];

		if (i >= model->nr || is->number != then->number || is->address != then->address ||
		    is->size != then->size || is->flags != then->flags)
			*why = "another buffer";
		else if (!is->there || is->contents != then->contents)
			*why = "contents";
		else if (is->is_mapped != then->is_mapped)
			*why = "GPU mapping";
	}
	if (model->nr != NR_BOS)
		*why = "number of buffers";
	for (size_t i = 0; i < NR_VMAS; i++) {
		const struct mapping *is = &model->vmas[i], *then = &fresh_one()->vmas[i];

		if (is->is_covered || is->prot != then->prot || is->key != then->key || is->dontfork != then->dontfork ||
		    is->offset - model->bos[2 + 2 * i].offset != then->offset - fresh_one()->bos[2 + 2 * i].offset)
			*why = "mapping";
	}
	if (memcmp(model->handles, fresh_one()->handles, sizeof(model->handles)))
		*why = "handles";
	if (!model->has_token)
		*why = "metadata";
	if (model->in_call)
		*why = "registers";
	return !*why;
}

/* ---- points ---- */

/* Whatever becomes of the command, and whatever an engine does. */
static bool is_held(void)
{
	return model->stopped || (model->is_in_own && model->frozen[2]);
}

static void die(void)
{
	const char *why;

	for (int i = 0; i < now->nr; i++) {
		model = &models[i];
		if (!is_held() && !is_whole(&why))
			say_wrong("when the command dies at point %u, process %d runs without its %s", now->nr_points, i, why);
		model->held = false;
	}
	kill(getpid(), SIGKILL);
}

/* Both have their effect at once, and wait for the process to take them. */
static void be_signalled(void)
{
	if (now->nr_points == now->continue_at) {
		models[0].stopped = models[0].has_stop_pending = false;
		models[0].is_continued = true;
	}
	if (now->nr_points == now->stop_at) {
		now->is_merged = models[0].has_stop_pending;
		models[0].stopped = models[0].has_stop_pending = true;
		models[0].is_continued = false;
	}
}

/* 0, or an error that the call is to return instead of doing anything. */
static int point(void)
{
	now->nr_points++;
	be_signalled();
	if (now->nr_points == now->die_at)
		die();
	if (now->kill_at && now->nr_points >= now->kill_at && !models[1].is_killed) {
		models[1].is_killed = true;
		models[1].exits = 3;
	}
	return now->nr_points == now->fail_at ? -ENXIO : 0;
}

/* Behind the effect. */
static void done(void)
{
	if (++now->nr_points == now->die_at)
		die();
	be_signalled();
}

/* Of a call for a process. */
#define POINT()                                    \
	do {                                       \
		int _err = point();                \
                                                   \
		if (!_err && model->is_killed)     \
			_err = -ESRCH;             \
		if (_err)                          \
			return _err;               \
	} while (0)

/* ---- kernel/ ---- */

uint64_t process_start(pid_t pid)
{
	if (pid == CHILD)
		return models[0].has_child ? 78 : 0;
	if (pid < PID || pid >= PID + now->nr || models[pid - PID].has_ended)
		return 0;
	return models[pid - PID].was_replaced ? 99 : 77;
}

bool hold_is_stopped(const struct hold *hold)
{
	select_pid(hold->pid);
	return hold->was_stopped && !model->is_continued;
}

int processes_add_descendants(int **pids, size_t *nr)
{
	int err = 0;

	for (int i = 1; !err && i < now->nr; i++)
		err = array_add(*pids, *nr, PID + i);
	return err;
}

bool hold_is_traced(pid_t pid)
{
	return models[pid - PID].is_traced;
}

STUB(bool, process_is_ending, (pid_t pid), models[pid - PID].is_killed)

int hold_begin(pid_t pid, bool calls, struct hold *ret)
{
	select_pid(pid);
	now->nr_holds++;
	if (model->ends_unheld) {
		model->is_killed = true;
		return (fail)(-ESRCH, "pid %d: has ended", pid);
	}
	*ret = (struct hold){ .pid = pid, .was_stopped = model->stopped, .nr = 1 };
	if (model->is_killed)
		model->exits = 0;
	POINT();
	model->held = true;
	model->was_replaced = model->is_replaced;
	model->is_in_own = model->is_in_own && !model->is_replaced;
	done();
	return 0;
}

void hold_end(struct hold *hold)
{
	if (!hold->pid)
		return;
	select_pid(hold->pid);
	model->held = false;
}

STUB(pid_t, process_parent, (pid_t pid), pid == PARENT ? 1 : PARENT)

char task_state(pid_t pid)
{
	if (pid == PARENT || pid == CHILD)
		return pid == PARENT && models->is_parent_stopped ? 'T' : 'S';
	if (!models[pid - PID].is_killed)
		return models[pid - PID].stopped ? 'T' : 'S';
	return models[pid - PID].exits && models[pid - PID].exits-- ? 'R' : 'Z';
}

static const char *home(void)
{
	return models->is_seen_outside ? HOME_OUTSIDE : HOME;
}

/* The process whose own cgroup it is is selected. */
static bool is_own(const char *path)
{
	size_t length = strlen(home());
	int pid;

	if (strncmp(path, home(), length) || sscanf(path + length, "/amdgpu-suspended-%d", &pid) != 1)
		return false;
	select_pid(pid);
	return true;
}

static bool *frozen_of(const char *path)
{
	return is_own(path) ? &model->frozen[2] : &models->frozen[!strcmp(path, home())];
}

bool cgroup_of(pid_t pid, char path[PATH_MAX])
{
	select_pid(pid);
	snprintf(path, PATH_MAX, "%s", home());
	if (model->is_in_own)
		snprintf(path, PATH_MAX, "%s/amdgpu-suspended-%d", home(), pid);
	return !models->no_cgroups && !model->has_ended;
}

bool cgroup_above(char *path)
{
	*strrchr(path, '/') = '\0';
	return strcmp(path, "/sys/fs/cgroup");
}

STUB(bool, cgroup_is_frozen, (const char *path), *frozen_of(path))

int cgroup_make(const char *path)
{
	POINT();
	assert_true(is_own(path));
	if (model->is_in_own)
		say_wrong("its cgroup is made anew");
	model->has_own = true;
	done();
	return 0;
}

int cgroup_enter(const char *path, pid_t pid)
{
	const char *why;

	select_pid(pid);
	if (model->is_killed)
		return 0;
	POINT();
	model->is_in_own = is_own(path);
	if (model->is_in_own && !model->has_own)
		say_wrong("it is moved to a cgroup that is not there");
	if (!model->is_in_own && !is_whole(&why))
		say_wrong("it goes back to its cgroup without its %s", why);
	done();
	return 0;
}

int __real_rmdir(const char *path);
int __wrap_rmdir(const char *path)
{
	if (!is_own(path))
		return __real_rmdir(path);
	errno = model->has_own ? EBUSY : ENOENT;
	if (!model->has_own || (model->is_in_own && (!model->is_killed || model->exits)))
		return -1;
	model->has_own = model->frozen[2] = false;
	done();
	return 0;
}

int cgroup_freeze(const char *path, bool freeze)
{
	*frozen_of(path) = freeze;
	done();
	return 0;
}

STUB(int, cgroup_watch, (const char *path), open("/dev/null", O_RDONLY | O_CLOEXEC))

/* After the tool's own write. */
bool cgroup_was_written(int watch)
{
	return models->nr_asked++ && models->is_thawed_meanwhile;
}

int cgroup_processes(const char *path, bool below, int **ret, size_t *ret_nr)
{
	int err = 0;

	for (int i = 0; !err && i < now->nr; i++)
		err = array_add(*ret, *ret_nr, PID + i);
	return err;
}

int __real_kill(pid_t pid, int signal);
int __wrap_kill(pid_t pid, int signal)
{
	const char *why;

	if (pid == PARENT) {
		bool passes_on = models->is_parent_stopped && models->parent_looks;

		models->is_parent_stopped = false;
		models->stopped = models->stopped && !passes_on;
		return 0;
	}
	if (pid < PID || pid >= PID + now->nr)
		return __real_kill(pid, signal);
	select_pid(pid);
	model->stopped = signal == SIGSTOP;
	/* Each takes back the other. */
	model->has_stop_pending = model->stopped;
	model->is_continued = model->is_continued && !model->stopped;
	models->is_parent_stopped |= model->stopped && model->parent_looks;
	if (!is_held() && !is_whole(&why))
		say_wrong("the process is let go without its %s", why);
	if (!is_held() && model->queues_stand)
		say_wrong("the process is let go while its queues stand");
	done();
	return 0;
}

void driver_ask_release(const char *version_file, struct driver_release *ret)
{
	*ret = (struct driver_release){ 7, 2, 12, false, "Linux" };
}

int sysfs_read_topology(const char *root, struct topology **ret)
{
	*ret = machine_of(GPU, "1 drm_render_minor=%u simd_count=4", MINOR);
	return 0;
}

void usage_read_vram(int sysfs, const struct topology_node *node, struct gpu_usage *usage)
{
	usage->vram_known = !models[0].is_room_unknown;
	usage->vram_free = model->room;
}

STUB(bool, device_is_kfd, (const struct stat *st), st->st_rdev == 1)
STUB(bool, device_is_render_node, (const struct stat *st), st->st_rdev == makedev(226, MINOR))
STUB(int, drm_is_amd, (int fd), 1)

int losses_note(const struct task_files *files, uint32_t **ret)
{
	*ret = NULL;
	return point();
}

STUB(int, losses_check, (const struct task_files *files, const uint32_t *losses), point())

int task_ask_kfd(pid_t pid, struct task_kfd *ret)
{
	const struct model *of = &models[pid - PID];

	if (now->is_kfd_unreadable)
		return -EMFILE;
	*ret = now->is_container || (of->no_kfd && !of->has_closed_kfd) ? (struct task_kfd){ 0 } :
						   (struct task_kfd){ .nr_queues = 2, .nr_gpus = 1, .vram_bytes = 4096 };
	return 0;
}

STUB(pid_t, task_own_pid, (pid_t pid), pid)

int task_list_sharers(pid_t pid, int **ret, size_t *ret_nr)
{
	int other = pid == PID ? PID + 1 : PID;

	return now->has_sharer ? array_add(*ret, *ret_nr, other) : 0;
}

STUB(int, task_in_initial_pid_ns, (void), !now->is_container)
STUB(int, mount_memory, (const char *path), -EPERM)

int task_find_mark(pid_t pid, int after)
{
	if (pid == PARENT)
		return models->is_parent_marked ? 9 : -1;
	select_pid(pid);
	return model->marked && after < 9 ? 9 : -1;
}

int __real_open(const char *path, int flags, mode_t mode);
int task_take_file(pid_t pid, int number)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s.%d", directory, number == KFD ? "kfd" : "render", pid);
	return __real_open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
}

int task_files_collect_of(int *pids, size_t nr, int (*is_amd)(int fd), struct task_files *ret)
{
	static struct task_file files[2 * MAX_NR];

	*ret = (struct task_files){ .files = files };
	for (size_t i = 0; i < nr; i++)
		if (!models[pids[i] - PID].no_kfd) {
			files[ret->count++] = (struct task_file){
				now->is_kfd_inherited ? PID + 1 : pids[i], KFD, task_take_file(pids[i], KFD), 0,
			};
			files[ret->count++] = (struct task_file){ pids[i], RENDER, task_take_file(pids[i], RENDER), MINOR };
		}
	free(pids);
	return 0;
}

void task_files_done(struct task_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		close(files->files[i].fd);
}

unsigned int task_files_count_spaces(const struct task_files *files, pid_t pid, uint32_t pasid,
				     const struct topology *machine)
{
	return 1;
}

int task_device_vmas(pid_t pid, struct device_vma **ret, size_t *ret_count)
{
	size_t nr = 0;

	select_pid(pid == CHILD ? PID : pid);
	*ret = NULL;
	for (size_t i = 0; i < NR_VMAS; i++)
		if (!model->vmas[i].is_covered && (pid != CHILD || !i))
			array_add(*ret, nr,
				  (struct device_vma){
					  model->vmas[i].start,
					  model->vmas[i].end,
					  model->vmas[i].offset,
					  MINOR,
					  GPU,
				  });
	*ret_count = nr;
	return 0;
}

/* ---- the KFD ---- */

/* Of each process a file of its own, and of each buffer a dma-buf. */
static pid_t number_of(int fd)
{
	char path[32], to[PATH_MAX] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_true(readlink(path, to, sizeof(to) - 1) > 0);
	return atoi(strrchr(to, '.') + 1);
}

int kfd_pause(int fd, pid_t pid, struct kfd_state *state)
{
	select_pid(number_of(fd));
	POINT();
	if (model->queues_stand)
		say_wrong("the queues are stopped twice");
	model->queues_stand = true;
	model->pauses++;
	*state = (struct kfd_state){
		.pid = (uint32_t)number_of(fd),
		.nr_devices = 1,
		.nr_bos = (uint32_t)model->nr,
		.nr_records = (uint32_t)model->nr,
		.nr_objects = 1,
	};
	done();
	return 0;
}

int kfd_unpause(int fd)
{
	const char *why;

	select_pid(number_of(fd));
	POINT();
	if (!model->queues_stand)
		return -EINVAL;
	if (!is_whole(&why) && !(model->in_call && !strcmp(why, "registers")))
		say_wrong("the queues run without their %s", why);
	model->queues_stand = false;
	done();
	return 0;
}

static void put_u32(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
}

static int open_dmabuf(uint32_t number)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/buffer.%u", directory, number);
	return __real_open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
}

/* As the kernel lays it out: process, devices, BOs, a queue with its ring in the buffer with number 8. */
static int take_state(struct kfd_state *state)
{
	uint8_t *at;

	state->priv_size = 8 + 8 + model->nr * BO_RECORD_SIZE + QUEUE_RECORD_SIZE;
	state->devices = calloc(1, sizeof(*state->devices));
	state->bos = kfd_bos_new(model->nr);
	state->priv_data = at = calloc(1, state->priv_size);
	assert_true(state->devices && state->bos && at);
	state->devices[0] = (struct kfd_criu_device_bucket){ .user_gpu_id = GPU, .actual_gpu_id = GPU };
	put_u32(at, 1);
	at += 16;
	for (size_t i = 0; i < model->nr; i++, at += BO_RECORD_SIZE) {
		const struct buffer *bo = &model->bos[i];

		state->bos[i] = (struct bo){
			.addr = bo->address,
			.size = bo->size,
			.offset = bo->offset,
			.gpu_id = GPU,
			.alloc_flags = bo->flags,
			.dmabuf_fd = open_dmabuf(bo->number),
		};
		put_u32(at + 8, bo->number);
		put_u32(at + 12, bo->is_mapped ? GPU : 0);
	}
	memcpy(at + 8, &(uint64_t){ model->is_ring_in_vmm ? 0x911000 : 0x60000 }, 8);
	put_u32(at + 64, GPU);
	put_u32(at + 68, QUEUE_TYPE_SDMA);
	return records_read(state, state->nr_devices);
}

int kfd_checkpoint(int fd, pid_t pid, struct kfd_state *state)
{
	select_pid(pid);
	POINT();
	return take_state(state);
}

/* The command knows the number, but for the call that it died in. */
int kfd_checkpoint_again(int fd, pid_t pid, const struct kfd_state *state, uint32_t nr, uint32_t off,
			 struct kfd_state *ret)
{
	select_pid(pid);
	POINT();
	if (nr != model->nr && nr + 1 != model->nr && nr != model->nr + 1)
		say_wrong("the process has %zu buffers, and is asked for %u", model->nr, nr);
	*ret = (struct kfd_state){
		.nr_devices = state->nr_devices,
		.nr_bos = (uint32_t)model->nr,
		.nr_records = (uint32_t)model->nr,
		.nr_objects = state->nr_objects,
	};
	return take_state(ret);
}

int kfd_state_nodes(const struct topology *machine, pid_t pid, const struct kfd_state *state, struct topology **ret)
{
	return sysfs_read_topology(NULL, ret);
}

int kfd_state_minors(pid_t pid, const struct kfd_state *state, const struct topology *nodes, uint32_t **ret)
{
	*ret = calloc(state->nr_devices + 1, sizeof(**ret));
	assert_non_null(*ret);
	(*ret)[0] = MINOR;
	return 0;
}

void gpu_process_done(struct gpu_process *process)
{
	kfd_state_done(&process->state);
	topology_free(process->nodes);
	free(process->minors);
}

/* ---- sharing, contents ---- */

STUB(int, drm_open_minor, (uint32_t minor), open("/dev/null", O_RDONLY | O_CLOEXEC))
STUB(int, kfd_open, (void), -ENOENT)

int kfd_available(int kfd, uint32_t gpu_id, uint64_t *ret)
{
	*ret = 0;
	return -ENOTTY;
}

int drm_count_losses(int fd, uint32_t *ret)
{
	*ret = models[0].losses;
	return 0;
}

int drm_count_objects(int fd, uint32_t *ret)
{
	*ret = models[0].is_unlisted ? 3 : 0;
	return 0;
}

STUB(void, render_objects_done, (struct render_objects *objects), free(objects->mappings))

/* ---- the render file ---- */

static struct buffer *find_buffer(uint32_t number)
{
	for (size_t i = 0; i < model->nr; i++)
		if (model->bos[i].number == number)
			return &model->bos[i];
	return NULL;
}

static struct handle *handle_of(int fd, uint32_t handle)
{
	select_pid(number_of(fd));
	assert_true(handle < NR_HANDLES);
	if (!model->held)
		say_wrong("handles change while the process may run");
	return &model->handles[handle];
}

int gem_list(int fd, struct gem_entry **ret, size_t *ret_nr)
{
	select_pid(number_of(fd));
	POINT();
	*ret = NULL;
	*ret_nr = 0;
	if (model->is_unlisted)
		return -EINVAL;
	for (uint32_t i = 0; i < NR_HANDLES; i++)
		if (model->handles[i].there)
			array_add(*ret, *ret_nr, (struct gem_entry){ i, false });
	return 0;
}

int gem_ask(int fd, uint32_t handle, struct gem_info *ret)
{
	bool is_placeholder = handle_of(fd, handle)->bo == PLACEHOLDER;

	*ret = (struct gem_info){ .size = is_placeholder ? PAGE : 4 * PAGE, .domains = is_placeholder ? 2 : 4 };
	return 0;
}

static uint64_t address_of(int i)
{
	return i ? 0x910000 : 0x900000;
}

int gem_mappings(int fd, uint32_t handle, struct render_objects *objects)
{
	const struct handle *of = handle_of(fd, handle);

	POINT();
	for (int i = 0; i < 2; i++)
		if (of->is_mapped[i])
			array_add(objects->mappings, objects->nr_mappings,
				  (struct gem_mapping){ .handle = handle, .va = address_of(i), .size = 4 * PAGE });
	return 0;
}

static int change_mapping(int fd, const struct gem_mapping *mapping, bool map)
{
	struct handle *handle = handle_of(fd, mapping->handle);
	bool *is_mapped = &handle->is_mapped[mapping->va == address_of(1)];

	POINT();
	if (!handle->there || handle->bo != 13)
		say_wrong("a mapping of handle %u changes, which is none of VMM", mapping->handle);
	if (*is_mapped == map)
		return map ? -EINVAL : -ENOENT;
	*is_mapped = map;
	done();
	return 0;
}

STUB(int, gem_map, (int fd, const struct gem_mapping *mapping), change_mapping(fd, mapping, true))
STUB(int, gem_unmap, (int fd, const struct gem_mapping *mapping), change_mapping(fd, mapping, false))

int gem_close(int fd, uint32_t number)
{
	struct handle *handle = handle_of(fd, number);

	POINT();
	if (!handle->there)
		say_wrong("handle %u is closed, and is not there", number);
	if (handle->bo != PLACEHOLDER && !find_buffer(handle->bo))
		say_wrong("buffer %u is freed before its handle is closed", handle->bo);
	*handle = (struct handle){ 0 };
	done();
	return 0;
}

static int add_handle(int fd, uint32_t bo, uint32_t *ret)
{
	for (*ret = 1; *ret < NR_HANDLES; ++*ret)
		if (bo != PLACEHOLDER && handle_of(fd, *ret)->there && handle_of(fd, *ret)->bo == bo)
			return 0;
	for (*ret = 1; handle_of(fd, *ret)->there;)
		++*ret;
	*handle_of(fd, *ret) = (struct handle){ .there = true, .bo = bo };
	done();
	return 0;
}

/* In a file of the command's own: for metadata. */
int gem_import(int fd, int dmabuf_fd, uint32_t *ret)
{
	char path[32], to[PATH_MAX] = "";

	POINT();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_true(readlink(path, to, sizeof(to) - 1) > 0);
	return strcmp(to, "/dev/null") ? add_handle(fd, (uint32_t)number_of(dmabuf_fd), ret) : 0;
}

int gem_create_page(int fd, uint32_t *ret)
{
	POINT();
	return add_handle(fd, PLACEHOLDER, ret);
}

int task_file_holder(pid_t pid, int number, uint32_t minor, pid_t *ret)
{
	select_pid(pid);
	*ret = model->shares_file ? CHILD : 0;
	return point();
}

/* Of the only buffer with a token. */
int gem_set_metadata(int fd, uint32_t handle, const struct kfd_share *share)
{
	POINT();
	if (share->metadata_size != 4)
		say_wrong("metadata of %u bytes", share->metadata_size);
	model->has_token = true;
	return 0;
}

STUB(int, share_begin, (struct share_request *request, const struct driver_release *driver), point())

void share_names_done(struct share_names *names)
{
	free(names->list);
}

int share_compare_names(const void *a, const void *b)
{
	const struct share_name *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return (x->handle > y->handle) - (x->handle < y->handle);
}

static size_t place_of(const struct share_request *request, pid_t pid)
{
	size_t i = 0;

	while (request->files->files[i].pid != pid || request->files->files[i].number != RENDER)
		i++;
	return i;
}

int share_find_alone(const struct share_request *request, struct share_names *ret)
{
	POINT();
	for (size_t n = 0; n < request->nr_processes; n++) {
		struct gpu_process *process = request->processes[n];

		select_pid(process->file.pid);
		for (size_t i = 0; i < process->state.nr_bos; i++)
			process->state.bos[i].is_alone = model->alone[i];
		process->state.bos[2].share.metadata_size = 4;
		for (uint32_t i = 0; i < NR_HANDLES; i++)
			if (model->handles[i].there && find_buffer(model->handles[i].bo))
				array_add(ret->list, ret->nr,
					  (struct share_name){ place_of(request, process->file.pid), i, n,
							       (size_t)(find_buffer(model->handles[i].bo) - model->bos) });
	}
	return 0;
}

/* By process and number; in memory that outlives the command. */
static uint32_t (*disks)[MAX_BOS];

static uint32_t *disk_of(const struct model *of)
{
	return disks[of - models];
}

static int copy(const struct gpu_process *process, bool out)
{
	unsigned int nr = 0;
	uint32_t *disk;

	select_pid(process->file.pid);
	disk = disk_of(model);
	if (out && (!model->queues_stand || !model->held))
		say_wrong("contents are copied while somebody changes them");
	for (size_t i = 0; i < process->state.nr_bos; i++) {
		struct bo_record record;
		struct buffer *bo;

		if (!kfd_state_owns(&process->state, i))
			continue;
		nr++;
		assert_int_equal(records_bo(&process->state, i, &record), 0);
		bo = find_buffer(record.handle);
		if (!bo || process->state.bos[i].dmabuf_fd < 0)
			say_wrong("buffer %u is copied and not there", record.handle);
		else if (out)
			disk[record.handle] = bo->contents;
		else
			bo->contents = disk[record.handle];
	}
	/* A file of another length is damaged. */
	if (!out && nr != model->nr_saved)
		say_wrong("%u buffers are filled, and %u were saved", nr, model->nr_saved);
	model->nr_saved = nr;
	return 0;
}

/* More than any disk has, where there is to be no room. */
STUB(uint64_t, pages_bytes, (const struct gpu_process *process), now->no_room ? UINT64_MAX / 4 : 1)
STUB(void, memory_ask_room, (struct memory_room *ret), (void)(ret->bytes = UINT64_MAX))

int pages_dump(struct gpu_process *const *processes, size_t nr_processes, const struct settings *settings,
	       struct content_tally *tally)
{
	if (now->is_slow)
		sleep(30);
	POINT();
	models[0].copies++;
	models[0].is_parent_stopped |= models[0].is_parent_stopped_late;
	for (size_t i = 0; i < nr_processes; i++)
		copy(processes[i], true);
	done();
	return 0;
}

int pages_fill(struct gpu_process *const *processes, size_t nr_processes, const struct settings *settings,
	       struct content_tally *tally)
{
	POINT();
	for (size_t i = 0; i < nr_processes; i++) {
		copy(processes[i], false);
		if (model->is_in_own && !model->frozen[2])
			say_wrong("SIGCONT would let it run while its data is copied");
	}
	if (models[0].loses_at_fill && models[0].loses_at_fill--)
		models[0].losses++;
	done();
	return 0;
}

STUB(void, criu_use_image_dir, (int fd), /* nothing */)
STUB(bool, image_name_parse, (const char *name, struct image_name *ret), false)

/* ---- injected calls ---- */

int inject_fail(const struct inject *inject, int err, const char *what)
{
	return (fail)(err, "cannot %s: %m", what);
}

int inject_look(pid_t tid, int kfd, struct inject *ret)
{
	select_pid(tid);
	*ret = (struct inject){ .tid = tid, .kfd = kfd, .instruction = 0x1000 };
	ret->own.regs.rip = model->in_call ? 0x1000 : 0x2000;
	return point();
}

bool inject_adopt(struct inject *inject, const struct inject_thread *own)
{
	select_pid(inject->tid);
	if (model->in_call && own->regs.rip != 0x2000)
		say_wrong("the record does not know the registers");
	if (model->in_call && model->memory_mapped)
		inject->memory = MEMORY;
	inject->own = *own;
	inject->is_changed = model->in_call;
	return model->in_call;
}

static void take_stop(struct inject *inject)
{
	inject->nr_stops += model->has_stop_pending;
	model->has_stop_pending = false;
}

int inject_begin(struct inject *inject)
{
	select_pid(inject->tid);
	POINT();
	take_stop(inject);
	if (!model->stopped || !model->held)
		say_wrong("calls are injected into a process that would run when the command dies");
	if (model->is_in_own && model->frozen[2])
		say_wrong("calls are injected into a frozen process");
	if (model->is_limited && !model->memory_mapped)
		return inject_fail(inject, -ENOMEM, "map memory in it");
	model->in_call = inject->is_changed = true;
	model->memory_mapped = true;
	inject->memory = MEMORY;
	done();
	return 0;
}

int inject_end(struct inject *inject)
{
	select_pid(inject->tid);
	POINT();
	if (inject->own.regs.rip != 0x2000)
		say_wrong("foreign registers are put back");
	inject->memory = 0;
	model->memory_mapped = false;
	model->in_call = inject->is_changed = false;
	done();
	return 0;
}

int inject_write(struct inject *inject, size_t at, const void *data, size_t size)
{
	select_pid(inject->tid);
	memcpy(model->memory + at, data, size);
	return point();
}

/* An engine freezes the process in a call, which does not come back before it is thawed. */
static void make_call(struct inject *inject)
{
	bool *frozen = &model->frozen[model->freezes_own];

	if (!model->freezes_at || --model->freezes_at)
		return;
	*frozen = true;
	inject->ask(inject->arg);
	if (*frozen)
		say_wrong("a call waits for whoever has frozen its process");
}

static struct mapping *find_mapping(uint64_t start)
{
	for (size_t i = 0; i < NR_VMAS; i++)
		if (model->vmas[i].start == start)
			return &model->vmas[i];
	return NULL;
}

static bool find_at(uint64_t offset)
{
	for (size_t i = 0; i < model->nr; i++)
		if (model->bos[i].offset == offset)
			return true;
	return false;
}

static int map(const uint64_t args[6])
{
	struct mapping *vma = find_mapping(args[0]);

	if (args[0] == MEMORY + INJECT_SPARE) { /* a trial */
		if (args[3] & MAP_ANONYMOUS)
			return 0;
		if (args[4] == RENDER && !find_at(args[5]))
			say_wrong("mmap() of offset %#lx, where no buffer is", args[5]);
		return args[4] == RENDER ? 0 : -EACCES;
	}
	if (!vma || vma->end - vma->start != args[1]) {
		say_wrong("mmap() of another range");
		return -EINVAL;
	}
	if (args[3] & MAP_ANONYMOUS) {
		*vma = (struct mapping){ .start = vma->start, .end = vma->end, .is_covered = true };
		return 0;
	}
	if (args[4] != RENDER)
		return -EACCES;
	*vma = (struct mapping){ vma->start, vma->end, args[5], (int)args[2], false, false, 0 };
	return 0;
}

/* What it can fail by before it is made. */
static int begin_call(struct inject *inject)
{
	int err = point();

	inject->is_lost |= !err && model->is_killed;
	model->has_ended |= inject->is_lost && now->is_reaped;
	err = inject->is_lost ? -ESRCH : err;
	if (err)
		return err;
	take_stop(inject);
	make_call(inject);
	return 0;
}

int inject_call(struct inject *inject, long nr, const uint64_t args[6], int64_t *ret)
{
	int err;

	select_pid(inject->tid);
	err = begin_call(inject);
	if (err)
		return err;
	if (!model->in_call)
		say_wrong("a call without inject_begin()");
	if (nr == SYS_mmap)
		err = map(args);
	else if (nr == SYS_madvise)
		find_mapping(args[0])->dontfork = true;
	else if (nr == SYS_pkey_mprotect)
		find_mapping(args[0])->key = (int)args[3];
	else if (nr == SYS_memfd_create)
		model->marked = true;
	else if (nr == SYS_close)
		model->marked = false;
	else if (nr != SYS_munmap)
		say_wrong("call %ld is not expected", nr);
	done();
	return err;
}

static int allocate(struct kfd_ioctl_alloc_memory_of_gpu_args *args)
{
	bool is_vram = args->flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM;
	uint32_t number = 0;
	size_t i = 0;

	model->allocations++;
	if (is_vram && args->size > model->room)
		return -ENOMEM;
	while (i < model->nr && model->bos[i].number == number)
		i++, number++;
	assert_true(model->nr < MAX_BOS);
	memmove(&model->bos[i + 1], &model->bos[i], (model->nr - i) * sizeof(*model->bos));
	model->nr++;
	model->bos[i] = (struct buffer){
		.there = true,
		.address = args->va_addr,
		.size = args->size,
		.number = number,
		.flags = args->flags,
		.offset = model->next_offset,
	};
	model->next_offset += 0x100000;
	/* A test may make room meanwhile. */
	__atomic_sub_fetch(&model->room, is_vram ? args->size : 0, __ATOMIC_SEQ_CST);
	args->handle = kfd_handle(GPU, number);
	args->mmap_offset = model->bos[i].offset;
	return 0;
}

static int free_buffer(const struct kfd_ioctl_free_memory_of_gpu_args *args)
{
	struct buffer *bo = find_buffer((uint32_t)args->handle);
	size_t i = (size_t)(bo - model->bos);

	if (!bo)
		return -EINVAL;
	if (bo->is_mapped)
		return -EBUSY;
	if (bo->contents && disk_of(model)[bo->number] != bo->contents)
		say_wrong("buffer %u is freed, and its contents are not saved", bo->number);
	for (uint32_t handle = 0; handle < NR_HANDLES; handle++)
		if (model->handles[handle].there && model->handles[handle].bo == bo->number)
			say_wrong("buffer %u is freed, and handle %u holds its memory", bo->number, handle);
	model->has_token = model->has_token && bo->number != 3;
	__atomic_add_fetch(&model->room, bo->flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM ? bo->size : 0, __ATOMIC_SEQ_CST);
	memmove(&model->bos[i], &model->bos[i + 1], (model->nr - i - 1) * sizeof(*model->bos));
	model->nr--;
	return 0;
}

static int set_mapped(const struct kfd_ioctl_map_memory_to_gpu_args *args, bool mapped)
{
	struct buffer *bo = find_buffer((uint32_t)args->handle);

	if (!bo)
		return -EINVAL;
	if (!mapped && bo->number == 8)
		return -EBUSY;
	bo->is_mapped = mapped;
	return 0;
}

int inject_kfd(struct inject *inject, unsigned long op, void *args)
{
	int err;

	select_pid(inject->tid);
	err = begin_call(inject);
	if (err)
		return err;
	assert_int_equal(inject->kfd, KFD);
	if (!model->queues_stand)
		say_wrong("buffers change while queues run");
	if (op == AMDKFD_IOC_ALLOC_MEMORY_OF_GPU)
		err = allocate(args);
	else if (op == AMDKFD_IOC_FREE_MEMORY_OF_GPU)
		err = free_buffer(args);
	else if (op == AMDKFD_IOC_MAP_MEMORY_TO_GPU)
		err = set_mapped(args, true);
	else if (op == AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU)
		err = set_mapped(args, false);
	else
		say_wrong("ioctl %#lx is not expected", op);
	done();
	return err;
}

/* ---- /proc, /run ---- */

static const char *redirect(const char *path, char to[PATH_MAX])
{
	static const char run[] = "/proc/1/root/run/amdgpu-checkpoint";

	if (strncmp(path, run, strlen(run)))
		return path;
	snprintf(to, PATH_MAX, "%s%s", records, path + strlen(run));
	return to;
}

int __wrap_open(const char *path, int flags, mode_t mode)
{
	char to[PATH_MAX];

	return __real_open(redirect(path, to), flags, mode);
}

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode)
{
	char to[PATH_MAX];
	int r = __real_mkdir(redirect(path, to), mode);

	done();
	return r;
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
	char a[PATH_MAX], b[PATH_MAX];
	int r;

	if (point()) {
		errno = ENOSPC;
		return -1;
	}
	r = __real_rename(redirect(from, a), redirect(to, b));
	done();
	return r;
}

int __real_unlink(const char *path);
int __wrap_unlink(const char *path)
{
	char to[PATH_MAX];
	int r = __real_unlink(redirect(path, to));

	done();
	return r;
}

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
	FILE *f;

	if (!strstr(path, "/smaps") && strncmp(path, "/proc/5242", 10))
		return __real_fopen(path, mode);
	select_pid(atoi(path + strlen("/proc/")));
	f = tmpfile();
	assert_non_null(f);
	if (strstr(path, "/status")) {
		fprintf(f, "Name:\tjob\nTracerPid:\t%d\nShdPnd:\t%016x\n", model->is_traced,
			model->has_stop_pending ? 1u << (SIGSTOP - 1) : 0);
		rewind(f);
		return f;
	}
	for (size_t i = 0; i < NR_VMAS; i++) {
		const struct mapping *vma = &model->vmas[i];

		fprintf(f, "%lx-%lx %c%c-s 0 00:00 1 /dev/dri/renderD128\nRss: 0 kB\nProtectionKey: %9d\nVmFlags: rd sh%s \n", vma->start,
			vma->end, vma->prot & PROT_READ ? 'r' : '-', vma->prot & PROT_WRITE ? 'w' : '-',
			vma->key, vma->dontfork ? " dc" : "");
	}
	rewind(f);
	return f;
}

int __real_list_numbers(int dir_fd, const char *path, int **ret, size_t *ret_nr);
int __wrap_list_numbers(int dir_fd, const char *path, int **ret, size_t *ret_nr)
{
	char to[PATH_MAX];

	if (strcmp(path, "/proc") && strncmp(path, "/proc/5242", 10))
		return __real_list_numbers(dir_fd, redirect(path, to), ret, ret_nr);
	*ret = calloc(2, sizeof(**ret));
	(*ret)[0] = path[5] ? 4 : PID;
	(*ret)[1] = path[5] ? RENDER : CHILD;
	*ret_nr = 2;
	return 0;
}

ssize_t __real_readlink(const char *path, char *to, size_t size);
ssize_t __wrap_readlink(const char *path, char *to, size_t size)
{
	int of;

	if (sscanf(path, "/proc/%d/exe", &of) != 1 || of < PID || of > CHILD)
		return __real_readlink(path, to, size);
	errno = ENOENT;
	if (of == CHILD && !models[0].has_child)
		return -1;
	return snprintf(to, size, "/bin/job%d", of == CHILD ? PID : of);
}

int __real_stat_quietly(int dir, const char *path, struct stat *st);
int __wrap_stat_quietly(int dir, const char *path, struct stat *st)
{
	if (strncmp(path, "/proc/5242", 10))
		return __real_stat_quietly(dir, path, st);
	*st = (struct stat){ .st_mode = S_IFCHR, .st_rdev = makedev(226, MINOR) };
	return 0;
}


/* ---- runs ---- */

static const int pids[MAX_NR] = { PID, PID + 1 };
static struct settings settings;

static bool by_stop; /* why they are suspended */

static int suspend_once(void)
{
	const struct suspend_target target = {
		.pids = pids, .nr = (size_t)now->nr, .follows = CGROUP_ABOVE, .by_stop = by_stop, .id = 0x5eed,
		.timeout_seconds = now->timeout_seconds,
	};
	struct suspend_result result = { 0 };
	int err = suspend_processes(&target, contents, &settings, &result);

	free(result.reports);
	return err;
}

static int suspend_and_linger(void)
{
	int err = suspend_once();

	sleep(2);
	return err;
}

static struct suspend_waiter waiter = { 0, -1 }; /* in which it waits, if it does */

static int resume_once(void)
{
	const struct suspend_target resumed = { .pids = pids, .nr = (size_t)now->nr, .waiter = waiter.since ? &waiter : NULL };
	struct suspend_result result = { 0 };
	int err = suspend_resume(&resumed, RESUME_TO_RUN, 0, &settings, &result);

	now->reset_minor = err ? 0 : result.reports[0].reset_minor;
	free(result.reports);
	return err;
}

/* ---- the four phases ---- */

static int lock_once(void)
{
	const struct suspend_target target = {
		.pids = pids, .nr = (size_t)now->nr, .id = 0x5eed, .timeout_seconds = now->timeout_seconds,
	};
	struct suspend_result result = { 0 };
	int err = suspend_lock(&target, &settings, &result);

	free(result.reports);
	return err;
}

static int restore_once(void)
{
	const struct suspend_target target = { .pids = pids, .nr = (size_t)now->nr };
	struct suspend_result result = { 0 };
	int err = suspend_resume(&target, RESUME_TO_LOCK, 0, &settings, &result);

	free(result.reports);
	return err;
}

/* And what the command does after a failure. */
static int checkpoint_once(void)
{
	const struct suspend_target target = {
		.pids = pids, .nr = (size_t)now->nr, .id = 0xc0de, .timeout_seconds = now->timeout_seconds, .are_locked = true,
	};
	struct suspend_result result = { 0 };
	int err = suspend_processes(&target, contents, &settings, &result);

	free(result.reports);
	if (err && result.is_half)
		restore_once();
	return err;
}

static int unlock_once(void)
{
	const struct suspend_target target = { .pids = pids, .nr = (size_t)now->nr };
	struct suspend_result result = { 0 };
	int err = suspend_resume(&target, RESUME_FROM_LOCK, 0, &settings, &result);

	free(result.reports);
	return err;
}

/* In a process of its own, which may die. 0; 1: an error; -1: it died. */
static int run(int (*what)(void), unsigned int die_at, unsigned int fail_at)
{
	pid_t child;
	int status;

	now->nr_points = 0;
	now->die_at = die_at;
	now->fail_at = fail_at;
	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (!child)
		_exit(what() ? 1 : 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	for (int i = 0; i < now->nr; i++)
		models[i].held = false;
	return WIFSIGNALED(status) ? (assert_int_equal(WTERMSIG(status), now->timeout_seconds ? SIGALRM : SIGKILL), -1) : WEXITSTATUS(status);
}

static void expect_nothing_wrong(unsigned int at)
{
	if (now->wrong[0])
		fail_msg("point %u: %s", at, now->wrong);
}

static void expect_whole(unsigned int at)
{
	const char *why;

	expect_nothing_wrong(at);
	for (int i = now->nr - 1; i >= 0; i--) {
		model = &models[i];
		if (!is_whole(&why))
			fail_msg("point %u: process %d comes back without its %s", at, i, why);
		if (model->stopped || model->queues_stand || model->marked)
			fail_msg("point %u: process %d does not run: %s%s%s", at, i, model->stopped ? "stopped " : "",
				 model->queues_stand ? "queues " : "", model->marked ? "marked" : "");
		/* It may not be able to go back. */
		if (model->has_own && (!model->is_in_own || model->frozen[2]))
			fail_msg("point %u: process %d: the cgroup of its own is left", at, i);
	}
}

/* By the cgroup of its own, and by no signal. */
static bool is_frozen(void)
{
	return model->is_in_own && model->frozen[2] && !model->stopped;
}

/* Where it is, and by SIGSTOP: an engine has frozen a cgroup above. */
static bool is_frozen_at_home(void)
{
	return !model->is_in_own && !model->has_own && model->frozen[1] && model->stopped;
}

/* What the record of a process says. */
static enum suspend_state state_of(int i)
{
	struct suspend_info info;

	assert_int_equal(suspend_ask(PID + i, &info), 0);
	return info.state;
}

/* A resume completes what there is; where nothing is, it finds no record. */
static void complete(unsigned int at)
{
	bool is_left = false;

	for (int i = 0; i < now->nr; i++)
		is_left = is_left || state_of(i) != STATE_RUNNING;
	if (is_left)
		assert_int_equal(run(resume_once, 0, 0), 0);
	expect_whole(at);
	for (int i = 0; i < now->nr; i++)
		assert_int_equal(state_of(i), STATE_RUNNING);
	if (!access(contents, F_OK))
		fail_msg("point %u: the directory of its contents stays", at);
}

static int begin(void **state)
{
	if (!mkdtemp(directory))
		return 1;
	snprintf(records, sizeof(records), "%s/run", directory);
	snprintf(contents, sizeof(contents), "%s/contents", directory);
	models = mmap(NULL, MAX_NR * sizeof(*models), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	disks = mmap(NULL, MAX_NR * sizeof(*disks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	now = mmap(NULL, sizeof(*now), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return models == MAP_FAILED || disks == MAP_FAILED || now == MAP_FAILED;
}

static int end(void **state)
{
	remove_all(directory);
	return 0;
}

TEST(a_suspended_process_has_freed_what_is_its_own_alone)
{
	struct suspend_info info;

	make_process();
	assert_int_equal(run(suspend_once, 0, 0), 0);
	expect_nothing_wrong(0);
	assert_true(is_frozen() && model->queues_stand && model->marked && !model->in_call);
	/* Left: GTT, what others have, and what a queue needs. */
	assert_int_equal(model->nr, 3);
	assert_non_null(find_buffer(1));
	assert_non_null(find_buffer(4));
	assert_non_null(find_buffer(8));
	assert_true(model->vmas[0].is_covered && model->vmas[1].is_covered);
	assert_true(model->handles[2].there && !model->handles[4].there && !model->handles[6].there);
	assert_int_equal(suspend_ask(PID, &info), 0);
	assert_int_equal(info.state, STATE_SUSPENDED);
	assert_int_equal(info.report.freed_bytes, (4 + 16 + 8 + 2 + 4) * PAGE);
	assert_int_equal(info.report.kept_bytes[KEPT_BY_QUEUES], PAGE);
	assert_int_equal(info.report.kept_bytes[KEPT_BY_SHARING], PAGE);
	/* Another suspend refuses it. */
	assert_int_equal(run(suspend_once, 0, 0), 1);
	expect_nothing_wrong(0);
	assert_int_equal(run(resume_once, 0, 0), 0);
	expect_whole(0);
	assert_int_equal(model->pauses, 1);
	assert_int_equal(run(resume_once, 0, 0), 1);
}

/* Its memory would not be free, and the child would go on with it. */
TEST(a_buffer_that_a_child_has_mapped_stays)
{
	struct suspend_info info;

	make_process();
	model->has_child = true;
	assert_int_equal(run(suspend_once, 0, 0), 0);
	assert_non_null(find_buffer(3));
	assert_null(find_buffer(7));
	assert_int_equal(suspend_ask(PID, &info), 0);
	assert_int_equal(info.report.kept_bytes[KEPT_BY_SHARING], (1 + 16) * PAGE);
	complete(0);
}

static void expect_stay(enum suspend_kept why, uint64_t bytes)
{
	struct suspend_info info;

	assert_int_equal(run(suspend_once, 0, 0), 0);
	assert_int_equal(suspend_ask(PID, &info), 0);
	assert_int_equal(info.report.kept_bytes[why], bytes);
	assert_non_null(find_buffer(13));
	assert_true(model->handles[4].there && model->handles[4].is_mapped[1]);
	complete(0);
}

/* The child could take a number meanwhile. */
TEST(buffers_stay_whose_render_file_another_process_has)
{
	make_process();
	model->shares_file = true;
	expect_stay(KEPT_BY_SHARING, (1 + 16 + 4) * PAGE);
	make_process();
	now->is_container = true;
	expect_stay(KEPT_BY_SHARING, (1 + 16 + 4) * PAGE);
}

TEST(a_buffer_stays_that_a_queue_needs_at_the_address_of_a_handle)
{
	make_process();
	model->is_ring_in_vmm = true;
	expect_stay(KEPT_BY_QUEUES, 4 * PAGE);
}

static int suspend_and_say(void)
{
	int err = suspend_once();

	return err || !strstr(log_now(), "VRAM of VMM (hipMallocAsync, hipMemCreate, expandable segments) is not freed: the kernel "
					 "does not list the 3 handles of renderD128 before Linux 6.18");
}

TEST(that_the_kernel_lists_no_handles_is_said_and_what_they_may_be_of_stays)
{
	make_process();
	model->is_unlisted = true;
	model->alone[2] = model->alone[7] = false;
	assert_int_equal(run(suspend_and_say, 0, 0), 0);
	expect_nothing_wrong(0);
	assert_non_null(find_buffer(13));
	assert_null(find_buffer(7));
	assert_true(model->handles[4].there && model->handles[4].is_mapped[1]);
	complete(0);
}

TEST(an_object_of_the_render_node_alone_is_counted)
{
	struct suspend_info info;

	make_process();
	model->handles[7] = (struct handle){ .there = true, .bo = 99 };
	fresh[0].handles[7] = model->handles[7];
	assert_int_equal(run(suspend_once, 0, 0), 0);
	assert_int_equal(suspend_ask(PID, &info), 0);
	assert_int_equal(info.report.kept_bytes[KEPT_BY_RENDER_NODE], 4 * PAGE);
	complete(0);
}

/* Somebody has let it run, and it has taken the number of a handle. */
TEST(a_handle_that_a_continued_process_has_made_is_left_alone)
{
	make_process();
	assert_int_equal(run(suspend_once, 0, 0), 0);
	model->handles[4] = (struct handle){ .there = true, .bo = 99 };
	assert_int_equal(run(resume_once, 0, 0), 1);
	expect_nothing_wrong(0);
	assert_true(model->handles[4].there && model->handles[4].bo == 99 && is_held());
	model->handles[4].there = false;
	complete(0);
}

/* Somebody has let it run, and it has made a buffer: with a number that was free, and that of one of its own. */
TEST(a_buffer_that_a_continued_process_has_made_is_left_alone)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args args = { .va_addr = 0x900000, .size = PAGE, .flags = GTT };
	struct kfd_ioctl_free_memory_of_gpu_args first = { .handle = kfd_handle(GPU, 0) };

	make_process();
	assert_int_equal(run(suspend_once, 0, 0), 0);
	model->stopped = false;
	assert_int_equal(allocate(&args), 0);
	assert_int_equal(run(resume_once, 0, 0), 1);
	assert_int_equal(find_buffer(0)->address, 0x900000);
	assert_int_equal(allocate(&args), 0);
	assert_int_equal(free_buffer(&first), 0);
	assert_int_equal(run(resume_once, 0, 0), 0);
	assert_int_equal(find_buffer(2)->address, 0x900000);
	for (size_t i = 0; i < NR_BOS; i++)
		assert_int_equal(find_buffer(fresh->bos[i].number)->contents, fresh->bos[i].contents);
}

static int suspend_nothing(void)
{
	static const struct suspend_target nothing;
	struct suspend_result result = { 0 };

	return suspend_processes(&nothing, contents, &settings, &result);
}

TEST(a_suspend_without_a_process_leaves_no_directory)
{
	make_process();
	assert_int_equal(access(contents, F_OK), -1);
	assert_int_equal(run(suspend_nothing, 0, 0), 1);
	assert_int_equal(access(contents, F_OK), -1);
}

static int (*const commands[])(void) = { suspend_once, resume_once, lock_once, checkpoint_once, restore_once, unlock_once };
#define FIRST_PHASE 2

/* They run, or are suspended or locked. */
static void come_to(int (*command)(void))
{
	if (command == resume_once)
		assert_int_equal(run(suspend_once, 0, 0), 0);
	if (command == checkpoint_once || command == restore_once || command == unlock_once)
		assert_int_equal(run(lock_once, 0, 0), 0);
	if (command == restore_once)
		assert_int_equal(run(checkpoint_once, 0, 0), 0);
}

/* Of $FAULTS_EACH points one, another each day; without it each point: the sanitizers are slow, and a plain build does all. */
static unsigned int next_point(unsigned int at)
{
	const char *each = getenv("FAULTS_EACH");
	unsigned int step = each ? (unsigned int)atoi(each) : 1;

	return at ? at + step : 1 + (unsigned int)(time(NULL) / 86400 % step);
}

static void make_process_for(int (*command)(void))
{
	make_process();
	come_to(command);
}

TEST(a_command_that_dies_anywhere_loses_nothing)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		for (unsigned int at = next_point(0), died = 1; died; at = next_point(at)) {
			make_process_for(commands[i]);
			died = run(commands[i], at, 0) < 0;
			complete(at);
			assert_true(died || at > 20);
		}
}

/* SIGSTOP alone holds it. */
TEST(without_cgroups_a_command_that_dies_anywhere_loses_nothing)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		for (unsigned int at = next_point(0), died = 1; died; at = next_point(at)) {
			make_process();
			model->no_cgroups = true;
			come_to(commands[i]);
			assert_true(commands[i] != resume_once || model->stopped);
			died = run(commands[i], at, 0) < 0;
			complete(at);
		}
}

/* As from a container, or from outside of the one where it was suspended. */
TEST(a_cgroup_is_known_where_it_has_another_path)
{
	for (int by_home = 0; by_home < 2; by_home++) {
		make_process();
		models->frozen[0] = by_home;
		assert_int_equal(run(suspend_once, 0, 0), 0);
		assert_int_equal(model->is_in_own, !by_home);
		models->frozen[0] = false;
		models->is_seen_outside = true;
		assert_int_equal(run(resume_once, 0, 0), 0);
		expect_whole(0);
		assert_false(models->frozen[1] || model->frozen[2] || model->has_own);
	}
}

TEST(who_is_frozen_in_a_cgroup_that_is_not_seen_is_refused_at_once)
{
	make_process();
	assert_int_equal(run(suspend_once, 0, 0), 0);
	model->no_cgroups = true;
	assert_int_equal(run(resume_once, 0, 0), 1);
	expect_nothing_wrong(0);
	assert_int_equal(model->nr, 3);
	assert_true(is_frozen());
	assert_int_equal(state_of(0), STATE_SUSPENDED);
	model->no_cgroups = false;
	complete(0);
}

TEST(who_is_held_by_a_signal_alone_is_named)
{
	struct suspend_info info;

	make_process();
	assert_int_equal(run(suspend_once, 0, 0), 0);
	assert_int_equal(suspend_ask(PID, &info), 0);
	assert_false(info.report.is_held_by_signal);
	complete(0);
	make_process();
	model->no_cgroups = true;
	assert_int_equal(run(suspend_once, 0, 0), 0);
	assert_true(model->stopped);
	assert_int_equal(suspend_ask(PID, &info), 0);
	assert_true(info.report.is_held_by_signal);
	complete(0);
}

TEST(a_parent_that_stops_with_its_child_goes_on)
{
	for (int was_stopped = 0; was_stopped < 2; was_stopped++) {
		make_process();
		model->parent_looks = true;
		model->is_parent_stopped = was_stopped;
		assert_int_equal(run(suspend_once, 0, 0), 0);
		assert_int_equal(model->is_parent_stopped, was_stopped);
		complete(0);
		assert_int_equal(model->is_parent_stopped, was_stopped);
	}
}

TEST(a_parent_does_not_continue_what_sigstop_alone_holds)
{
	make_process();
	model->parent_looks = model->no_cgroups = true;
	assert_int_equal(run(suspend_once, 0, 0), 0);
	expect_nothing_wrong(0);
	assert_true(model->stopped);
	complete(0);
	assert_false(model->stopped);
	assert_false(model->is_parent_stopped);
}

TEST(a_parent_that_is_suspended_itself_is_not_continued)
{
	make_process();
	model->no_cgroups = true;
	assert_int_equal(run(suspend_once, 0, 0), 0);
	model->is_parent_stopped = model->is_parent_marked = true;
	complete(0);
	assert_true(model->is_parent_stopped);
}

TEST(a_parent_that_others_stop_between_calls_stays_stopped)
{
	make_process();
	model->is_parent_stopped_late = true;
	assert_int_equal(run(suspend_once, 0, 0), 0);
	assert_true(model->is_parent_stopped);
	complete(0);
	assert_true(model->is_parent_stopped);
}

/* A resume finds it stopped by the command that was killed, and not by others. */
TEST(a_parent_that_a_killed_command_has_left_stopped_goes_on)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		for (unsigned int at = next_point(0), died = 1; died; at = next_point(at)) {
			make_process();
			model->parent_looks = true;
			come_to(commands[i]);
			died = run(commands[i], at, 0) < 0;
			complete(at);
			if (models->is_parent_stopped)
				fail_msg("command %zu, point %u: the parent stays stopped", i, at);
		}
}

TEST(a_suspended_process_that_is_killed_leaves_nothing)
{
	for (int by_state = 0; by_state < 2; by_state++) {
		struct suspend_info info;

		make_process();
		assert_int_equal(run(suspend_once, 0, 0), 0);
		end_process(0);
		assert_true(model->has_own);
		assert_int_equal(by_state ? suspend_ask(PID, &info) : run(resume_once, 0, 0), 0);
		assert_false(model->has_own);
		expect_nothing_wrong(0);
	}
}

TEST(a_resume_of_what_a_killed_suspend_has_left_may_die_too)
{
	for (unsigned int first = 1; first < 150; first += 13)
		for (unsigned int at = 1, died = 1; died; at += 7) {
			make_process();
			run(suspend_once, first, 0);
			died = run(resume_once, at, 0) < 0;
			complete(at);
		}
}

static int bring_back(const struct suspend_target *target)
{
	struct suspend_result result = { 0 };
	int err = suspend_resume(target, RESUME_TO_RUN, 0, &settings, &result);

	if (!err)
		now->reset_minor = result.reports[0].reset_minor;
	free(result.reports);
	return err == -ENOENT ? 0 : err;
}

/* The command that was killed has a parent, which takes back what it has left, be it suspended. */
static int take_back(void)
{
	const struct suspend_target target = { .id = 0x5eed };

	return bring_back(&target);
}

TEST(a_parent_goes_on_when_another_process_has_ended_meanwhile)
{
	for (unsigned int at = 1;; at++) {
		int err;

		make_processes(2);
		models[0].parent_looks = now->is_reaped = true;
		now->kill_at = at;
		err = run(suspend_once, 0, 0);
		now->kill_at = 0;
		if (err)
			assert_int_equal(run(take_back, 0, 0), 0);
		if (models->is_parent_stopped)
			fail_msg("point %u: the parent stays stopped", at);
		if (!models[1].is_killed)
			break;
	}
}

/* The kernel does not let queues of a process run that has ended. */
static int suspend_and_listen(void)
{
	int err = suspend_once();

	now->is_advised = strstr(log_now(), "cannot let its GPU queues run again");
	return err;
}

TEST(nobody_is_told_to_resume_what_has_ended)
{
	for (unsigned int at = 1;; at++) {
		int err;

		make_processes(2);
		now->kill_at = at;
		err = run(suspend_and_listen, 0, 0);
		now->kill_at = 0;
		if (now->is_advised)
			fail_msg("point %u: a resume is advised", at);
		assert_int_equal(run(err ? take_back : resume_once, 0, 0), 0);
		if (!models[1].is_killed)
			break;
	}
}

/* Either all is suspended, or what is not so is "half", and comes back with any of the others. */
static void expect_all_or_none(unsigned int at)
{
	bool is_suspended = state_of(0) == STATE_SUSPENDED;

	if (is_suspended && !(models[1].is_in_own && models[1].frozen[2] && models[1].marked))
		fail_msg("point %u: one is suspended, and the other is not", at);
	if (state_of(1) == STATE_SUSPENDED && !is_suspended)
		fail_msg("point %u: the second is suspended before the first", at);
}

static int resume_first(void)
{
	const struct suspend_target target = { .pids = pids, .nr = 1 };

	return bring_back(&target);
}

TEST(several_processes_are_suspended_all_or_none_whenever_the_command_dies)
{
	for (size_t how = 0; how < 4; how++)
		for (unsigned int at = 1, died = 1; died; at += 1 + at / 30) {
			make_processes(2);
			models[1].no_kfd = how & 2;
			died = run(suspend_once, at, 0) < 0;
			expect_all_or_none(at);
			assert_int_equal(run(how & 1 ? take_back : resume_first, 0, 0), 0);
			if (how & 1 || state_of(1) != STATE_SUSPENDED)
				expect_whole(at);
			complete(at);
		}
}

/* Nothing is left of the second, and the first is there. */
static void expect_first_alone(unsigned int at)
{
	const char *why;

	models[1].exits = 0;
	suspend_clean();
	expect_nothing_wrong(at);
	model = models;
	if (!is_whole(&why) || model->stopped || model->is_in_own || model->queues_stand || model->marked)
		fail_msg("point %u: the first does not come back", at);
	if (models[1].has_own || models[0].has_own || state_of(0) != STATE_RUNNING || !access(contents, F_OK))
		fail_msg("point %u: something is left", at);
}

/* Its parent, which is suspended, too, does not wait for it. */
TEST(a_process_that_is_killed_does_not_keep_the_other)
{
	for (size_t i = 0; i < FIRST_PHASE; i++)
		for (unsigned int at = 0;; at = next_point(at)) {
			int err;

			make_processes(2);
			if (commands[i] == resume_once)
				assert_int_equal(run(suspend_once, 0, 0), 0);
			models[1].is_killed = !at;
			now->kill_at = at;
			err = run(commands[i], 0, 0);
			now->kill_at = 0;
			if (!models[1].is_killed) {
				assert_true(at > 40);
				complete(at);
				break;
			}
			/* What the command does when a suspend fails. */
			if (commands[i] == suspend_once && err)
				assert_int_equal(run(take_back, 0, 0), 0);
			else if (commands[i] == suspend_once)
				assert_int_equal(run(resume_once, 0, 0), 0);
			else if (err)
				fail_msg("point %u: the resume fails", at);
			expect_first_alone(at);
		}
}

/* And what the command does then. The other is as before, or at the end of the phase. */
TEST(a_process_that_is_killed_in_a_phase_does_not_keep_the_other)
{
	for (size_t i = FIRST_PHASE; i < ARRAY_SIZE(commands); i++)
		for (unsigned int at = 1;; at += 1 + at / 20) {
			const char *why;
			int err;

			make_processes(2);
			come_to(commands[i]);
			now->kill_at = at;
			err = run(commands[i], 0, 0);
			now->kill_at = 0;
			if (commands[i] == lock_once && err)
				assert_int_equal(run(take_back, 0, 0), 0);
			else if (err && commands[i] != checkpoint_once)
				fail_msg("phase %zu, point %u: it fails", i, at);
			expect_nothing_wrong(at);
			model = models;
			if ((err || commands[i] != checkpoint_once) && !is_whole(&why))
				fail_msg("phase %zu, point %u: without its %s", i, at, why);
			if (state_of(0) != STATE_RUNNING)
				assert_int_equal(run(resume_once, 0, 0), 0);
			if (!models[1].is_killed)
				break;
			expect_first_alone(at);
		}
}

TEST(several_processes_are_suspended_all_or_none_whatever_fails)
{
	for (unsigned int at = next_point(0), nr = 80; at <= nr; at = next_point(at)) {
		int failed;

		make_processes(2);
		failed = run(suspend_once, 0, at);
		nr = now->nr_points > nr ? now->nr_points : nr;
		if (failed)
			assert_int_equal(run(take_back, 0, 0), 0);
		else
			assert_true(state_of(0) == STATE_SUSPENDED && state_of(1) == STATE_SUSPENDED);
		if (failed)
			expect_whole(at);
		complete(at);
	}
}

static int suspend_tree(void)
{
	const struct suspend_target target = { .pids = pids, .nr = 1, .tree = true, .id = 0x5eed };
	struct suspend_result result = { 0 };
	int err = suspend_processes(&target, contents, &settings, &result);

	free(result.reports);
	return err;
}

/* As compilers that a job starts. */
TEST(a_child_that_ends_before_it_is_stopped_is_no_refusal)
{
	make_processes(2);
	models[1].ends_unheld = true;
	assert_int_equal(run(suspend_once, 0, 0), 1);
	models[1].is_killed = false;
	assert_int_equal(run(suspend_tree, 0, 0), 0);
	assert_true(models[1].is_killed);
	assert_int_equal(state_of(0), STATE_SUSPENDED);
	/* Its parent is suspended, and does not wait for it. */
	assert_int_equal(run(resume_first, 0, 0), 0);
	now->nr_holds = 0;
	assert_int_equal(run(suspend_tree, 0, 0), 0);
	assert_int_equal(now->nr_holds, 1);
	assert_int_equal(run(resume_first, 0, 0), 0);
	model = models;
	assert_false(model->has_own || model->stopped || model->queues_stand || model->marked);
	expect_nothing_wrong(0);
	assert_int_not_equal(access(contents, F_OK), 0);
}

TEST(a_suspend_without_room_for_the_data_is_refused_before_a_byte_is_copied)
{
	make_processes(2);
	now->no_room = true;
	memset(disks, 0, MAX_NR * sizeof(*disks));
	assert_int_equal(run(suspend_once, 0, 0), 1);
	for (size_t i = 0; i < MAX_BOS; i++)
		assert_int_equal(disks[0][i], 0);
	expect_whole(0);
	assert_int_equal(state_of(0), STATE_RUNNING);
	assert_int_equal(access(contents, F_OK), -1);
}

TEST(a_process_without_a_gpu_is_known_as_suspended_too)
{
	make_processes(2);
	models[1].no_kfd = true;
	assert_int_equal(run(suspend_once, 0, 0), 0);
	assert_true(models[1].is_in_own && models[1].frozen[2] && models[1].marked && !models[1].in_call);
	complete(0);
}

static int be_refused(const char *why)
{
	return !suspend_once() || !strstr(fail_text(), why);
}

static int refuse_closed_kfd(void)
{
	return be_refused("pid 5242881: has 2 queues and 4096 bytes of VRAM, and no descriptor of a /dev/kfd of its own");
}

static int refuse_unreadable_kfd(void)
{
	return be_refused("pid 5242880: cannot look for it among the KFD's processes: Too many open files");
}

static int refuse_other_kfd(void)
{
	return be_refused("pid 5242881: its /dev/kfd is that of pid 5242880");
}

static void expect_untouched(void)
{
	expect_whole(0);
	assert_int_equal(state_of(0), STATE_RUNNING);
	assert_int_equal(state_of(1), STATE_RUNNING);
	assert_int_not_equal(access(contents, F_OK), 0);
}

/* Its queues would run on, and its VRAM would stay allocated. */
TEST(a_process_that_has_closed_its_kfd_is_refused)
{
	make_processes(2);
	models[1].no_kfd = models[1].has_closed_kfd = true;
	assert_int_equal(run(refuse_closed_kfd, 0, 0), 0);
	expect_untouched();
}

/* It may have several contexts, or a GPU on which the kernel must not be asked. */
TEST(a_process_of_which_the_kfds_sysfs_says_nothing_is_refused)
{
	make_processes(2);
	now->is_kfd_unreadable = true;
	assert_int_equal(run(refuse_unreadable_kfd, 0, 0), 0);
	now->is_kfd_unreadable = false;
	expect_untouched();
}

static int refuse_sharer(void)
{
	const struct suspend_target target = { .pids = pids, .nr = 1, .id = 0x5eed };
	struct suspend_result result = { 0 };

	return !suspend_processes(&target, contents, &settings, &result) ||
	       !strstr(fail_text(), "pid 5242880: pid 5242881 has the same memory or the same descriptors");
}

/* It could close /dev/kfd meanwhile. */
TEST(a_process_that_shares_its_descriptors_is_suspended_with_the_other_only)
{
	make_processes(2);
	now->has_sharer = true;
	assert_int_equal(run(refuse_sharer, 0, 0), 0);
	expect_untouched();
	assert_int_equal(run(suspend_once, 0, 0), 0);
	complete(0);
}

/* A child with a lower pid has inherited it, and files of several tasks are those of the one with the lowest. */
TEST(the_kfd_of_another_process_is_not_taken_for_its_own)
{
	make_processes(2);
	models[1].no_kfd = now->is_kfd_inherited = true;
	now->is_container = true;
	assert_int_equal(run(refuse_other_kfd, 0, 0), 0);
	expect_untouched();
}

/* Of a process that was suspended under another number there is an older record here, in which nothing has changed. */
TEST(a_record_of_before_does_not_let_the_queues_of_a_suspended_process_run)
{
	make_process();
	assert_int_equal(run(suspend_once, 1, 0), -1);
	for (unsigned int at = 1; state_of(0) == STATE_RUNNING; at++)
		run(suspend_once, at, 0);
	assert_int_equal(state_of(0), STATE_HALF);
	model->marked = true;
	assert_int_equal(run(resume_once, 0, 0), 1);
	model->marked = false;
	complete(0);
}

/* The number is that of another process by the time that it is seized. */
TEST(another_process_of_the_same_number_is_not_resumed)
{
	make_process();
	assert_int_equal(run(suspend_once, 0, 0), 0);
	model->is_replaced = true;
	assert_int_equal(run(resume_once, 0, 0), 0);
	expect_nothing_wrong(0);
	assert_true(model->marked && model->queues_stand && model->nr == 3);
}

static int checkpoint_in_vain(void)
{
	return !checkpoint_once() || !strstr(fail_text(), "pid 5242881: there is no such process");
}

TEST(a_locked_process_that_has_ended_is_not_said_to_run)
{
	make_processes(2);
	assert_int_equal(run(lock_once, 0, 0), 0);
	end_process(1);
	assert_int_equal(run(checkpoint_once, 0, 0), 1);
	assert_int_equal(run(checkpoint_in_vain, 0, 0), 0);
	assert_int_equal(run(unlock_once, 0, 0), 0);
	expect_nothing_wrong(0);
}

static int refuse_version(void)
{
	return be_refused("pid 5242880: was suspended by amdgpu-checkpoint ");
}

/* Which a resume of this version does not know. */
TEST(a_process_that_another_version_has_suspended_is_left_to_that)
{
	uint32_t version;
	char path[PATH_MAX];
	int fd;

	make_process();
	assert_int_equal(run(suspend_once, 0, 0), 0);
	snprintf(path, sizeof(path), "%s/%d.%016x", records, PID, 0x5eed);
	fd = __real_open(path, O_RDWR | O_CLOEXEC, 0);
	assert_int_equal(pread(fd, &version, sizeof(version), 8), sizeof(version));
	version++;
	assert_int_equal(pwrite(fd, &version, sizeof(version), 8), sizeof(version));
	assert_int_equal(run(refuse_version, 0, 0), 0);
	version--;
	assert_int_equal(pwrite(fd, &version, sizeof(version), 8), sizeof(version));
	close(fd);
	complete(0);
}

static int resume_second(void)
{
	const struct suspend_target target = { .pids = pids + 1, .nr = 1 };
	struct suspend_result result = { 0 };
	int err = suspend_resume(&target, RESUME_TO_RUN, 0, &settings, &result);

	free(result.reports);
	return err;
}

/* It would run without the memory that is the other one's, too. */
TEST(a_process_that_shares_its_descriptors_is_resumed_with_the_other)
{
	make_processes(2);
	assert_int_equal(run(suspend_once, 0, 0), 0);
	now->has_sharer = true;
	assert_int_equal(run(resume_second, 0, 0), 0);
	expect_whole(0);
	assert_int_equal(state_of(0), STATE_RUNNING);
	complete(0);
}

TEST(processes_of_one_suspend_are_resumed_by_two_commands_at_once)
{
	unsigned int at = 1;

	make_processes(2);
	assert_int_equal(run(suspend_once, 0, 0), 0);
	while (state_of(1) == STATE_SUSPENDED)
		run(resume_second, at++, 0);
	assert_int_equal(state_of(1), STATE_HALF);
	models[1].is_traced = true;
	assert_int_equal(run(resume_first, 0, 0), 0);
	assert_int_equal(state_of(0), STATE_RUNNING);
	assert_int_equal(state_of(1), STATE_HALF);
	models[1].is_traced = false;
	complete(0);
}

TEST(one_of_several_that_are_suspended_can_be_resumed_alone)
{
	make_processes(2);
	assert_int_equal(run(suspend_once, 0, 0), 0);
	assert_int_equal(run(resume_first, 0, 0), 0);
	assert_int_equal(state_of(0), STATE_RUNNING);
	assert_int_equal(state_of(1), STATE_SUSPENDED);
	assert_true(models[1].is_in_own && !models[0].is_in_own && !models[0].stopped);
	complete(0);
}

/* A call that fails: either all is as before, or a resume brings it back. */
TEST(several_processes_are_resumed_or_stay_suspended_whatever_fails)
{
	for (unsigned int at = next_point(0), nr = 80; at <= nr; at = next_point(at)) {
		make_processes(2);
		assert_int_equal(run(suspend_once, 0, 0), 0);
		run(resume_once, 0, at);
		nr = now->nr_points > nr ? now->nr_points : nr;
		expect_nothing_wrong(at);
		complete(at);
	}
}

TEST(any_failure_loses_nothing)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		for (unsigned int at = next_point(0), nr = 40; at <= nr; at = next_point(at)) {
			make_process_for(commands[i]);
			run(commands[i], 0, at);
			nr = now->nr_points > nr ? now->nr_points : nr;
			complete(at);
		}
}

/* A suspended process, and others who have left no room for all of it. Returns the room that there was. */
static uint64_t make_suspended_without_room(bool is_unknown)
{
	uint64_t room;

	make_process();
	assert_int_equal(run(suspend_once, 0, 0), 0);
	room = model->room;
	model->room = 20 * PAGE;
	model->is_room_unknown = is_unknown;
	model->allocations = 0;
	return room;
}

static int lack_memory_of_second(void)
{
	return !resume_once() || !strstr(fail_text(), "pid 5242881: gpu 0x1234 has too little memory free");
}

/* And not one that has ended. */
TEST(the_process_that_lacks_memory_is_named)
{
	make_processes(2);
	assert_int_equal(run(suspend_once, 0, 0), 0);
	end_process(0);
	model = &models[1];
	model->room = PAGE;
	models[0].room = PAGE;
	assert_int_equal(run(lack_memory_of_second, 0, 0), 0);
	model->room = 1 << 20;
	assert_int_equal(run(resume_once, 0, 0), 0);
	expect_nothing_wrong(0);
	assert_int_equal(state_of(1), STATE_RUNNING);
}

/* The driver is asked first; where it does not tell, or what is free is in pieces, what was made is given up again. */
TEST(memory_that_is_another_ones_is_waited_for_in_the_suspended_state)
{
	uint64_t room;
	size_t nr;

	for (int unknown = 0; unknown < 2; unknown++) {
		struct suspend_info info;

		room = make_suspended_without_room(unknown);
		nr = model->nr;
		assert_int_equal(run(resume_once, 0, 0), 1);
		expect_nothing_wrong(0);
		assert_int_equal(model->allocations != 0, unknown);
		assert_int_equal(model->room, 20 * PAGE);
		assert_int_equal(model->nr, nr);
		assert_true(is_frozen() && model->queues_stand && model->marked && !model->in_call);
		assert_int_equal(suspend_ask(PID, &info), 0);
		assert_int_equal(info.state, STATE_SUSPENDED);
		model->room = room;
		complete(0);
	}
}

/* Handles are not there yet when what was allocated is freed again. */
TEST(a_resume_without_room_that_dies_anywhere_loses_nothing)
{
	for (unsigned int at = 1, died = 1; died; at++) {
		uint64_t room = make_suspended_without_room(true);

		died = run(resume_once, at, 0) < 0;
		models[0].room += room - 20 * PAGE;
		complete(at);
	}
}

static int resume_waiting(void)
{
	struct suspend_result result = { 0 };
	int err = suspend_resume(&(struct suspend_target){ .pids = pids, .nr = 1 }, RESUME_TO_RUN, 20, &settings, &result);

	free(result.reports);
	return err;
}

/* Nothing is made before there is room. */
TEST(a_resume_waits_until_there_is_room)
{
	for (int unknown = 0; unknown < 2; unknown++) {
		uint64_t room = make_suspended_without_room(unknown);
		int status, nr_frozen = 0;
		pid_t child;

		child = fork();
		if (!child)
			_exit(resume_waiting() ? 1 : 0);
		/* Where the driver says nothing it has to try, however slow this machine is. */
		for (int i = 0; i < 8 || (unknown && !__atomic_load_n(&model->allocations, __ATOMIC_SEQ_CST) && i < 300); i++)
			usleep(100000);
		assert_int_equal(waitpid(child, &status, WNOHANG), 0);
		assert_int_equal(model->allocations != 0, unknown);
		/* Between tries it is frozen, and no signal alone holds it. */
		for (int i = 0; i < 100; i++, usleep(10000))
			nr_frozen += __atomic_load_n(&model->frozen[2], __ATOMIC_SEQ_CST);
		assert_true(nr_frozen > 50);
		__atomic_add_fetch(&model->room, room - 20 * PAGE, __ATOMIC_SEQ_CST);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		model->held = false;
		expect_whole(0);
	}
}

/* A file of another waiter, who needs @bytes; locked as long as the fd is open. */
static int wait_before(uint64_t bytes)
{
	const uint64_t need[2] = { MINOR, bytes };
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/wait.%016x", records, 1);
	fd = __real_open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, need, sizeof(need)), sizeof(need));
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	return fd;
}

TEST(who_waits_longer_gets_memory_first_while_he_lives)
{
	char path[PATH_MAX];
	int fd;

	make_process();
	assert_int_equal(run(suspend_once, 0, 0), 0);
	fd = wait_before(model->room);
	assert_int_equal(run(resume_once, 0, 0), 1);
	expect_nothing_wrong(0);
	close(fd);
	/* There is enough for both. */
	fd = wait_before(PAGE);
	model->allocations = 0;
	assert_int_equal(run(resume_once, 0, 0), 0);
	assert_int_equal(run(suspend_once, 0, 0), 0);
	close(fd);
	/* He has died. */
	fd = wait_before(model->room);
	close(fd);
	assert_int_equal(run(resume_once, 0, 0), 0);
	snprintf(path, sizeof(path), "%s/wait.%016x", records, 1);
	assert_int_equal(access(path, F_OK), -1);
	expect_whole(0);
}

/* How much its file in the line says that it needs; -1: it has none. */
static int64_t wanted_in_line(void)
{
	char path[PATH_MAX];
	struct stat st;
	uint64_t need[2];
	int fd;

	snprintf(path, sizeof(path), "%s/wait.%016" PRIx64, records, waiter.since);
	fd = __real_open(path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(!st.st_size || read(fd, need, sizeof(need)) == sizeof(need));
	close(fd);
	return st.st_size ? (int64_t)need[1] : 0;
}

TEST(who_tries_again_and_again_keeps_his_place)
{
	uint64_t room;

	make_process();
	assert_int_equal(run(suspend_once, 0, 0), 0);
	suspend_waiter_join(&waiter);
	assert_int_equal(wanted_in_line(), 0);
	room = model->room;
	model->room = PAGE;
	assert_int_equal(run(resume_once, 0, 0), 1);
	assert_true(wanted_in_line() > (int64_t)PAGE);
	/* He fails for another reason, and holds nobody back for that. */
	model->room = room;
	model->is_limited = true;
	assert_int_equal(run(resume_once, 0, 0), 1);
	assert_int_equal(wanted_in_line(), 0);
	model->is_limited = false;
	assert_int_equal(run(resume_once, 0, 0), 0);
	expect_whole(0);
	suspend_waiter_leave(&waiter);
	assert_int_equal(wanted_in_line(), -1);
	waiter.since = 0;
}

TEST(a_reset_of_the_gpu_is_told_of)
{
	struct suspend_info info;

	make_process();
	assert_int_equal(run(suspend_once, 0, 0), 0);
	assert_int_equal(suspend_ask(PID, &info), 0);
	assert_int_equal(info.report.reset_minor, 0);
	model->losses++;
	assert_int_equal(suspend_ask(PID, &info), 0);
	assert_int_equal(info.report.reset_minor, MINOR);
	/* Memory comes back, so that the program can end. */
	assert_int_equal(run(resume_once, 0, 0), 0);
	assert_int_equal(now->reset_minor, MINOR);
	expect_whole(0);
	/* Without one nothing is said. */
	assert_int_equal(run(suspend_once, 0, 0), 0);
	assert_int_equal(run(resume_once, 0, 0), 0);
	assert_int_equal(now->reset_minor, 0);
}

TEST(a_reset_behind_the_last_byte_is_no_end_of_a_resume)
{
	make_process();
	assert_int_equal(run(suspend_once, 0, 0), 0);
	model->loses_at_fill = 1;
	assert_int_equal(run(resume_once, 0, 0), 1);
	expect_nothing_wrong(0);
	assert_true(is_frozen() && model->queues_stand && model->marked && !model->in_call);
	assert_int_equal(run(resume_once, 0, 0), 0);
	assert_int_equal(now->reset_minor, MINOR);
	expect_whole(0);
}

TEST(a_process_that_can_make_no_calls_is_refused_before_it_is_copied)
{
	make_process();
	model->is_limited = true;
	assert_int_equal(run(suspend_once, 0, 0), 1);
	expect_whole(0);
	assert_int_equal(model->copies, 0);
	complete(0);
}

/* Its limits are others since it was suspended. */
TEST(a_process_that_can_make_no_calls_stays_suspended_until_it_can)
{
	struct suspend_info info;

	make_process();
	assert_int_equal(run(suspend_once, 0, 0), 0);
	model->is_limited = true;
	assert_int_equal(run(resume_once, 0, 0), 1);
	expect_nothing_wrong(0);
	assert_true(is_frozen() && model->queues_stand && model->marked && !model->in_call);
	assert_int_equal(suspend_ask(PID, &info), 0);
	assert_int_equal(info.state, STATE_SUSPENDED);
	model->is_limited = false;
	complete(0);
}

/* What has lost nothing needs no call. */
TEST(a_process_that_died_before_its_first_loss_comes_back_without_calls)
{
	make_process();
	for (unsigned int at = 1, died = 1; died && !model->marked; at++) {
		make_process();
		died = run(suspend_once, at, 0) < 0;
		model->is_limited = !model->in_call;
		if (!model->marked)
			complete(at);
		assert_true(died);
	}
	model->is_limited = false;
	complete(0);
}

TEST(a_process_that_was_stopped_before_stays_so)
{
	make_process();
	model->stopped = true;
	assert_int_equal(run(suspend_once, 0, 0), 0);
	assert_int_equal(run(resume_once, 0, 0), 0);
	expect_nothing_wrong(0);
	assert_true(model->stopped && !model->queues_stand && !model->marked);
}

TEST(a_process_that_is_stopped_while_it_is_suspended_stays_so)
{
	make_process();
	assert_int_equal(run(suspend_once, 0, 0), 0);
	model->stopped = true;
	model->room = PAGE;
	assert_int_equal(run(resume_once, 0, 0), 1);
	assert_true(model->stopped && model->is_in_own && model->frozen[2]);
	model->room = 1 << 20;
	assert_int_equal(run(resume_once, 0, 0), 0);
	expect_nothing_wrong(0);
	assert_true(model->stopped && !model->queues_stand && !model->has_own);
}

/* Slurm stops a job by SIGTSTP before it freezes it, and continues it before it thaws it. */
TEST(a_process_that_is_continued_meanwhile_runs)
{
	make_process();
	model->stopped = true;
	assert_int_equal(run(suspend_once, 0, 0), 0);
	model->stopped = false;
	complete(0);
	/* Before the memory is back. */
	make_process();
	model->stopped = true;
	assert_int_equal(run(suspend_once, 0, 0), 0);
	model->stopped = false;
	model->room = PAGE;
	assert_int_equal(run(resume_once, 0, 0), 1);
	assert_true(is_frozen());
	model->room = 1 << 20;
	complete(0);
	/* While it is saved. */
	make_process();
	model->stopped = model->is_continued = true;
	assert_int_equal(run(suspend_once, 0, 0), 0);
	complete(0);
}

/* By an engine, whose thaw comes when it wants. */
static void suspend_frozen(bool own)
{
	make_process();
	model->frozen[own] = true;
	assert_int_equal(run(suspend_once, 0, 0), 0);
	expect_nothing_wrong(0);
	assert_true(model->frozen[own] && (own ? !model->frozen[0] && is_frozen() : is_frozen_at_home()));
}

static bool may_run(void)
{
	struct suspend_info info;

	assert_int_equal(suspend_ask(PID, &info), 0);
	assert_int_equal(info.state, STATE_SUSPENDED);
	assert_string_equal(info.follows, CGROUP_ABOVE);
	return info.may_run;
}

TEST(what_an_engine_has_frozen_is_frozen_until_it_thaws_it)
{
	for (int own = 0; own < 2; own++) {
		suspend_frozen(own);
		assert_false(may_run());
		model->frozen[own] = false;
		assert_true(may_run());
		assert_int_equal(run(resume_once, 0, 0), 0);
		expect_whole(0);
		assert_false(model->frozen[0] || model->frozen[1]);
		/* Given back while the engine has it frozen. */
		suspend_frozen(own);
		assert_int_equal(run(resume_once, 0, 0), 0);
		expect_whole(0);
		assert_true(model->frozen[own] && !model->frozen[!own]);
	}
}

/* Nothing of it is freed by then; a suspend that is in time is not ended afterwards. */
TEST(a_suspend_that_takes_too_long_leaves_the_process_running)
{
	const char *why;

	make_process();
	now->timeout_seconds = 1;
	now->is_slow = true;
	assert_int_equal(run(suspend_once, 0, 0), -1);
	now->is_slow = false;
	assert_true(is_whole(&why));
	complete(0);
	make_process();
	now->timeout_seconds = 1;
	assert_int_equal(run(suspend_and_linger, 0, 0), 0);
	now->timeout_seconds = 0;
	assert_true(is_frozen());
	complete(0);
}

static void suspend_stopped(void)
{
	make_process();
	model->stopped = true;
	assert_int_equal(run(suspend_once, 0, 0), 0);
	expect_nothing_wrong(0);
	assert_true(model->is_in_own && model->frozen[2] && model->stopped);
}

/* The cgroup of its own holds it besides; SIGCONT says that it may run. */
TEST(what_a_signal_has_stopped_is_stopped_until_it_is_continued)
{
	by_stop = true;
	suspend_stopped();
	assert_false(may_run());
	model->stopped = false;
	assert_true(may_run());
	complete(0);
	/* What is suspended for another reason may have been stopped, too. */
	by_stop = false;
	suspend_stopped();
	assert_true(may_run());
	assert_int_equal(run(resume_once, 0, 0), 0);
	expect_nothing_wrong(0);
}

/* Whoever has stopped it continues it while it is suspended: else follow waits for another SIGCONT for ever. */
TEST(what_is_continued_at_any_point_of_a_suspend_is_not_stopped_by_it)
{
	by_stop = true;
	for (unsigned int at = 1, nr = 1; at <= nr; at++) {
		make_process();
		model->stopped = true;
		now->continue_at = at;
		assert_int_equal(run(suspend_once, 0, 0), 0);
		nr = now->nr_points;
		now->continue_at = 0;
		if (models[0].stopped)
			fail_msg("point %u of %u: SIGCONT is lost", at, nr);
		models[0].is_continued = false;
		assert_int_equal(run(resume_once, 0, 0), 0);
	}
	by_stop = false;
}

/* And stops it again while it is resumed; but the kernel keeps one SIGSTOP at a time. */
TEST(what_is_stopped_at_any_point_of_a_resume_is_stopped_after_it)
{
	unsigned int nr_merged = 0, nr = 1;

	for (unsigned int at = 1; at <= nr; at++) {
		make_process();
		assert_int_equal(run(suspend_once, 0, 0), 0);
		now->stop_at = at;
		now->is_merged = false;
		assert_int_equal(run(resume_once, 0, 0), 0);
		nr = now->nr_points;
		now->stop_at = 0;
		nr_merged += now->is_merged;
		if (!models[0].stopped && !now->is_merged)
			fail_msg("point %u of %u: SIGSTOP is lost", at, nr);
	}
	assert_true(nr_merged < nr / 4);
}

/* Or while a resume finds no room, as each try of follow. */
TEST(what_is_stopped_at_any_point_of_a_resume_without_room_is_stopped_after_it)
{
	unsigned int nr_merged = 0, nr = 1;

	for (unsigned int at = 1; at <= nr; at++) {
		bool was_stopped;

		make_process();
		assert_int_equal(run(suspend_once, 0, 0), 0);
		model->room = PAGE;
		now->stop_at = at;
		now->is_merged = false;
		assert_int_equal(run(resume_once, 0, 0), 1);
		nr = now->nr_points;
		now->stop_at = 0;
		was_stopped = models[0].stopped;
		model->room = 1 << 20;
		assert_int_equal(run(resume_once, 0, 0), 0);
		nr_merged += now->is_merged;
		if (!was_stopped && !now->is_merged)
			fail_msg("point %u of %u: SIGSTOP is lost", at, nr);
	}
	assert_true(nr_merged <= nr / 2);
}

/* Else SIGCONT would let it run without its memory. */
TEST(what_a_signal_has_stopped_is_not_suspended_by_a_signal_alone)
{
	const char *why;

	make_process();
	model->stopped = by_stop = model->no_cgroups = true;
	assert_int_equal(run(suspend_once, 0, 0), 1);
	by_stop = false;
	assert_int_equal(run(resume_once, 0, 0), 0);
	expect_nothing_wrong(0);
	assert_true(is_whole(&why) && model->stopped && !model->queues_stand && !model->marked);
}

/* As Slurm does it: by pids that it finds there, before it thaws. */
TEST(who_is_continued_by_an_engine_that_has_frozen_it_above_runs)
{
	make_process();
	model->stopped = true;
	model->frozen[0] = true;
	assert_int_equal(run(suspend_once, 0, 0), 0);
	assert_true(is_frozen_at_home());
	model->stopped = false;
	model->frozen[0] = false;
	assert_int_equal(run(resume_once, 0, 0), 0);
	expect_whole(0);
	assert_false(model->frozen[1]);
}

TEST(an_engine_that_thaws_while_calls_are_made_is_not_overruled)
{
	for (int own = 0; own < 2; own++) {
		make_process();
		model->is_thawed_meanwhile = true;
		model->frozen[own] = true;
		assert_int_equal(run(suspend_once, 0, 0), 0);
		expect_nothing_wrong(0);
		assert_false(model->frozen[0]);
		assert_true((own ? is_frozen() && !model->frozen[1] : is_frozen_at_home()) && may_run());
		assert_int_equal(run(resume_once, 0, 0), 0);
		expect_whole(0);
		assert_false(model->frozen[0] || model->frozen[1]);
	}
}

TEST(an_engine_that_freezes_while_calls_are_made_has_it_frozen_afterwards)
{
	for (unsigned int own = 0; own < 2; own++) {
		make_process();
		model->freezes_own = own;
		model->freezes_at = 5;
		assert_int_equal(run(suspend_once, 0, 0), 0);
		expect_nothing_wrong(0);
		assert_true(model->frozen[own] && (own ? is_frozen() : is_frozen_at_home()));
		assert_false(may_run());
		model->frozen[own] = false;
		assert_true(may_run());
		model->freezes_at = 5;
		assert_int_equal(run(resume_once, 0, 0), 0);
		expect_whole(0);
		assert_true(model->frozen[own] && !model->frozen[!own]);
		/* For the first time while it is given back. */
		model->frozen[own] = false;
		assert_int_equal(run(suspend_once, 0, 0), 0);
		model->freezes_at = 5;
		assert_int_equal(run(resume_once, 0, 0), 0);
		expect_whole(0);
		assert_true(model->frozen[own] && !model->frozen[!own]);
		/* While it is given back, and there is no room. */
		model->frozen[own] = false;
		assert_int_equal(run(suspend_once, 0, 0), 0);
		model->freezes_at = 5;
		model->room = 20 * PAGE;
		model->is_room_unknown = true;
		assert_int_equal(run(resume_once, 0, 0), 1);
		expect_nothing_wrong(0);
		assert_false(may_run());
		model->frozen[own] = false;
		assert_true(may_run());
		model->room = 1 << 20;
		complete(0);
	}
}

/* ---- phases by themselves ---- */

static void expect_locked(unsigned int at)
{
	const char *why;

	expect_nothing_wrong(at);
	for (int i = now->nr - 1; i >= 0; i--) {
		model = &models[i];
		if (!is_whole(&why))
			fail_msg("point %u: process %d is locked without its %s", at, i, why);
		if (!is_held() || !model->marked || model->queues_stand == model->no_kfd || state_of(i) != STATE_LOCKED)
			fail_msg("point %u: process %d is not locked", at, i);
		if (!models->no_cgroups && !is_frozen())
			fail_msg("point %u: process %d is not frozen", at, i);
	}
	if (!access(contents, F_OK))
		fail_msg("point %u: the directory of its contents stays", at);
}

TEST(four_phases_are_a_suspend_and_a_resume)
{
	for (int round = 0; round < 2; round++) {
		make_processes(2);
		models[1].no_kfd = round;
		assert_int_equal(run(lock_once, 0, 0), 0);
		expect_locked(0);
		assert_int_equal(models[0].copies, 0);
		for (int again = 0; again < 2; again++) {
			model = models;
			assert_int_equal(run(checkpoint_once, 0, 0), 0);
			expect_nothing_wrong(0);
			assert_true(is_frozen() && model->queues_stand && model->marked && model->nr == 3);
			assert_int_equal(state_of(0), STATE_SUSPENDED);
			assert_int_equal(state_of(1), STATE_SUSPENDED);
			assert_int_equal(run(restore_once, 0, 0), 0);
			expect_locked(0);
		}
		assert_int_equal(run(unlock_once, 0, 0), 0);
		expect_whole(0);
		assert_int_equal(models[0].pauses, 1);
		complete(0);
	}
}

/* With words that name the other command, and nothing changes. */
TEST(a_phase_that_is_not_the_next_one_is_refused)
{
	make_processes(2);
	assert_int_equal(run(checkpoint_once, 0, 0), 1);
	assert_int_equal(run(restore_once, 0, 0), 1);
	assert_int_equal(run(unlock_once, 0, 0), 1);
	expect_whole(0);
	assert_int_equal(run(lock_once, 0, 0), 0);
	assert_int_equal(run(lock_once, 0, 0), 1);
	assert_int_equal(run(suspend_once, 0, 0), 1);
	expect_locked(0);
	/* Nothing to do. */
	assert_int_equal(run(restore_once, 0, 0), 0);
	expect_locked(0);
	assert_int_equal(run(checkpoint_once, 0, 0), 0);
	assert_int_equal(run(lock_once, 0, 0), 1);
	assert_int_equal(run(checkpoint_once, 0, 0), 1);
	assert_int_equal(run(unlock_once, 0, 0), 1);
	assert_int_equal(state_of(0), STATE_SUSPENDED);
	assert_int_equal(state_of(1), STATE_SUSPENDED);
	/* One of them only. */
	assert_int_equal(run(restore_once, 0, 0), 0);
	assert_int_equal(run(resume_first, 0, 0), 0);
	assert_int_equal(state_of(1), STATE_LOCKED);
	assert_int_equal(run(resume_once, 0, 0), 0);
	assert_int_equal(run(suspend_once, 0, 0), 0);
	assert_int_equal(run(resume_first, 0, 0), 0);
	assert_int_equal(run(checkpoint_once, 0, 0), 1);
	assert_int_equal(state_of(0), STATE_RUNNING);
	assert_int_equal(state_of(1), STATE_SUSPENDED);
	complete(0);
}

/* All are locked before one is copied: a process outside may have got a buffer meanwhile. */
TEST(what_another_process_has_got_since_the_lock_stays)
{
	make_process_for(checkpoint_once);
	model->alone[2] = false;
	assert_int_equal(run(checkpoint_once, 0, 0), 0);
	assert_non_null(find_buffer(3));
	assert_non_null(find_buffer(4));
	complete(0);
}

TEST(a_locked_process_whose_gpu_was_reset_is_not_copied)
{
	make_process_for(checkpoint_once);
	model->losses++;
	assert_int_equal(run(checkpoint_once, 0, 0), 1);
	expect_locked(0);
	assert_int_equal(model->copies, 0);
	assert_int_equal(run(unlock_once, 0, 0), 0);
	complete(0);
}

TEST(a_checkpoint_without_room_or_in_vain_leaves_it_locked)
{
	make_process_for(checkpoint_once);
	now->no_room = true;
	assert_int_equal(run(checkpoint_once, 0, 0), 1);
	expect_locked(0);
	now->no_room = false;
	now->is_slow = true;
	now->timeout_seconds = 1;
	assert_int_equal(run(checkpoint_once, 0, 0), -1);
	expect_nothing_wrong(0);
	assert_int_equal(state_of(0), STATE_LOCKED);
	assert_int_equal(run(restore_once, 0, 0), 0);
	expect_locked(0);
	assert_int_equal(run(unlock_once, 0, 0), 0);
	complete(0);
}

/* What the command does when the process that works was killed. */
static int heal(int (*command)(void))
{
	if (command == lock_once)
		return run(take_back, 0, 0);
	return run(command == unlock_once ? unlock_once : restore_once, 0, 0);
}

static void expect_healed(int (*command)(void), unsigned int at)
{
	if (command == lock_once || command == unlock_once)
		expect_whole(at);
	else
		expect_locked(at);
}

TEST(a_phase_that_dies_anywhere_is_as_before_or_at_its_end)
{
	for (size_t i = FIRST_PHASE; i < ARRAY_SIZE(commands); i++)
		for (unsigned int at = 1, died = 1; died; at += 1 + at / 30) {
			make_processes(2);
			come_to(commands[i]);
			died = run(commands[i], at, 0) < 0;
			if (died) {
				/* An unlock may find nothing left to do. */
				assert_true(!heal(commands[i]) || commands[i] == unlock_once);
				expect_healed(commands[i], at);
			}
			complete(at);
		}
}

/* Both that work on it are killed: each of the others finds its way. */
TEST(a_phase_that_dies_with_its_parent_is_undone_by_resume_and_unlock)
{
	for (size_t i = FIRST_PHASE; i < ARRAY_SIZE(commands); i++)
		for (unsigned int at = 1, died = 1; died; at += 1 + at / 30) {
			make_processes(2);
			come_to(commands[i]);
			died = run(commands[i], at, 0) < 0;
			run(unlock_once, 0, 0);
			expect_nothing_wrong(at);
			if (state_of(0) != STATE_SUSPENDED && state_of(1) != STATE_SUSPENDED)
				expect_whole(at);
			complete(at);
		}
}

TEST(a_phase_that_fails_anywhere_is_as_before_or_to_be_healed)
{
	for (size_t i = FIRST_PHASE; i < ARRAY_SIZE(commands); i++)
		for (unsigned int at = 1, nr = 40; at <= nr; at += 1 + at / 30) {
			make_processes(2);
			come_to(commands[i]);
			if (run(commands[i], 0, at) && commands[i] == lock_once)
				assert_int_equal(run(take_back, 0, 0), 0);
			nr = now->nr_points > nr ? now->nr_points : nr;
			expect_nothing_wrong(at);
			if (commands[i] == checkpoint_once && state_of(0) != STATE_SUSPENDED)
				expect_locked(at);
			complete(at);
		}
}

UNIT_MAIN(begin, end)
