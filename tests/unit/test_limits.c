// SPDX-License-Identifier: GPL-2.0-only
/* Which queues are refused at dump, and how that is said. */

#include "unit.h"
#include "kernel/driver.h"
#include "log_stub.h"
#include "machine_text.h"
#include "records_fixture.h"

#define GPU	 0x9e41u /* as the machine calls it */
#define USER_GPU 0x1234u /* as the process does */
#define PID	 4711
#define CWSR	 0x7f0000400000ull
#define MQD	 2048u

static struct topology *machine(unsigned int gfx, unsigned int num_xcc)
{
	return machine_of(GPU, "1 gfx_target_version=%u num_xcc=%u", gfx, num_xcc);
}

static struct driver_release linux_release(const char *text)
{
	struct driver_release driver = { 0 };

	snprintf(driver.text, sizeof(driver.text), "Linux %s", text);
	if (sscanf(text, "%d.%d.%d", &driver.major, &driver.minor, &driver.patch) < 2)
		driver.major = driver.minor = driver.patch = 0;
	return driver;
}

static struct queue_record queue(uint32_t type, uint32_t mqd_size)
{
	return (struct queue_record){
		.type = type,
		.gpu_id = USER_GPU,
		.mqd_size = mqd_size,
		.cwsr_address = CWSR,
		.ctl_stack_size = type == QUEUE_TYPE_COMPUTE ? 4096 : 0,
	};
}

static struct bo buffer = { .addr = CWSR, .size = 1 << 20 };
static struct kfd_criu_device_bucket device = { .user_gpu_id = USER_GPU, .actual_gpu_id = GPU };

/* A state with two queues; NULL: with one. */
static struct kfd_state state_of_two(struct fixture_records *f, const struct queue_record *record,
				     const struct queue_record *second)
{
	struct kfd_state state;

	fixture_begin(f, 1, 1);
	fixture_queue(f, record);
	if (second)
		fixture_queue(f, second);
	fixture_event(f);
	state = fixture_state(f);
	state.pid = PID;
	state.devices = &device;
	state.bos = &buffer;
	return state;
}

static struct kfd_state state_of(struct fixture_records *f, const struct queue_record *record)
{
	return state_of_two(f, record, NULL);
}

static int check_record(unsigned int gfx, unsigned int num_xcc, const struct driver_release *driver,
			const struct queue_record *record, bool try)
{
	struct topology *topology = machine(gfx, num_xcc);
	struct fixture_records f;
	struct kfd_state state = state_of(&f, record);
	int err;

	log_clear();
	err = limits_check_queues(PID, &state, topology, driver, try);
	topology_free(topology);
	return err;
}

static bool limited(unsigned int gfx, unsigned int num_xcc, const char *release, struct queue_record record)
{
	struct driver_release driver = linux_release(release);
	int err = check_record(gfx, num_xcc, &driver, &record, false);

	assert_int_equal(log_errors, err ? 1 : 0);
	assert_true(!err || err == -EOPNOTSUPP);
	return err;
}

TEST(queues_of_one_xcc_are_dumped_by_every_kernel)
{
	assert_false(limited(90402, 1, "7.3.4", queue(QUEUE_TYPE_COMPUTE, MQD)));
	assert_false(limited(90010, 1, "6.1.0-56-amd64", queue(QUEUE_TYPE_COMPUTE, MQD)));
	assert_false(limited(100300, 1, "7.2.12-amd64", queue(QUEUE_TYPE_COMPUTE, MQD)));
}

TEST(compute_queues_of_which_only_one_xcc_is_saved_are_refused)
{
	assert_true(limited(90402, 8, "6.12.107+deb13-amd64", queue(QUEUE_TYPE_COMPUTE, MQD)));
	assert_true(limited(90402, 8, "6.17.9", queue(QUEUE_TYPE_COMPUTE, 7 * MQD)));
	assert_non_null(strstr(log_text, "saves 14336 bytes of queue state where 8 XCCs have 16384"));
	assert_true(limited(90402, 2, "odd", queue(QUEUE_TYPE_COMPUTE, MQD)));
	assert_false(limited(90402, 8, "6.12.107", queue(QUEUE_TYPE_COMPUTE, 8 * MQD)));
	assert_false(limited(90402, 8, "6.12.107", queue(QUEUE_TYPE_SDMA, 512)));
}

/* The MQDs of seven XCCs need 14336 bytes of the stacks: all of the first one, the idle part of the second. */
TEST(queues_of_several_xccs_need_room_on_kernels_that_check_their_size)
{
	/* Ubuntu's and SUSE's, and one of RHEL, may have the fix under any name. */
	static const char *const refused[] = { "6.18.42", "6.18.50-generic", "7.1.6", "7.2.0", "7.2-rc1", "7.3.4", "8.0.0", "odd",
					       "6.17.0-35-generic", "7.0.0-28-generic", "6.12.0-160000.9-default",
					       "6.12.0-124.el10", "6.12.50-1.el10" };
	static const char *const dumped[] = { "6.17.9", "6.17.0-rc3", "7.1-rc1", "6.18.41", "7.0.13", "7.1.5" };
	struct queue_record idle = queue(QUEUE_TYPE_COMPUTE, 8 * MQD), full = idle;

	idle.ctl_stack_size = full.ctl_stack_size = 8 * 0x3000;
	idle.mqd_stack_size = idle.mqd_stack_offset = idle.mqd_wave_offset = 0x3000;
	full.mqd_stack_size = full.mqd_wave_offset = 0x3000;
	full.mqd_stack_offset = 0x3000 - 8;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		assert_true(limited(90402, 8, refused[i], full));
		assert_non_null(strstr(log_text, "dump again when fewer waves run"));
		assert_false(limited(90402, 8, refused[i], idle));
		assert_false(limited(90402, 8, refused[i], queue(QUEUE_TYPE_SDMA, 8 * 512)));
	}
	for (size_t i = 0; i < ARRAY_SIZE(dumped); i++)
		assert_false(limited(90402, 8, dumped[i], full));
}

TEST(patch_numbers_of_dkms_do_not_count)
{
	struct driver_release driver = { .major = 6, .minor = 18, .patch = 4, .dkms = true };
	struct queue_record record = queue(QUEUE_TYPE_COMPUTE, 8 * MQD);

	assert_int_equal(check_record(90402, 8, &driver, &record, false), -EOPNOTSUPP);
	driver.minor = 16;
	assert_int_equal(check_record(90402, 8, &driver, &record, false), 0);
	driver = (struct driver_release){ .major = 6, .minor = 12, .patch = 200, .dkms = true };
	record = queue(QUEUE_TYPE_COMPUTE, MQD);
	record.cwsr_address++;
	assert_int_equal(check_record(90010, 1, &driver, &record, false), 0);
}

/* The GPU is in slot 41:00, the other one in that of @location. */
static struct topology *with_another(unsigned int gfx, unsigned int num_xcc, unsigned int location)
{
	return machine_of(GPU, "2 gfx_target_version=%u num_xcc=%u location_id=0x4100,%u", gfx, num_xcc, location);
}

/* Dump and restore say the same, whatever may be tried. @what: in the line. */
static bool harmful(const struct topology *topology, const struct driver_release *driver, struct queue_record record,
		    const char *what)
{
	struct fixture_records f;
	struct kfd_state state = state_of(&f, &record);
	bool ret;

	log_clear();
	ret = limits_check_queues(PID, &state, topology, driver, true);
	assert_int_equal(log_errors, ret);
	assert_true(!ret || strstr(log_text, what));
	assert_true(!ret || !strstr(log_text, "KFD_RESTORABLE_CHECK"));
	log_clear();
	assert_int_equal(limits_check_harm(&state, topology, driver), ret ? -EOPNOTSUPP : 0);
	assert_int_equal(log_errors, ret);
	return ret;
}

#define OVERWRITES "overwrites memory of the kernel"

static bool harmful_partition(unsigned int num_xcc, const char *release, bool dkms)
{
	struct topology *topology = with_another(90402, num_xcc, 0x4101);
	struct driver_release driver = linux_release(release);
	bool ret;

	driver.dkms = dkms;
	ret = harmful(topology, &driver, queue(QUEUE_TYPE_COMPUTE, num_xcc * MQD), OVERWRITES);
	assert_false(harmful(topology, &driver, queue(QUEUE_TYPE_SDMA, 512), OVERWRITES));
	topology_free(topology);
	return ret;
}

TEST(partitions_whose_restore_overwrites_the_kernel_are_always_refused)
{
	static const char *const harmful[] = { "6.16.4", "6.17.0", "6.18.50-generic", "7.1.6", "7.2-rc1", "7.2.13", "odd",
					       "5.14.0-611.5.1.el9_7.x86_64", "6.12.0-124.8.1.el10_1.x86_64",
					       "6.8.0-60-generic", "6.14.0-37-generic", "6.12.0-160000.9-default" };
	static const char *const sound[] = { "6.1.176", "6.12.107", "6.14.0-rc2", "6.16.3", "7.3.0", "7.3.4", "8.0.0" };
	static const char *const dkms_harmful[] = { "6.13.1", "6.14.14", "6.16.6", "7.2.0", "odd" };

	for (size_t i = 0; i < ARRAY_SIZE(harmful); i++)
		assert_true(harmful_partition(i % 2 ? 4 : 1, harmful[i], false));
	for (size_t i = 0; i < ARRAY_SIZE(sound); i++)
		assert_false(harmful_partition(1, sound[i], false));
	for (size_t i = 0; i < ARRAY_SIZE(dkms_harmful); i++)
		assert_true(harmful_partition(2, dkms_harmful[i], true));
	assert_false(harmful_partition(1, "6.12.12", true));
	assert_false(harmful_partition(1, "7.3.0", true));
}

TEST(gpus_in_one_piece_are_no_partitions)
{
	struct driver_release driver = linux_release("7.2.12");
	struct queue_record record = queue(QUEUE_TYPE_COMPUTE, MQD);
	struct topology *topology = with_another(90402, 1, 0x4200);

	assert_false(harmful(topology, &driver, record, OVERWRITES));
	assert_int_equal(topology_node_set(topology->nodes[GPU_NODE + 1], TOPOLOGY_LOCATION_ID, 0x4103), 0);
	assert_true(harmful(topology, &driver, record, OVERWRITES));
	topology_free(topology);
	topology = with_another(90010, 1, 0x4100);
	assert_false(harmful(topology, &driver, record, OVERWRITES));
	topology_free(topology);
}

/* A GPU with eight XCCs has all there are. */
TEST(a_gpu_may_be_a_partition_where_others_are_hidden)
{
	struct driver_release driver = linux_release("7.2.12");
	struct topology *topology = with_another(90402, 1, 0x4200);

	topology->nr_hidden = 1;
	assert_true(harmful(topology, &driver, queue(QUEUE_TYPE_COMPUTE, MQD), OVERWRITES));
	assert_non_null(strstr(log_text, "GPUs are hidden"));
	assert_int_equal(topology_node_set(topology->nodes[GPU_NODE], TOPOLOGY_NUM_XCC, 8), 0);
	assert_false(harmful(topology, &driver, queue(QUEUE_TYPE_COMPUTE, 8 * MQD), OVERWRITES));
	topology_free(topology);
}

/* Without RESTORE, which crashes some kernels where it gets them. */
TEST(queues_of_gfx11_are_made_again)
{
	struct queue_record record = queue(QUEUE_TYPE_COMPUTE, MQD);
	struct topology *topology = machine(110000, 1);
	struct driver_release driver = linux_release("6.12.107");
	char why[LIMITS_TEXT_MAX];

	record.format = QUEUE_FORMAT_AQL;
	record.percent = 100;
	assert_int_equal(limits_of_queue(&record, topology->nodes[GPU_NODE], topology, &driver, why), LIMIT_NONE);
	record.mqd_stack_size = record.mqd_wave_offset = 0x3000;
	assert_int_equal(limits_of_queue(&record, topology->nodes[GPU_NODE], topology, &driver, why), LIMIT_BUSY);
	record.format = 0;
	assert_int_equal(limits_of_queue(&record, topology->nodes[GPU_NODE], topology, &driver, why), LIMIT_HARM);
	assert_non_null(strstr(why, "its packets are PM4"));
	driver = linux_release("6.5.1");
	assert_int_equal(limits_of_queue(&record, topology->nodes[GPU_NODE], topology, &driver, why), LIMIT_HARM);
	assert_non_null(strstr(why, "Linux before 6.6 does not save"));
	topology_free(topology);
}

TEST(no_setting_takes_queues_of_mes_that_cannot_be_made_again)
{
	struct driver_release driver = linux_release("6.12.107");
	struct queue_record record = queue(QUEUE_TYPE_COMPUTE, MQD);

	assert_int_equal(check_record(110000, 1, &driver, &record, true), -EOPNOTSUPP);
	assert_int_equal(check_record(120001, 1, &driver, &record, true), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "no kernel saves the queues of gfx12"));
	assert_true(limited(120001, 1, "7.3.4", queue(QUEUE_TYPE_SDMA, 512)));
}

/* Linux 7.2.12 leaves out the control stacks of gfx9; those of gfx10 are in the CWSR area. */
TEST(compute_queues_with_waves_whose_control_stack_is_not_saved_are_refused)
{
	struct queue_record none = queue(QUEUE_TYPE_COMPUTE, MQD), no_cwsr;

	none.ctl_stack_size = 0;
	none.mqd_stack_size = none.mqd_wave_offset = 0x3000;
	no_cwsr = none;
	no_cwsr.cwsr_address = 0;
	assert_true(limited(90008, 1, "7.2.12+deb14-amd64", none));
	assert_non_null(strstr(log_text, "saves no control stack"));
	assert_true(limited(90402, 1, "6.12.107", none));
	none.mqd_stack_offset = 0x3000;
	assert_false(limited(90008, 1, "7.2.12", none));
	none.mqd_wave_offset = 0x8000;
	assert_true(limited(90008, 1, "7.2.12", none));
	assert_false(limited(90008, 1, "7.2.12", no_cwsr));
	assert_false(limited(100300, 1, "7.2.12", none));
	assert_false(limited(90008, 1, "7.2.12", queue(QUEUE_TYPE_SDMA, 512)));
}

/* What RESTORE of 6.12.111 wants of them is there by then. */
TEST(compute_queues_are_dumped_wherever_their_waves_are_saved)
{
	struct queue_record in_svm = queue(QUEUE_TYPE_COMPUTE, MQD), gfx10 = in_svm;

	in_svm.cwsr_address = CWSR + 0x10000000;
	gfx10.ctl_stack_size = 0;
	assert_false(limited(90010, 1, "6.12.117+deb12-amd64", in_svm));
	assert_false(limited(100300, 1, "6.12.117", gfx10));
}

TEST(the_line_names_process_gpu_and_driver)
{
	assert_true(limited(90402, 8, "6.12.0", queue(QUEUE_TYPE_COMPUTE, MQD)));
	assert_non_null(strstr(log_text, "Error (amdgpu_plugin): pid 4711: has a queue on gpu 0x9e41"));
	assert_non_null(strstr(log_text, "(gfx version 90402, Linux 6.12.0)"));
	assert_non_null(strstr(log_text, "KFD_RESTORABLE_CHECK=0"));
}

TEST(the_setting_makes_it_a_warning)
{
	struct driver_release driver = linux_release("6.12.0");
	struct queue_record record = queue(QUEUE_TYPE_COMPUTE, MQD);

	assert_int_equal(check_record(90402, 8, &driver, &record, true), 0);
	assert_non_null(strstr(log_text, "Warning: pid 4711"));
}

TEST(a_queue_on_an_unknown_gpu_is_refused)
{
	struct driver_release driver = linux_release("7.2.0");
	struct queue_record record = queue(QUEUE_TYPE_COMPUTE, MQD);

	record.gpu_id++;
	assert_int_equal(check_record(90010, 1, &driver, &record, false), -ENODEV);
	assert_non_null(strstr(log_text, "gpu 0x1235"));
}

TEST(a_state_that_is_not_laid_out_as_known_is_refused)
{
	struct driver_release driver = linux_release("9.1.0");
	struct topology *topology = machine(90010, 1);
	struct fixture_records f;
	struct kfd_state state;

	fixture_begin(&f, 1, 0);
	fixture_u32(f.bytes, 2);
	state = fixture_state(&f);
	log_clear();
	assert_int_equal(limits_check_queues(PID, &state, topology, &driver, false), -EOPNOTSUPP);
	assert_non_null(strstr(log_text, "(version 2, Linux 9.1.0)"));
	assert_int_equal(log_errors, 1);
	log_clear();
	assert_int_equal(limits_check_queues(PID, &state, topology, &driver, true), -EOPNOTSUPP);
	assert_int_equal(log_errors, 1);
	fixture_u32(f.bytes, 1);
	state.nr_objects = 1;
	fixture_read(&state);
	assert_int_equal(limits_check_queues(PID, &state, topology, &driver, false), -EOPNOTSUPP);
	log_clear();
	assert_int_equal(limits_check_harm(&state, topology, &driver), -EOPNOTSUPP);
	assert_int_equal(log_errors, 1);
	topology_free(topology);
}

static enum limit gpu_limit(unsigned int gfx, unsigned int num_xcc, const char *release, bool dkms)
{
	struct topology *topology = machine(gfx, num_xcc);
	struct driver_release driver = linux_release(release);
	char why[LIMITS_TEXT_MAX];
	enum limit limit;

	driver.dkms = dkms;
	limit = limits_of_gpu(topology->nodes[GPU_NODE], topology, &driver, why);
	assert_int_equal(limit != LIMIT_NONE, why[0] != '\0');
	topology_free(topology);
	return limit;
}

TEST(a_gpu_is_limited_as_the_compute_queues_of_rocm_are)
{
	assert_int_equal(gpu_limit(90008, 1, "6.1.0", false), LIMIT_NONE);
	assert_int_equal(gpu_limit(90008, 0, "6.1.0", false), LIMIT_NONE);
	assert_int_equal(gpu_limit(90008, 1, "6.12.111", false), LIMIT_NONE);
	assert_int_equal(gpu_limit(110000, 1, "6.1.192", false), LIMIT_HARM);
	assert_int_equal(gpu_limit(120000, 1, "7.3.4", false), LIMIT_HARM);
	assert_int_equal(gpu_limit(90402, 8, "6.16.3", false), LIMIT_LOSS);
	assert_int_equal(gpu_limit(90402, 8, "6.16.4", false), LIMIT_NONE);
	assert_int_equal(gpu_limit(90402, 8, "6.17.9", false), LIMIT_NONE);
}

TEST(a_gpu_is_limited_to_idle_queues_where_others_are_refused)
{
	static const char *const releases[] = { "7.2.12", "7.3.4", "8.0.0" };

	for (size_t i = 0; i < ARRAY_SIZE(releases); i++) {
		assert_int_equal(gpu_limit(90008, 1, releases[i], false), LIMIT_BUSY);
		assert_int_equal(gpu_limit(100300, 1, releases[i], false), LIMIT_NONE);
		assert_int_equal(gpu_limit(110000, 1, releases[i], false), LIMIT_BUSY);
	}
	assert_int_equal(gpu_limit(110000, 1, "6.12.107+deb13-amd64", false), LIMIT_BUSY);
	assert_int_equal(gpu_limit(90402, 8, "6.17.0-35-generic", false), LIMIT_BUSY);
	assert_int_equal(gpu_limit(90402, 8, "6.18.42", false), LIMIT_BUSY);
	assert_int_equal(gpu_limit(90402, 8, "6.18.4", true), LIMIT_BUSY);
	assert_int_equal(gpu_limit(90402, 6, "6.18.4", true), LIMIT_BUSY);
}

/* RHEL's drivers are of later releases than their kernels: CHECKPOINT's answer decides in a dump, and a doctor has none. */
TEST(what_a_distribution_s_driver_saves_is_unclear_until_it_has_saved)
{
	static const char *const releases[] = { "5.14.0-503.el9.x86_64", "6.12.0-55.el10.x86_64", "6.8.0-90-generic" };
	struct queue_record every = queue(QUEUE_TYPE_COMPUTE, 8 * MQD);

	every.ctl_stack_size = 8 * 0x3000;
	every.mqd_stack_size = every.mqd_stack_offset = every.mqd_wave_offset = 0x3000;
	for (size_t i = 0; i < ARRAY_SIZE(releases); i++) {
		assert_int_equal(gpu_limit(90402, 8, releases[i], false), LIMIT_UNCLEAR);
		assert_int_equal(gpu_limit(90402, 6, releases[i], false), LIMIT_UNCLEAR);
		assert_int_equal(gpu_limit(90008, 1, releases[i], false), LIMIT_NONE);
		assert_int_equal(gpu_limit(110000, 1, releases[i], false), LIMIT_BUSY);
		assert_int_equal(gpu_limit(120000, 1, releases[i], false), LIMIT_HARM);
		assert_false(limited(90402, 8, releases[i], every));
		assert_true(limited(90402, 8, releases[i], queue(QUEUE_TYPE_COMPUTE, MQD)));
	}
	assert_int_equal(gpu_limit(90402, 8, "6.12.111", false), LIMIT_LOSS);
}

/* ---- what a dump waits for ---- */

static struct queue_record stopped_in_kernel(unsigned int nr_xcc)
{
	struct queue_record record = queue(QUEUE_TYPE_COMPUTE, nr_xcc * MQD);

	record.ctl_stack_size = nr_xcc > 1 ? nr_xcc * 0x3000 : 0;
	record.mqd_stack_size = record.mqd_wave_offset = 0x3000;
	record.mqd_stack_offset = 0x1000;
	return record;
}

static bool is_waited_for(unsigned int gfx, unsigned int nr_xcc, const char *release, const struct queue_record *record,
			  bool try)
{
	struct driver_release driver = linux_release(release);
	struct topology *topology = machine(gfx, nr_xcc);
	struct fixture_records f;
	struct kfd_state state = state_of(&f, record);
	bool ret = limits_are_busy(&state, topology, &driver, try);

	topology_free(topology);
	assert_int_equal(log_errors, 0);
	return ret;
}

TEST(queues_that_are_refused_while_they_run_are_waited_for)
{
	static const struct {
		unsigned int gfx, nr_xcc;
		const char *release;
		bool waited;
	} rows[] = {
		{ 90008, 1, "7.2.12", true },  { 90008, 1, "7.3.4", true },   { 90402, 8, "6.18.42", true },
		{ 90402, 8, "7.1.6", true },   { 90402, 8, "7.3.4", true },
		{ 90402, 8, "6.18.41", false }, { 100300, 1, "7.3.4", false }, { 120000, 1, "7.3.4", false },
	};

	log_clear();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct queue_record record = stopped_in_kernel(rows[i].nr_xcc);

		if (is_waited_for(rows[i].gfx, rows[i].nr_xcc, rows[i].release, &record, false) != rows[i].waited)
			fail_msg("gfx %u, %s", rows[i].gfx, rows[i].release);
		record.mqd_stack_offset = record.mqd_stack_size;
		assert_false(is_waited_for(rows[i].gfx, rows[i].nr_xcc, rows[i].release, &record, false));
	}
}

/* It would be refused then as well. */
TEST(what_does_not_become_better_is_not_waited_for)
{
	struct queue_record one_xcc = queue(QUEUE_TYPE_COMPUTE, MQD), no_stack = stopped_in_kernel(1);

	log_clear();
	assert_false(is_waited_for(90402, 8, "6.18.42", &one_xcc, false));
	no_stack.mqd_stack_size = 0;
	assert_false(is_waited_for(90008, 1, "7.2.12", &no_stack, false));
	no_stack = stopped_in_kernel(1);
	assert_true(is_waited_for(90008, 1, "7.2.12", &no_stack, true));
	no_stack.gpu_id = 0x999;
	assert_false(is_waited_for(90008, 1, "7.2.12", &no_stack, true));
}

/* One queue would be waited for, but not the other: the dump is refused in any case. */
TEST(a_queue_that_stays_refused_ends_the_wait_for_another)
{
	struct driver_release driver = linux_release("7.2.12");
	struct queue_record busy = stopped_in_kernel(1), lost = busy, harmful = busy;
	struct topology *topology = machine(90008, 1);
	const struct queue_record *others[] = { &busy, &lost, &harmful };
	struct fixture_records f;

	lost.mqd_stack_size = 0;
	harmful.gpu_id = 0x999;
	log_clear();
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		struct kfd_state state = state_of_two(&f, &busy, others[i]);

		assert_int_equal(limits_are_busy(&state, topology, &driver, false), i == 0);
	}
	topology_free(topology);
}

TEST(a_queue_that_has_not_ended_its_kernel_is_refused_with_the_setting_that_waits)
{
	struct queue_record record = stopped_in_kernel(1);

	assert_true(limited(90008, 1, "7.2.12", record));
	assert_non_null(strstr(log_text, "(KFD_IDLE_WAIT=SECONDS waits longer) (KFD_RESTORABLE_CHECK=0 tries it anyway)"));
	assert_true(limited(90402, 8, "6.12.107", queue(QUEUE_TYPE_COMPUTE, MQD)));
	assert_null(strstr(log_text, "KFD_IDLE_WAIT"));
}

/* What README and the man page say of MI300X and MI300A, with eight and with six XCCs. */
TEST(eight_xccs_leave_no_room_for_a_wave_and_six_leave_some)
{
	struct queue_record record = queue(QUEUE_TYPE_COMPUTE, 8 * MQD);

	record.ctl_stack_size = 8 * 0x3000;
	record.mqd_stack_size = record.mqd_wave_offset = 0x3000;
	record.mqd_stack_offset = 0x3000 - 4;
	assert_true(limited(90402, 8, "7.3.4", record));
	record.ctl_stack_size = 6 * 0x3000;
	record.mqd_size = 6 * MQD;
	record.mqd_stack_offset = 5 * MQD;
	assert_false(limited(90402, 6, "7.3.4", record));
	record.mqd_stack_offset -= 4;
	assert_true(limited(90402, 6, "7.3.4", record));
}

UNIT_MAIN(NULL, NULL)
