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

#define FUNCTION(name)                 \
	{                              \
		&hip.name, "hip" #name \
	}

static const struct {
	void *function;
	const char *name;
} functions[] = {
	FUNCTION(Init),
	FUNCTION(GetErrorString),
	FUNCTION(RuntimeGetVersion),
	FUNCTION(GetDeviceCount),
	FUNCTION(SetDevice),
	FUNCTION(Malloc),
	FUNCTION(ExtMallocWithFlags),
	FUNCTION(Free),
	FUNCTION(HostMalloc),
	FUNCTION(HostFree),
	FUNCTION(HostRegister),
	FUNCTION(HostUnregister),
	FUNCTION(MallocManaged),
	FUNCTION(Memcpy),
	FUNCTION(StreamCreate),
	FUNCTION(StreamCreateWithFlags),
	FUNCTION(StreamSynchronize),
	FUNCTION(StreamDestroy),
	FUNCTION(EventCreateWithFlags),
	FUNCTION(EventRecord),
	FUNCTION(EventSynchronize),
	FUNCTION(EventDestroy),
	FUNCTION(MallocAsync),
	FUNCTION(FreeAsync),
	FUNCTION(MemcpyAsync),
	FUNCTION(MemsetAsync),
	FUNCTION(IpcGetMemHandle),
	FUNCTION(IpcOpenMemHandle),
	FUNCTION(IpcCloseMemHandle),
	FUNCTION(IpcGetEventHandle),
	FUNCTION(IpcOpenEventHandle),
	FUNCTION(ModuleLoad),
	FUNCTION(ModuleGetFunction),
	FUNCTION(ModuleLaunchKernel),
	FUNCTION(ModuleUnload),
	FUNCTION(MemCreate),
	FUNCTION(MemRelease),
	FUNCTION(MemAddressReserve),
	FUNCTION(MemAddressFree),
	FUNCTION(MemMap),
	FUNCTION(MemUnmap),
	FUNCTION(MemSetAccess),
	FUNCTION(MemExportToShareableHandle),
	FUNCTION(MemImportFromShareableHandle),
};

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
