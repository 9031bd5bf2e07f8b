// SPDX-License-Identifier: GPL-2.0-only
/* Who uses the GPUs, and who translates their addresses, from directories that stand for sysfs. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "unit.h"
#include "kernel/machine.h"
#include "log_stub.h"
#include "machine_text.h"

#define GPU GPU_NODE

static char top[32];
static int sysfs = -1;
static struct topology *machine;
static struct gpu_usage usage[TOPOLOGY_MAX_NODES];
static int in_initial_pid_ns;

STUB(int, task_in_initial_pid_ns, (void), in_initial_pid_ns)

static bool has_devtmpfs;
static unsigned int nr_sleeps;

/* The directory stands for the machine's devtmpfs, too. */
int mount_private(const char *type)
{
	assert_string_equal(type, "devtmpfs");
	return has_devtmpfs ? open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -EPERM;
}

int __wrap_usleep(useconds_t usec)
{
	assert_true(usec);
	nr_sleeps++;
	return 0;
}

static void put(const char *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(const char *text, const char *fmt, ...)
{
	char path[200], command[300];
	va_list args;
	FILE *f;

	va_start(args, fmt);
	vsnprintf(path, sizeof(path), fmt, args);
	va_end(args);
	snprintf(command, sizeof(command), "mkdir -p \"$(dirname '%s/%s')\"", top, path);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof(command), "%s/%s", top, path);
	f = fopen(command, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
	strcpy(top, "/tmp/test_usage.XXXXXX");
	if (!mkdtemp(top))
		return -1;
	sysfs = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	machine = machine_of(0x1001, "2 domain=0,1 location_id=0xc108,0xc109 partition_of_sdma_queues=0");
	return 0;
}

static int teardown(void **state)
{
	char command[64];

	close(sysfs);
	topology_free(machine);
	snprintf(command, sizeof(command), "rm -r %s", top);
	return system(command);
}

static void queue_of(int pid, int queue, unsigned int gpu)
{
	char text[16];

	snprintf(text, sizeof(text), "%u\n", topology_gpu_id(machine->nodes[GPU + gpu]));
	put(text, "class/kfd/kfd/proc/%d/queues/%d/gpuid", pid, queue);
}

#define FIXTURE_TEST(test) UNIT_TEST(test, setup, teardown)

FIXTURE_TEST(a_gpu_with_a_queue_of_any_process_is_in_use)
{
	put("", "class/kfd/kfd/proc/10/pasid");
	queue_of(11, 0, 1);
	queue_of(11, 3, 1);
	usage_read(sysfs, machine, usage);
	assert_false(usage[GPU].has_queues);
	assert_true(usage[GPU + 1].has_queues);
	queue_of(4711, 0, 0);
	usage_read(sysfs, machine, usage);
	assert_true(usage[GPU].has_queues && usage[GPU + 1].has_queues);
}

FIXTURE_TEST(queues_of_gpus_that_the_machine_does_not_have_are_nothing)
{
	put("4242\n", "class/kfd/kfd/proc/11/queues/0/gpuid");
	put("0\n", "class/kfd/kfd/proc/11/queues/1/gpuid");
	put("what\n", "class/kfd/kfd/proc/11/queues/2/gpuid");
	usage_read(sysfs, machine, usage);
	for (unsigned int i = 0; i < machine->nr_nodes; i++)
		assert_false(usage[i].has_queues);
}

FIXTURE_TEST(free_memory_is_what_the_driver_says_of_the_device)
{
	put("34342961152\n", "bus/pci/devices/0000:c1:01.0/mem_info_vram_total");
	put("1073741824\n", "bus/pci/devices/0000:c1:01.0/mem_info_vram_used");
	put("1073741824\n", "bus/pci/devices/0001:c1:01.1/mem_info_vram_total");
	put("1073741825\n", "bus/pci/devices/0001:c1:01.1/mem_info_vram_used");
	usage_read(sysfs, machine, usage);
	assert_true(usage[GPU].vram_known && usage[GPU + 1].vram_known);
	assert_int_equal(usage[GPU].vram_free, 34342961152 - 1073741824);
	assert_int_equal(usage[GPU + 1].vram_free, 0);
}

FIXTURE_TEST(memory_is_unknown_where_the_driver_says_half_or_nothing)
{
	put("34342961152\n", "bus/pci/devices/0000:c1:01.0/mem_info_vram_total");
	usage_read(sysfs, machine, usage);
	assert_false(usage[GPU].vram_known || usage[GPU + 1].vram_known);
	put("1\n", "bus/pci/devices/0000:c1:01.0/mem_info_vram_used");
	set_prop(machine->nodes[GPU], TOPOLOGY_CPU_CORES_COUNT, 8);
	usage_read(sysfs, machine, usage);
	assert_false(usage[GPU].vram_known);
}

FIXTURE_TEST(without_sysfs_nothing_is_known)
{
	memset(usage, 0xff, sizeof(usage));
	usage_read(-1, machine, usage);
	for (unsigned int i = 0; i < machine->nr_nodes; i++)
		assert_false(usage[i].has_queues || usage[i].vram_known);
}

FIXTURE_TEST(processes_that_have_ended_are_counted)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	in_initial_pid_ns = 1;
	assert_int_equal(usage_count_ended(-1), 0);
	put("", "class/kfd/kfd/proc/%d/pasid", getpid());
	put("", "class/kfd/kfd/proc/1/pasid");
	assert_int_equal(usage_count_ended(sysfs), 0);
	put("", "class/kfd/kfd/proc/%d/pasid", child);
	assert_int_equal(usage_count_ended(sysfs), 1);
	/* Elsewhere other processes have these pids. */
	in_initial_pid_ns = 0;
	assert_int_equal(usage_count_ended(sysfs), 0);
	in_initial_pid_ns = -EACCES;
	assert_int_equal(usage_count_ended(sysfs), 0);
}

static void group_of(const char *device, unsigned int group, const char *type)
{
	char command[200];

	put(type, "kernel/iommu_groups/%u/type", group);
	put("", "bus/pci/devices/%s/class", device);
	snprintf(command, sizeof(command), "ln -s ../../../../kernel/iommu_groups/%u %s/bus/pci/devices/%s/iommu_group",
		 group, top, device);
	assert_int_equal(system(command), 0);
}

static bool is_common(void)
{
	struct iommu_group a, b;

	iommu_read_group(sysfs, machine->nodes[GPU], &a);
	iommu_read_group(sysfs, machine->nodes[GPU + 1], &b);
	return iommu_is_common(&a, &b);
}

FIXTURE_TEST(addresses_are_common_without_an_iommu)
{
	assert_true(is_common());
	group_of("0000:c1:01.0", 4, "identity\n");
	assert_true(is_common());
	group_of("0001:c1:01.1", 5, "unknown\n");
	assert_true(is_common());
}

FIXTURE_TEST(addresses_are_each_gpus_own_behind_an_iommu)
{
	group_of("0000:c1:01.0", 4, "DMA-FQ\n");
	assert_false(is_common());
	group_of("0001:c1:01.1", 5, "DMA\n");
	assert_false(is_common());
}

FIXTURE_TEST(addresses_are_common_in_one_group)
{
	group_of("0000:c1:01.0", 12, "DMA\n");
	group_of("0001:c1:01.1", 12, "DMA\n");
	assert_true(is_common());
}

FIXTURE_TEST(partitions_have_the_device_of_the_first_one)
{
	set_prop(machine->nodes[GPU], TOPOLOGY_LOCATION_ID, 0xc10b);
	set_prop(machine->nodes[GPU], TOPOLOGY_SDMA_PARTITION, 3);
	group_of("0000:c1:01.0", 4, "DMA\n");
	assert_false(is_common());
}

/* ---- claims ---- */

FIXTURE_TEST(restores_choose_one_after_the_other_and_see_each_others_claims)
{
	int first, second;

	has_devtmpfs = true;
	nr_sleeps = 0;
	log_clear();
	first = turn_begin();
	assert_true(first >= 0);
	claims_add(first, 129);
	assert_false(claims_have(first, 129));
	turn_end(first);
	second = turn_begin();
	assert_int_equal(nr_sleeps, 0);
	assert_true(claims_have(second, 129));
	assert_false(claims_have(second, 128));
	assert_false(claims_have(second, 130));
	claims_add(second, 128);
	turn_end(second);
	assert_true(claims_have(first, 128));
	/* As when its process is killed, but not before the last copy is gone. */
	assert_int_equal(close(steal_fd(&first)), 0);
	assert_false(claims_have(second, 129));
	first = dup(second);
	assert_int_equal(close(steal_fd(&second)), 0);
	second = turn_begin();
	assert_true(claims_have(second, 128));
	close(first);
	assert_false(claims_have(second, 128));
	close(second);
	assert_string_equal(log_text, "");
}

FIXTURE_TEST(a_restore_that_hangs_is_not_waited_for_long)
{
	int hung, first, second;

	has_devtmpfs = true;
	nr_sleeps = 0;
	log_clear();
	hung = turn_begin();
	claims_add(hung, 128);
	first = turn_begin();
	assert_in_range(nr_sleeps, 100, 1000);
	assert_non_null(strstr(log_text, "another restore has been choosing its GPUs for 5 s"));
	assert_true(first >= 0 && claims_have(first, 128));
	claims_add(first, 129);
	turn_end(first);
	close(hung);
	second = turn_begin();
	assert_true(claims_have(second, 129) && !claims_have(second, 128));
	close(first);
	close(second);
}

FIXTURE_TEST(without_a_devtmpfs_there_are_no_claims)
{
	has_devtmpfs = false;
	assert_int_equal(turn_begin(), -1);
	claims_add(-1, 128);
	assert_false(claims_have(-1, 128));
	turn_end(-1);
}

#define CLAIMS "amdgpu-checkpoint-claims"

/* Whoever can open it could lock it for ever. */
FIXTURE_TEST(nobody_but_root_can_open_the_file_of_claims)
{
	_cleanup_close_ int claims = -1;
	struct stat st;

	has_devtmpfs = true;
	claims = turn_begin();
	assert_true(claims >= 0);
	assert_int_equal(fstat(claims, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(st.st_uid, geteuid());
}

FIXTURE_TEST(a_file_of_others_has_no_claims)
{
	char path[64];

	has_devtmpfs = true;
	snprintf(path, sizeof(path), "%s/" CLAIMS, top);
	put("", CLAIMS);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(turn_begin(), -1);
	assert_int_equal(chmod(path, 0600), 0);
	if (!getuid() && !chown(path, 1, 0))
		assert_int_equal(turn_begin(), -1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_int_equal(turn_begin(), -1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(turn_begin(), -1);
}

UNIT_MAIN(NULL, NULL)
