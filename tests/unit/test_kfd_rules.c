// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a kernel's answers tell of its rules: which id it maps /dev/kfd by, and whether it restores what has no buffers. And
 * what comes of an answer that cannot be.
 */
#include <string.h>
#include <sys/utsname.h>

#include "unit.h"
#include "kernel/machine.h"
#include "kernel/kfd.h"
#include "amdgpu_plugin_util.h"
#include "log_stub.h"

static int answer; /* errno of what is asked for, 0: none */
static unsigned int nr_created, nr_destroyed;
static const char *release;
static bool is_paused;

STUB(bool, device_kfd_number, (dev_t *ret), false)
STUB(int, device_open, (const char *path, dev_t number, int flags), -ENODEV)

int hide_begin(const uint32_t *wanted, size_t nr_wanted, const struct hide_keeper *keeper, struct hide *hide)
{
	return -ENODEV;
}

STUB(int, hide_end, (struct hide *hide), 0)

int __wrap_uname(struct utsname *name)
{
	snprintf(name->release, sizeof(name->release), "%s", release);
	return 0;
}

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	struct kfd_ioctl_destroy_event_args *gone = arg;

	assert_int_equal(fd, answer == EBADF ? -1 : 5);
	if (request == AMDKFD_IOC_DESTROY_EVENT) {
		assert_int_equal(gone->event_id, 77);
		nr_destroyed++;
		return 0;
	}
	if (answer) {
		errno = answer;
		return -1;
	}
	if (request == AMDKFD_IOC_CRIU_OP)
		is_paused = ((struct kfd_ioctl_criu_args *)arg)->op == KFD_CRIU_OP_PROCESS_INFO;
	if (request == AMDKFD_IOC_CREATE_EVENT) {
		((struct kfd_ioctl_create_event_args *)arg)->event_id = 77;
		nr_created++;
	}
	return 0;
}

static bool maps_by_user_id(int err, const char *of)
{
	answer = err;
	release = of;
	return kfd_ask_rules(err == EBADF ? -1 : 5).maps_by_user_id;
}

TEST(a_kernel_that_wants_a_page_for_events_maps_by_user_id)
{
	assert_true(maps_by_user_id(ENOMEM, "7.2.12"));
	assert_false(maps_by_user_id(0, "7.3.0-12-generic"));
	assert_int_equal(nr_created, 1);
	assert_int_equal(nr_destroyed, 1);
}

TEST(a_release_that_is_known_is_not_asked)
{
	nr_created = nr_destroyed = 0;
	assert_true(maps_by_user_id(0, "7.3.4+deb13-amd64"));
	assert_int_equal(nr_created, 0);
	assert_true(kfd_ask_rules(5).wants_event_page);
	release = "6.12.107+deb13-amd64";
	assert_false(kfd_ask_rules(5).wants_event_page);
	assert_int_equal(nr_created, 1);
	assert_int_equal(nr_destroyed, 1);
}

TEST(where_nothing_can_be_asked_the_release_decides)
{
	static const struct {
		const char *release;
		bool by_user_id;
	} cases[] = { { "6.1.176", false }, { "6.18.42", false }, { "7.2.12", false }, { "7.3.0", true }, { "8.0", true } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(maps_by_user_id(EBADF, cases[i].release), cases[i].by_user_id);
		assert_int_equal(maps_by_user_id(EIO, cases[i].release), cases[i].by_user_id);
	}
}

TEST(only_a_refused_count_means_that_buffers_are_needed)
{
	answer = EINVAL;
	assert_false(kfd_restores_without_bos(5));
	answer = EFAULT;
	assert_true(kfd_restores_without_bos(5));
}

/* Of no device. */
TEST(a_process_with_impossible_counts_is_let_go)
{
	struct kfd_state state;

	answer = 0;
	is_paused = true;
	assert_int_equal(kfd_pause(5, 4711, &state), -EPROTO);
	assert_non_null(strstr(log_text, "impossible counts from the KFD: 0 devices, 0 BOs, 0 bytes"));
	assert_false(is_paused);
}

UNIT_MAIN(NULL, NULL)
