// SPDX-License-Identifier: GPL-2.0-only
/* Which buffers may be shared before Linux 6.8. The list of dma-bufs is a text of the test. */
#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "log_stub.h"
#include "share/survey.h"

#define FRESH 1000u
#define SIZE  12288u

static const char *list;
static bool can_export;

bool kfd_can_export(int kfd)
{
	(void)kfd;
	return can_export;
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	(void)mode;
	assert_string_equal(path, "/sys/kernel/debug/dma_buf/bufinfo");
	if (list)
		return fmemopen((void *)(uintptr_t)list, strlen(list), "r");
	errno = EACCES;
	return NULL;
}

static int check(uint32_t flags)
{
	struct bo bo = { .size = SIZE, .alloc_flags = flags };
	struct kfd_state state = { .nr_bos = 1, .nr_records = 1, .bos = &bo };
	struct share_process process = { .pid = 7, .state = &state };
	const struct share_request request = { .processes = &process, .nr_processes = 1, .fresh_inode = FRESH };
	const struct survey survey = { .request = &request };
	struct holder holder = { .minor = 128 };
	const struct buffer buffer = { .holders = &holder, .nr = 1 };
	struct older *older = NULL;
	int err = older_read(&survey, &older);

	log_clear();
	if (!err)
		err = older_check_import(&survey, &holder);
	if (!err)
		err = older_check(&survey, older, &buffer);
	older_free(older);
	return err;
}

#define NO_SUBSTITUTE (1u << 28)
#define ALLOCATED     (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | NO_SUBSTITUTE)
#define IMPORTED      (KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE)

#define HEAD "\nDma-buf Objects:\nsize    \tflags   \tmode    \tcount   \texp_name\tino     \tname\n"
#define TAIL "\tAttached Devices:\n\t0000:01:00.0\nTotal 1 devices attached\n\n\nTotal 1 objects, 12288 bytes\n"

static void nothing_gets_away_without_exports(void **state)
{
	(void)state;
	can_export = false;
	list = NULL;
	assert_int_equal(check(ALLOCATED), 0);
}

static void an_import_is_somebodys(void **state)
{
	(void)state;
	can_export = false;
	list = NULL;
	assert_int_equal(check(IMPORTED), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "pid 7: has imported a buffer of 12288 bytes"));
}

static void a_dmabuf_of_its_size_may_be_it(void **state)
{
	(void)state;
	can_export = true;
	list = HEAD "00012288\t00000002\t00080007\t00000004\tdrm\t00000999\t<none>\n" TAIL;
	assert_int_equal(check(ALLOCATED), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "there is a dma-buf of that size"));
}

static void other_dmabufs_are_not_it(void **state)
{
	(void)state;
	can_export = true;
	/* Of another size, of another driver, made by the dump. */
	list = HEAD "00008192\t00000002\t00080007\t00000004\tdrm\t00000997\t<none>\n" TAIL
		    "00012288\t00000002\t00080007\t00000004\tudmabuf\t00000998\t<none>\n" TAIL
		    "00012288\t00000002\t00080007\t00000004\tdrm\t00001001\t<none>\n" TAIL;
	assert_int_equal(check(ALLOCATED), 0);
}

static void what_cannot_be_read_is_refused(void **state)
{
	(void)state;
	can_export = true;
	list = NULL;
	assert_int_equal(check(ALLOCATED), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "(Permission denied)"));
	assert_non_null(strstr(log_text, "KFD_SHARING_CHECK=0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_gets_away_without_exports),
		cmocka_unit_test(an_import_is_somebodys),
		cmocka_unit_test(a_dmabuf_of_its_size_may_be_it),
		cmocka_unit_test(other_dmabufs_are_not_it),
		cmocka_unit_test(what_cannot_be_read_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
