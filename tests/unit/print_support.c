// SPDX-License-Identifier: GPL-2.0-only
/*
 * Prints the table of docs/support.md in Markdown, and with an argument that of README.md, which has fewer drivers:
 * what limits_of_gpu() says of compute queues. Each row stands for several releases, which have to agree.
 */
#include <err.h>

#include "kernel/driver.h"
#include "log_stub.h"
#include "machine_text.h"

#define MAX_RELEASES 8

struct product {
	const char *name;
	unsigned int gfx, nr_xcc;
	bool is_partition;
};

static const struct product products[] = {
	{ "MI50 to MI250X", 90010, 1, false },
	{ "RX 5000, 6000", 100300, 1, false },
	{ "MI300, MI350 series", 90402, 8, false },
	{ "MI300 in CPX mode", 90402, 1, true },
	{ "MI300 in DPX, QPX mode", 90402, 4, true },
	{ "RX 7000", 110000, 1, false },
	{ "RX 9000", 120000, 1, false },
};

/* Other GPUs of the same columns. */
static const struct product others[] = {
	{ "MI50 to MI250X", 90006, 1, false },
	{ "MI50 to MI250X", 90008, 1, false },
	{ "RX 5000, 6000", 100100, 1, false },
	{ "MI300, MI350 series", 90402, 6, false },
	{ "MI300, MI350 series", 90500, 8, false },
	{ "MI300 in CPX mode", 90500, 1, true },
	{ "MI300 in DPX, QPX mode", 90402, 2, true },
	{ "MI300 in DPX, QPX mode", 90402, 3, true },
	{ "RX 7000", 110501, 1, false },
	{ "RX 9000", 120001, 1, false },
};

struct row {
	const char *name;
	bool dkms, in_readme;
	const char *releases[MAX_RELEASES];
};

static const struct row rows[] = {
	{ "Linux 5.18 to 6.5 (Debian 12)", false, true, { "5.18.1", "6.1.176", "6.5.13" } },
	{ "Linux 6.6 to 6.16.3 (Debian 13)", false, true, { "6.6.1", "6.12.107+deb13-amd64", "6.12.117", "6.16.3" } },
	{ "Linux 6.16.4 to 7.1.5, except the next row",
	  false,
	  true,
	  { "6.16.4", "6.17.13", "6.18.41", "6.19.2", "7.1.5" } },
	{ "Linux 6.18.42 and later 6.18, 7.1.6 and later 7.1", false, true, { "6.18.42", "6.18.99", "7.1.6" } },
	{ "Linux 7.2", false, true, { "7.2.6", "7.2.12", "7.2.13" } },
	{ "Linux 7.3 (Debian 13 backports)", false, true, { "7.3.1", "7.3.4" } },
	{ "Ubuntu, SUSE: Linux 6.8 to 6.14 (Ubuntu 24.04)",
	  false,
	  true,
	  { "6.8.0-90-generic", "6.11.0-29-generic", "6.12.0-160000.5-default", "6.14.0-37-generic" } },
	{ "Ubuntu, SUSE: Linux 6.17 to 7.1 (Ubuntu 24.04 HWE, 26.04)",
	  false,
	  true,
	  { "6.17.0-14-generic", "7.0.0-28-generic", "7.1.0-1-default" } },
	{ "RHEL 9, 10 (not tried)", false, true, { "5.14.0-611.5.1.el9_7.x86_64", "6.12.0-124.8.1.el10_1.x86_64" } },
	{ "AMD's driver up to 6.5", true, false, { "5.18.13", "6.3.6", "6.5.1" } },
	{ "AMD's driver 6.7 to 6.12", true, false, { "6.7.0", "6.8.5", "6.10.5", "6.12.12" } },
	{ "AMD's driver 6.13 to 6.15 (30.10)", true, false, { "6.13.1", "6.14.14", "6.15.1" } },
	{ "AMD's driver 6.16 (30.20, 30.30)", true, true, { "6.16.6", "6.16.13" } },
	{ "AMD's driver 6.18, 6.19 (31.10 to 31.40)", true, true, { "6.18.4", "6.19.4", "6.19.14.31400000" } },
};

/* Partitions are functions of one device. */
static struct topology *machine(const struct product *product)
{
	return machine_of(0x1000, "%d gfx_target_version=%u num_xcc=%u location_id=0x100",
			  product->is_partition ? 2 : 1, product->gfx, product->nr_xcc);
}

static const char *cell(const struct product *product, const char *release, bool dkms)
{
	struct topology *topology = machine(product);
	struct driver_release driver = { .dkms = dkms };
	char why[LIMITS_TEXT_MAX];
	enum limit limit;

	snprintf(driver.text, sizeof(driver.text), "%s", release);
	if (sscanf(release, "%d.%d.%d", &driver.major, &driver.minor, &driver.patch) < 2)
		errx(1, "%s: no release", release);
	limit = limits_of_gpu(topology->nodes[GPU_NODE], topology, &driver, why);
	topology_free(topology);
	switch (limit) {
	case LIMIT_NONE:
		return "yes";
	case LIMIT_BUSY:
		return "waits";
	case LIMIT_UNCLEAR:
		return "waits or no";
	default:
		return "no";
	}
}

static const char *cell_of_row(const struct row *row, const struct product *product)
{
	const char *first = cell(product, row->releases[0], row->dkms);

	for (size_t i = 0; i < MAX_RELEASES && row->releases[i]; i++)
		if (strcmp(cell(product, row->releases[i], row->dkms), first))
			errx(1, "%s, %s: %s is '%s', %s is '%s'", row->name, product->name, row->releases[0], first,
			     row->releases[i], cell(product, row->releases[i], row->dkms));
	return first;
}

static void check_others(const struct row *row)
{
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		for (size_t k = 0; k < ARRAY_SIZE(products); k++)
			if (!strcmp(others[i].name, products[k].name) &&
			    strcmp(cell_of_row(row, &others[i]), cell_of_row(row, &products[k])))
				errx(1, "%s, %s: not all the same (gfx %d)", row->name, products[k].name,
				     (int)others[i].gfx);
}

int main(int argc, char **argv)
{
	printf("| driver |");
	for (size_t i = 0; i < ARRAY_SIZE(products); i++)
		printf(" %s |", products[i].name);
	printf("\n|---|");
	for (size_t i = 0; i < ARRAY_SIZE(products); i++)
		printf("---|");
	for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
		if (argc > 1 && !rows[k].in_readme)
			continue;
		check_others(&rows[k]);
		printf("\n| %s |", rows[k].name);
		for (size_t i = 0; i < ARRAY_SIZE(products); i++)
			printf(" %s |", cell_of_row(&rows[k], &products[i]));
	}
	printf("\n");
	return 0;
}
