// SPDX-License-Identifier: GPL-2.0-only
/*
 * User SDMA queues: the doorbells that they get, and the type that they are saved with. RESTORE wants both again.
 */
#include "criu_test.h"

static int kfd, drm_fd;
static unsigned int release;

/* The first doorbell of an SDMA engine follows from its place among those of all partitions of the device. */
static void check_sdma_doorbells(void)
{
	unsigned int i;

	for (i = 0; i < nr_gpus; i++) {
		struct kfd_gpu *gpu = &gpus[i];
		uint64_t engine = partition_of(gpu) * (gpu->sdma_engines + gpu->xgmi_engines);
		uint64_t want = 0x100 + 10 * engine;
		int file = drm_fd;
		struct test_queue q;

		if (i) {
			file = render_open(gpu->render_minor);
			must(kfd_acquire(kfd, file, gpu->gpu_id), "ACQUIRE_VM");
		}
		if (gpu->gfx_version >= 90400 && release >= 702)
			want = (want + 3) & ~3ull;
		q = queue_new(kfd, file, gpu);
		check_u64((q.doorbell_offset & (DOORBELLS - 1)) / 8, want,
			  "doorbell of the first SDMA engine of GPU %u", i);
		queue_free(&q, kfd);
	}
}

/* The kernel's own number of a queue's type is saved, and that of XGMI engines has changed. */
static void check_saved_type(void)
{
	static struct state state;
	struct test_queue q;

	if (!gpus[0].xgmi_engines) {
		check_skip("the type that XGMI queues are saved with: no such engines");
		return;
	}
	q = queue_new_of_type(kfd, drm_fd, &gpus[0], KFD_IOC_QUEUE_TYPE_SDMA_XGMI);
	must(state_info(kfd, &state), "PROCESS_INFO");
	must(state_checkpoint(kfd, &state), "CHECKPOINT");
	check_u64(((struct queue_priv *)state_objects(&state))->type, release < 618 ? 4 : 3,
		  "the type that an XGMI queue is saved with");
	state_close_fds(&state);
	must(criu_simple(kfd, KFD_CRIU_OP_UNPAUSE), "UNPAUSE");
	queue_free(&q, kfd);
}

/* Argument: the release whose rules hold. */
int main(int argc, char **argv)
{
	release = release_of(argc, argv);
	gpus_find();
	kfd = kfd_file();
	drm_fd = render_open(gpus[0].render_minor);
	must(kfd_acquire(kfd, drm_fd, gpus[0].gpu_id), "ACQUIRE_VM");
	check_sdma_doorbells();
	check_saved_type();
	return conformance_end();
}
