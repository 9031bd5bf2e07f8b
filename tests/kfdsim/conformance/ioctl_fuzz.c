// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls that make no sense: threads of four processes give /dev/kfd and the render nodes arguments that are half
 * right, mmap what comes out, run packets at random, fork and are killed: ioctl_fuzz [SECONDS [SEED]]. Nothing may
 * hang, nothing may be left; a complaint of the kernel fails the machine's run.
 */
#include <sys/prctl.h>
#include <sys/time.h>

#include "kfd_test.h"

#define PROCESSES 4
#define ARENA	  (1ull << 20)
#define POOL	  64
#define MAX_FDS	  200

/* ---- random values ---- */

static __thread uint64_t random_state;

static uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 0x2545f4914f6cdd1dull;
}

static uint32_t random_below(uint32_t n)
{
	return (random_u64() >> 33) % n;
}

/* What earlier calls returned, to be used by later ones; races between the threads do no harm. */
static uint64_t pool[POOL];
static uint32_t gpu_ids[64];
static uint32_t render_minors[64];
static unsigned int nr_gpus;
static uint8_t *arena;

static void remember(uint64_t value)
{
	if (value && value != ~0ull)
		pool[random_below(POOL)] = value;
}

static uint64_t wild(void)
{
	static const uint64_t values[] = {
		0,	     1,		  0xff,	      0xffff,	  0x7fffffff, 0x80000000,	0xffffffff,
		0x100000000, PAGE - 1,	  PAGE,	      PAGE + 1,	  1ull << 32, 1ull << 47,	(1ull << 47) - PAGE,
		1ull << 48,  ~0ull << 48, 1ull << 62, 3ull << 62, 1ull << 63, ~0ull - PAGE + 1, ~0ull,
	};

	switch (random_below(4)) {
	case 0:
		return random_u64();
	case 1:
		return 1ull << random_below(64);
	default:
		return values[random_below(sizeof(values) / sizeof(values[0]))];
	}
}

static uint64_t arena_address(void)
{
	uint64_t offset = random_below(ARENA);

	return (uintptr_t)arena + (random_below(8) ? offset & ~(PAGE - 1) : offset);
}

static uint64_t some_flags(void)
{
	uint64_t flags = 0;
	unsigned int n = random_below(5);

	while (n--)
		flags |= 1ull << (random_below(4) ? random_below(12) : random_below(32));
	return flags | (random_below(2) ? 1ull << 31 : 0);
}

/*
 * A field by its letter: g a GPU's id, d a file, h a small number that may be a handle, H a handle of /dev/kfd,
 * f flags, a an address that is used, s a size, n a count, c a small one, t a short time, r any. Capitals of the
 * others: 64 bit.
 */
static uint64_t field(char kind)
{
	if (kind == 'c')
		return random_below(20);
	if (!random_below(24))
		return wild();
	switch (kind) {
	case 'g':
		return gpu_ids[random_below(nr_gpus)];
	case 'd':
		return random_below(4) ? 3 + random_below(24) : pool[random_below(POOL)];
	case 'h':
		return random_below(3) ? random_below(12) : pool[random_below(POOL)];
	case 'H':
		return random_below(3) ? pool[random_below(POOL)]
				       : (uint64_t)gpu_ids[random_below(nr_gpus)] << 32 | random_below(16);
	case 'f':
	case 'F':
		return some_flags();
	case 'a':
		return random_below(12) ? arena_address() : pool[random_below(POOL)];
	case 's':
	case 'S':
		return PAGE << (random_below(3) ? random_below(4) : random_below(24));
	case 'n':
	case 'N':
		return random_below(8) ? random_below(5) : random_below(300);
	case 't':
		return random_below(20);
	default:
		return random_below(2) ? pool[random_below(POOL)] : random_u64();
	}
}

static bool is_wide(char kind)
{
	return strchr("HaFsNR", kind);
}

/* Any memory that a call reads: packets, arrays of ids, handles, pointers. */
static void scribble(void *where, unsigned int words)
{
	static const uint32_t packets[] = { 0, 1, 2, 5, 6, 8, 10, 11, 13, 14, 17, 1 | 4 << 8, 0x1502, 0x0503 };
	uint32_t *p = where;
	unsigned int i;

	for (i = 0; i < words; i++) {
		uint64_t value = field("ghdnfaHhr"[random_below(9)]);

		if (!random_below(4))
			value = packets[random_below(sizeof(packets) / sizeof(packets[0]))];
		p[i] = value;
		if (i + 1 < words && value >> 32)
			p[++i] = value >> 32;
	}
}

/* ---- calls ---- */

struct call {
	uint32_t number;
	const char *fields;
};

static const struct call kfd_calls[] = {
	{ NR_GET_VERSION, "rr" },
	{ NR_CREATE_QUEUE, "aaaRSgnnnnasasSnn" },
	{ NR_CREATE_QUEUE_OLD, "aaaRSgnnnnasasS" },
	{ NR_DESTROY_QUEUE, "hh" },
	{ NR_MEMORY_POLICY, "asgnnn" },
	{ NR_CLOCK_COUNTERS, "RRRRg0" },
	{ NR_APERTURES, "R" },
	{ NR_UPDATE_QUEUE, "ahSnn" },
	{ NR_CREATE_EVENT, "HnnnnhhR" },
	{ NR_DESTROY_EVENT, "hh" },
	{ NR_SET_EVENT, "hh" },
	{ NR_RESET_EVENT, "hh" },
	{ NR_WAIT_EVENTS, "anntn" },
	{ NR_DBG_REGISTER, "gg" },
	{ NR_SCRATCH_VA, "ag" },
	{ NR_TILE_CONFIG, "aannrrrrg" },
	{ NR_TRAP_HANDLER, "aagn" },
	{ NR_APERTURES_NEW, "anr" },
	{ NR_ACQUIRE_VM, "dg" },
	{ NR_ALLOC, "asHagf" },
	{ NR_FREE, "H" },
	{ NR_MAP, "Hann" },
	{ NR_UNMAP, "Hann" },
	{ NR_CU_MASK, "hna" },
	{ NR_WAVE_STATE, "ahrrr" },
	{ NR_DMABUF_INFO, "saSgfd" },
	{ NR_IMPORT_DMABUF, "aHgd" },
	{ NR_QUEUE_GWS, "hnrr" },
	{ NR_SMI_EVENTS, "gd" },
	{ NR_SVM(0), "asnn" },
	{ NR_SVM(1), "asnnng" },
	{ NR_SVM(4), "asnnngngngng" },
	{ NR_SVM(30), "asnnnnnnnnng" },
	{ NR_XNACK_MODE, "n" },
	{ NR_CRIU_OP, "aaasnnnrn" },
	{ NR_AVAILABLE, "Rg0" },
	{ NR_EXPORT_DMABUF, "Hfd" },
	{ NR_RUNTIME_ENABLE, "anr" },
	{ 0x00004b27u, "" },
	{ 0xc0204b26u, "rnaHH" },
	{ 0xc0104b28u, "nrrr" },
};

static const struct call drm_calls[] = {
	{ 0xc0406400u, "rrr0saNaNa" }, /* VERSION */
	{ 0x40086409u, "h0" },
	{ 0xc00c642du, "hfd" },
	{ 0xc00c642eu, "hfd" },
	{ 0xc00864d2u, "hh" },
	{ 0xc0206440u, "sNNF" },
	{ 0xc0086441u, "h0" },
	{ 0xc0106442u, "nnhn" },
	{ 0xc0186443u, "nhnna" },
	{ 0xc0186444u, "hhnna" },
	{ 0x40206445u, "aSnnnnn" },
	{ 0xc1206446u, "hnNNNNrrrrrrrrr" },
	{ 0xc0106447u, "h0N" },
	{ 0x40406448u, "h0nfaNsNhna" },
	{ 0x40286448u, "h0nfaNs" },
	{ 0xc0206449u, "NNnnnh" },
	{ 0xc0186450u, "hnan0" },
	{ 0xc0106450u, "hna" },
	{ 0xc0186451u, "asfh" },
	{ 0xc0206452u, "annN" },
	{ 0xc0086453u, "nn" },
	{ 0xc0206454u, "hnnnNn" },
	{ 0x40106455u, "ndnn" },
	{ 0xc0486456u, "nhnnaaaaaa" },
	{ 0xc0106459u, "ann" },
	/* Syncobjs from here on: the DRM core's. Without large counts, for which it asks the kernel for too much. */
	{ 0xc00864bfu, "hf" },
	{ 0xc00864c0u, "h0" },
	{ 0xc01064c1u, "hfd0" },
	{ 0xc01064c2u, "hfd0" },
	{ 0xc02064c3u, "aNcnr0" },
	{ 0xc01064c4u, "ac0" },
	{ 0xc01064c5u, "ac0" },
	{ 0xc02864cau, "aaNcnr0" },
	{ 0xc01864cbu, "aac0" },
	{ 0xc02064ccu, "hhNNn0" },
	{ 0xc01864cdu, "aac0" },
};

/* Sizes other than the ABI's now and then; what came back is remembered. */
static void call(int fd, const struct call *c)
{
	uint32_t args[4096] = { 0 }, number = c->number;
	unsigned int i, n = 0;
	const char *p;

	for (p = c->fields; *p; p++) {
		uint64_t value = *p == '0' ? 0 : field(*p);

		if (is_wide(*p)) {
			n += n & 1;
			args[n++] = value;
			args[n++] = value >> 32;
		} else {
			args[n++] = value;
		}
	}
	if (!random_below(30))
		number = (number & ~(0x3fffu << 16)) | random_below(random_below(2) ? 80 : 0x4000) << 16;
	if (ioctl(fd, number, args))
		return;
	for (i = 0; i < n && i < 16; i++)
		if (!random_below(4))
			remember(i & 1 ? args[i] : args[i] | (uint64_t)args[i + 1] << 32);
}

/* ---- calls that random fields would never make ---- */

/* Chunks of which most are of the right size, their data as it comes. */
static void submit(int fd)
{
	static const uint8_t dwords[] = { 0, 8, 2, 6, 2, 2, 6, 2, 4, 4, 4, 8 };
	struct {
		uint32_t id, length;
		uint64_t data;
	} chunks[4];
	uint64_t pointers[4];
	uint32_t args[6] = { field('h'), random_below(4) ? 0 : field('h'), 1 + random_below(4), 0 };
	uint32_t ib[4][64] = { 0 };
	unsigned int i;

	for (i = 0; i < 4; i++) {
		chunks[i].id = random_below(2) ? 1 : random_below(12);
		chunks[i].length = random_below(10) ? dwords[chunks[i].id] * (1 + random_below(3)) : random_below(64);
		chunks[i].data = random_below(30) ? (uintptr_t)ib[i] : field('a');
		pointers[i] = random_below(30) ? (uintptr_t)&chunks[i] : field('a');
		scribble(ib[i], 64);
		if (chunks[i].id != 1)
			continue;
		chunks[i].length = 8;
		memset(ib[i], 0, 32);
		memcpy(&ib[i][2], &(uint64_t){ field('a') }, 8);
		ib[i][4] = 4 * random_below(64);
		ib[i][5] = random_below(10) ? 2 : random_below(12);
	}
	memcpy(&args[4], &(uint64_t *){ pointers }, 8);
	if (!ioctl(fd, 0xc0186444u, args))
		remember(args[0]);
}

static int random_fd(const int *fds, unsigned int n)
{
	return fds[random_below(n)];
}

static void map_something(const int *fds, unsigned int n)
{
	uint64_t size = random_below(4) ? PAGE << random_below(3) : field('s') & ((1ull << 40) - 1);
	uint64_t offset = pool[random_below(POOL)] & ~(PAGE - 1);
	volatile uint32_t *p;

	if (!random_below(4))
		offset = (uint64_t)random_below(4) << 62 | (uint64_t)gpu_ids[random_below(nr_gpus)] << 46;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, random_below(4) ? MAP_SHARED : MAP_PRIVATE, random_fd(fds, n),
		 offset);
	if (p == MAP_FAILED)
		return;
	/* The kernel writes and reads there in this process' stead: no signal where nothing is. */
	if (pwrite(fds[n], (void *)p, 64, 0) == 64)
		(void)!pread(fds[n], (void *)p, 8, 64 * random_below(2));
	if (random_below(8))
		munmap((void *)p, size);
}

/* A state that is saved, changed in some places, and offered to a child. */
static void checkpoint(int kfd)
{
	struct kfd_ioctl_criu_args args = { .op = 0 };
	static __thread uint8_t priv[1 << 16], buckets[1 << 14], devices[64 * 16];
	unsigned int n;

	if (ioctl(kfd, NR_CRIU_OP, &args) || args.priv_data_size > sizeof(priv) || args.num_bos > sizeof(buckets) / 48)
		return;
	args.op = 1;
	args.priv_data = (uintptr_t)priv;
	args.bos = (uintptr_t)buckets;
	args.devices = (uintptr_t)devices;
	(void)!ioctl(kfd, NR_CRIU_OP, &args);
	args.op = 2;
	(void)!ioctl(kfd, NR_CRIU_OP, &args);
	if (random_below(3) || fork())
		return;
	kfd = open("/dev/kfd", O_RDWR);
	for (n = 0; n < args.num_devices; n++) {
		int32_t fd = render_open(render_minors[n]);

		memcpy(devices + 16 * n + 8, &fd, 4);
	}
	for (n = random_below(5); n && args.priv_data_size; n--)
		priv[random_below(args.priv_data_size)] = field('r');
	for (n = random_below(3); n && args.num_bos; n--)
		buckets[random_below(args.num_bos * 48)] = field('r');
	args.op = 3;
	args.num_objects += !random_below(8);
	(void)!ioctl(kfd, NR_CRIU_OP, &args);
	args.op = 4;
	args.pid = getpid();
	(void)!ioctl(kfd, NR_CRIU_OP, &args);
	_exit(0);
}

/* ---- a process ---- */

static int fds[MAX_FDS];
static unsigned int nr_fds, nr_drm;

static void on_alarm(int number)
{
	(void)number;
}

/* A BO at the arena's own address, so that packets and arrays in it are found by CPU and GPU alike. */
static void map_arena(int kfd, unsigned int gpu)
{
	uint64_t offset = (uintptr_t)arena, handle = 0;
	uint32_t args[16] = { 0 };
	struct drm_gem {
		uint64_t addr, size;
		uint32_t flags, handle;
	} user = { (uintptr_t)arena, ARENA, 8 | 2, 0 };

	if (random_below(2)) {
		must(kfd_acquire(kfd, fds[gpu], gpu_ids[gpu]), "ACQUIRE_VM");
		if (!kfd_alloc(kfd, gpu_ids[gpu], (uintptr_t)arena, ARENA, MEM_USERPTR | MEM_WRITABLE, &offset,
			       &handle))
			(void)!kfd_map(kfd, handle, gpu_ids[gpu]);
		remember(handle);
		return;
	}
	if (ioctl(fds[gpu], 0xc0186451u, &user))
		return;
	args[0] = user.handle;
	args[2] = 1;
	args[3] = 2 | 4 | 8;
	memcpy(&args[4], &user.addr, 8);
	memcpy(&args[8], &user.size, 8);
	(void)!ioctl(fds[gpu], 0x40406448u, args);
}

static void make_queue(int kfd)
{
	uint32_t gpu = random_below(nr_gpus);
	struct sdma_queue q = { .gpu_id = gpu_ids[gpu] };
	struct create_queue args;
	struct buffer *b, *ends[] = { &q.ring, &q.pointers };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		b = ends[i];
		b->va = reserve(RING);
		b->size = i ? PAGE : RING;
		if (kfd_alloc(kfd, q.gpu_id, b->va, b->size, GTT_RW, &b->offset, &b->handle) ||
		    kfd_map(kfd, b->handle, q.gpu_id))
			return;
		if (mmap((void *)b->va, b->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fds[gpu], b->offset) ==
		    MAP_FAILED)
			return;
	}
	scribble((void *)q.ring.va, 2000);
	args = sdma_args(&q);
	if (ioctl(kfd, NR_CREATE_QUEUE, &args))
		return;
	remember(args.queue_id);
	remember(args.doorbell_offset);
	q.doorbell_offset = args.doorbell_offset;
	*(volatile uint64_t *)(q.pointers.va + 64) = 4 * random_below(2000);
	q.doorbell_page =
		mmap(NULL, DOORBELLS, PROT_READ | PROT_WRITE, MAP_SHARED, kfd, args.doorbell_offset & ~(DOORBELLS - 1));
	if (q.doorbell_page != MAP_FAILED)
		*(volatile uint64_t *)(q.doorbell_page + (q.doorbell_offset & (DOORBELLS - 1))) =
			4 * random_below(2000);
}

static void step(void)
{
	int kfd = fds[nr_gpus + random_below(2)];

	switch (random_below(24)) {
	case 0:
		map_something(fds, nr_fds);
		break;
	case 1:
		scribble(arena + (random_below(ARENA / 1024) * 1024), 256);
		break;
	case 2:
		checkpoint(kfd);
		break;
	case 3:
		if (!random_below(8))
			make_queue(kfd);
		break;
	case 4:
	case 5:
		submit(fds[random_below(nr_drm)]);
		break;
	case 6:
		if (!random_below(20) && !fork())
			_exit(0);
		break;
	case 7:
		/* What calls opened: read, written, closed. */
		kfd = nr_fds + 8 + random_below(40);
		fcntl(kfd, F_SETFL, O_NONBLOCK);
		(void)!write(kfd, &(uint64_t){ field('F') }, 8);
		(void)!read(kfd, (void *)(uintptr_t)field('a'), 256);
		if (random_below(2))
			close(kfd);
		break;
	case 8 ... 15:
		call(random_below(20) ? kfd : random_fd(fds, nr_fds),
		     &kfd_calls[random_below(sizeof(kfd_calls) / sizeof(kfd_calls[0]))]);
		break;
	default:
		call(random_below(20) ? fds[random_below(nr_drm)] : random_fd(fds, nr_fds),
		     &drm_calls[random_below(sizeof(drm_calls) / sizeof(drm_calls[0]))]);
	}
}

static volatile uint64_t *steps;

static void *thread_main(void *seed)
{
	random_state = (uintptr_t)seed;
	for (;;) {
		step();
		__atomic_fetch_add(steps, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void process_main(uint64_t seed)
{
	const struct itimerval often = { { 0, 20000 }, { 0, 20000 } };
	struct sigaction action = { .sa_handler = on_alarm };
	unsigned int i, life;
	pthread_t threads[2];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	random_state = seed;
	signal(SIGCHLD, SIG_IGN);
	signal(SIGSEGV, SIG_DFL);
	sigaction(SIGALRM, &action, NULL);
	arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < nr_gpus; i++)
		fds[nr_fds++] = render_open(render_minors[i]);
	nr_drm = nr_fds;
	fds[nr_fds++] = kfd_open();
	fds[nr_fds++] = kfd_open();
	fds[nr_fds] = memfd_create("scratch", 0);
	scribble(arena, ARENA / 4);
	for (i = 0; i < nr_gpus; i++)
		map_arena(fds[nr_gpus], i);
	setitimer(ITIMER_REAL, &often, NULL);
	life = 200 + random_below(3000);
	for (i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, thread_main, (void *)(uintptr_t)random_u64());
	for (i = 0; i < 10; i++)
		usleep(life * 100);
	_exit(0);
}

/* ---- all of them ---- */

/* True when it has ended within a time in which nothing here takes longer. */
static bool gone(pid_t pid)
{
	uint64_t end = now_ms() + 30000;

	while (now_ms() < end) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			return true;
		usleep(2000);
	}
	printf("# process %d does not end\n", pid);
	return false;
}

int main(int argc, char **argv)
{
	unsigned int seconds = argc > 1 ? strtoul(argv[1], NULL, 0) : 10, i, started = 0;
	uint64_t end, seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	bool all_gone = true;
	pid_t pids[PROCESSES] = { 0 };

	nr_gpus = count_gpus(NULL);
	if (nr_gpus > 8)
		nr_gpus = 8;
	for (i = 0; i < nr_gpus; i++) {
		struct node node = node_gpu(i);

		gpu_ids[i] = node.gpu_id;
		render_minors[i] = node.render_minor;
	}
	steps = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	printf("# seed %#" PRIx64 "\n", seed);
	fflush(stdout);
	random_state = seed | 1;
	for (end = now_ms() + seconds * 1000ull; now_ms() < end && all_gone; usleep(1000 * random_below(400))) {
		i = random_below(PROCESSES);
		if (pids[i]) {
			if (random_below(2))
				kill(pids[i], SIGKILL);
			all_gone = gone(pids[i]);
		}
		pids[i] = fork();
		must(pids[i], "fork");
		if (!pids[i])
			process_main(random_u64() | 1);
		random_u64();
		started++;
	}
	for (i = 0; i < PROCESSES; i++) {
		if (pids[i] <= 0)
			continue;
		kill(pids[i], SIGKILL);
		all_gone &= gone(pids[i]);
	}
	printf("# %u processes, %" PRIu64 " calls\n", started, *steps);
	check_true(*steps > 100, "calls were made");
	check_true(all_gone, "every process ended");
	check_true(nothing_left(20000), "nothing is left of them");
	return conformance_end();
}
