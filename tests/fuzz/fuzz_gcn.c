// SPDX-License-Identifier: GPL-2.0-only
/* Any words as the code of a group of two waves, and any control stack: nothing but their memory is touched, and it
 * ends. */
#include "tests/asicsim/gcn/dispatch.h"
#include "tests/asicsim/gcn/inst.h"

#define PAGES 16u
#define STEPS 400

static _Alignas(4096) uint8_t memory[PAGES * GCN_PAGE];

/* The address space: these pages, repeated every now and then, with holes. */
static void *page(struct gcn_env *env, u64 va, enum gcn_access access)
{
	u64 n = va / GCN_PAGE;

	(void)env;
	return n % 32 < PAGES && (access != GCN_WRITE || n % 32) ? memory + n % 32 * GCN_PAGE : NULL;
}

static u64 clock_ticks(struct gcn_env *env)
{
	(void)env;
	return 1;
}

static void illegal(struct gcn_env *env, const struct gcn_error *error)
{
	(void)env;
	(void)error;
}

static void run(struct gcn_dispatch *d)
{
	int err = -EAGAIN;

	for (int i = 0; i < STEPS / 10 && err == -EAGAIN; i++)
		err = gcn_dispatch_run(d, 10);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gcn_inst decoded[GCN_DECODED] = { 0 };
	struct gcn_env env = { .page = page,
			       .clock = clock_ticks,
			       .illegal = size % 2 ? illegal : NULL,
			       .decoded = decoded,
			       .tba = GCN_PAGE,
			       .tma = 2 * GCN_PAGE,
			       .sh_mem_bases = 0x00010002 };
	struct gcn_packet packet = {
		.kernel = GCN_PAGE - 64, .workgroup = { 100, 1, 1 }, .grid = { 150, 1, 1 }, .lds_size = 512
	};
	struct gcn_kernel kernel = {
		.entry = 64, .rsrc1 = GCN_MODE_FLOAT << 12, .rsrc2 = 2 << 1 | 1 << 7, .properties = 8
	};
	struct gcn_save_area area = { .va = 4 * GCN_PAGE, .size = 100000, .stack_size = 256, .area_at = 100000 };
	struct gcn_dispatch d = { .env = &env };
	uint8_t stack[256];

	memset(memory, 0, sizeof(memory));
	memcpy(memory + GCN_PAGE, data, size < 4 * GCN_PAGE ? size : 4 * GCN_PAGE);
	memcpy(memory + packet.kernel, &kernel, sizeof(kernel));
	if (!gcn_dispatch_start(&d, &packet))
		run(&d);
	gcn_dispatch_end(&d);
	memset(stack, 0, sizeof(stack));
	memcpy(stack, data, size < sizeof(stack) ? size : sizeof(stack));
	area.stack = stack;
	if (size)
		area.area_at = area.stack_size + data[0] * 400u;
	if (!gcn_dispatch_load(&d, &area))
		run(&d);
	gcn_dispatch_end(&d);
	return 0;
}
