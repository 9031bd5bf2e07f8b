// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes a stopped thread make system calls: registers for a call, the vDSO's instruction, registers back. No code is
 * written into the task, and no memory of its own is used: arguments have pages that the first call maps.
 *
 * What the thread is like when its tracer dies, in a process that is stopped by SIGSTOP, and what inject_adopt() finds:
 *
 * | the tracer dies            | the thread is stopped                            | then                           |
 * |----------------------------|--------------------------------------------------|--------------------------------|
 * | before inject_begin()      | with all that is its own                         | nothing to do                  |
 * | signals blocked            | the same, and takes no signal                    | the mask is put back           |
 * | before, in or after a call | at the instruction or behind it; the call is     | the registers are put back;    |
 * |                            | made as a whole, or not at all                   | they tell where the memory is  |
 * | registers put back         | with its own registers, and takes no signal      | the mask is put back           |
 * | after inject_end()         | with all that is its own                         | nothing to do                  |
 *
 * The kernel stops it before it runs on, but for a moment: a thread that is on its way out of a call when its tracer
 * dies can run until an interrupt reaches its processor. So the stack pointer is at a part of the pages that has
 * nothing but the address of the instruction: whatever returns comes back to it, with a number of no call.
 *
 * Stops are those of PTRACE_SYSCALL: a single step or a breakpoint would leave SIGTRAP behind, which kills, and so do
 * they where they are not marked (PTRACE_O_TRACESYSGOOD): ptrace_report_syscall() of Linux sends what the dead tracer
 * has not taken.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <linux/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "stopped/hold.h"
#include "stopped/inject.h"
#include "stopped/memory.h"
#include "amdgpu_plugin_util.h"

#define CODE_SEGMENT_64 0x33 /* of the kernel's ABI */
#define WAIT_USEC	20
#define CALL_ATTEMPTS	1000
#define STACK		INJECT_ROOM /* where the stack pointer is: what is above has addresses of the instruction */

#define ALL_SIGNALS (~(1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1))) /* that can be blocked */
#define GET_RSEQ    0x420f /* PTRACE_GET_RSEQ_CONFIGURATION, which older headers do not have */

/* A thread in a ptrace stop is in none any more when it was killed. */
static int fail_ptrace(pid_t tid, const char *what)
{
	int err = errno_or_eio();

	return err == -ESRCH ? fail(err, "task %d: has ended", tid) : fail(err, "task %d: cannot %s: %m", tid, what);
}

/* ---- memory ---- */

int inject_write(struct inject *inject, size_t at, const void *data, size_t size)
{
	int err;

	if (size > INJECT_ROOM || at > INJECT_ROOM - size)
		return fail(-E2BIG, "task %d: %zu bytes at %zu are too many for an injected call", inject->tid, size,
			    at);
	err = memory_write(inject->tid, inject->memory + at, data, size);
	inject->is_lost |= err;
	return err;
}

/* ---- looking ---- */

/* In the vDSO. */
static int find_instruction(pid_t tid, uint64_t *ret)
{
	static const uint8_t syscall_code[] = { 0x0f, 0x05 };
	_cleanup_fclose_ FILE *f = proc_file(tid, "maps");
	_cleanup_free_ uint8_t *code = NULL;
	const uint8_t *found = NULL;
	uint64_t start = 0, end = 0;
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, "[vdso]") && sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2)
			break;
	if (end) {
		int err;

		code = malloc(end - start);
		err = code ? memory_read(tid, start, code, end - start) : -ENOMEM;
		if (err)
			return err;
		found = memmem(code, end - start, syscall_code, sizeof(syscall_code));
	}
	if (!found)
		return fail(-EOPNOTSUPP, "task %d: has no vDSO with a system call: its calls cannot be injected", tid);
	*ret = start + (uint64_t)(found - code);
	return 0;
}

static int get_registers(pid_t tid, struct user_regs_struct *ret)
{
	struct iovec room = { ret, sizeof(*ret) };

	if (!ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &room)) {
		if (room.iov_len == sizeof(*ret) && ret->cs == CODE_SEGMENT_64)
			return 0;
		return fail(-EOPNOTSUPP, "task %d: runs 32-bit code: its calls cannot be injected", tid);
	}
	return fail_ptrace(tid, "get its registers");
}

int inject_look(pid_t tid, int kfd, struct inject *ret)
{
	struct {
		uint64_t address;
		uint32_t size, signature, flags, pad;
	} rseq = { 0 };
	int err;

	*ret = (struct inject){ .tid = tid, .kfd = kfd };
	err = get_registers(tid, &ret->own.regs);
	if (!err && ptrace(PTRACE_GETSIGMASK, tid, sizeof(ret->own.blocked), &ret->own.blocked))
		err = fail_ptrace(tid, "get its signals");
	/* Before Linux 5.13 it cannot be asked, and no C library uses it. */
	if (!err && ptrace(GET_RSEQ, tid, sizeof(rseq), &rseq) >= 0 && rseq.address) {
		ret->own.rseq_at = rseq.address + 8;
		err = memory_read(tid, ret->own.rseq_at, &ret->own.rseq_cs, sizeof(ret->own.rseq_cs));
	}
	return err ? err : find_instruction(tid, &ret->instruction);
}

bool inject_adopt(struct inject *inject, const struct inject_thread *own)
{
	const struct user_regs_struct *now = &inject->own.regs;
	bool is_before = now->rip == inject->instruction, is_behind = now->rip == inject->instruction + 2;

	if (!is_before && !is_behind && inject->own.blocked != ALL_SIGNALS)
		return false;
	/*
	 * The call that maps the memory and the one that unmaps it have the thread's own stack pointer: then it is what
	 * the first has returned, or what the second was to unmap.
	 */
	if ((is_before || is_behind) && now->rsp != own->regs.rsp)
		inject->memory = now->rsp - STACK;
	else if (is_behind && now->orig_rax == SYS_mmap && (int64_t)now->rax > 0)
		inject->memory = now->rax;
	else if (is_before && now->rax == SYS_munmap)
		inject->memory = now->rdi;
	inject->own = *own;
	inject->is_changed = true;
	return true;
}

/* ---- calls ---- */

static int set_registers(pid_t tid, const struct user_regs_struct *regs)
{
	struct iovec room = { (void *)(uintptr_t)regs, sizeof(*regs) };

	if (ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &room))
		return fail_ptrace(tid, "set its registers");
	return 0;
}

static int block_signals(pid_t tid, uint64_t blocked)
{
	if (ptrace(PTRACE_SETSIGMASK, tid, sizeof(blocked), &blocked))
		return fail_ptrace(tid, "block its signals");
	return 0;
}

/* A leader that was killed is not told of before its tracer has waited for all its threads. */
static int wait_for_thread(const struct inject *inject, int *status)
{
	double now = monotonic_seconds(), end = now + INJECT_SECONDS, next = now + INJECT_ASK_SECONDS;
	pid_t tid = inject->tid, r;

	while (!(r = waitpid(tid, status, __WALL | WNOHANG)) && now < end && !task_has_ended(tid)) {
		usleep(WAIT_USEC);
		now = monotonic_seconds();
		if (now < next)
			continue;
		next = now + INJECT_ASK_SECONDS;
		if (inject->ask)
			inject->ask(inject->arg);
	}
	if (!r && !task_has_ended(tid))
		return fail(-ETIME, "task %d: has not returned from an injected call after %d s", tid, INJECT_SECONDS);
	if (r == tid && WIFSTOPPED(*status))
		return 0;
	return fail(-ESRCH, "task %d: has ended", tid);
}

/* Runs it up to the beginning or the end of a call. Meanwhile it may report that its process is stopped. */
static int run_to_call(struct inject *inject)
{
	pid_t tid = inject->tid;
	int signal = 0, status;

	for (;;) {
		int err, event;

		if (ptrace(PTRACE_SYSCALL, tid, NULL, signal))
			return fail_ptrace(tid, "continue it");
		err = wait_for_thread(inject, &status);
		if (err)
			return err;
		event = status >> 16;
		signal = event ? 0 : WSTOPSIG(status);
		if ((signal & ~0x80) == SIGTRAP)
			return 0;
		inject->nr_stops += signal == SIGSTOP;
		if (signal && signal != SIGSTOP)
			return fail(-EIO, "task %d: an injected call ends in signal %d", tid, signal);
	}
}

static bool is_interrupted(int64_t result)
{
	/* ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK: the kernel's own, which no program sees. */
	return (result <= -512 && result >= -514) || result == -516;
}

static int call_once(struct inject *inject, long nr, const uint64_t args[6], int64_t *ret)
{
	struct user_regs_struct regs = inject->own.regs;
	int err;

	regs.rip = inject->instruction;
	regs.orig_rax = (uint64_t)-1; /* what the thread was in is not repeated now */
	regs.rax = (uint64_t)nr;
	regs.rdi = args[0];
	regs.rsi = args[1];
	regs.rdx = args[2];
	regs.r10 = args[3];
	regs.r8 = args[4];
	regs.r9 = args[5];
	if (inject->memory)
		regs.rsp = inject->memory + STACK;
	err = set_registers(inject->tid, &regs);
	for (int i = 0; !err && i < 2; i++)
		err = run_to_call(inject);
	if (!err)
		err = get_registers(inject->tid, &regs);
	if (err)
		return err;
	if (regs.rip != inject->instruction + 2 || regs.orig_rax != (uint64_t)nr)
		return fail(-EIO, "task %d: is not where an injected call ends", inject->tid);
	*ret = (int64_t)regs.rax;
	return 0;
}

int inject_call(struct inject *inject, long nr, const uint64_t args[6], int64_t *ret)
{
	int64_t result = -512;
	int err = 0;

	for (int i = 0; !err && is_interrupted(result) && i < CALL_ATTEMPTS; i++)
		err = call_once(inject, nr, args, &result);
	inject->is_lost |= err;
	if (err)
		return err;
	if (ret)
		*ret = result;
	return result < 0 && result > -4096 ? (int)result : 0;
}

int inject_kfd(struct inject *inject, unsigned long op, void *args)
{
	const uint64_t call[6] = { (uint64_t)inject->kfd, op, inject->memory };
	int err = inject_write(inject, 0, args, _IOC_SIZE(op));

	if (!err)
		err = inject_call(inject, SYS_ioctl, call, NULL);
	if (err)
		return err;
	err = memory_read(inject->tid, inject->memory, args, _IOC_SIZE(op));
	inject->is_lost |= err;
	return err;
}

int inject_begin(struct inject *inject)
{
	const uint64_t args[6] = {
		0, INJECT_MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, (uint64_t)-1,
	};
	uint64_t stack[(INJECT_SPARE - STACK) / sizeof(uint64_t)];
	int64_t address = 0;
	int err = block_signals(inject->tid, ALL_SIGNALS);

	if (err)
		return err;
	inject->is_changed = true;
	if (!inject->memory) {
		err = inject_call(inject, SYS_mmap, args, &address);
		if (err)
			inject_fail(inject, err, "map memory in it");
		else
			inject->memory = (uint64_t)address;
	}
	for (size_t i = 0; i < ARRAY_SIZE(stack); i++)
		stack[i] = inject->instruction;
	if (!err)
		err = memory_write(inject->tid, inject->memory + STACK, stack, sizeof(stack));
	if (err)
		inject_end(inject);
	return err;
}

/*
 * The kernel repeats a call that was interrupted on its way out of a stop for signals, which the end of an injected
 * call is not: it has to go into one.
 */
static int enter_stop(struct inject *inject)
{
	int status;

	if (inject->own.regs.orig_rax == (uint64_t)-1 || !is_interrupted((int64_t)inject->own.regs.rax))
		return 0;
	if (ptrace(PTRACE_INTERRUPT, inject->tid, NULL, NULL) || ptrace(PTRACE_CONT, inject->tid, NULL, NULL))
		return fail_ptrace(inject->tid, "stop it where it was");
	return wait_for_thread(inject, &status);
}

int inject_end(struct inject *inject)
{
	const uint64_t args[6] = { inject->memory, INJECT_MEMORY };
	int err = 0;

	if (inject->memory) {
		inject->memory = 0; /* no stack there any more */
		err = inject_call(inject, SYS_munmap, args, NULL);
		err = inject->is_lost ? err : 0;
	}
	if (!err && inject->own.rseq_at)
		err = memory_write(inject->tid, inject->own.rseq_at, &inject->own.rseq_cs, sizeof(inject->own.rseq_cs));
	if (!err)
		err = set_registers(inject->tid, &inject->own.regs);
	if (!err)
		err = enter_stop(inject);
	if (!err)
		err = block_signals(inject->tid, inject->own.blocked);
	inject->is_changed = inject->is_changed && err;
	return err;
}
