// SPDX-License-Identifier: GPL-2.0-only
/*
 * The chips that there are, and the thread of each. Calls everything that runs packets; is called by the IP blocks and
 * by the functions that the KFD calls.
 */
#include <linux/io.h>
#include <linux/kthread.h>
#include <linux/pci.h>

#include "chip.h"

/* How long an idle thread sleeps: doorbells are memory, and nobody tells of a write to them. */
#define IDLE_STEP_US 50
#define IDLE_STEPS   20
/* How long a step takes when the chip is slow. */
#define SLOW_STEP_US 2000

static LIST_HEAD(chips);
/* Both are held for changes of the list, any one by whoever reads it. */
static DEFINE_SPINLOCK(chips_lock);
static DEFINE_MUTEX(chips_mutex);

struct chip *chip_of(struct amdgpu_device *adev)
{
	struct chip *chip, *found = NULL;
	unsigned long flags;

	spin_lock_irqsave(&chips_lock, flags);
	list_for_each_entry (chip, &chips, link)
		if (chip->adev == adev)
			found = chip;
	spin_unlock_irqrestore(&chips_lock, flags);
	return found;
}

struct chip *chip_of_segment(struct chip *of, unsigned int index)
{
	struct chip *chip, *found = NULL;
	unsigned long flags;

	spin_lock_irqsave(&chips_lock, flags);
	list_for_each_entry (chip, &chips, link)
		if (chip->config.hive_size && of->config.hive_size && chip->config.hive_index == index)
			found = chip;
	spin_unlock_irqrestore(&chips_lock, flags);
	return found;
}

void chip_config_read(struct amdgpu_device *adev, struct asicsim_config *config)
{
	u32 *dw = (u32 *)config;
	unsigned int i;

	BUILD_BUG_ON(sizeof(*config) % sizeof(u32));
	for (i = 0; i < sizeof(*config) / sizeof(u32); i++)
		pci_read_config_dword(adev->pdev, ASICSIM_CONFIG_AT + 4 * i, dw + i);
}

static bool run_all(struct chip *chip)
{
	struct chip_queue *q;
	bool any = false;

	mutex_lock(&chip->queue_lock);
	for (unsigned int i = 0; i < chip->adev->sdma.num_instances; i++)
		any |= ring_run(chip, i);
	any |= scheduler_run(chip);
	list_for_each_entry (q, &chip->queues, link)
		any |= q->sdma ? queue_run(chip, q) : aql_run(chip, q);
	mutex_unlock(&chip->queue_lock);
	return any;
}

static int chip_thread(void *data)
{
	struct chip *chip = data;
	unsigned int idle = 0, kicks;
	bool any;

	while (!kthread_should_stop()) {
		kicks = atomic_read(&chip->kicks);
		any = !READ_ONCE(chip->halted) && run_all(chip);
		idle = any ? 0 : min(idle + 1, IDLE_STEPS);
		if (any && READ_ONCE(chip->slow))
			usleep_range(SLOW_STEP_US, 2 * SLOW_STEP_US);
		else if (any)
			cond_resched();
		else
			wait_event_interruptible_hrtimeout(chip->wait,
							   kthread_should_stop() || atomic_read(&chip->kicks) != kicks,
							   ns_to_ktime(IDLE_STEP_US * NSEC_PER_USEC * idle));
	}
	return 0;
}

void chips_each(void (*visit)(struct chip *chip, void *data), void *data)
{
	struct chip *chip;

	mutex_lock(&chips_mutex);
	list_for_each_entry (chip, &chips, link)
		visit(chip, data);
	mutex_unlock(&chips_mutex);
}

static void list_change(struct chip *chip, bool add)
{
	mutex_lock(&chips_mutex);
	spin_lock_irq(&chips_lock);
	if (add)
		list_add_tail(&chip->link, &chips);
	else
		list_del(&chip->link);
	spin_unlock_irq(&chips_lock);
	mutex_unlock(&chips_mutex);
}

static void *bar_map(struct amdgpu_device *adev, int bar)
{
	return (void __force *)ioremap_wc(pci_resource_start(adev->pdev, bar), pci_resource_len(adev->pdev, bar));
}

static void bars_unmap(struct chip *chip)
{
	iounmap((void __iomem __force *)chip->doorbells);
	iounmap((void __iomem __force *)chip->vram);
}

static void chip_free(struct chip *chip)
{
	list_change(chip, false);
	irq_work_sync(&chip->irq);
	bars_unmap(chip);
	code_done();
	kfree(chip);
}

int chip_start(struct amdgpu_device *adev)
{
	struct chip *chip = kzalloc(sizeof(*chip), GFP_KERNEL);
	int err;

	if (!chip)
		return -ENOMEM;
	chip->adev = adev;
	chip_config_read(adev, &chip->config);
	init_waitqueue_head(&chip->wait);
	spin_lock_init(&chip->walk_lock);
	spin_lock_init(&chip->ih_lock);
	mutex_init(&chip->queue_lock);
	INIT_LIST_HEAD(&chip->queues);
	init_irq_work(&chip->irq, chip_irq);
	chip->doorbells = bar_map(adev, 2);
	chip->vram = bar_map(adev, 0);
	chip->vram_size = pci_resource_len(adev->pdev, 0);
	if (!chip->doorbells || !chip->vram) {
		bars_unmap(chip);
		kfree(chip);
		return -ENOMEM;
	}
	list_change(chip, true);
	chip->thread = kthread_run(chip_thread, chip, "asicsim/%s", dev_name(adev->dev));
	err = PTR_ERR_OR_ZERO(chip->thread);
	if (err) {
		chip_free(chip);
		return err;
	}
	objects_start();
	guards_start();
	return 0;
}

void chip_stop(struct amdgpu_device *adev)
{
	struct chip *chip = chip_of(adev);

	if (!chip)
		return;
	objects_stop();
	guards_stop();
	kthread_stop(chip->thread);
	chip_reset(chip);
	chip_free(chip);
}

void chip_reset(struct chip *chip)
{
	for (unsigned int i = 0; i < CHIP_XCCS; i++)
		scheduler_unmap(chip, i);
	WRITE_ONCE(chip->halted, false);
	mutex_lock(&chip->queue_lock);
	for (unsigned int i = 0; i < ARRAY_SIZE(chip->rings); i++) {
		chip_ib_drop(&chip->rings[i].ib);
		chip->rings[i].hung = true;
	}
	mutex_unlock(&chip->queue_lock);
}

void chip_kick(struct amdgpu_device *adev)
{
	struct chip *chip = chip_of(adev);

	if (!chip)
		return;
	atomic_inc(&chip->kicks);
	wake_up(&chip->wait);
}
