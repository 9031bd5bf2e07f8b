// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gives each GPU the card and render minor that its description asks for.
 * The DRM core hands out the lowest free minor when a DRM device is
 * allocated, so the ones to leave out are held meanwhile by placeholders:
 * DRM devices that are allocated, never registered (nothing of them can be
 * opened), and freed again once the real ones exist.
 */
#include <linux/err.h>
#include <linux/list.h>
#include <linux/slab.h>
#include <drm/drm_drv.h>
#include <drm/drm_file.h>

#include "device.h"

struct placeholder {
	struct list_head link;
	struct device *parent; /* the core names a debugfs directory after it: one each */
	struct drm_device *ddev;
};

static LIST_HEAD(placeholders);
static unsigned int nr_placeholders;

static const struct drm_driver card_only = {
	.name = "kfdsim-card",
	.desc = "holds a card minor",
};

static const struct drm_driver card_and_render = {
	.driver_features = DRIVER_RENDER,
	.name = "kfdsim-render",
	.desc = "holds a card and a render minor",
};

static void placeholder_free(struct placeholder *p)
{
	list_del(&p->link);
	if (!IS_ERR(p->ddev))
		drm_dev_put(p->ddev);
	root_device_unregister(p->parent);
	kfree(p);
}

static struct placeholder *placeholder_new(const struct drm_driver *driver)
{
	struct placeholder *p = kzalloc(sizeof(*p), GFP_KERNEL);
	char name[32];
	int err;

	if (!p)
		return ERR_PTR(-ENOMEM);
	snprintf(name, sizeof(name), "kfdsim-minor-%u", nr_placeholders++);
	p->parent = root_device_register(name);
	if (IS_ERR(p->parent)) {
		err = PTR_ERR(p->parent);
		kfree(p);
		return ERR_PTR(err);
	}
	list_add_tail(&p->link, &placeholders);
	p->ddev = drm_dev_alloc(driver, p->parent);
	if (IS_ERR(p->ddev)) {
		err = PTR_ERR(p->ddev);
		placeholder_free(p);
		return ERR_PTR(err);
	}
	return p;
}

void sim_minors_done(void)
{
	struct placeholder *p, *next;

	list_for_each_entry_safe(p, next, &placeholders, link)
		placeholder_free(p);
}

int sim_minors_begin(const struct sim_desc *desc)
{
	u32 last = 0;
	unsigned int i;

	for (i = 0; i < desc->nr_nodes; i++)
		if (desc->nodes[i].is_gpu)
			last = max(last, desc->nodes[i].card_minor);

	nr_placeholders = 0;
	for (;;) {
		struct placeholder *p = placeholder_new(&card_only);

		if (IS_ERR(p)) {
			sim_minors_done();
			return PTR_ERR(p);
		}
		if (p->ddev->primary->index < last)
			continue;
		/* The highest one may belong to another driver; opening it says so. */
		if (p->ddev->primary->index > last)
			placeholder_free(p);
		return 0;
	}
}

static int open_card(u32 card)
{
	struct placeholder *p;

	list_for_each_entry(p, &placeholders, link)
		if (p->ddev->primary->index == card) {
			placeholder_free(p);
			return 0;
		}
	pr_err("kfdsim: card minor %u belongs to another driver: give card_minor = ... in the description\n", card);
	return -EBUSY;
}

/*
 * Placeholders that hold a render minor need a card minor too. All wanted ones are taken by
 * now, so these get higher ones and do not disturb.
 */
static int open_render(u32 render)
{
	for (;;) {
		struct placeholder *p = placeholder_new(&card_and_render);
		u32 got;

		if (IS_ERR(p)) {
			pr_err("kfdsim: no way to reach render minor %u: error %ld\n", render, PTR_ERR(p));
			return PTR_ERR(p);
		}
		got = p->ddev->render->index;
		if (got < render)
			continue;
		placeholder_free(p);
		if (got == render)
			return 0;
		pr_err("kfdsim: render minor %u is in use: give drm_render_minor = ... in the description\n", render);
		return -EBUSY;
	}
}

/* The lowest free render minor, or -errno. */
static int next_render(void)
{
	struct placeholder *p = placeholder_new(&card_and_render);
	int render;

	if (IS_ERR(p))
		return PTR_ERR(p);
	render = p->ddev->render->index;
	placeholder_free(p);
	return render;
}

/* With all 64 cards in use there is none left for a placeholder, but then no render minor is left out either. */
int sim_minors_open(u32 card, u32 render)
{
	struct placeholder *p;
	int err = open_card(card);

	if (err || next_render() == render)
		return err;
	p = placeholder_new(&card_only); /* takes the card back */
	if (IS_ERR(p))
		return PTR_ERR(p);
	err = open_render(render);
	return err ? err : open_card(card);
}
