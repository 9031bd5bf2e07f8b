// SPDX-License-Identifier: GPL-2.0-only
/*
 * Handles of KFD BOs in the render files of their GPUs: what exporting by IPC leaves behind in ROCm 7.2, where the
 * object also gets a token as metadata, and in later releases, which leave the token only.
 */
#include <string.h>
#include <unistd.h>

#include "report.h"
#include "sharejob.h"

#define BUFFERS_OF_GPU 4u

static struct kfd_bo *described[SHARE_GPUS]; /* have metadata and no handle */
static const uint8_t token[4] = { 0xd1, 0x5c, 0x00, 0x7e };

/* Sets or looks for the token through a handle that is closed again. */
static int described_look(struct share_process *me, unsigned int n, bool set)
{
	int file = me->gpus[n].gpu->render_fd, fd;
	uint32_t handle = 0;
	int err = kfd_bo_export(&me->kfd, described[n], &fd);

	if (err)
		return err;
	err = gem_import(file, fd, &handle);
	close(fd);
	if (err)
		return err;
	err = set ? gem_metadata_set(file, handle, 0, token, sizeof(token))
		  : gem_metadata_check(file, handle, 0, token, sizeof(token));
	return err ? err : gem_close(file, handle);
}

static int gpu_setup(struct share_process *me, unsigned int n)
{
	static const uint8_t longer[40] = { 1, 2, 3, 5, 8, 13, 21, 34 };
	struct share_gpu *gpu = &me->gpus[n];
	uint32_t fillers[2], handles[3];
	int file = gpu->gpu->render_fd;
	unsigned int buffer = n * BUFFERS_OF_GPU;
	struct kfd_bo *visible, *hidden, *gtt, *filler;
	int err = share_bo_new(me, buffer, gpu, KFD_MEMORY_VRAM_PUBLIC, &visible);

	err = err ? err : share_bo_bare(me, gpu, KFD_MEMORY_GTT, &filler);
	err = err ? err : share_bo_new(me, buffer + 1, gpu, KFD_MEMORY_VRAM, &hidden);
	err = err ? err : share_bo_new(me, buffer + 2, gpu, KFD_MEMORY_GTT, &gtt);
	err = err ? err : share_bo_new(me, buffer + 3, gpu, KFD_MEMORY_VRAM, &described[n]);
	err = err ? err : share_bo_drop(me, filler);
	err = err ? err : share_handle_create(me, file, GEM_DOMAIN_GTT, 0, &fillers[0]);
	err = err ? err : share_handle_of_bo(me, file, gtt, &handles[0]);
	err = err ? err : share_handle_create(me, file, GEM_DOMAIN_GTT, 0, &fillers[1]);
	err = err ? err : share_handle_of_bo(me, file, visible, &handles[1]);
	err = err ? err : share_handle_of_bo(me, file, hidden, &handles[2]);
	err = err ? err : share_handle_drop(me, file, fillers[0]);
	err = err ? err : share_handle_drop(me, file, fillers[1]);
	err = err ? err : share_handle_describe(me, file, handles[0], 0, token, sizeof(token));
	err = err ? err : share_handle_describe(me, file, handles[1], 5, longer, sizeof(longer));
	return err ? err : described_look(me, n, true);
}

static int handles_setup(struct share_process *me)
{
	int err = 0;

	for (unsigned int n = 0; !err && n < me->nr_gpus; n++)
		err = gpu_setup(me, n);
	return err;
}

static int handles_check(struct share_process *me)
{
	int err = 0;

	for (unsigned int n = 0; !err && n < me->nr_gpus; n++)
		err = described_look(me, n, false);
	return err;
}

const struct share_case share_handle_cases[] = {
	{ "handles", "handles of KFD BOs with gaps, metadata", 1, 2, 0, handles_setup, handles_check },
	{ 0 },
};
