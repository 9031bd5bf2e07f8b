// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads the text that describes the simulated machine (the format is in
 * README.md) into struct sim_desc. Text becomes sections of "key = value"
 * entries; a node section becomes one draft per node it stands for; what the
 * text leaves out is filled in by desc_node.c and desc_link.c.
 */
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "desc.h"

struct entry {
	char *key, *value;
	unsigned int line;
};

struct section {
	const char *name;
	unsigned int line;
	struct entry *entries;
	unsigned int nr_entries;
};

struct text {
	const char *file;
	struct section *sections;
	struct entry *entries; /* all of them, in the order of lines */
	unsigned int nr_sections, nr_entries;
};

/* A number that a key sets: where it lies in its struct, and how wide it is there. */
struct field {
	const char *name;
	size_t offset;
	size_t size;
};

#define FIELD(type, member) { #member, offsetof(type, member), sizeof_field(type, member) }

static const struct field kernel_fields[] = {
	FIELD(struct sim_kernel, kfd_minor),
	FIELD(struct sim_kernel, drm_minor),
	FIELD(struct sim_kernel, mmap_user_id),
	FIELD(struct sim_kernel, process_info_counts),
	FIELD(struct sim_kernel, save_all_xccs),
	FIELD(struct sim_kernel, check_mqd_size),
	FIELD(struct sim_kernel, acquire_at_restore),
	FIELD(struct sim_kernel, lose_ctl_stacks),
	FIELD(struct sim_kernel, refuse_hive_imports),
	FIELD(struct sim_kernel, criu_without_bos),
	FIELD(struct sim_kernel, gem_list_handles),
	FIELD(struct sim_kernel, gem_alignment_in_pages),
	FIELD(struct sim_kernel, align_sdma_doorbells),
	FIELD(struct sim_kernel, gem_change_handle),
	FIELD(struct sim_kernel, dmabuf_per_export),
	FIELD(struct sim_kernel, free_closes_handle),
	FIELD(struct sim_kernel, tolerate_overrun),
	{}
};

static const struct field platform_fields[] = {
	FIELD(struct desc_drafts, platform_oem),
	FIELD(struct desc_drafts, platform_id),
	FIELD(struct desc_drafts, platform_rev),
	{}
};

static const struct field node_fields[] = {
	FIELD(struct sim_node, gpu_id),
	FIELD(struct sim_node, vram_size),
	FIELD(struct sim_node, bar_size),
	FIELD(struct sim_node, card_minor),
	FIELD(struct sim_node, family),
	FIELD(struct sim_node, sdma_mbps),
	FIELD(struct sim_node, iommu),
	FIELD(struct sim_node, pci_class),
	FIELD(struct sim_node, pci_revision),
	FIELD(struct sim_node, subsystem_vendor),
	FIELD(struct sim_node, subsystem_device),
	{}
};

static const struct field cpu_fields[] = {
	FIELD(struct desc_extra, memory),
	{}
};

static const struct field extra_fields[] = {
	FIELD(struct desc_extra, cpu),
	FIELD(struct desc_extra, mem_width),
	FIELD(struct desc_extra, mem_clk_max),
	FIELD(struct desc_extra, l2_size),
	FIELD(struct desc_extra, l3_size),
	FIELD(struct desc_extra, p2p),
	FIELD(struct desc_extra, ecc),
	FIELD(struct desc_extra, apu),
	FIELD(struct desc_extra, pcie_bandwidth),
	FIELD(struct desc_extra, xgmi_bandwidth),
	FIELD(struct desc_extra, asic_revision),
	{}
};

static const struct field mem_bank_fields[] = {
	FIELD(struct sim_mem_bank, heap_type),
	FIELD(struct sim_mem_bank, size_in_bytes),
	FIELD(struct sim_mem_bank, flags),
	FIELD(struct sim_mem_bank, width),
	FIELD(struct sim_mem_bank, mem_clk_max),
	{}
};

static const struct field cache_fields[] = {
	FIELD(struct sim_cache, processor_id_low),
	FIELD(struct sim_cache, level),
	FIELD(struct sim_cache, size),
	FIELD(struct sim_cache, cache_line_size),
	FIELD(struct sim_cache, cache_lines_per_tag),
	FIELD(struct sim_cache, association),
	FIELD(struct sim_cache, latency),
	FIELD(struct sim_cache, type),
	FIELD(struct sim_cache, siblings),
	{}
};

static const struct field link_fields[] = {
	FIELD(struct sim_link, type),
	FIELD(struct sim_link, version_major),
	FIELD(struct sim_link, version_minor),
	FIELD(struct sim_link, node_from),
	FIELD(struct sim_link, node_to),
	FIELD(struct sim_link, weight),
	FIELD(struct sim_link, min_latency),
	FIELD(struct sim_link, max_latency),
	FIELD(struct sim_link, min_bandwidth),
	FIELD(struct sim_link, max_bandwidth),
	FIELD(struct sim_link, recommended_transfer_size),
	FIELD(struct sim_link, recommended_sdma_engine_id_mask),
	FIELD(struct sim_link, flags),
	{}
};

static const char *const property_names[SIM_PROP_COUNT] = {
#define X(name) #name,
	SIM_PROPERTIES(X)
#undef X
};

/* ---- text to sections ---- */

static int parse_section(struct text *text, char *s, unsigned int line)
{
	struct section *section;
	char *end = strchr(s, ']');

	if (!end || *skip_spaces(end + 1))
		return desc_error(text->file, line, "\"%.64s\" is not a [section]", s);
	*end = 0;
	section = &text->sections[text->nr_sections++];
	section->name = strim(s + 1);
	section->line = line;
	section->entries = &text->entries[text->nr_entries];
	return 0;
}

static int parse_entry(struct text *text, char *s, unsigned int line)
{
	char *equals = strchr(s, '=');
	struct entry *entry;

	if (!equals)
		return desc_error(text->file, line, "\"%.64s\" is neither [section] nor key = value", s);
	if (!text->nr_sections)
		return desc_error(text->file, line, "\"%.64s\" stands before the first [section]", s);
	*equals = 0;
	entry = &text->entries[text->nr_entries++];
	entry->key = strim(s);
	entry->value = strim(equals + 1);
	entry->line = line;
	if (!*entry->key || !*entry->value)
		return desc_error(text->file, line, "key or value is empty");
	text->sections[text->nr_sections - 1].nr_entries++;
	return 0;
}

static int parse_line(struct text *text, char *s, unsigned int line)
{
	char *comment = strchr(s, '#');

	if (comment)
		*comment = 0;
	s = strim(s);
	if (!*s)
		return 0;
	return *s == '[' ? parse_section(text, s, line) : parse_entry(text, s, line);
}

static void text_done(struct text *text)
{
	kvfree(text->sections);
	kvfree(text->entries);
}

static int text_parse(struct text *text, char *s)
{
	unsigned int lines = 1, line = 0;
	char *c;
	int err = 0;

	for (c = s; *c; c++)
		lines += *c == '\n';
	text->sections = kvcalloc(lines, sizeof(*text->sections), GFP_KERNEL);
	text->entries = kvcalloc(lines, sizeof(*text->entries), GFP_KERNEL);
	if (!text->sections || !text->entries)
		return -ENOMEM;
	while (!err && (c = strsep(&s, "\n")))
		err = parse_line(text, c, ++line);
	return err;
}

/* ---- values ---- */

static int parse_number(const char *file, const struct entry *entry, const char *s, u64 *ret)
{
	static const char *const yes[] = { "yes", "true", "on" }, *const no[] = { "no", "false", "off" };
	static const char units[] = "KMGT";
	size_t digits = strcspn(s, units);
	const char *unit = s[digits] ? strchr(units, s[digits]) : NULL;
	unsigned int shift = unit ? 10 * (unit - units + 1) : 0;
	char buf[32];
	int err;

	if (match_string(yes, ARRAY_SIZE(yes), s) >= 0 || match_string(no, ARRAY_SIZE(no), s) >= 0) {
		*ret = match_string(yes, ARRAY_SIZE(yes), s) >= 0;
		return 0;
	}
	if (!isdigit(*s) || digits >= sizeof(buf) || (unit && s[digits + 1]))
		return desc_error(file, entry->line, "%s: \"%.64s\" is not a number", entry->key, s);
	memcpy(buf, s, digits);
	buf[digits] = 0;
	err = kstrtoull(buf, 0, ret);
	if (!err && *ret > U64_MAX >> shift)
		err = -ERANGE;
	if (err)
		return desc_error(file, entry->line, "%s: \"%.64s\" is %s", entry->key, s,
				  err == -ERANGE ? "too large" : "not a number");
	*ret <<= shift;
	return 0;
}

/*
 * The text that applies to node @i of the @count ones that a section stands for: a single value,
 * element @i of a list with as many elements, or, where the list has one element per device, the
 * device's one. @step receives the number after "+" of "first + step", else 0.
 */
static int value_of_node(const char *file, const struct entry *entry, unsigned int i, unsigned int count,
			 unsigned int per_device, char *buf, size_t len, u64 *step)
{
	unsigned int n = 1, wanted;
	const char *s = entry->value;
	char *plus;
	int err;

	for (; *s; s++)
		n += *s == ',';
	if (n != 1 && n != count && n != count / per_device)
		return desc_error(file, entry->line, "%s: %u values for %u nodes", entry->key, n, count);
	wanted = n == 1 ? 0 : n == count ? i : i / per_device;
	for (s = entry->value; wanted; wanted--)
		s = strchr(s, ',') + 1;
	if (strscpy(buf, s, len) < 0 && !strchr(buf, ','))
		return desc_error(file, entry->line, "%s: value too long", entry->key);
	buf[strcspn(buf, ",")] = 0;

	*step = 0;
	plus = strchr(buf, '+');
	if (!plus)
		return 0;
	*plus = 0;
	err = parse_number(file, entry, strim(plus + 1), step);
	strim(buf);
	return err;
}

static int store(const char *file, const struct entry *entry, const struct field *field, void *base, u64 value)
{
	void *to = base + field->offset;

	switch (field->size) {
	case sizeof(u64):
		*(u64 *)to = value;
		return 0;
	case sizeof(u32):
		if (value > U32_MAX)
			break;
		*(u32 *)to = value;
		return 0;
	case sizeof(bool):
		if (value > 1)
			break;
		*(bool *)to = value;
		return 0;
	}
	return desc_error(file, entry->line, "%s: %llu is too large", entry->key, value);
}

static const struct field *find_field(const struct field *fields, const char *key)
{
	for (; fields->name; fields++)
		if (!strcmp(fields->name, key))
			return fields;
	return NULL;
}

/* Sections without nodes of their own: every key is one of @fields. */
static int apply_plain(const char *file, const struct section *section, const struct field *fields, void *base)
{
	unsigned int i;

	for (i = 0; i < section->nr_entries; i++) {
		const struct entry *entry = &section->entries[i];
		const struct field *field = find_field(fields, entry->key);
		u64 value;
		int err;

		if (!field)
			return desc_error(file, entry->line, "[%s] has no key \"%s\"", section->name, entry->key);
		err = parse_number(file, entry, entry->value, &value);
		if (!err)
			err = store(file, entry, field, base, value);
		if (err)
			return err;
	}
	return 0;
}

/* ---- [kernel] ---- */

static const struct {
	const char *release;
	struct sim_kernel kernel;
} releases[] = {
	{ "6.1", { .release = 601, .kfd_minor = 11, .drm_minor = 49, .process_info_counts = true,
		   .dmabuf_per_export = true } },
	{ "6.12", { .release = 612, .kfd_minor = 17, .drm_minor = 61, .process_info_counts = true,
		    .criu_without_bos = true, .free_closes_handle = true } },
	{ "6.12.117", { .release = 612, .kfd_minor = 17, .drm_minor = 61, .process_info_counts = true,
			.criu_without_bos = true, .free_closes_handle = true, .acquire_at_restore = true } },
	{ "6.17", { .release = 617, .kfd_minor = 18, .drm_minor = 64, .process_info_counts = true,
		    .criu_without_bos = true, .free_closes_handle = true, .save_all_xccs = true } },
	{ "6.18", { .release = 618, .kfd_minor = 18, .drm_minor = 64, .process_info_counts = true,
		    .criu_without_bos = true, .free_closes_handle = true, .save_all_xccs = true,
		    .check_mqd_size = true, .gem_list_handles = true, .gem_alignment_in_pages = true } },
	{ "7.2", { .release = 702, .kfd_minor = 23, .drm_minor = 64, .process_info_counts = true,
		   .criu_without_bos = true, .free_closes_handle = true, .save_all_xccs = true,
		   .check_mqd_size = true, .gem_list_handles = true, .align_sdma_doorbells = true } },
	{ "7.2.12", { .release = 702, .kfd_minor = 23, .drm_minor = 64, .process_info_counts = true,
		      .criu_without_bos = true, .free_closes_handle = true, .save_all_xccs = true,
		      .check_mqd_size = true, .gem_list_handles = true, .gem_alignment_in_pages = true,
		      .align_sdma_doorbells = true, .lose_ctl_stacks = true, .refuse_hive_imports = true } },
	{ "7.3", { .release = 703, .kfd_minor = 23, .drm_minor = 64, .mmap_user_id = true,
		   .criu_without_bos = true, .free_closes_handle = true, .save_all_xccs = true,
		   .check_mqd_size = true, .gem_list_handles = true, .align_sdma_doorbells = true } },
};

/* The interface version that ROCm of today expects, with the rules of 7.2. */
static const struct sim_kernel kernel_default = {
	.release = 702,
	.kfd_minor = 17,
	.drm_minor = 64,
	.process_info_counts = true,
	.criu_without_bos = true,
	.free_closes_handle = true,
	.save_all_xccs = true,
	.check_mqd_size = true,
	.gem_list_handles = true,
	.align_sdma_doorbells = true,
};

static int apply_release(const char *file, const struct entry *entry, struct sim_kernel *kernel)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(releases); i++)
		if (!strcmp(entry->value, releases[i].release)) {
			*kernel = releases[i].kernel;
			return 0;
		}
	return desc_error(file, entry->line,
			  "release: \"%s\" is none of 6.1, 6.12, 6.12.117, 6.17, 6.18, 7.2, 7.2.12, 7.3", entry->value);
}

/* "release" sets all switches; the keys after it change single ones. */
static int apply_kernel(const char *file, const struct section *section, struct sim_kernel *kernel)
{
	struct section rest = *section;
	int err;

	if (rest.nr_entries && !strcmp(rest.entries[0].key, "release")) {
		err = apply_release(file, &rest.entries[0], kernel);
		if (err)
			return err;
		rest.entries++;
		rest.nr_entries--;
	}
	return apply_plain(file, &rest, kernel_fields, kernel);
}

/* ---- node sections ---- */

struct node_context {
	const char *file;
	const struct section *section;
	unsigned int count, per_device; /* nodes of the section; nodes of one device (partitions) */
};

static bool is_wide_property(enum sim_property prop)
{
	return prop == SIM_PROP_hive_id || prop == SIM_PROP_local_mem_size || prop == SIM_PROP_debug_prop ||
	       prop == SIM_PROP_unique_id;
}

/* Texts that are written once for many devices: the bus number counts up by the step. */
static int apply_pci(const struct node_context *ctx, const struct entry *entry, struct sim_node *node, const char *s,
		     u64 step, unsigned int device)
{
	unsigned int domain, bus, slot, function;
	char end;

	if (sscanf(s, "%x:%x:%x.%x%c", &domain, &bus, &slot, &function, &end) != 4 || slot > 31 || function > 7)
		return desc_error(ctx->file, entry->line, "pci: \"%s\" is not DDDD:BB:DD.F", s);
	if (domain > 0xffff || step > 0xff || bus + step * device > 0xff)
		return desc_error(ctx->file, entry->line, "pci: no bus number above 0xff, no domain above 0xffff");
	node->pci_domain = domain;
	node->pci_bus = bus + step * device;
	node->pci_devfn = slot << 3 | function;
	return 0;
}

/* Counts are those of the lists. */
static bool is_derived_property(enum sim_property prop)
{
	return prop >= SIM_PROP_mem_banks_count && prop <= SIM_PROP_p2p_links_count;
}

static int apply_property(const struct node_context *ctx, const struct entry *entry, struct desc_draft *draft, u64 value)
{
	int prop = match_string(property_names, SIM_PROP_COUNT, entry->key);

	if (prop < 0)
		return desc_error(ctx->file, entry->line, "[%s] has no key \"%s\"", ctx->section->name, entry->key);
	if (is_derived_property(prop))
		return desc_error(ctx->file, entry->line, "%s follows from the node's lists", entry->key);
	if (value > U32_MAX && !is_wide_property(prop))
		return desc_error(ctx->file, entry->line, "%s: %llu is too large", entry->key, value);
	draft->node.prop[prop] = value;
	__set_bit(prop, draft->given);
	return 0;
}

static int apply_number(const struct node_context *ctx, const struct entry *entry, struct desc_draft *draft, u64 value)
{
	const struct field *field;

	field = find_field(draft->node.is_gpu ? extra_fields : cpu_fields, entry->key);
	if (field)
		return store(ctx->file, entry, field, &draft->extra, value);
	field = draft->node.is_gpu ? find_field(node_fields, entry->key) : NULL;
	if (field)
		return store(ctx->file, entry, field, &draft->node, value);
	return apply_property(ctx, entry, draft, value);
}

static int apply_entry(const struct node_context *ctx, const struct entry *entry, struct desc_draft *draft,
		       unsigned int i)
{
	u64 step, value;
	char buf[64];
	char *s;
	int err;

	if (!strcmp(entry->key, "count") || !strcmp(entry->key, "partitions"))
		return 0;
	err = value_of_node(ctx->file, entry, i, ctx->count, ctx->per_device, buf, sizeof(buf), &step);
	if (err)
		return err;
	s = strim(buf);
	if (!strcmp(entry->key, "pci") && draft->node.is_gpu)
		return apply_pci(ctx, entry, &draft->node, s, step, i / ctx->per_device);
	if (!strcmp(entry->key, "name"))
		return strscpy(draft->node.name, s, sizeof(draft->node.name)) < 0 ?
			       desc_error(ctx->file, entry->line, "name: too long") : 0;
	err = parse_number(ctx->file, entry, s, &value);
	return err ? err : apply_number(ctx, entry, draft, value + step * i);
}

static void draft_init(struct desc_draft *draft, const struct node_context *ctx, unsigned int id, unsigned int i)
{
	draft->node.id = id;
	draft->node.is_gpu = !strcmp(ctx->section->name, "gpu");
	draft->node.bar_size = DESC_NOT_GIVEN;
	draft->node.card_minor = U32_MAX;
	draft->node.pci_domain = U32_MAX;
	draft->node.partition = i % ctx->per_device;
	draft->node.nr_partitions = ctx->per_device;
	memset(&draft->extra, 0xff, sizeof(draft->extra)); /* DESC_NOT_GIVEN each */
	draft->line = ctx->section->line;
}

static int plain_key(const char *file, const struct section *section, const char *key, u64 max, unsigned int *ret)
{
	unsigned int i;
	u64 value;
	int err;

	*ret = 1;
	for (i = 0; i < section->nr_entries; i++) {
		const struct entry *entry = &section->entries[i];

		if (strcmp(entry->key, key))
			continue;
		err = parse_number(file, entry, entry->value, &value);
		if (err)
			return err;
		if (!value || value > max)
			return desc_error(file, entry->line, "%s: must be 1 to %llu", key, max);
		*ret = value;
	}
	return 0;
}

static int apply_nodes(const char *file, const struct section *section, struct desc_drafts *drafts)
{
	struct node_context ctx = { .file = file, .section = section };
	unsigned int i, k;
	int err;

	err = plain_key(file, section, "count", SIM_MAX_GPUS, &ctx.count);
	if (!err)
		err = plain_key(file, section, "partitions", 8, &ctx.per_device);
	if (err)
		return err;
	ctx.count *= ctx.per_device;
	if (drafts->nr + ctx.count > DESC_MAX_NODES)
		return desc_error(file, section->line, "more than %u nodes", DESC_MAX_NODES);

	for (i = 0; i < ctx.count; i++) {
		struct desc_draft *draft = &drafts->draft[drafts->nr + i];

		draft_init(draft, &ctx, drafts->nr + i, i);
		for (k = 0; k < section->nr_entries && !err; k++)
			err = apply_entry(&ctx, &section->entries[k], draft, i);
		if (err)
			return err;
	}
	drafts->nr += ctx.count;
	return 0;
}

/* ---- sections below a node ---- */

static int apply_link(const char *file, const struct section *section, struct desc_draft *draft, bool p2p)
{
	struct sim_link *link = desc_add_link(&draft->node);

	if (!link)
		return -ENOMEM;
	link->p2p = p2p;
	link->node_from = draft->node.id;
	link->flags = 1; /* enabled */
	if (p2p)
		draft->nr_p2p_links_given++;
	else
		draft->nr_io_links_given++;
	return apply_plain(file, section, link_fields, link);
}

static int apply_child(const char *file, const struct section *section, struct desc_draft *draft)
{
	const char *name = section->name;

	if (!strcmp(name, "mem_bank")) {
		struct sim_mem_bank *bank = desc_add_mem_bank(&draft->node);

		return bank ? apply_plain(file, section, mem_bank_fields, bank) : -ENOMEM;
	}
	if (!strcmp(name, "cache")) {
		struct sim_cache *cache = desc_add_cache(&draft->node);

		return cache ? apply_plain(file, section, cache_fields, cache) : -ENOMEM;
	}
	if (!strcmp(name, "io_link") || !strcmp(name, "p2p_link"))
		return apply_link(file, section, draft, *name == 'p');
	return desc_error(file, section->line, "no section is called [%.64s]", name);
}

/* A sub-section belongs to all nodes of the node section above it. */
static int apply_children(const char *file, const struct section *section, struct desc_drafts *drafts,
			  unsigned int first)
{
	unsigned int i;
	int err = 0;

	if (first == drafts->nr)
		return desc_error(file, section->line, "[%s] stands before the first [cpu] or [gpu]", section->name);
	for (i = first; i < drafts->nr && !err; i++)
		err = apply_child(file, section, &drafts->draft[i]);
	return err;
}

static int apply_text(const struct text *text, struct desc_drafts *drafts)
{
	unsigned int i, first = 0;
	int err = 0;

	for (i = 0; i < text->nr_sections && !err; i++) {
		const struct section *section = &text->sections[i];

		if (!strcmp(section->name, "kernel")) {
			err = apply_kernel(text->file, section, &drafts->kernel);
		} else if (!strcmp(section->name, "platform")) {
			err = apply_plain(text->file, section, platform_fields, drafts);
		} else if (!strcmp(section->name, "cpu") || !strcmp(section->name, "gpu")) {
			first = drafts->nr;
			err = apply_nodes(text->file, section, drafts);
		} else {
			err = apply_children(text->file, section, drafts, first);
		}
	}
	return err;
}

/* ---- results ---- */

static void *grow(void *array, unsigned int nr, size_t size)
{
	void *grown = krealloc(array, array_size(nr + 1, size), GFP_KERNEL);

	if (grown)
		memset(grown + nr * size, 0, size);
	return grown;
}

struct sim_mem_bank *desc_add_mem_bank(struct sim_node *node)
{
	struct sim_mem_bank *grown = grow(node->mem_banks, node->nr_mem_banks, sizeof(*grown));

	if (!grown)
		return NULL;
	node->mem_banks = grown;
	return &grown[node->nr_mem_banks++];
}

struct sim_cache *desc_add_cache(struct sim_node *node)
{
	struct sim_cache *grown = grow(node->caches, node->nr_caches, sizeof(*grown));

	if (!grown)
		return NULL;
	node->caches = grown;
	return &grown[node->nr_caches++];
}

struct sim_link *desc_add_link(struct sim_node *node)
{
	struct sim_link *grown = grow(node->links, node->nr_links, sizeof(*grown));

	if (!grown)
		return NULL;
	node->links = grown;
	return &grown[node->nr_links++];
}

static void node_done(struct sim_node *node)
{
	kfree(node->mem_banks);
	kfree(node->caches);
	kfree(node->links);
}

static int desc_from_drafts(struct desc_drafts *drafts, struct sim_desc *desc)
{
	unsigned int i;

	desc->nodes = kvcalloc(drafts->nr, sizeof(*desc->nodes), GFP_KERNEL);
	if (!desc->nodes)
		return -ENOMEM;
	for (i = 0; i < drafts->nr; i++)
		desc->nodes[i] = drafts->draft[i].node;
	desc->nr_nodes = drafts->nr;
	desc->kernel = drafts->kernel;
	desc->platform_oem = drafts->platform_oem;
	desc->platform_id = drafts->platform_id;
	desc->platform_rev = drafts->platform_rev;
	return 0;
}

void sim_desc_free(struct sim_desc *desc)
{
	unsigned int i;

	for (i = 0; i < desc->nr_nodes; i++)
		node_done(&desc->nodes[i]);
	kvfree(desc->nodes);
	memset(desc, 0, sizeof(*desc));
}

int sim_desc_parse(const char *name, char *s, struct sim_desc *desc)
{
	struct desc_drafts drafts = { .file = name, .kernel = kernel_default };
	struct text text = { .file = name };
	unsigned int i;
	int err;

	drafts.draft = kvcalloc(DESC_MAX_NODES, sizeof(*drafts.draft), GFP_KERNEL);
	if (!drafts.draft)
		return -ENOMEM;
	err = text_parse(&text, s);
	if (!err)
		err = apply_text(&text, &drafts);
	if (!err)
		err = desc_fill_nodes(&drafts);
	if (!err)
		err = desc_fill_links(&drafts);
	if (!err)
		err = desc_from_drafts(&drafts, desc);
	for (i = 0; err && i < DESC_MAX_NODES; i++)
		node_done(&drafts.draft[i].node);
	kvfree(drafts.draft);
	text_done(&text);
	return err;
}
