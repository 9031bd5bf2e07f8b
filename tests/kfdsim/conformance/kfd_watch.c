// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a KFD process lets others see of it: SMI events and its directory below
 * /sys/class/kfd/kfd/proc. The process is a child of this one.
 */
#include <sys/prctl.h>

#include "criu_test.h"

#define VMFAULT	    1
#define EVICTION    9
#define RESTORED    10
#define ALL	    64
#define MASK(event) (1ull << ((event)-1))

struct child {
	volatile uint32_t step; /* 1: it is ready; 2: it may fault; 3: it has; 4: it may free; 5: it has */
	pid_t pid;
	int kfd;
	uint32_t queue_id;
};

static struct child *child;
static struct node gpu;

static void fault(int kfd, int drm_fd)
{
	struct sdma_queue q = sdma_new(kfd, drm_fd, gpu.gpu_id);
	uint64_t nowhere = reserve(2 * PAGE);

	sdma_copy(&q, nowhere, nowhere + PAGE, 16);
	sdma_ring_doorbell(&q);
	/* The queue stands at the packet for ever. */
	usleep(300000);
	sdma_free(&q, kfd);
}

static void child_main(void)
{
	struct sdma_queue q;
	struct buffer vram;
	int drm_fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	child->pid = getpid();
	child->kfd = kfd_open();
	drm_fd = render_open(gpu.render_minor);
	must(kfd_acquire(child->kfd, drm_fd, gpu.gpu_id), "ACQUIRE_VM");
	vram = buffer_new(child->kfd, drm_fd, gpu.gpu_id, 3 * PAGE, VRAM_RW);
	q = sdma_new(child->kfd, drm_fd, gpu.gpu_id);
	child->queue_id = q.queue_id;
	announce(&child->step, 1);
	await(&child->step, 2);
	fault(child->kfd, drm_fd);
	announce(&child->step, 3);
	await(&child->step, 4);
	buffer_free(child->kfd, &vram);
	sdma_free(&q, child->kfd);
	announce(&child->step, 5);
	for (;;)
		pause();
}

/* ---- SMI events ---- */

static int smi_open(int kfd, uint64_t mask)
{
	struct kfd_ioctl_smi_events_args args = { .gpuid = gpu.gpu_id };

	must(ioctl(kfd, NR_SMI_EVENTS, &args), "SMI_EVENTS");
	if (mask)
		must(write(args.anon_fd, &mask, sizeof(mask)), "write the mask of events");
	return args.anon_fd;
}

/* The lines that are there, at most what fits; "" when there is none within @ms. */
static const char *smi_read(int fd, int ms)
{
	static char text[1024];
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	ssize_t n = 0;

	if (poll(&pfd, 1, ms) == 1)
		n = read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = 0;
	return text;
}

static void check_smi_errors(int kfd)
{
	struct kfd_ioctl_smi_events_args bad = { .gpuid = 0xfffe };
	uint64_t mask = MASK(VMFAULT);
	int fd = smi_open(kfd, 0);
	char byte;

	check_errno(ioctl(kfd, NR_SMI_EVENTS, &bad), EINVAL, "SMI_EVENTS of no GPU");
	check_errno(read(fd, &byte, 1), EAGAIN, "reading where no event is");
	check_errno(write(fd, &mask, 4), EFAULT, "half a mask of events");
	check_u64(write(fd, &mask, 8), 8, "a mask of events");
	close(fd);
}

/* Of two files, one says what it wants to hear; page faults are told to all that do. */
static void check_smi_fault(int kfd)
{
	int deaf = smi_open(kfd, 0), fd = smi_open(kfd, MASK(VMFAULT));
	char want[64];

	announce(&child->step, 2);
	await(&child->step, 3);
	snprintf(want, sizeof(want), "1 %x:kfd_watch\n", child->pid);
	check_str(smi_read(fd, 3000), want, "a page fault of another process");
	check_str(smi_read(fd, 0), "", "... is told once");
	check_str(smi_read(deaf, 0), "", "... and to nobody who did not ask");
	close(deaf);
	close(fd);
}

static bool is_line(const char *text, unsigned int event, const char *end)
{
	unsigned int number, pid, id;
	unsigned long long ns;
	int at = 0;

	return sscanf(text, "%x %llu -%u %x%n", &number, &ns, &pid, &id, &at) == 4 && number == event && ns &&
	       pid == (unsigned int)child->pid && id == gpu.gpu_id && !strcmp(text + at, end);
}

static void check_smi_eviction(int kfd, int child_kfd)
{
	int all = smi_open(kfd, MASK(EVICTION) | MASK(RESTORED) | MASK(ALL));
	int own = smi_open(kfd, MASK(EVICTION) | MASK(RESTORED));
	const char *text;

	must(criu_simple(child_kfd, OP_PROCESS_INFO), "PROCESS_INFO");
	text = smi_read(all, 3000);
	check_true(is_line(text, EVICTION, " 4\n"), "PROCESS_INFO: queues are evicted, for a checkpoint");
	must(criu_simple(child_kfd, OP_UNPAUSE), "UNPAUSE");
	text = smi_read(all, 3000);
	check_true(is_line(text, RESTORED, " 0\n"), "UNPAUSE: they are back");
	check_str(smi_read(own, 0), "", "who does not ask for all processes hears of his own only");
	close(all);
	close(own);
}

/* ---- the process' directory ---- */

static long long proc_read(const char *format, uint32_t number)
{
	char path[128], file[64];
	long long value = -1;
	FILE *f;

	snprintf(file, sizeof(file), format, number);
	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%d/%s", child->pid, file);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fscanf(f, "%lld", &value) != 1)
		value = -2;
	fclose(f);
	return value;
}

static void check_directory(void)
{
	check_true(proc_read("pasid", 0) > 0, "proc: pasid");
	check_u64(proc_read("vram_%u", gpu.gpu_id), 3 * PAGE, "proc: VRAM in use");
	check_true(proc_read("sdma_%u", gpu.gpu_id) >= 0, "proc: time of SDMA");
	check_u64(proc_read("counters_%u/faults", gpu.gpu_id), 0, "proc: no fault yet");
	check_u64(proc_read("stats_%u/evicted_ms", gpu.gpu_id), 0, "proc: never evicted");
	check_u64(proc_read("queues/%u/gpuid", child->queue_id), gpu.gpu_id, "proc: the queue's GPU");
	check_u64(proc_read("queues/%u/size", child->queue_id), RING, "proc: the queue's size");
	check_u64(proc_read("queues/%u/type", child->queue_id), 1, "proc: the queue's type");
	check_u64(proc_read("queues/%u/type", child->queue_id + 1), -1, "proc: there is no other queue");
}

/* Evicts the child's queues for @us. */
static void evict(int child_kfd, unsigned int us)
{
	must(criu_simple(child_kfd, OP_PROCESS_INFO), "PROCESS_INFO");
	usleep(us);
	must(criu_simple(child_kfd, OP_UNPAUSE), "UNPAUSE");
}

static void check_time_evicted(int child_kfd)
{
	evict(child_kfd, 40000);
	check_true(proc_read("stats_%u/evicted_ms", gpu.gpu_id) >= 20, "proc: time while evicted");
}

/* A fault evicts the queues for good. */
static void check_after_fault(int child_kfd)
{
	long long before = proc_read("stats_%u/evicted_ms", gpu.gpu_id);

	check_u64(proc_read("counters_%u/faults", gpu.gpu_id), 0, "proc: a fault that nothing mends is not counted");
	evict(child_kfd, 40000);
	check_u64(proc_read("stats_%u/evicted_ms", gpu.gpu_id), before, "proc: after it, no eviction comes to its end");
}

static void check_directory_ends(void)
{
	char path[64];
	uint64_t end = now_ms() + 10000;

	announce(&child->step, 4);
	await(&child->step, 5);
	check_u64(proc_read("vram_%u", gpu.gpu_id), 0, "proc: VRAM that was freed");
	check_u64(proc_read("queues/%u/type", child->queue_id), -1, "proc: a queue that was destroyed");
	reap(child->pid, true);
	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%d", child->pid);
	while (!access(path, F_OK) && now_ms() < end)
		usleep(10000);
	check_errno(access(path, F_OK), ENOENT, "proc: the directory goes with the process");
}

int main(void)
{
	int kfd, child_kfd;
	pid_t pid;

	child = shared(sizeof(*child));
	gpu = node_gpu(0);
	pid = fork();
	must(pid, "fork");
	if (!pid)
		child_main();
	kfd = kfd_open();
	await(&child->step, 1);
	check_directory();
	check_smi_errors(kfd);
	trace(pid);
	child_kfd = fd_of(pid, child->kfd);
	check_smi_eviction(kfd, child_kfd);
	check_time_evicted(child_kfd);
	must(ptrace(PTRACE_DETACH, pid, 0, 0), "PTRACE_DETACH");
	check_smi_fault(kfd);
	trace(pid);
	check_after_fault(child_kfd);
	close(child_kfd);
	must(ptrace(PTRACE_DETACH, pid, 0, 0), "PTRACE_DETACH");
	check_directory_ends();
	close(kfd);
	return conformance_end();
}
