// SPDX-License-Identifier: GPL-2.0-only
/* The processor does what the kernel does, as many rounds as each of the kernel's groups says that it has done. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpujob_busy.h"
#include "report.h"

int busy_code_init(struct busy_code *code, const char *name)
{
	char program[2048] = "", path[4096];
	FILE *file;
	size_t bytes;

	if (readlink("/proc/self/exe", program, sizeof(program) - 1) < 0)
		return report(errno, "the program's own path: %m");
	/* Beside the program, as the build has it. */
	snprintf(path, sizeof(path), "%.*s/../gcn/%s.bin", (int)(strrchr(program, '/') - program), program, name);
	file = fopen(path, "re");
	if (!file)
		return report(errno, "%s: %m", path);
	bytes = fread(code->bytes, 1, sizeof(code->bytes), file);
	fclose(file);
	return bytes && bytes < sizeof(code->bytes) ? 0 : report(EFBIG, "%s: %zu bytes of code", path, bytes);
}

static uint64_t va_of(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static uint32_t word_at_start(uint32_t item, uint64_t step)
{
	return (item + 1) * 2654435761u ^ (uint32_t)step << 7;
}

void busy_start(struct busy *busy, uint64_t step)
{
	memset(busy, 0, sizeof(*busy));
	busy->arguments[0] = va_of(busy->words);
	busy->arguments[1] = va_of(busy->sums);
	busy->arguments[2] = va_of(&busy->done);
	busy->arguments[3] = va_of(busy->rounds);
	busy->arguments[4] = va_of(&busy->gate);
	busy->arguments[5] = BUSY_LEAST;
	for (uint32_t i = 0; i < BUSY_ITEMS; i++)
		busy->words[i] = word_at_start(i, step);
}

struct expected {
	uint32_t words[BUSY_GROUP], before[BUSY_GROUP];
	uint64_t wide[BUSY_GROUP];
	double sums[BUSY_GROUP];
};

static void expected_init(struct expected *e, uint32_t group, uint64_t step)
{
	for (uint32_t i = 0; i < BUSY_GROUP; i++) {
		e->words[i] = word_at_start(group * BUSY_GROUP + i, step);
		e->wide[i] = group * BUSY_GROUP + i;
		e->sums[i] = 0;
	}
}

static void expected_round(struct expected *e)
{
	memcpy(e->before, e->words, sizeof(e->before));
	for (uint32_t i = 0; i < BUSY_GROUP; i++) {
		e->words[i] = e->words[i] * 1664525 + e->before[(i + 17) % BUSY_GROUP];
		e->wide[i] = e->wide[i] * 6364136223846793005u + e->words[i];
		e->sums[i] = fma(e->sums[i], 0.75, (double)(uint32_t)(e->wide[i] >> 32));
	}
}

int busy_check(const struct busy *busy, uint64_t step, uint32_t gpu_id)
{
	static struct expected e;

	if (busy->done != BUSY_ITEMS)
		return report(EILSEQ, "gpu %#x: code: %u of %u items have ended", gpu_id, busy->done, BUSY_ITEMS);
	for (uint32_t g = 0; g < BUSY_GROUPS; g++) {
		if (busy->rounds[g] < BUSY_LEAST)
			return report(EILSEQ, "gpu %#x: code: group %u has done %u rounds", gpu_id, g, busy->rounds[g]);
		expected_init(&e, g, step);
		for (uint32_t r = 0; r < busy->rounds[g]; r++)
			expected_round(&e);
		for (uint32_t i = 0; i < BUSY_GROUP; i++)
			if (busy->words[g * BUSY_GROUP + i] != e.words[i] ||
			    busy->sums[g * BUSY_GROUP + i] != e.sums[i])
				return report(EILSEQ,
					      "gpu %#x: code: item %u of step %" PRIu64 " is %#x, %a and not %#x, %a",
					      gpu_id, g * BUSY_GROUP + i, step, busy->words[g * BUSY_GROUP + i],
					      busy->sums[g * BUSY_GROUP + i], e.words[i], e.sums[i]);
	}
	return 0;
}
