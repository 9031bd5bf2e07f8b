/* SPDX-License-Identifier: GPL-2.0-only */
/* What the fuzz targets share: a check that ends the run, the log, and files of given bytes. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* libFuzzer's entry point: one for each target. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define expect(condition)                                                                \
	do {                                                                             \
		if (!(condition)) {                                                      \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);  \
			fuzz_show_log();                                                 \
			abort();                                                         \
		}                                                                        \
	} while (0)

/* Error lines since the last call of this function. */
unsigned int fuzz_errors(void);
/* Prints the last error line. */
void fuzz_show_log(void);

/* A memory file with these bytes, at its start; the caller closes it. */
int fuzz_file(const uint8_t *data, size_t size);

/* A pipe that holds these bytes and then ends; at most FUZZ_PIPE_MAX. The caller closes it. */
#define FUZZ_PIPE_MAX 65536
int fuzz_pipe(const uint8_t *data, size_t size);

#endif
