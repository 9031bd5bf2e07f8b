// SPDX-License-Identifier: GPL-2.0-only
/* Opening /dev/kfd for a process that will be restored: it has to see the GPUs that it had and no others. */
#include <fcntl.h>

#include "unit.h"
#include "kernel/machine.h"
#include "kernel/kfd.h"
#include "amdgpu_plugin_util.h"
#include "log_stub.h"

static uint32_t shown; /* GPUs that the KFD says the process has */
static int begin_error, end_error, ioctl_error;
static bool hidden, was_hidden; /* now; when /dev/kfd was opened */
static unsigned int reset_ms, slept_us; /* how long the driver resets a GPU; the time since */
static int reset_error;			/* what it says meanwhile */
static const char *gpu_ids;		/* of the machine's nodes, a digit each; NULL: they cannot be seen */
static int opened = -1;

static const uint32_t minors[] = { 128, 130 };

bool device_kfd_number(dev_t *ret)
{
	*ret = 1;
	return true;
}

int device_open(const char *path, dev_t number, int flags)
{
	assert_string_equal(path, "/dev/kfd");
	assert_int_equal(number, 1);
	assert_int_equal(flags, O_RDWR);
	was_hidden = hidden;
	if (slept_us < reset_ms * 1000)
		return -reset_error;
	return opened = open("/dev/null", O_RDWR | O_CLOEXEC);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	return __real_open(strncmp(path, "/sys/", 5) ? path : gpu_ids ? "/" : "/nowhere", flags);
}

int __wrap_list_numbers(int dir_fd, const char *path, int **ret, size_t *ret_nr)
{
	*ret_nr = strlen(gpu_ids);
	*ret = calloc(*ret_nr, sizeof(**ret));
	for (size_t i = 0; i < *ret_nr; i++)
		(*ret)[i] = (int)i;
	return 0;
}

/* 'x': a GPU that the process may not use. */
int __wrap_read_number_at(int dir_fd, const char *path, uint64_t *ret)
{
	char digit = gpu_ids[path[0] - '0'];

	assert_string_equal(path + 1, "/gpu_id");
	*ret = (uint64_t)(digit - '0');
	return digit == 'x' ? -EPERM : 0;
}

int __wrap_usleep(useconds_t us)
{
	slept_us += us;
	return 0;
}

int hide_begin(const uint32_t *wanted, size_t nr_wanted, const struct hide_keeper *keeper, struct hide *hide)
{
	assert_null(keeper);
	assert_ptr_equal(wanted, minors);
	assert_int_equal(nr_wanted, 2);
	if (begin_error)
		(fail)(begin_error, "no such luck");
	hidden = !begin_error;
	return begin_error;
}

int hide_end(struct hide *hide)
{
	assert_true(hidden);
	hidden = false;
	return end_error;
}

static uint32_t nr_bos, nr_tries; /* of a process whose state is taken again */
static uint32_t nr_placeholders;  /* its last BOs, left by a RESTORE */

static int checkpoint(const struct kfd_ioctl_criu_args *args)
{
	uint8_t *records = (uint8_t *)(uintptr_t)args->priv_data;
	const uint32_t version = 1;
	const uint64_t no_memory = RECORDS_NO_MEMORY;

	assert_int_equal(args->op, KFD_CRIU_OP_CHECKPOINT);
	nr_tries++;
	errno = EINVAL;
	if (args->num_bos != nr_bos)
		return -1;
	if (!nr_placeholders)
		return 0;
	memcpy(records, &version, sizeof(version));
	for (uint32_t i = nr_bos - nr_placeholders; i < nr_bos; i++)
		memcpy(records + 16 + i * (uint64_t)BO_RECORD_SIZE, &no_memory, sizeof(no_memory));
	return 0;
}

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	struct kfd_ioctl_get_process_apertures_new_args *args = arg;

	if (request == AMDKFD_IOC_CRIU_OP)
		return checkpoint(arg);
	assert_int_equal(fd, opened);
	assert_int_equal(request, AMDKFD_IOC_GET_PROCESS_APERTURES_NEW);
	assert_int_equal(args->num_of_nodes, 0);
	assert_false(hidden);
	if (ioctl_error) {
		errno = ioctl_error;
		return -1;
	}
	args->num_of_nodes = shown;
	return 0;
}

static int setup(void **state)
{
	shown = 2;
	reset_ms = slept_us = 0;
	reset_error = EINVAL;
	nr_placeholders = 0;
	gpu_ids = "07";
	begin_error = end_error = ioctl_error = 0;
	hidden = was_hidden = false;
	opened = -1;
	log_clear();
	return 0;
}

static void assert_closed(void)
{
	assert_true(opened < 0 || fcntl(opened, F_GETFD) < 0);
}

#define FIXTURE_TEST(test) UNIT_TEST(test, setup, NULL)

/* Whatever there is of them: it is known but for the call that a command died in. */
FIXTURE_TEST(the_state_of_100000_buffers_is_taken_again_in_three_attempts)
{
	static const struct {
		uint32_t there, most;
	} runs[] = { { 50000, 1 }, { 50001, 2 }, { 49999, 3 }, { 0, 7 } };
	const struct kfd_state state = { .nr_devices = 1, .nr_bos = 100000, .nr_records = 100000, .priv_size = 100000ull * BO_RECORD_SIZE };

	for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
		struct kfd_state now = { 0 };

		nr_bos = runs[i].there;
		nr_tries = 0;
		assert_int_equal(kfd_checkpoint_again(7, 1, &state, i == 3 ? 3 : 50000, 8, &now), 0);
		assert_int_equal(now.nr_bos, nr_bos);
		assert_in_range(nr_tries, 1, runs[i].most);
		kfd_state_done(&now);
	}
	nr_bos = 60000;
	assert_int_equal(kfd_checkpoint_again(7, 1, &state, 50000, 8, &(struct kfd_state){ 0 }), -EINVAL);
	fail_clear();
}

/* A process that was restored where RESTORE wants them has one for each queue at most. */
FIXTURE_TEST(placeholders_of_a_restore_are_no_buffers_that_the_process_has_made)
{
	const struct kfd_state state = { .nr_devices = 1, .nr_bos = 9, .nr_records = 9, .nr_queues = 2,
					 .priv_size = 16 + 9 * BO_RECORD_SIZE };
	struct kfd_state now = { 0 };

	for (nr_placeholders = 0; nr_placeholders <= 2; nr_placeholders++) {
		nr_bos = 5 + nr_placeholders;
		assert_int_equal(kfd_checkpoint_again(7, 1, &state, 5, 0, &now), 0);
		assert_int_equal(now.nr_records, 5);
		assert_int_equal(now.priv_size, 16 + 5 * BO_RECORD_SIZE);
		kfd_state_done(&now);
	}
	for (nr_bos = 4; nr_bos <= 8; nr_bos++) {
		nr_placeholders = nr_bos == 8 ? 3 : 0;
		if (nr_bos == 5)
			continue;
		assert_int_equal(kfd_checkpoint_again(7, 1, &state, 5, 0, &now), -EINVAL);
		assert_null(now.bos);
	}
	fail_clear();
}

FIXTURE_TEST(kfd_is_just_opened_where_the_gpus_are_as_many)
{
	int fd = kfd_open_for(minors, 2, 2, NULL);

	assert_true(fd >= 0);
	assert_false(was_hidden);
	close(fd);
}

FIXTURE_TEST(kfd_is_opened_while_the_others_are_hidden)
{
	int fd = kfd_open_for(minors, 2, 8, NULL);

	assert_true(fd >= 0);
	assert_true(was_hidden);
	assert_false(hidden);
	assert_int_equal(log_errors, 0);
	close(fd);
}

FIXTURE_TEST(kfd_is_not_opened_when_the_others_cannot_be_hidden)
{
	begin_error = -EPERM;
	assert_int_equal(kfd_open_for(minors, 2, 8, NULL), -EPERM);
	assert_int_equal(opened, -1);
	assert_int_equal(log_errors, 1);
	assert_non_null(strstr(log_text, "had 2 GPUs and would see 8"));
	assert_non_null(strstr(log_text, "no such luck"));
	assert_non_null(strstr(log_text, "device cgroup that allows 2 GPUs"));
}

FIXTURE_TEST(kfd_is_closed_again_when_there_is_no_way_back)
{
	end_error = -EBUSY;
	assert_int_equal(kfd_open_for(minors, 2, 8, NULL), -EBUSY);
	assert_closed();
}

FIXTURE_TEST(kfd_is_closed_again_when_it_shows_another_number)
{
	for (shown = 1; shown <= 3; shown += 2) {
		log_clear();
		assert_int_equal(kfd_open_for(minors, 2, 2, NULL), -ENODEV);
		assert_closed();
		assert_int_equal(log_errors, 1);
		assert_non_null(strstr(log_text, shown == 1 ? "had 2 GPUs and sees 1" : "had 2 GPUs and sees 3"));
	}
	ioctl_error = ENOTTY;
	log_clear();
	assert_int_equal(kfd_open_for(minors, 2, 2, NULL), -ENOTTY);
	assert_closed();
	assert_int_equal(log_errors, 1);
}

static void opened_after_reset(int error, const char *nodes)
{
	int fd;

	setup(NULL);
	reset_ms = 20000;
	reset_error = error;
	gpu_ids = nodes;
	fd = kfd_open();
	assert_true(fd >= 0);
	assert_int_equal(slept_us, 20000000);
	assert_int_equal(log_errors, 0);
	assert_non_null(strstr(log_text, "waited 20000 ms for /dev/kfd"));
	close(fd);
}

/* A container may have no sysfs. */
FIXTURE_TEST(kfd_is_opened_after_a_reset_that_is_under_way)
{
	opened_after_reset(EINVAL, "07");
	opened_after_reset(EINVAL, NULL);
	opened_after_reset(EAGAIN, "0x7");
}

FIXTURE_TEST(kfd_is_not_waited_for_without_a_gpu)
{
	reset_ms = 20000;
	gpu_ids = "0x";
	assert_int_equal(kfd_open(), -EINVAL);
	assert_int_equal(slept_us, 0);
	assert_int_equal(log_errors, 1);
	assert_non_null(strstr(log_text, "there is no GPU that this process may use"));
}

FIXTURE_TEST(kfd_is_not_waited_for_without_end)
{
	reset_ms = 1000000;
	assert_int_equal(kfd_open(), -EINVAL);
	assert_int_equal(slept_us, 60000000);
	assert_int_equal(log_errors, 1);
	assert_non_null(strstr(log_text, "cannot open /dev/kfd, tried for 60 s: the driver is resetting a GPU"));
}

UNIT_MAIN(NULL, NULL)
