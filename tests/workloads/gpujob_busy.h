/* SPDX-License-Identifier: GPL-2.0-only */
/* A kernel of real code (tests/asicsim/gcn/programs/busy.cl) that runs until its gate is opened. */
#ifndef WORKLOADS_GPUJOB_BUSY_H
#define WORKLOADS_GPUJOB_BUSY_H

#include <stdint.h>

#define BUSY_GROUP	256u
#define BUSY_GROUPS	2u
#define BUSY_ITEMS	(BUSY_GROUP * BUSY_GROUPS)
#define BUSY_LDS_BYTES	2048u
#define BUSY_CODE_BYTES 4096u
#define BUSY_LEAST	20u /* rounds */

/* Its descriptor, and the code behind it. */
struct busy_code {
	uint8_t bytes[BUSY_CODE_BYTES];
} __attribute__((aligned(4096)));

/* What one dispatch reads and writes. */
struct busy {
	uint64_t arguments[6];
	uint32_t done, gate, rounds[BUSY_GROUPS];
	uint32_t words[BUSY_ITEMS];
	double sums[BUSY_ITEMS];
};

/* Reads the code of busy or failing, which is made with the tests: 0, or -errno, which has been reported. */
int busy_code_init(struct busy_code *code, const char *name);
/* Fills everything for step @step. */
void busy_start(struct busy *busy, uint64_t step);
/* Every word and sum after step @step: 0, or -EILSEQ, which has been reported. */
int busy_check(const struct busy *busy, uint64_t step, uint32_t gpu_id);

#endif
