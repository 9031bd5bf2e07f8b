/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The part of the HIP runtime that hipjob uses, as it is in ROCm 6 and 7. The headers of Debian 12 are older and have
 * other layouts, so that the few types are here, and functions are looked up in the runtime of the machine.
 */
#ifndef WORKLOADS_HIP_H
#define WORKLOADS_HIP_H

#include <stddef.h>
#include <stdint.h>

typedef int hip_error_t; /* 0: success */
typedef struct hip_stream *hip_stream_t;
typedef struct hip_event *hip_event_t;
typedef struct hip_memory *hip_memory_t;
typedef struct hip_module *hip_module_t;
typedef struct hip_function *hip_function_t;

enum { HIP_HOST_TO_DEVICE = 1, HIP_DEVICE_TO_HOST = 2, HIP_DEVICE_TO_DEVICE = 3 };
enum { HIP_LOCATION_DEVICE = 1, HIP_MEMORY_PINNED = 1, HIP_HANDLE_FD = 1, HIP_ACCESS_RW = 3 };
#define HIP_IPC_LAZY_PEER_ACCESS 1u
#define HIP_ATTACH_GLOBAL	 1u
#define HIP_FINE_GRAINED	 1u /* of device memory */
#define HIP_UNCACHED		 3u
#define HIP_COHERENT		 0x40000000u /* of pinned memory */
#define HIP_NON_BLOCKING	 1u	     /* of streams: they do not wait for the default one, nor it for them */
#define HIP_NO_TIMING		 2u	     /* of events */
#define HIP_INTERPROCESS	 4u

struct hip_ipc_handle {
	uint8_t bytes[64];
};

struct hip_location {
	int type, id;
};

struct hip_memory_properties {
	int type;	 /* HIP_MEMORY_PINNED */
	int handle_type; /* that it can be exported as; HIP_HANDLE_FD */
	struct hip_location location;
	void *win32_data;
	struct {
		uint8_t compression, rdma;
		uint16_t usage;
	} flags;
};

struct hip_access {
	struct hip_location location;
	int flags;
};

/* Those that return an error. */
#define HIP_FUNCTIONS(F) \
	F(Init, unsigned int flags) \
	F(RuntimeGetVersion, int *version) \
	F(GetDeviceCount, int *nr) \
	F(SetDevice, int device) \
	F(Malloc, void **memory, size_t size) \
	F(ExtMallocWithFlags, void **memory, size_t size, unsigned int flags) \
	F(Free, void *memory) \
	F(HostMalloc, void **memory, size_t size, unsigned int flags) \
	F(HostFree, void *memory) \
	F(HostRegister, void *memory, size_t size, unsigned int flags) \
	F(HostUnregister, void *memory) \
	F(MallocManaged, void **memory, size_t size, unsigned int flags) \
	F(Memcpy, void *to, const void *from, size_t size, int kind) \
	F(StreamCreate, hip_stream_t *stream) \
	F(StreamCreateWithFlags, hip_stream_t *stream, unsigned int flags) \
	F(StreamSynchronize, hip_stream_t stream) \
	F(StreamDestroy, hip_stream_t stream) \
	F(EventCreateWithFlags, hip_event_t *event, unsigned int flags) \
	F(EventRecord, hip_event_t event, hip_stream_t stream) \
	F(EventSynchronize, hip_event_t event) \
	F(EventDestroy, hip_event_t event) \
	F(MallocAsync, void **memory, size_t size, hip_stream_t stream) \
	F(FreeAsync, void *memory, hip_stream_t stream) \
	F(MemcpyAsync, void *to, const void *from, size_t size, int kind, hip_stream_t stream) \
	F(MemsetAsync, void *memory, int value, size_t size, hip_stream_t stream) \
	F(IpcGetMemHandle, struct hip_ipc_handle *handle, void *memory) \
	F(IpcOpenMemHandle, void **memory, struct hip_ipc_handle handle, unsigned int flags) \
	F(IpcCloseMemHandle, void *memory) \
	F(IpcGetEventHandle, struct hip_ipc_handle *handle, hip_event_t event) \
	F(IpcOpenEventHandle, hip_event_t *event, struct hip_ipc_handle handle) \
	F(ModuleLoad, hip_module_t *module, const char *path) \
	F(ModuleGetFunction, hip_function_t *function, hip_module_t module, const char *name) \
	F(ModuleLaunchKernel, hip_function_t function, unsigned int nr_groups_x, unsigned int nr_groups_y, \
	  unsigned int nr_groups_z, unsigned int group_x, unsigned int group_y, unsigned int group_z, \
	  unsigned int shared_bytes, hip_stream_t stream, void **arguments, void **extra) \
	F(ModuleUnload, hip_module_t module) \
	F(MemCreate, hip_memory_t *memory, size_t size, const struct hip_memory_properties *properties, \
	  unsigned long long flags) \
	F(MemRelease, hip_memory_t memory) \
	F(MemAddressReserve, void **va, size_t size, size_t alignment, void *wanted, unsigned long long flags) \
	F(MemAddressFree, void *va, size_t size) \
	F(MemMap, void *va, size_t size, size_t offset, hip_memory_t memory, unsigned long long flags) \
	F(MemUnmap, void *va, size_t size) \
	F(MemSetAccess, void *va, size_t size, const struct hip_access *access, size_t nr_access) \
	F(MemExportToShareableHandle, void *handle, hip_memory_t memory, int type, unsigned long long flags) \
	F(MemImportFromShareableHandle, hip_memory_t *memory, void *handle, int type)

#define HIP_DECLARE(name, ...) hip_error_t (*name)(__VA_ARGS__);

struct hip_functions {
	const char *(*GetErrorString)(hip_error_t error);
	HIP_FUNCTIONS(HIP_DECLARE)
};

extern struct hip_functions hip;

/* Loads the runtime, the newest there is, into a process for good. -errno, reported. */
int hip_load(void);

/* 0 when @error is success, else -EIO, reported. @what: the function. */
int hip_must(hip_error_t error, const char *what);

/* Calls a function of the runtime: HIP(Malloc, &memory, size). 0 or -EIO, reported. */
#define HIP(function, ...) hip_must(hip.function(__VA_ARGS__), "hip" #function)

#endif
