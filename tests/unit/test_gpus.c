// SPDX-License-Identifier: GPL-2.0-only
/*
 * The choice of GPUs for a restored task: what others use, what other tasks have chosen, and
 * what is said of it. The matcher is the real one; render nodes and sysfs are made up.
 */
#include <fcntl.h>

#include "unit.h"
#include "checkpoint/internal.h"
#include "image/image.h"
#include "amdgpu_plugin_drm.h"
#include "log_stub.h"
#include "machine_text.h"

#define GPU	 GPU_NODE
#define MINOR(n) (128 + GPU + (n))
#define MIB	 (1ull << 20)

static struct topology *saved, *machine;
static struct settings settings;
static struct shared *shared;
static struct topology *largest;
static struct gpus gpus;
static struct gpu_usage usages[TOPOLOGY_MAX_NODES];
static uint32_t closed_minor; /* that the task may not open */
static int clear_error;	      /* of waiting for its address space */
static bool has_sysfs;
static unsigned int nr_opened, nr_read, nr_vram_reads, nr_asked, nr_sleeps;
static unsigned int nr_ended; /* processes that the KFD still has; one less with each sleep */
static uint64_t freed_by_sleep; /* bytes of VRAM */

/* ---- what the module calls ---- */

int mount_private(const char *type)
{
	return has_sysfs ? open("/", O_RDONLY | O_CLOEXEC) : -EPERM;
}

static bool has_claims;
static uint32_t claimed_minor; /* by another restore */
static uint32_t own_claims[4];
static unsigned int nr_own_claims, nr_begun, nr_ended_claims;

int turn_begin(void)
{
	nr_begun++;
	return has_claims ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
}

bool claims_have(int claims, uint32_t minor)
{
	if (claims < 0)
		return false;
	assert_int_equal(nr_begun, nr_ended_claims + 1);
	/* What is not claimed any more has to be seen in the queues. */
	assert_int_equal(nr_read, nr_begun - 1);
	return minor == claimed_minor;
}

void claims_add(int claims, uint32_t minor)
{
	if (claims >= 0)
		own_claims[nr_own_claims++] = minor;
}

void turn_end(int claims)
{
	nr_ended_claims += claims >= 0;
}

/* Time passes for the driver, too. */
int __wrap_usleep(useconds_t usec)
{
	assert_true(usec);
	nr_sleeps++;
	nr_ended -= nr_ended > 0;
	for (unsigned int i = 0; i < TOPOLOGY_MAX_NODES; i++)
		usages[i].vram_free += freed_by_sleep;
	return 0;
}

size_t usage_count_ended(int sysfs)
{
	assert_true(sysfs >= 0);
	return nr_ended;
}

bool criu_restores_lazily(int store_id)
{
	assert_int_equal(store_id, 1);
	nr_asked++;
	return true;
}

#define NR_IMAGES 2

static struct topology *images[NR_IMAGES]; /* of the directory, by id; NULL: cannot be read */
static struct kfd_state image_states[NR_IMAGES];
static int nr_images;

int image_next(enum image_kind kind, int after)
{
	assert_int_equal(kind, IMAGE_KFD);
	return after + 1 < nr_images ? after + 1 : -1;
}

static struct topology *copy_of(const struct topology *t)
{
	struct topology *copy = topology_new();
	struct topology_node *node;

	for (unsigned int i = 0; i < t->nr_nodes; i++) {
		must(topology_add_node(copy, t->nodes[i]->id, &node));
		node->present = t->nodes[i]->present;
		memcpy(node->value, t->nodes[i]->value, sizeof(node->value));
		for (unsigned int l = 0; l < t->nodes[i]->nr_links; l++)
			must(topology_node_add_link(node, &t->nodes[i]->links[l]));
	}
	must(topology_finish(copy));
	return copy;
}

int kfd_image_read(int id, struct gpu_process **ret)
{
	if (!images[id])
		return (fail)(-EBADMSG, "image %d is damaged", id);
	*ret = calloc(1, sizeof(**ret));
	assert_non_null(*ret);
	(*ret)->nodes = copy_of(images[id]);
	(*ret)->state = image_states[id];
	(*ret)->nr_sharers = kfd_state_shares(&image_states[id]) ? 2 : 0;
	return 0;
}

void gpu_process_free(struct gpu_process *image)
{
	if (image)
		topology_free(image->nodes);
	free(image);
}

static uint64_t resume_bytes; /* on the first GPU; 0: nothing comes back suspended */

void suspend_restore_add_work(const struct suspend_restore *restore, pid_t own_pid, const struct topology *nodes,
			      struct gpu_work *work)
{
	for (unsigned int i = 0; i < nodes->nr_nodes; i++)
		work[i].vram_later += topology_gpu_id(nodes->nodes[i]) == 0x1000 ? resume_bytes : 0;
}

STUB(int, nodes_make, (const struct mounted *mounted, uint32_t minor, uint32_t model), 0)

void usage_read(int sysfs, const struct topology *topology, struct gpu_usage *usage)
{
	assert_int_equal(sysfs >= 0, has_sysfs);
	nr_read++;
	memcpy(usage, usages, topology->nr_nodes * sizeof(*usage));
}

void usage_read_vram(int sysfs, const struct topology_node *node, struct gpu_usage *usage)
{
	assert_int_equal(sysfs >= 0, has_sysfs);
	nr_vram_reads++;
	usage->vram_known = usages[node->id].vram_known;
	usage->vram_free = usages[node->id].vram_free;
}

int drm_open_minor(uint32_t minor)
{
	nr_opened++;
	return minor == closed_minor ? -EPERM : open("/dev/null", O_RDWR | O_CLOEXEC);
}

int drm_count_losses(int fd, uint32_t *ret)
{
	*ret = 0;
	return 0;
}

STUB(int, drm_wait_until_clear, (int fd), clear_error)
STUB(pid_t, task_own_pid, (pid_t pid), pid)

static unsigned int nr_kept;

int criu_keep_files(const int *fds, size_t nr)
{
	nr_kept++;
	return 1;
}

int criu_keep_file(int fd)
{
	close(fd);
	return 1;
}

STUB(int, criu_kept_file, (int store_id), -EBADF)

/* ---- */

static int setup(void **state)
{
	log_clear();
	assert_int_equal(settings_load(&settings, NULL, -1, NULL), 0);
	memset(usages, 0, sizeof(usages));
	memset(image_states, 0, sizeof(image_states));
	resume_bytes = 0;
	closed_minor = 0;
	clear_error = 0;
	has_sysfs = has_claims = false;
	claimed_minor = 0;
	nr_own_claims = nr_begun = nr_ended_claims = nr_kept = 0;
	nr_opened = nr_read = nr_vram_reads = nr_asked = nr_sleeps = nr_ended = 0;
	freed_by_sleep = 0;
	saved = machine_of(0x1000, "1");
	machine = machine_of(0x1000, "2");
	shared = shared_new();
	return shared ? 0 : -1;
}

static int teardown(void **state)
{
	gpus_done(&gpus);
	shared_free(shared);
	topology_free(saved);
	topology_free(machine);
	topology_free(steal_ptr(largest));
	return 0;
}

static int choose(const struct topology *of, const struct kfd_state *needed)
{
	const struct restore restore = {
		.machine = machine, .settings = &settings, .shared = shared, .largest = largest
	};

	gpus_done(&gpus);
	return gpus_setup(&gpus, &restore, of, needed);
}

static int check_room(const struct kfd_state *needed)
{
	const struct restore restore = { .machine = machine, .settings = &settings };

	return gpus_check_room(&gpus, &restore, needed);
}

static void assert_logged(const char *part)
{
	if (!strstr(log_text, part))
		fail_msg("no \"%s\" in:\n%s", part, log_text);
}

#define FIXTURE_TEST(test) UNIT_TEST(test, setup, teardown)

FIXTURE_TEST(a_gpu_keeps_its_id_without_a_warning)
{
	assert_int_equal(choose(saved, NULL), 0);
	assert_int_equal(gpus.nr, 1);
	assert_int_equal(gpus.list[0].actual_id, 0x1000);
	assert_null(strstr(log_text, "Warning"));
}

FIXTURE_TEST(an_idle_gpu_comes_before_one_with_the_old_id)
{
	usages[GPU].has_queues = true;
	assert_int_equal(choose(saved, NULL), 0);
	assert_int_equal(gpus.list[0].actual_id, 0x1001);
	assert_int_equal(log_errors, 0);
}

FIXTURE_TEST(a_gpu_in_use_is_better_than_none)
{
	usages[GPU].has_queues = usages[GPU + 1].has_queues = true;
	assert_int_equal(choose(saved, NULL), 0);
	assert_int_equal(gpus.list[0].actual_id, 0x1000);
	assert_int_equal(log_errors, 0);
}

FIXTURE_TEST(other_ids_are_warned_of_once)
{
	struct topology *two = machine_of(0x2000, "2");

	assert_int_equal(choose(two, NULL), 0);
	assert_logged("Warning: ");
	assert_logged("gpu 0x2000 is gpu 0x1000 here");
	assert_null(strstr(strstr(log_text, "Warning") + 1, "Warning"));
	topology_free(two);
}

FIXTURE_TEST(what_another_restore_has_just_chosen_is_in_use)
{
	has_claims = true;
	claimed_minor = MINOR(0);
	assert_int_equal(choose(saved, NULL), 0);
	assert_int_equal(gpus.list[0].actual_id, 0x1001);
	assert_int_equal(nr_own_claims, 1);
	assert_int_equal(own_claims[0], MINOR(1));
	assert_int_equal(nr_ended_claims, 1);
	assert_int_equal(nr_kept, 1);
	assert_logged("gpu 0x1000: another restore has just chosen it");
	assert_int_equal(log_errors, 0);
}

/* The second one has a GPU more. */
FIXTURE_TEST(what_a_task_of_the_same_restore_has_chosen_is_not_anothers)
{
	struct topology *two = machine_of(0x1000, "2");

	has_claims = true;
	assert_int_equal(choose(saved, NULL), 0);
	assert_int_equal(gpus.list[0].actual_id, 0x1000);
	claimed_minor = MINOR(0);
	gpus_done(&gpus);
	assert_int_equal(choose(two, NULL), 0);
	assert_int_equal(gpus.nr, 2);
	assert_int_equal(nr_kept, 2);
	assert_null(strstr(log_text, "another restore"));
	topology_free(two);
}

/* ---- memory ---- */

static struct bo bos[] = {
	{ .size = 600 * MIB, .gpu_id = 0x1000, .alloc_flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM },
	{ .size = 500 * MIB, .gpu_id = 0x1000, .alloc_flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM },
	{ .size = 9000 * MIB, .gpu_id = 0x1000, .alloc_flags = KFD_IOC_ALLOC_MEM_FLAGS_GTT },
	{ .size = 9000 * MIB, .gpu_id = 0x4242, .alloc_flags = KFD_IOC_ALLOC_MEM_FLAGS_VRAM },
};
static const struct kfd_state needs = { .bos = bos, .nr_bos = 4 };

static void free_vram(unsigned int gpu, uint64_t bytes)
{
	usages[GPU + gpu].vram_known = true;
	usages[GPU + gpu].vram_free = bytes;
}

FIXTURE_TEST(a_gpu_that_is_too_full_is_passed_over)
{
	free_vram(0, 1099 * MIB);
	free_vram(1, 1100 * MIB);
	assert_int_equal(choose(saved, &needs), 0);
	assert_int_equal(gpus.list[0].actual_id, 0x1001);
	assert_int_equal(log_errors, 0);
	assert_int_equal(check_room(&needs), 0);
}

FIXTURE_TEST(both_numbers_are_told_where_all_are_too_full)
{
	free_vram(0, 1099 * MIB);
	free_vram(1, 3 * MIB);
	assert_int_equal(choose(saved, &needs), -ENODEV);
	assert_logged("cannot place 1 saved GPU on");
	assert_logged("free VRAM, wanted at least 1100 MiB (KFD_VRAM_SIZE_CHECK=0 accepts it): local 0x1000 (1099 MiB) "
		      "0x1001 (3 MiB)");
	settings.flag[SETTING_VRAM_SIZE_CHECK] = false;
	assert_int_equal(choose(saved, &needs), 0);
}

/* A render node's image came first, and does not say what the process needs. */
FIXTURE_TEST(memory_is_checked_when_it_becomes_known)
{
	free_vram(0, 1099 * MIB);
	assert_int_equal(choose(saved, NULL), 0);
	assert_int_equal(check_room(&needs), -ENOSPC);
	assert_logged("gpu 0x1000: 1099 MiB of its VRAM are free, and gpu 0x1000 has 1100 MiB in the image");
	settings.flag[SETTING_VRAM_SIZE_CHECK] = false;
	assert_int_equal(check_room(&needs), 0);
}

/* The driver wipes the VRAM of the process that was just dumped. */
FIXTURE_TEST(memory_that_is_given_back_is_waited_for)
{
	has_sysfs = true;
	free_vram(0, 900 * MIB);
	free_vram(1, 2000 * MIB);
	freed_by_sleep = 50 * MIB;
	assert_int_equal(choose(saved, &needs), 0);
	assert_int_equal(gpus.list[0].actual_id, 0x1000);
	assert_int_equal(nr_sleeps, 4);
	assert_logged("gpu 0x1000: waited 400 ms for room in its VRAM");
	assert_int_equal(check_room(&needs), 0);
}

FIXTURE_TEST(memory_of_a_gpu_that_is_too_small_is_not_waited_for)
{
	set_prop(machine->nodes[GPU], TOPOLOGY_VRAM_SIZE, GIB);
	free_vram(0, 900 * MIB);
	free_vram(1, 2000 * MIB);
	assert_int_equal(choose(saved, &needs), 0);
	assert_int_equal(gpus.list[0].actual_id, 0x1001);
	assert_int_equal(nr_sleeps, 0);
}

FIXTURE_TEST(memory_that_stays_taken_is_not_waited_for_long)
{
	free_vram(0, 900 * MIB);
	free_vram(1, 2 * MIB);
	assert_int_equal(choose(saved, &needs), -ENODEV);
	assert_in_range(nr_sleeps, 1, 100);
	assert_logged("free VRAM, wanted at least 1100 MiB (KFD_VRAM_SIZE_CHECK=0 accepts it): local 0x1000 (900 MiB)");
}

static void images_are(struct topology *first, struct topology *second, int nr)
{
	images[0] = first;
	images[1] = second;
	nr_images = nr;
}

/* A small parent takes no GPU on which its large child has no room. */
FIXTURE_TEST(what_all_processes_need_decides)
{
	struct bo large = bos[0];
	struct topology *child = machine_of(0x7000, "1"); /* it knows the GPU by another id */

	large.gpu_id = 0x7000;
	images_are(saved, child, 2);
	image_states[0] = (struct kfd_state){ .bos = &bos[1], .nr_bos = 1 };
	image_states[1] = (struct kfd_state){ .bos = &large, .nr_bos = 1 };
	free_vram(0, 1099 * MIB);
	free_vram(1, 1100 * MIB);
	assert_int_equal(precheck_images(machine, &settings, NULL, shared, true, &largest), 0);
	assert_int_equal(choose(saved, &image_states[0]), 0);
	assert_int_equal(gpus.list[0].actual_id, 0x1001);
	/* The parent has its memory by now. */
	free_vram(1, 600 * MIB);
	assert_int_equal(choose(child, &image_states[1]), 0);
	assert_int_equal(gpus.list[0].actual_id, 0x1001);
	assert_int_equal(check_room(&image_states[1]), 0);
	assert_int_equal(log_errors, 0);
	topology_free(child);
}

/* A process that comes back suspended: there is room for what it has now on both. */
FIXTURE_TEST(what_a_resume_needs_decides_where_there_is_room_for_it)
{
	images_are(saved, saved, 1);
	image_states[0] = (struct kfd_state){ .bos = &bos[1], .nr_bos = 1 };
	resume_bytes = 700 * MIB;
	free_vram(0, 1099 * MIB);
	free_vram(1, 1200 * MIB);
	assert_int_equal(precheck_images(machine, &settings, NULL, shared, true, &largest), 0);
	assert_int_equal(choose(saved, &image_states[0]), 0);
	assert_int_equal(gpus.list[0].actual_id, 0x1001);
	assert_int_equal(nr_sleeps, 0);
	memset(&shared->choices, 0, sizeof(shared->choices));
	free_vram(1, 1099 * MIB);
	assert_int_equal(precheck_images(machine, &settings, NULL, shared, true, &largest), 0);
	assert_int_equal(choose(saved, &image_states[0]), 0);
	assert_int_equal(gpus.list[0].actual_id, 0x1000);
	assert_int_equal(nr_sleeps, 0);
}

/* ---- several tasks ---- */

FIXTURE_TEST(tasks_follow_the_one_that_chose_first)
{
	usages[GPU].has_queues = true;
	assert_int_equal(choose(saved, NULL), 0);
	assert_int_equal(gpus.list[0].actual_id, 0x1001);
	/* The first task's queues are there, and the other GPU is idle again. */
	usages[GPU].has_queues = false;
	usages[GPU + 1].has_queues = true;
	assert_int_equal(choose(saved, NULL), 0);
	assert_int_equal(gpus.list[0].actual_id, 0x1001);
}

/* Each process has gpu ids of its own; the render minor at dump says which GPU it was. */
FIXTURE_TEST(gpus_that_differed_become_different_ones)
{
	struct topology *other = machine_of(0x1000, "1 drm_render_minor=%u", MINOR(1));

	assert_int_equal(choose(saved, NULL), 0);
	assert_int_equal(gpus.list[0].actual_id, 0x1000);
	assert_int_equal(choose(other, NULL), 0);
	assert_int_equal(gpus.list[0].saved_minor, MINOR(1));
	assert_int_equal(gpus.list[0].actual_id, 0x1001);
	topology_free(other);
}

/* A launcher with a render node of its own comes before the processes with GPUs, and has fewer of them. */
FIXTURE_TEST(processes_follow_a_launcher_that_was_first)
{
	struct topology *launcher = machine_of(0x1001, "1 drm_render_minor=%u", MINOR(1));
	struct topology *two = machine_of(0x1000, "2");

	usages[GPU + 1].has_queues = true;
	assert_int_equal(choose(launcher, NULL), 0);
	assert_int_equal(gpus.list[0].saved_minor, MINOR(1));
	assert_int_equal(gpus.list[0].actual_id, 0x1000);
	assert_int_equal(choose(two, &needs), 0);
	assert_int_equal(gpus.nr, 2);
	assert_int_equal(gpus_by_saved_minor(&gpus, MINOR(1))->actual_id, 0x1000);
	assert_int_equal(gpus_by_saved_minor(&gpus, MINOR(0))->actual_id, 0x1001);
	assert_int_equal(log_errors, 0);
	topology_free(launcher);
	topology_free(two);
}

/* With the process that has most: a lone GPU would do for the first, and leave none for the other. */
FIXTURE_TEST(a_process_leaves_room_for_the_one_with_the_most_gpus)
{
	struct topology *pair = machine_of(0x3000, "2 x0-1");

	topology_free(machine);
	machine = machine_of(0x5000, "3 x1-2");
	images_are(saved, pair, 2);
	assert_int_equal(precheck_images(machine, &settings, NULL, shared, true, &largest), 0);
	assert_int_equal(choose(saved, NULL), 0);
	assert_int_equal(gpus.list[0].actual_id, 0x5001);
	assert_int_equal(choose(pair, NULL), 0);
	assert_int_equal(gpus.list[1].actual_id, 0x5002);
	topology_free(pair);
}

/* What stands in the way is what the other process has chosen: the user has named no GPU. */
FIXTURE_TEST(a_task_whose_gpu_became_another_one_is_told_so)
{
	struct topology *large = machine_of(0x1000, "1");

	assert_int_equal(choose(saved, NULL), 0);
	must(topology_node_set(large->nodes[GPU], TOPOLOGY_VRAM_SIZE, 1ull << 50));
	assert_int_equal(choose(large, NULL), -ENODEV);
	assert_logged("another process of the restore has chosen 0x1000, not: local 0x1001");
	assert_null(strstr(log_text, "KFD_DEVICE_MAP"));
	topology_free(large);
}

FIXTURE_TEST(a_task_that_cannot_follow_is_refused)
{
	assert_int_equal(choose(saved, NULL), 0);
	closed_minor = MINOR(0);
	assert_int_not_equal(choose(saved, NULL), 0);
	assert_logged("another process of the restore has chosen gpu 0x1000 for saved renderD130");
	assert_logged("may not use it: renderD130: Operation not permitted");
	assert_null(strstr(log_text, "KFD_DEVICE_MAP"));
	assert_int_equal(log_errors, 1);
}

/* Each task would read all queues of the machine and open all its GPUs while the others wait. */
FIXTURE_TEST(followers_look_at_their_own_gpus_only)
{
	has_sysfs = true;
	free_vram(0, 1100 * MIB);
	assert_int_equal(choose(saved, &needs), 0);
	assert_int_equal(nr_read, 1);
	assert_int_equal(nr_opened, 3); /* both, and the one that was chosen again */
	assert_int_equal(gpus.nr_visible, 2);
	assert_int_equal(choose(saved, &needs), 0);
	assert_int_equal(nr_read, 1);
	assert_int_equal(nr_opened, 5);
	assert_int_equal(gpus.nr_visible, 2);
	free_vram(0, 1099 * MIB);
	assert_int_equal(choose(saved, &needs), 0);
	assert_int_equal(check_room(&needs), -ENOSPC);
}

/* Each asking looks at every file that criu keeps. */
FIXTURE_TEST(one_task_asks_for_lazy_pages)
{
	assert_int_equal(choose(saved, NULL), 0);
	assert_int_equal(choose(saved, NULL), 0);
	assert_true(shared->is_lazy);
	assert_int_equal(nr_asked, 1);
}

FIXTURE_TEST(an_address_space_that_is_never_ready_is_an_error)
{
	clear_error = -ETIME;
	assert_int_equal(choose(saved, NULL), -ETIME);
	assert_logged("the new address space of renderD130 is not ready: Timer expired");
}

FIXTURE_TEST(pairs_of_the_user_hold_for_all_tasks)
{
	settings.device_map[0] =
		(struct device_map_entry){ { DEVICE_REF_RENDER_MINOR, MINOR(0) }, { DEVICE_REF_GPU_ID, 0x1001 } };
	settings.n_device_map = 1;
	assert_int_equal(choose(saved, NULL), 0);
	assert_int_equal(gpus.list[0].actual_id, 0x1001);
	assert_int_equal(choose(saved, NULL), 0);
	assert_int_equal(gpus.list[0].actual_id, 0x1001);
	assert_int_equal(log_errors, 0);
}

/* ---- before there are tasks ---- */

FIXTURE_TEST(processes_that_have_ended_are_waited_for)
{
	precheck_wait(true);
	assert_int_equal(nr_sleeps, 0);
	assert_string_equal(log_text, "");
	nr_ended = 7;
	images_are(NULL, NULL, 0);
	precheck_wait(false);
	assert_int_equal(nr_sleeps, 0);
	precheck_wait(true);
	assert_int_equal(nr_sleeps, 7);
	assert_logged("waited 70 ms for processes that have ended; the KFD still has 0");
	nr_ended = 100000;
	images_are(saved, NULL, 1);
	precheck_wait(false);
	assert_in_range(nr_sleeps, 100, 1000);
	assert_int_equal(log_errors, 0);
}

FIXTURE_TEST(what_no_gpu_can_be_is_refused_at_once)
{
	struct topology *three = machine_of(0x1000, "3");

	images_are(three, NULL, 1);
	assert_int_equal(precheck_images(machine, &settings, NULL, shared, true, &largest), -ENODEV);
	assert_logged("cannot place 3 saved GPUs on 2 local ones");
	assert_int_equal(precheck_images(machine, &settings, NULL, shared, false, &largest), 0);
	/* Another process of the directory has a chance. */
	log_clear();
	images_are(three, saved, 2);
	assert_int_equal(precheck_images(machine, &settings, NULL, shared, true, &largest), 0);
	images_are(three, three, 2);
	assert_int_equal(precheck_images(machine, &settings, NULL, shared, true, &largest), -ENODEV);
	topology_free(three);
}

/* The kernel takes one id for the other when buffers are exported. */
FIXTURE_TEST(the_old_id_comes_before_an_idle_gpu_where_processes_share)
{
	struct bo sharing = { .share = { .buffer = 1 } };

	usages[GPU].has_queues = true;
	images_are(saved, saved, 2);
	assert_int_equal(precheck_images(machine, &settings, NULL, shared, true, &largest), 0);
	assert_int_equal(choose(saved, NULL), 0);
	assert_int_equal(gpus.list[0].actual_id, 0x1001);
	/* Another process of the dump shares, and will follow this one. */
	shared_free(shared);
	shared = shared_new();
	image_states[1] = (struct kfd_state){ .bos = &sharing, .nr_bos = 1, .nr_records = 1 };
	assert_int_equal(precheck_images(machine, &settings, NULL, shared, true, &largest), 0);
	assert_int_equal(choose(saved, NULL), 0);
	assert_int_equal(gpus.list[0].actual_id, 0x1000);
	assert_int_equal(log_errors, 0);
	settings.flag[SETTING_SHARING_CHECK] = false;
	shared_free(shared);
	shared = shared_new();
	assert_int_equal(precheck_images(machine, &settings, NULL, shared, true, &largest), 0);
	assert_int_equal(choose(saved, NULL), 0);
	assert_int_equal(gpus.list[0].actual_id, 0x1001);
}

/* The other process has that GPU. */
FIXTURE_TEST(a_pair_of_another_process_is_nothing_to_this_one)
{
	struct topology *other = machine_of(0x3000, "1");

	set_prop(other->nodes[GPU], TOPOLOGY_DRM_RENDER_MINOR, MINOR(5));
	images_are(saved, other, 2);
	settings.device_map[0] =
		(struct device_map_entry){ { DEVICE_REF_RENDER_MINOR, MINOR(5) }, { DEVICE_REF_GPU_ID, 0x1000 } };
	settings.device_map[1] =
		(struct device_map_entry){ { DEVICE_REF_RENDER_MINOR, MINOR(0) }, { DEVICE_REF_GPU_ID, 0x1001 } };
	settings.n_device_map = 2;
	assert_int_equal(precheck_images(machine, &settings, NULL, shared, true, &largest), 0);
	assert_int_equal(choose(saved, NULL), 0);
	assert_int_equal(gpus.list[0].actual_id, 0x1001);
	gpus_done(&gpus);
	assert_int_equal(choose(other, NULL), 0);
	assert_int_equal(gpus.list[0].actual_id, 0x1000);
	/* Of no image. */
	shared_free(shared);
	shared = shared_new();
	settings.device_map[1].saved.value = MINOR(6);
	assert_int_equal(precheck_images(machine, &settings, NULL, shared, true, &largest), -EINVAL);
	assert_logged("is no GPU of the image");
	topology_free(other);
}

FIXTURE_TEST(pairs_that_are_not_there_are_refused_at_once)
{
	images_are(saved, NULL, 1);
	settings.device_map[0] =
		(struct device_map_entry){ { DEVICE_REF_GPU_ID, 0x9999 }, { DEVICE_REF_GPU_ID, 0x1001 } };
	settings.n_device_map = 1;
	assert_int_equal(precheck_images(machine, &settings, NULL, shared, true, &largest), -EINVAL);
	assert_logged("KFD_DEVICE_MAP: 0x9999 is no GPU of the image");
	settings.device_map[0] =
		(struct device_map_entry){ { DEVICE_REF_GPU_ID, 0x1000 }, { DEVICE_REF_GPU_ID, 0x9999 } };
	machine->nr_hidden = 1;
	assert_int_equal(precheck_images(machine, &settings, NULL, shared, true, &largest), -EINVAL);
	assert_logged("0x9999 is no GPU of the machine, or one of the 1 that the device cgroup (container) hides");
}

FIXTURE_TEST(what_cannot_be_said_yet_is_left_to_the_tasks)
{
	struct topology *none = machine_of(0, "0");

	images_are(NULL, NULL, 0);
	assert_int_equal(precheck_images(machine, &settings, NULL, shared, true, &largest), 0);
	images_are(none, NULL, 1);
	assert_int_equal(precheck_images(machine, &settings, NULL, shared, true, &largest), 0);
	images_are(NULL, NULL, 1);
	assert_int_equal(precheck_images(machine, &settings, NULL, shared, true, &largest), 0);
	assert_string_equal(log_text, "");
	topology_free(none);
}

UNIT_MAIN(NULL, NULL)
