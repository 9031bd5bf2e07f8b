// SPDX-License-Identifier: GPL-2.0-only
/*
 * Looks up the functions of the HIP runtime.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "hip.h"
#include "report.h"

struct hip_functions hip;

#define FUNCTION(name, ...) { &hip.name, "hip" #name },

static const struct {
	void *function;
	const char *name;
} functions[] = { FUNCTION(GetErrorString) HIP_FUNCTIONS(FUNCTION) };

int hip_load(void)
{
	void *runtime = dlopen("libamdhip64.so.7", RTLD_NOW);

	if (!runtime)
		runtime = dlopen("libamdhip64.so.6", RTLD_NOW);
	if (!runtime)
		return report(ENOENT, "no HIP runtime: %s", dlerror());
	for (unsigned int i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *p = dlsym(runtime, functions[i].name);

		if (!p)
			return report(ENOSYS, "the HIP runtime has no %s", functions[i].name);
		memcpy(functions[i].function, &p, sizeof(p));
	}
	return 0;
}

int hip_must(hip_error_t error, const char *what)
{
	return error ? report(EIO, "%s: %s (%d)", what, hip.GetErrorString(error), error) : 0;
}
