// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cases of sharejob, by subject: imports between processes (as hipIpcOpenMemHandle makes them), memory without an
 * address (hipMemCreate), open dma-bufs, render files, processes without KFD, and what cannot be saved. Most are steps;
 * what no step does is above the table.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "report.h"
#include "sharejob_steps.h"

#define LARGE_BYTES (64ull << 20)

/* ---- all to all ---- */

static int mesh_take(struct share_process *me, unsigned int mine, bool kept)
{
	unsigned int buffer;
	struct kfd_bo *bo;
	int fd, err = share_receive(me, &buffer, &fd);

	if (err)
		return err;
	err = share_bo_import(me, buffer, &me->gpus[buffer % 2], fd, &bo);
	close(fd);
	if (!err && buffer % 2 != mine % 2)
		err = kfd_bo_share(&me->kfd, bo, me->gpus[mine % 2].gpu);
	if (!err && buffer % 2 != mine % 2)
		err = share_view_gpu(me, buffer, &me->gpus[mine % 2], bo->va, 0, SHARE_PAGES, false);
	return err || !kept ? err : share_keep_handle(me, &me->gpus[buffer % 2], bo, false);
}

int share_mesh_setup(struct share_process *me)
{
	struct share_gpu *gpu = &me->gpus[me->number % 2];
	bool kept = share_is_second(me);
	struct kfd_bo *bo;
	int err = share_bo_new(me, me->number, gpu, KFD_MEMORY_VRAM_PUBLIC, &bo);

	if (!err && kept)
		err = share_keep_handle(me, gpu, bo, true);
	for (unsigned int i = 0; !err && i < me->nr_processes; i++)
		if (i != me->number)
			err = share_send_bo(me, i, me->number, bo);
	for (unsigned int i = 1; !err && i < me->nr_processes; i++)
		err = mesh_take(me, me->number, kept);
	return err;
}

/* ---- memory of the host, as for signals and events of IPC ---- */

/* The importer has a handle and a mapping where the CPU has it; its KFD import is gone again. */
static int sysmem_setup(struct share_process *me)
{
	struct share_gpu *gpu = &me->gpus[0];
	int file = gpu->gpu->render_fd, fd, err;
	struct kfd_bo import;
	unsigned int buffer;
	uint32_t handle;
	uint64_t va;

	if (!me->number)
		return 0;
	err = share_receive(me, &buffer, &fd);
	if (err)
		return err;
	err = kfd_bo_import(&me->kfd, gpu->gpu, fd, SHARE_BYTES, &import);
	err = err ? err : share_handle_import(me, file, fd, &handle);
	err = err ? err : kfd_bo_free(&me->kfd, &import);
	close(fd);
	err = err ? err
		  : share_map_gpu(me, buffer, file, gpu, handle, 0, SHARE_PAGES, GEM_READ | GEM_WRITE | GEM_EXECUTE,
				  &va);
	return err ? err
		   : share_map_cpu(me, buffer, file, handle, SHARE_PAGES, PROT_READ | PROT_WRITE,
				   (void *)(uintptr_t)va);
}

/* ---- the flags of memory whose owner is gone ---- */

static uint64_t flags_before[2];

/* Of the dma-buf that is open, or of the first two BOs. */
static int flags_look(struct share_process *me, uint64_t flags[2])
{
	int file = me->gpus[0].gpu->render_fd, err = 0;

	if (me->objects.nr_dmabufs)
		return share_flags(file, me->objects.dmabufs[0].fd, &flags[0]);
	for (unsigned int i = 0, n = 0; !err && i < me->objects.nr_bos && n < 2; i++) {
		int fd;

		if (!me->objects.bos[i].gpu)
			continue;
		err = kfd_bo_export(&me->kfd, &me->objects.bos[i], &fd);
		if (err)
			return err;
		err = share_flags(file, fd, &flags[n++]);
		close(fd);
	}
	return err;
}

static int flags_setup(struct share_process *me)
{
	return me->number ? 0 : flags_look(me, flags_before);
}

static int flags_check(struct share_process *me)
{
	uint64_t flags[2] = { 0 };
	int err = flags_look(me, flags);

	for (unsigned int i = 0; !err && i < 2; i++)
		if ((flags[i] | GEM_ADDED) != (flags_before[i] | GEM_ADDED))
			err = report(EILSEQ, "buffer %u has flags %#llx, want %#llx", i, (unsigned long long)flags[i],
				     (unsigned long long)flags_before[i]);
	return err;
}

/* ---- metadata without a handle ---- */

/* Sets or looks for the token of buffers 3 and 7, one on each GPU, through a handle that is closed again. */
static int token_look(struct share_process *me, unsigned int n, bool set)
{
	int file = me->gpus[n].gpu->render_fd;
	uint32_t handle = 0;
	int err = gem_import_bo(file, &me->kfd, share_bo_of(4 * n + 3), &handle);

	if (err)
		return err;
	err = set ? gem_metadata_set(file, handle, 0, share_token, sizeof(share_token))
		  : gem_metadata_check(file, handle, 0, share_token, sizeof(share_token));
	return err ? err : gem_close(file, handle);
}

static int tokens_setup(struct share_process *me)
{
	int err = token_look(me, 0, true);

	return err ? err : token_look(me, 1, true);
}

static int tokens_check(struct share_process *me)
{
	int err = token_look(me, 0, false);

	return err ? err : token_look(me, 1, false);
}

/* ---- VMM of a size ---- */

#define BALLAST_WORDS (LARGE_BYTES * 2 / sizeof(uint64_t))

static uint64_t *ballast;

static uint64_t ballast_word(uint64_t i)
{
	return (i + 1) * 0x9e3779b97f4a7c15ull;
}

/* As hipMemCreate, hipMemMap and hipMemSetAccess make it, for GPU and CPU; each word differs. */
static int ballast_setup(struct share_process *me)
{
	struct share_objects *o = &me->objects;
	int file = me->gpus[0].gpu->render_fd;
	struct kfd_bo *bo = &o->bos[o->nr_bos];
	uint32_t handle;
	uint64_t va;
	void *p;
	int err = kfd_bo_alloc_bare(&me->kfd, me->gpus[0].gpu, KFD_MEMORY_VRAM_PUBLIC, 2 * LARGE_BYTES, bo);

	err = err ? err : gem_import_bo(file, &me->kfd, bo, &handle);
	if (err)
		return err;
	o->nr_bos++;
	o->handles[o->nr_handles++] = (struct share_handle){ .file = file, .handle = handle, .size_bytes = 2 * LARGE_BYTES };
	err = share_map_gpu(me, 0, file, NULL, handle, 0, (unsigned int)(2 * LARGE_BYTES / KFD_PAGE_SIZE), GEM_READ | GEM_WRITE,
			    &va);
	err = err ? err : gem_map_cpu(file, handle, NULL, 2 * LARGE_BYTES, PROT_READ | PROT_WRITE, &p);
	if (err)
		return err;
	ballast = p;
	for (uint64_t i = 0; i < BALLAST_WORDS; i++)
		ballast[i] = ballast_word(i);
	return 0;
}

static int ballast_check(struct share_process *me)
{
	for (uint64_t i = 0; i < BALLAST_WORDS; i++)
		if (ballast[i] != ballast_word(i))
			return report(EIO, "process %u: word %llu of its VMM memory is %#llx", me->number, (unsigned long long)i,
				      (unsigned long long)ballast[i]);
	return 0;
}

/* ---- a process that ends later, of which nothing may stay ---- */

/* It has no view, and in the second case handles of the others' buffers. */
static int quits_setup(struct share_process *me)
{
	static struct kfd_bo large;

	return me->number < 2 ? 0 : kfd_bo_alloc(&me->kfd, me->gpus[0].gpu, KFD_MEMORY_VRAM, LARGE_BYTES, &large);
}

/* ---- render files ---- */

/* Of a GPU without buffers: the file of before is not the KFD's, in which memory is mapped. */
static int files_spare_setup(struct share_process *me)
{
	struct kfd_gpu *gpu = &me->kfd.gpus[1];
	int err = share_file_keep(me, gpu->spare_fd, true, true);

	return err || share_is_second(me) ? err : share_syncobj_new(me, gpu->render_fd, SHARE_SYNCOBJ_POINT, false);
}

/* By the file with the KFD's address space the CPU can map whatever the KFD allocates. */
static int files_spare_check(struct share_process *me)
{
	struct kfd_bo bo;
	int err = kfd_bo_alloc(&me->kfd, &me->kfd.gpus[1], KFD_MEMORY_VRAM_PUBLIC, SHARE_BYTES, &bo);

	return err ? err : kfd_bo_free(&me->kfd, &bo);
}

/* The kernel makes objects in a file for reading, too; the CPU cannot write to them by it. */
static int render_readonly_setup(struct share_process *me)
{
	uint32_t handle;
	char path[64];
	int file, err;

	snprintf(path, sizeof(path), "/dev/dri/renderD%u", me->kfd.gpus[0].render_minor);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return report(errno, "open %s for reading: %m", path);
	err = share_file_keep(me, file, true, true);
	return err ? err : share_handle_create(me, file, GEM_DOMAIN_VRAM, 0, &handle);
}

/* It could compute. */
static int render_ctx_setup(struct share_process *me)
{
	uint32_t context;

	return gem_context_create(me->objects.files[0].fd, &context);
}

/* The file of the render node has a higher number than the dma-buf of its object. */
static int render_early_setup(struct share_process *me)
{
	uint32_t handle;
	int fd, file = kfd_gpu_reopen(&me->kfd.gpus[0]);
	int err = file < 0 ? file : kfd_renumber(&file, 500);

	err = err ? err : share_file_keep(me, file, true, true);
	err = err ? err : share_handle_create(me, file, GEM_DOMAIN_GTT, 0, &handle);
	err = err ? err : share_map_cpu(me, 0, file, handle, SHARE_PAGES, PROT_READ | PROT_WRITE, NULL);
	err = err ? err : share_fill(0, NULL, 0, me->views[me->nr_views - 1].cpu);
	err = err ? err : gem_export(file, handle, true, &fd);
	return err ? err : share_dmabuf_keep(me, 0, fd, NULL);
}

/* ---- what cannot be saved ---- */

/* A message that nobody has read yet. */
static int under_way_setup(struct share_process *me)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return report(errno, "socketpair: %m");
	me->outboxes[1] = ends[1];
	return share_send_bo(me, 1, 0, share_bo_of(0));
}

static int udmabuf_setup(struct share_process *me)
{
	int memfd = memfd_create("pages", MFD_ALLOW_SEALING | MFD_CLOEXEC), device, fd, err;
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = SHARE_BYTES };
	struct kfd_bo *bo;
	void *p;

	if (memfd < 0 || ftruncate(memfd, SHARE_BYTES) || fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		return report(errno, "memfd: %m");
	p = mmap(NULL, SHARE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	if (p == MAP_FAILED || device < 0)
		return report(errno, "/dev/udmabuf: %m");
	create.memfd = (uint32_t)memfd;
	fd = ioctl(device, UDMABUF_CREATE, &create);
	if (fd < 0)
		return report(errno, "UDMABUF_CREATE: %m");
	err = share_fill(0, NULL, 0, p);
	err = err ? err : share_bo_import(me, 0, &me->gpus[0], fd, &bo);
	close(fd);
	close(device);
	close(memfd);
	return err ? err : share_view_cpu(me, 0, p, 0, SHARE_PAGES, true);
}

static int userptr_setup(struct share_process *me)
{
	void *p = mmap(NULL, SHARE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t handle;

	if (p == MAP_FAILED)
		return report(errno, "mmap: %m");
	return gem_userptr(me->gpus[0].gpu->render_fd, p, SHARE_BYTES, &handle);
}

static int context_setup(struct share_process *me)
{
	uint32_t context;
	int file = me->objects.files[1].fd, err = gem_context_create(file, &context);

	return err ? err : gem_context_use(file, context);
}

/* ---- the table ---- */

/* A step has as many numbers as it needs. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define VRAM	KFD_MEMORY_VRAM
#define VISIBLE KFD_MEMORY_VRAM_PUBLIC
#define GTT	KFD_MEMORY_GTT
#define ALL	(int)SHARE_PAGES
#define RW	(GEM_READ | GEM_WRITE)
#define RWX	(RW | GEM_EXECUTE)
#define CPU_RW	(PROT_READ | PROT_WRITE)

/* clang-format off */
#define TAKE_BO(when, gpu) { when | RECEIVE }, { when | IMPORT, gpu }, { when | PUT_AWAY }
#define TAKE_HANDLE	   { RECEIVE }, { HANDLE, 0 }, { PUT_AWAY }

/* Three buffers, of which the first is imported twice; and as many of the other's. */
#define PAIR(buffer, other, first, second, third)                                                                     \
	{ BO, buffer, first }, { SECOND | KEPT, buffer }, { SEND, buffer, other }, { SEND, buffer, other },           \
	{ BO, buffer + 1, second }, { SECOND | KEPT, buffer + 1 }, { SEND, buffer + 1, other },                       \
	{ BO, buffer + 2, third }, { SECOND | KEPT, buffer + 2 }, { SEND, buffer + 2, other }, { TAKE, 4 }

/* Parts of a handle at several addresses, read-only and not; if it can, the CPU has its beginning, twice, and a reservation. */
#define PARTS(n, gpu)                                                                                                 \
	{ MAP, n, gpu, gpu, n, 0, ALL, RWX }, { FILL, n, gpu }, { MAP, n, gpu, gpu, n, 4, 4, GEM_READ },        \
	{ MAP, n, gpu, gpu, n, 8, 8, RW }, { MAP, n, gpu, gpu, n, 9, 1, RWX }
#define PARTS_CPU(n, file)                                                                                            \
	{ CPU, n, file, 6, CPU_RW, 1 }, { CPU, n, file, 3, PROT_READ }, { CPU, n, file, ALL, PROT_NONE }

/* Memory of each kind, with gaps in the numbers of handles; in the second case only the handle holds it. */
#define VMM(n, kind) { BARE, n, kind }, { CREATE, 10 + n, 0, GEM_DOMAIN_GTT }, { HANDLE_OF, n, 0, n }, PARTS(n, 0)
#define VMM_ALL                                                                                                       \
	STEPS(VMM(0, VRAM), { SECOND | DROP, 0 }, VMM(1, VISIBLE), PARTS_CPU(1, 0), { SECOND | DROP, 1 },             \
	      VMM(2, GTT), PARTS_CPU(2, 0), { SECOND | DROP, 2 }, { CLOSE, 10, 0 }, { CLOSE, 11, 0 },                 \
	      { CLOSE, 12, 0 }, { IF_SECOND }, { CREATE, 3, 0, GEM_DOMAIN_VRAM }, PARTS(3, 0), PARTS_CPU(3, 0))

/* An object that the CPU sees and a GPU has mapped in the address space of the file; nobody can compute there. */
#define OBJECT(n, file, domain)                                                                                       \
	{ CREATE, n, file, domain }, { CPU, n, file, ALL, CPU_RW }, { FILL, n, BY_CPU },                              \
	{ MAP, n, file, BY_CPU, n, 0, ALL, RW }, { MAP, n, file, BY_CPU, n, 3, 2, GEM_READ }

/* Two with a gap between their handles, and metadata. */
#define OBJECTS(n, file)                                                                                              \
	OBJECT(n, file, GEM_DOMAIN_VRAM), { CREATE, 40, file, GEM_DOMAIN_GTT }, { DESCRIBE, n, file, 9, 18 },             \
	OBJECT(n + 1, file, GEM_DOMAIN_GTT), { CLOSE, 40, file }, { SYNCOBJS, file }

#define RENDER { OPEN, 0, 0 }, OBJECTS(0, 0), { IF_GPU, 1 }, { OPEN, 1, 1 }, OBJECTS(2, 1)

/* What a process without KFD gets: a handle, a mapping of the CPU, and one of the GPU, where nobody can compute. */
#define TAKE_MAPPED                                                                                                   \
	TAKE_HANDLE, { CPU, IT, 0, ALL, CPU_RW }, { MAP, 0, 0, BY_CPU, IT, 0, ALL, RW }

/* Handles of KFD BOs in another order than theirs, with gaps, and metadata of two. */
#define HANDLES(n, gpu)                                                                                               \
	{ BO, n, VISIBLE, gpu }, { BARE, 40, GTT, gpu }, { BO, n + 1, VRAM, gpu }, { BO, n + 2, GTT, gpu },           \
	{ BO, n + 3, VRAM, gpu }, { DROP, 40 }, { CREATE, 41, gpu, GEM_DOMAIN_GTT }, { HANDLE_OF, n + 2, gpu, n + 2 }, \
	{ CREATE, 42, gpu, GEM_DOMAIN_GTT }, { HANDLE_OF, n, gpu, n }, { HANDLE_OF, n + 1, gpu, n + 1 },              \
	{ CLOSE, 41, gpu }, { CLOSE, 42, gpu }, { DESCRIBE, n + 2, gpu }, { DESCRIBE, n, gpu, 5, 40 }

#define NOTHING	    STEPS({ 0 })
#define GIVE	    STEPS({ BO, 0, VISIBLE }, { SEND, 0, 1 })
#define GIVE_GTT    STEPS({ BO, 0, GTT }, { SEND, 0, 1 })
#define TAKE_TWO    STEPS({ TAKE, 2 }, { MEET })
/* Of two buffers that two processes get and the exporter has no view of. */
#define ORPHANS(first, second)                                                                                        \
	{ BO, 0, VRAM }, { BO, 1, GTT }, { SEND, 0, first }, { SEND, 1, first }, { SEND, 0, second },                 \
	{ SEND, 1, second }, { MEET }, { UNVIEW, 0 }, { UNVIEW, 1 }

const struct share_case share_cases[] = {
	/* Handles of KFD BOs in the files of their GPUs, as exporting by IPC leaves them behind; of buffer 3 a token only. */
	{ "handles", "handles of KFD BOs with gaps, metadata", 1, 2, 0,
	  { STEPS(HANDLES(0, 0), HANDLES(4, 1)) }, tokens_setup, tokens_check },

	{ "ipc", "two processes import from each other on one GPU", 2, 1, 0,
	  { STEPS(PAIR(0, 1, VISIBLE, GTT, VRAM)), STEPS(PAIR(3, 0, VRAM, VISIBLE, GTT)) }, NULL, NULL },
	{ "ipc-kept", "the same, with handles and tokens left behind", 2, 1, SHARE_SECOND,
	  { STEPS(PAIR(0, 1, VISIBLE, GTT, VRAM)), STEPS(PAIR(3, 0, VRAM, VISIBLE, GTT)) }, NULL, NULL },
#define FAR { STEPS({ BO, 0, GTT, 0 }, { LEND, 0, 1 }, { SEND, 0, 1 }, { BO, 1, GTT, 1 }, { LEND, 1, 0 }, { SEND, 1, 1 }, \
		    { FIRST | BO, 2, VISIBLE, 0 }, { FIRST | LEND, 2, 1 }, { FIRST | SEND, 2, 1 },                      \
		    { FIRST | BO, 3, VRAM, 1 }, { FIRST | LEND, 3, 0 }, { FIRST | SEND, 3, 1 }),                        \
	      STEPS(TAKE_BO(0, 0), { LEND, 0, 1 }, TAKE_BO(0, 1), { LEND, 1, 0 },                                     \
		    TAKE_BO(FIRST, 0), { FIRST | LEND, 2, 1 }, TAKE_BO(FIRST, 1), { FIRST | LEND, 3, 0 }) }
	{ "ipc-far", "imports on the owner's GPU, mapped on another one", 2, 2, 0, FAR, NULL, NULL },
	{ "ipc-far-sysmem", "the same with memory of the host", 2, 2, SHARE_SECOND, FAR, NULL, NULL },
	{ "ipc-across", "imports on another GPU than the owner's", 2, 2, 0,
	  { STEPS({ BO, 0, GTT, 0 }, { SEND, 0, 1 }, { BO, 1, GTT, 1 }, { SEND, 1, 1 }, { BO, 2, VISIBLE, 0 }, { SEND, 2, 1 },
		  { BO, 3, VRAM, 1 }, { SEND, 3, 1 }),
	    STEPS(TAKE_BO(0, 1), TAKE_BO(0, 0), TAKE_BO(0, 1), TAKE_BO(0, 0)) }, NULL, NULL },
	{ "ipc-anew", "imports on another GPU, two objects there", 2, 2, 0,
	  { GIVE_GTT, STEPS({ RECEIVE }, { LOSE, 1 }, { IMPORT, 1 }, { LOSE, 1 }, { IMPORT, 1 }, { LOSE, 1 }, { PUT_AWAY }) },
	  NULL, NULL },
	{ "ipc-sysmem", "memory of the host by handle, mapping and CPU", 2, 1, 0, { GIVE_GTT, NOTHING }, sysmem_setup, NULL },
	{ "mesh", "N processes on two GPUs, all to all", 0, 2, 0, { NULL }, share_mesh_setup, NULL },
	{ "mesh-kept", "the same, with handles and tokens left behind", 0, 2, SHARE_SECOND, { NULL }, share_mesh_setup, NULL },
	{ "orphan-freed", "the exporter has freed its BO", 3, 1, 0,
	  { STEPS(ORPHANS(1, 2), { DROP, 0 }, { DROP, 1 }), TAKE_TWO }, NULL, NULL },
	{ "orphan-exited", "the exporter has ended", 3, 1, SHARE_LAST_LEAVES,
	  { TAKE_TWO, NULL, STEPS(ORPHANS(0, 1)) }, NULL, NULL },
	{ "orphan-alone", "the exporter has ended, one importer is left", 2, 1, SHARE_LAST_LEAVES,
	  { TAKE_TWO, STEPS({ BO, 0, VRAM }, { BO, 1, GTT }, { SEND, 0, 0 }, { SEND, 1, 0 }, { MEET }, { UNVIEW, 0 },
			    { UNVIEW, 1 }) }, flags_setup, flags_check },
	{ "quits", "two share, a third one ends when it gets SIGUSR2", 3, 1, 0,
	  { STEPS(PAIR(0, 1, VISIBLE, GTT, VRAM)), STEPS(PAIR(3, 0, VRAM, VISIBLE, GTT)), NOTHING }, quits_setup, NULL },
	{ "quits-kept", "the third one has handles of the others' buffers", 3, 1, 0,
	  { STEPS({ BO, 0, VISIBLE }, { SEND, 0, 2 }), STEPS({ BO, 1, VISIBLE }, { SEND, 1, 2 }),
	    STEPS(TAKE_HANDLE, TAKE_HANDLE) }, quits_setup, NULL },
	{ "apart", "two buffers that pass for one: both processes fail", 2, 1, 0, { STEPS({ BO, 0, VISIBLE }) }, NULL, NULL },

	{ "vmm", "memory without address, a handle, mappings of parts", 1, 1, 0, { VMM_ALL }, NULL, NULL },
	{ "vmm-large", "the same beside 128 MiB of VMM", 1, 1, 0, { VMM_ALL }, ballast_setup, ballast_check },
	{ "vmm-handle", "the same, held by the handle only", 1, 1, SHARE_SECOND, { VMM_ALL }, NULL, NULL },
	{ "vmm-far", "handles in the files of both GPUs", 1, 2, 0,
	  { STEPS({ BARE, 0, GTT, 0 }, { HANDLE_OF, 0, 1, 20 }, { HANDLE_OF, 0, 0, 0 }, PARTS(0, 0), PARTS_CPU(0, 0),
		  { MAP, 0, 1, 1, 20, 2, 9, RWX },
		  { BARE, 1, GTT, 1 }, { HANDLE_OF, 1, 0, 21 }, { HANDLE_OF, 1, 1, 1 }, PARTS(1, 1), PARTS_CPU(1, 1),
		  { MAP, 1, 0, 0, 21, 2, 9, RWX }, { DROP, 1 }) }, NULL, NULL },
	{ "vmm-far-vram", "a handle of VRAM in the file of another GPU", 1, 2, 0,
	  { STEPS({ BARE, 0, VISIBLE, 0 }, { HANDLE_OF, 0, 1, 20 }, { HANDLE_OF, 0, 0, 0 }, PARTS(0, 0)) }, NULL, NULL },
	/* Buffer 0: only a handle, exported by it, and the other has the open dma-buf, as ROCm 7.14; 1: KFD BOs, one bare. */
	{ "vmm-shared", "two processes", 2, 1, 0,
	  { STEPS({ BARE, 0, VISIBLE }, { HANDLE_OF, 0, 0, 0 }, PARTS(0, 0), PARTS_CPU(0, 0),
		  { BARE, 1, VISIBLE }, { HANDLE_OF, 1, 0, 1 }, PARTS(1, 0), PARTS_CPU(1, 0),
		  { DROP, 0 }, { EXPORT_HANDLE, 0, 0, true }, { SEND_FD, 0, 1 }, { CLOSE_FD, 0 }, { SEND, 1, 1 }),
	    STEPS({ RECEIVE }, { HANDLE, 0 }, { MAP, 0, 0, 0, 0, 1, 12, RWX }, { KEEP, IT },
		  { RECEIVE }, { HANDLE, 0 }, { MAP, 1, 0, 0, 1, 1, 12, RWX }, { IMPORT_BARE, 0 }, { PUT_AWAY }) }, NULL, NULL },

	/* Buffer 0: a KFD BO; 1: a handle, read-only; 2: its BO is freed. The last process has nothing of KFD. */
	{ "dmabuf", "open dma-bufs of three processes", 3, 1, SHARE_LATE,
	  { STEPS({ BO, 0, VISIBLE }, { EXPORT, 0 }, { CREATE, 1, 0, GEM_DOMAIN_GTT }, { EXPORT_HANDLE, 1, 0, false },
		  { MAP, 1, 0, 0, 1, 0, ALL, RW }, { FILL, 1, 0 }, { BO, 2, VISIBLE }, { EXPORT, 2 }, { UNVIEW, 2 },
		  { DROP, 2 }, { KEEP_TWICE, 0 }, { KEEP, 1 }, { KEEP, 2 }, { SEND_FD, 0, 1 }, { SEND_FD, 1, 1 },
		  { SEND_FD, 2, 1 }),
	    STEPS({ RECEIVE }, { IMPORT, 0 }, { KEEP, IT }, { RECEIVE }, { KEEP, IT }, { RECEIVE }, { KEEP, IT }),
	    STEPS({ FORGET }, { INHERIT_DMABUFS }) }, NULL, NULL },
	{ "dmabuf-own", "a process has a dma-buf of its own buffer open", 1, 1, 0,
	  { STEPS({ BO, 0, VISIBLE }, { EXPORT, 0 }, { KEEP, 0 }) }, NULL, NULL },
#define LONE(kind) { STEPS({ BO, 0, kind }, { EXPORT, 0 }, { UNVIEW, 0 }, { DROP, 0 }, { KEEP, 0 }) }
	{ "dmabuf-lone", "a dma-buf is all that is left", 1, 1, 0, LONE(VISIBLE), flags_setup, flags_check },
	/* KFD memory of the host is coherent here. */
	{ "dmabuf-lone-coherent", "the same of coherent memory", 1, 1, 0, LONE(GTT), flags_setup, flags_check },

	{ "files", "a second render file with objects, a third without", 1, 1, 0,
	  { STEPS({ OPEN, 0, 0 }, OBJECTS(0, 1), { OPEN, 0, 0 }, { SYNCOBJS, 0 }) }, NULL, NULL },
	{ "files-spare", "a file before the KFD's, which has a sync object", 1, 1, SHARE_SPARE_FILES, { NULL },
	  files_spare_setup, files_spare_check },
	{ "files-bare", "the same without the sync object", 1, 1, SHARE_SPARE_FILES | SHARE_SECOND, { NULL },
	  files_spare_setup, files_spare_check },
	/* Each has made an object in it; the second one maps none. */
	{ "files-forked", "a render file of two processes", 2, 1, SHARE_LATE,
	  { STEPS({ OPEN, 0, 0 }, { SHARED, 1 }, OBJECT(0, 1, GEM_DOMAIN_VRAM)),
	    STEPS({ FORGET }, { INHERIT_FILE }, { CREATE, 1, 0, GEM_DOMAIN_GTT }) }, NULL, NULL },
	{ "map-forked", "a child with a mapping of its parent's buffer", 2, 1, SHARE_LATE,
	  { STEPS({ BO, 0, GTT }, { LEND_CPU, 0 }), STEPS({ FORGET }, { BORROW, 0 }) }, NULL, NULL },

	{ "map-forked-vram", "the same of VRAM", 2, 1, SHARE_LATE,
	  { STEPS({ BO, 0, VISIBLE }, { LEND_CPU, 0 }), STEPS({ FORGET }, { BORROW, 0 }) }, NULL, NULL },

	/* As programs have them that ask for a GPU's properties. */
	{ "render-empty", "render files without objects, no KFD", 1, 0, SHARE_NO_KFD,
	  { STEPS({ OPEN, 0, KFD_MAX_GPUS }) }, NULL, NULL },
	{ "render", "objects, mappings, sync objects, no KFD", 1, 0, SHARE_NO_KFD, { STEPS(RENDER) }, NULL, NULL },
	{ "render-pair", "two processes without KFD share an object", 2, 0, SHARE_NO_KFD,
	  { STEPS({ OPEN, 0, 0 }, OBJECT(0, 0, GEM_DOMAIN_VRAM), { EXPORT_HANDLE, 0, 0, true }, { SEND_FD, 0, 1 }, { CLOSE_FD, 0 }),
	    STEPS({ OPEN, 0, 0 }, TAKE_HANDLE, { CPU, IT, 0, ALL, CPU_RW }) }, NULL, NULL },
	/* The last process computes on its own buffer and on an object of the first one; the second one has both. */
	{ "render-kfd", "two processes without KFD share objects with one that has it", 3, 1, SHARE_ONE_KFD,
	  { STEPS({ OPEN, 0, 0 }, TAKE_MAPPED, OBJECT(1, 0, GEM_DOMAIN_VRAM), { EXPORT_HANDLE, 1, 0, true },
		  { SEND_FD, 1, 1 }, { SEND_FD, 1, 2 }, { CLOSE_FD, 1 }),
	    STEPS({ OPEN, 0, 0 }, TAKE_MAPPED, TAKE_MAPPED),
	    STEPS({ BO, 0, VISIBLE }, { SEND, 0, 0 }, { SEND, 0, 1 }, TAKE_BO(0, 0)) }, NULL, NULL },
	/* The first process has the file with the KFD's address space from the last one, and an object in it. */
	{ "render-lent", "the file of a process with KFD in one without", 2, 1, SHARE_ONE_KFD,
	  { STEPS({ RECEIVE }, { KEEP_FILE }, { CREATE, 0, 0, GEM_DOMAIN_GTT }, { CPU, 0, 0, ALL, CPU_RW }, { FILL, 0, BY_CPU }),
	    STEPS({ SHARED, 0 }, { OPEN, 0, 0 }, { SEND_FILE, 0, 0 }) }, NULL, NULL },
	{ "render-readonly", "as render, with an object in a file for reading", 1, 0, SHARE_NO_KFD, { STEPS(RENDER) },
	  render_readonly_setup, NULL },
	{ "render-ctx", "as render, with a context", 1, 0, SHARE_NO_KFD, { STEPS(RENDER) }, render_ctx_setup, NULL },

	/* Cannot be saved: partners that are not in the tree, an order of files that criu cannot keep, ... */
	{ "outside-import", "a process outside of the tree imports", 2, 1, SHARE_OUTSIDE,
	  { GIVE, STEPS(TAKE_BO(0, 0)) }, NULL, NULL },
	{ "outside-export", "one outside of the tree exports", 2, 1, SHARE_OUTSIDE,
	  { STEPS(TAKE_BO(0, 0)), STEPS({ BO, 0, VISIBLE }, { SEND, 0, 0 }) }, NULL, NULL },
	{ "outside-handle", "one outside of the tree has a handle", 2, 1, SHARE_OUTSIDE,
	  { GIVE, STEPS(TAKE_HANDLE, { MAP, IT, 0, 0, IT, 0, ALL, RW }) }, NULL, NULL },
	{ "outside-dmabuf", "one outside of the tree has a dma-buf open", 2, 1, SHARE_OUTSIDE,
	  { GIVE, STEPS({ RECEIVE }, { KEEP, IT }) }, NULL, NULL },
	{ "early", "a dma-buf with a lower number than /dev/kfd", 1, 1, 0,
	  { STEPS({ RENUMBER }, { BO, 0, VISIBLE }, { EXPORT, 0 }, { KEEP, 0 }) }, NULL, NULL },
	{ "early-pair", "two processes have each other's so", 2, 1, 0,
	  { STEPS({ RENUMBER }, { BO, 0, VISIBLE }, { SEND, 0, 1 }, { RECEIVE }, { KEEP, IT }),
	    STEPS({ RENUMBER }, { BO, 1, VISIBLE }, { SEND, 1, 0 }, { RECEIVE }, { KEEP, IT }) }, NULL, NULL },
	{ "render-early", "one with a lower number than the render file, no KFD", 1, 0, SHARE_NO_KFD, { NULL },
	  render_early_setup, NULL },
	{ "under-way", "a dma-buf in a message that is not read", 1, 1, 0, { STEPS({ BO, 0, VISIBLE }) }, under_way_setup, NULL },
	/* ... memory of other drivers, objects and states that no program can make again. */
	{ "udmabuf", "pages of a memfd imported", 1, 1, 0, { NULL }, udmabuf_setup, NULL },
	{ "always-valid", "an object that is always valid", 1, 1, 0,
	  { STEPS({ CREATE, 0, 0, GEM_DOMAIN_VRAM, GEM_ALWAYS_VALID }) }, NULL, NULL },
	{ "doorbell", "a doorbell object", 1, 1, 0, { STEPS({ CREATE, 0, 0, GEM_DOMAIN_DOORBELL }) }, NULL, NULL },
	{ "userptr", "a userptr object of a render file", 1, 1, 0, { NULL }, userptr_setup, NULL },
	{ "context", "a context that has executed jobs", 1, 1, 0, { STEPS({ OPEN, 0, 0 }) }, context_setup, NULL },
	{ 0 },
};
/* clang-format on */
