// SPDX-License-Identifier: GPL-2.0-only
/* Memory: of the GPU's address space, page by page, and LDS; and the instructions that access it. */
#include "float.h"
#include "inst.h"

enum kind {
	NOTHING,
	TIME,
	LOAD,
	LOAD_SIGNED,
	LOAD_LOW,
	LOAD_LOW_SIGNED,
	LOAD_HIGH,
	LOAD_HIGH_SIGNED,
	STORE,
	STORE_HIGH,
	BUFFER_LOAD,
	BUFFER_STORE,
	LOAD_TWO,
	STORE_TWO,
	PERMUTE,
	BACK_PERMUTE,
	SWIZZLE,
	ATOMICS,
	SWAP = ATOMICS,
	COMPARE_SWAP,
	ADD,
	SUB,
	SMIN,
	UMIN,
	SMAX,
	UMAX,
	AND,
	OR,
	XOR,
	ADD_FLOAT,
	KINDS = 63,
	RTN = 64,
	FAR = 128,
};

#define M(format, code, ident, what, bytes) \
	[format == SMEM ? 0 : format - DS + 1][code] = { .name = #ident, .kind = what, .size = bytes },
static const struct gcn_op ops[4][0x100] = {
#include "memory_ops.h"
};
#undef M

const struct gcn_op *gcn_memory_op(enum gcn_format format, unsigned int code)
{
	const struct gcn_op *op = &ops[format == SMEM ? 0 : format - DS + 1][code & 0xff];

	return op->name ? op : NULL;
}

/* ---- pages ---- */

void gcn_forget(struct gcn_env *env)
{
	for (unsigned int i = 0; i <= GCN_TLB; i++)
		env->tlb[i].at = NULL;
}

static inline u8 *address(struct gcn_env *env, u64 va, enum gcn_access access)
{
	u64 page = va & ~(u64)(GCN_PAGE - 1);
	struct gcn_translation *t = &env->tlb[access == GCN_EXECUTE ? GCN_TLB : page / GCN_PAGE % GCN_TLB];

	if (!t->at || t->va != page || t->access < access)
		*t = (struct gcn_translation){ .va = page, .at = env->page(env, page, access), .access = access };
	return t->at ? t->at + va % GCN_PAGE : NULL;
}

int gcn_fetch(struct gcn_env *env, u64 va, u32 *dword)
{
	u8 *at = address(env, va, GCN_EXECUTE);

	if (!at)
		return -EFAULT;
	memcpy(dword, at, sizeof(*dword));
	return 0;
}

static int access(struct gcn_env *env, u64 va, u8 *buffer, size_t size, bool write)
{
	size_t n;
	u8 *at;

	for (; size; size -= n, va += n, buffer += n) {
		n = GCN_PAGE - va % GCN_PAGE;
		n = n < size ? n : size;
		at = address(env, va, write ? GCN_WRITE : GCN_READ);
		if (!at)
			return -EFAULT;
		memcpy(write ? at : buffer, write ? buffer : at, n);
	}
	return 0;
}

int gcn_read(struct gcn_env *env, u64 va, void *to, size_t size)
{
	return access(env, va, to, size, false);
}

int gcn_write(struct gcn_env *env, u64 va, const void *from, size_t size)
{
	return access(env, va, (u8 *)from, size, true);
}

/* ---- SMEM ---- */

static u64 smem_address(struct gcn_wave *w, const struct gcn_inst *i, bool is_buffer)
{
	u64 va = gcn_s64(w, (i->w[0] & 63) * 2);

	if (is_buffer)
		va &= 0xffffffffffffULL;
	if (i->w[0] >> 17 & 1)
		va += (u64)(s64)((s32)(i->w[1] << 11) >> 11);
	else
		va += w->s[i->w[1] & 0x7f];
	if (i->w[0] >> 14 & 1)
		va += w->s[i->w[1] >> 25];
	return va & ~3ULL;
}

void gcn_smem(struct gcn_wave *w, const struct gcn_inst *i)
{
	u8 kind = i->op->kind;
	bool is_buffer = kind == BUFFER_LOAD || kind == BUFFER_STORE, write = kind == STORE || kind == BUFFER_STORE;
	u32 *data = &w->s[i->w[0] >> 6 & 0x7f], loaded[16];
	u64 va;

	if (kind == NOTHING)
		return;
	if (kind == TIME)
		return gcn_set_s64(w, i->w[0] >> 6 & 0x7f, w->env->clock(w->env));
	va = smem_address(w, i, is_buffer);
	if (access(w->env, va, (u8 *)(write ? data : loaded), i->op->size, write))
		gcn_stop_at_address(w, va);
	else if (!write)
		memcpy(data, loaded, i->op->size);
}

/* ---- a lane's access ---- */

struct place {
	bool in_lds;
	u64 va; /* or the offset in LDS */
};

/* LDS ends where the group's does: nothing is read or written behind it. */
static u8 *lds_address(struct gcn_wave *w, u64 at, unsigned int size)
{
	return at <= w->group->lds_size && size <= w->group->lds_size - at ? w->group->lds + at : NULL;
}

static void lane_read(struct gcn_wave *w, struct place p, void *to, unsigned int size)
{
	u8 *at;

	if (!p.in_lds) {
		if (gcn_read(w->env, p.va, to, size))
			gcn_stop_at_address(w, p.va);
		return;
	}
	at = lds_address(w, p.va, size);
	if (at)
		memcpy(to, at, size);
	else
		memset(to, 0, size);
}

static void lane_write(struct gcn_wave *w, struct place p, const void *from, unsigned int size)
{
	u8 *at;

	if (!p.in_lds) {
		if (gcn_write(w->env, p.va, from, size))
			gcn_stop_at_address(w, p.va);
		return;
	}
	at = lds_address(w, p.va, size);
	if (at)
		memcpy(at, from, size);
}

/* Where all of it is, in one page or LDS; NULL: it is in two pages, or some of it is not there. */
static inline u8 *whole(struct gcn_wave *w, struct place p, unsigned int size, enum gcn_access access)
{
	if (p.in_lds)
		return lds_address(w, p.va, size);
	return p.va % GCN_PAGE + size <= GCN_PAGE ? address(w->env, p.va, access) : NULL;
}

static bool is_load(u8 kind)
{
	return kind >= LOAD && kind <= LOAD_HIGH_SIGNED;
}

/* What was read, of up to 4 bytes, as a register gets it. Registers with ECC are written whole: the other half becomes 0. */
static u32 loaded(u8 kind, unsigned int size, u32 x)
{
	bool is_signed = kind == LOAD_SIGNED || kind == LOAD_LOW_SIGNED || kind == LOAD_HIGH_SIGNED;

	if (is_signed)
		x = size == 1 ? (u32)(s8)x : (u32)(s16)x;
	switch (kind) {
	case LOAD_LOW:
	case LOAD_LOW_SIGNED:
		return x & 0xffff;
	case LOAD_HIGH:
	case LOAD_HIGH_SIGNED:
		return x << 16;
	default:
		return x;
	}
}

/* Eight bytes that are aligned are one access: a GPU or processor that looks meanwhile sees all of them, or none. */
static void words_load(struct gcn_wave *w, const u8 *at, unsigned int dst, unsigned int lane, unsigned int words)
{
	unsigned int k = 0;

	for (; (uintptr_t)at % 8 == 0 && k + 2 <= words; k += 2) {
		u64 x = __atomic_load_n((const u64 *)(at + 4 * k), __ATOMIC_RELAXED);

		w->v[dst + k][lane] = (u32)x;
		w->v[dst + k + 1][lane] = (u32)(x >> 32);
	}
	for (; k < words; k++)
		memcpy(&w->v[dst + k][lane], at + 4 * k, 4);
}

static void words_store(const struct gcn_wave *w, u8 *at, unsigned int src, unsigned int lane, unsigned int words)
{
	unsigned int k = 0;

	for (; (uintptr_t)at % 8 == 0 && k + 2 <= words; k += 2)
		__atomic_store_n((u64 *)(at + 4 * k), w->v[src + k][lane] | (u64)w->v[src + k + 1][lane] << 32, __ATOMIC_RELAXED);
	for (; k < words; k++)
		memcpy(at + 4 * k, &w->v[src + k][lane], 4);
}

static void load(struct gcn_wave *w, struct place p, unsigned int dst, unsigned int lane, unsigned int size, u8 kind)
{
	const u8 *at = kind == LOAD && size % 4 == 0 ? whole(w, p, size, GCN_READ) : NULL;
	u32 x[4] = { 0 };

	if (at) /* most loads: words as they are */
		return words_load(w, at, dst, lane, size / 4);
	lane_read(w, p, x, size);
	if (w->state == GCN_STOPPED)
		return;
	w->v[dst][lane] = loaded(kind, size, x[0]);
	for (unsigned int k = 1; k < (size + 3) / 4; k++)
		w->v[dst + k][lane] = x[k];
}

static void store(struct gcn_wave *w, struct place p, unsigned int src, unsigned int lane, unsigned int size, bool high)
{
	u8 *at = size % 4 == 0 ? whole(w, p, size, GCN_WRITE) : NULL;
	u32 x[4] = { 0 };

	if (at)
		return words_store(w, at, src, lane, size / 4);
	for (unsigned int k = 0; k < (size + 3) / 4; k++)
		x[k] = w->v[src + k][lane];
	if (high)
		x[0] >>= 16;
	lane_write(w, p, x, size);
}

/* ---- atomics ---- */

static u64 extend(u64 x, unsigned int size)
{
	return size == 4 ? (u64)(s64)(s32)x : x;
}

static u64 combine(u8 kind, unsigned int size, u64 old, u64 data, u64 compare)
{
	s64 x = (s64)extend(old, size), y = (s64)extend(data, size);

	switch (kind) {
	case SWAP:
		return data;
	case COMPARE_SWAP:
		return old == compare ? data : old;
	case ADD:
		return old + data;
	case SUB:
		return old - data;
	case SMIN:
		return x < y ? old : data;
	case UMIN:
		return old < data ? old : data;
	case SMAX:
		return x > y ? old : data;
	case UMAX:
		return old > data ? old : data;
	case AND:
		return old & data;
	case OR:
		return old | data;
	case ADD_FLOAT:
		return fp_add(&fp32, old, data);
	default:
		return old ^ data;
	}
}

static u64 exchange32(u8 kind, u32 *at, u64 data, u64 compare)
{
	u32 old = __atomic_load_n(at, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(at, &old, (u32)combine(kind, 4, old, data, compare), false,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	return old;
}

static u64 exchange64(u8 kind, u64 *at, u64 data, u64 compare)
{
	u64 old = __atomic_load_n(at, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(at, &old, combine(kind, 8, old, data, compare), false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED))
		;
	return old;
}

/* What was there. */
static u64 atomic(struct gcn_wave *w, struct place p, u8 kind, unsigned int size, u64 data, u64 compare)
{
	u8 *at = p.in_lds ? lds_address(w, p.va, size) : address(w->env, p.va, GCN_WRITE);

	if (p.va % size) {
		gcn_stop(w, "an atomic access is not aligned", p.va);
		return 0;
	}
	if (!at && !p.in_lds)
		gcn_stop_at_address(w, p.va);
	if (!at)
		return 0;
	return size == 4 ? exchange32(kind, (u32 *)at, data, compare) : exchange64(kind, (u64 *)at, data, compare);
}

static u64 lane_data(const struct gcn_wave *w, unsigned int number, unsigned int lane, unsigned int size)
{
	return w->v[number][lane] | (size == 8 ? (u64)w->v[number + 1][lane] << 32 : 0);
}

static void set_lane_data(struct gcn_wave *w, unsigned int number, unsigned int lane, unsigned int size, u64 x)
{
	w->v[number][lane] = (u32)x;
	if (size == 8)
		w->v[number + 1][lane] = (u32)(x >> 32);
}

/* ---- private memory ---- */

/* Where a dword of a lane is: those of all lanes lie side by side. */
static u64 private_at(u64 base, u64 offset, unsigned int lane)
{
	return base + (offset / 4 * GCN_LANES + lane) * 4 + offset % 4;
}

static void private_lane(struct gcn_wave *w, const struct gcn_inst *i, u64 base, u64 offset, unsigned int data, unsigned int lane)
{
	unsigned int size = i->op->size;
	u8 kind = i->op->kind;

	if (kind >= ATOMICS || offset % (size < 4 ? size : 4))
		return gcn_stop(w, "private memory is accessed in a way that is not there", offset);
	for (unsigned int k = 0; k < (size + 3) / 4; k++) {
		struct place p = { .va = private_at(base, offset + k * 4, lane) };

		if (is_load(kind))
			load(w, p, data + k, lane, size < 4 ? size : 4, size < 4 ? kind : LOAD);
		else
			store(w, p, data + k, lane, size < 4 ? size : 4, kind == STORE_HIGH);
	}
}

/* ---- FLAT ---- */

enum { SEGMENT_FLAT, SEGMENT_SCRATCH, SEGMENT_GLOBAL, SADDR_OFF = 0x7f };

static struct place flat_place(struct gcn_wave *w, const struct gcn_inst *i, unsigned int lane)
{
	unsigned int segment = i->w[0] >> 14 & 3, addr = i->w[1] & 0xff, saddr = i->w[1] >> 16 & 0x7f;
	s64 offset = segment == SEGMENT_FLAT ? (s32)(i->w[0] & 0xfff) : (s32)(i->w[0] << 19) >> 19;
	struct place p = { .va = lane_data(w, addr, lane, 8) + (u64)offset };

	if (segment == SEGMENT_GLOBAL && saddr != SADDR_OFF)
		p.va = gcn_s64(w, saddr) + w->v[addr][lane] + (u64)offset;
	if (segment == SEGMENT_FLAT && p.va >> 48 == w->env->sh_mem_bases >> 16) {
		p.in_lds = true;
		p.va &= 0xffffffff;
	}
	return p;
}

static void flat_atomic(struct gcn_wave *w, const struct gcn_inst *i, struct place p, unsigned int lane)
{
	unsigned int size = i->op->size, data = i->w[1] >> 8 & 0xff;
	u64 old = atomic(w, p, i->op->kind, size, lane_data(w, data, lane, size),
			 i->op->kind == COMPARE_SWAP ? lane_data(w, data + size / 4, lane, size) : 0);

	if (i->w[0] >> 16 & 1)
		set_lane_data(w, i->w[1] >> 24, lane, size, old);
}

enum { FLAT_SCRATCH = 102 };

static void flat_private(struct gcn_wave *w, const struct gcn_inst *i, u64 va, unsigned int lane)
{
	u64 base = gcn_s64(w, FLAT_SCRATCH);
	unsigned int data = is_load(i->op->kind) ? i->w[1] >> 24 : i->w[1] >> 8 & 0xff;

	if (!base)
		return gcn_stop(w, "private memory is accessed", va);
	private_lane(w, i, base, (u32)va, data, lane);
}

static void flat_lane(struct gcn_wave *w, const struct gcn_inst *i, unsigned int lane)
{
	struct place p = flat_place(w, i, lane);
	unsigned int data = i->w[1] >> 8 & 0xff, dst = i->w[1] >> 24;

	if (!p.in_lds && p.va >> 48 == (w->env->sh_mem_bases & 0xffff) && (i->w[0] >> 14 & 3) == SEGMENT_FLAT)
		return flat_private(w, i, p.va, lane);
	if (is_load(i->op->kind))
		return load(w, p, dst, lane, i->op->size, i->op->kind);
	switch (i->op->kind) {
	case STORE:
	case STORE_HIGH:
		return store(w, p, data, lane, i->op->size, i->op->kind == STORE_HIGH);
	default:
		return flat_atomic(w, i, p, lane);
	}
}

void gcn_flat(struct gcn_wave *w, const struct gcn_inst *i)
{
	u64 exec = gcn_s64(w, GCN_EXEC);

	if ((i->w[0] >> 14 & 3) == SEGMENT_SCRATCH || i->w[0] >> 13 & 1)
		return gcn_stop(w, "no such form of the instruction", i->w[0]);
	for (unsigned int l = 0; l < GCN_LANES && w->state != GCN_STOPPED; l++)
		if (exec >> l & 1)
			flat_lane(w, i, l);
}

/* ---- MUBUF ---- */

struct buffer {
	u64 base;
	u32 stride, size;
	bool is_swizzled, adds_lane;
};

static struct buffer buffer_read(const struct gcn_wave *w, unsigned int s)
{
	return (struct buffer){ .base = gcn_s64(w, s) & 0xffffffffffffULL,
				.stride = w->s[s + 1] >> 16 & 0x3fff,
				.size = w->s[s + 2],
				.is_swizzled = w->s[s + 1] >> 31,
				.adds_lane = w->s[s + 3] >> 23 & 1 };
}

/*
 * How many bytes of an access at @offset are within the buffer: words that begin in it, whole ones. What is behind is
 * not written, and reads as 0. Buffers of records and those of the trap handler are not checked.
 */
static unsigned int within(const struct buffer *b, u64 offset, u32 scalar, unsigned int size)
{
	u64 end = b->size > scalar ? b->size - scalar : 0, words;

	if (b->stride || b->adds_lane)
		return size;
	words = offset < end ? (end - offset + 3) & ~3ULL : 0;
	return size < words ? size : (unsigned int)words;
}

static void buffer_to_lds(struct gcn_wave *w, const struct gcn_inst *i, struct place p, unsigned int lane)
{
	struct place lds = { .in_lds = true, .va = (u64)(w->s[GCN_M0] & 0xffff) + (i->w[0] & 0xfff) + lane * 4 };
	u32 x;

	lane_read(w, p, &x, 4);
	if (w->state != GCN_STOPPED)
		lane_write(w, lds, &x, 4);
}

/* @size: how much of it is within the buffer */
static void buffer_lane(struct gcn_wave *w, const struct gcn_inst *i, struct place p, unsigned int lane,
			unsigned int size)
{
	unsigned int data = i->w[1] >> 8 & 0xff;
	u8 kind = i->op->kind;

	if (!is_load(kind)) {
		if (size)
			store(w, p, data, lane, size, kind == STORE_HIGH);
		return;
	}
	if (size)
		load(w, p, data, lane, size, kind);
	else
		w->v[data][lane] = 0;
	for (unsigned int k = size > 4 ? size / 4 : 1; k < (i->op->size + 3u) / 4; k++)
		w->v[data + k][lane] = 0;
}

/* Of the access: what there is not. */
static bool buffer_form_is_known(const struct gcn_inst *i)
{
	bool to_lds = i->w[0] >> 16 & 1;

	return (!to_lds || (i->op->kind == LOAD && i->op->size == 4)) && !(i->w[1] >> 23 & 1) && i->op->kind < ATOMICS;
}

void gcn_mubuf(struct gcn_wave *w, const struct gcn_inst *i)
{
	unsigned int addr = i->w[1] & 0xff, size = i->op->size;
	bool offset_in = i->w[0] >> 12 & 1, index_in = i->w[0] >> 13 & 1;
	struct buffer b = buffer_read(w, (i->w[1] >> 16 & 31) * 4);
	u64 exec = gcn_s64(w, GCN_EXEC), offset;
	u32 scalar = gcn_operand32(w, i, i->w[1] >> 24);
	struct place p = { 0 };

	if (i->op->kind == NOTHING)
		return;
	if (b.is_swizzled && !b.base)
		return gcn_stop(w, "private memory is accessed", b.base);
	if (!buffer_form_is_known(i) || (b.is_swizzled && (index_in || i->w[0] >> 16 & 1)))
		return gcn_stop(w, "no such form of the instruction", i->w[0]);
	for (unsigned int l = 0; l < GCN_LANES && w->state != GCN_STOPPED; l++) {
		if (!(exec >> l & 1))
			continue;
		offset = (u64)(offset_in ? w->v[addr + index_in][l] : 0) + (i->w[0] & 0xfff);
		if (b.is_swizzled) {
			private_lane(w, i, b.base + scalar, (u32)offset, i->w[1] >> 8 & 0xff, l);
			continue;
		}
		p.va = b.base + scalar + offset +
		       (u64)b.stride * ((index_in ? w->v[addr][l] : 0) + (b.adds_lane ? l : 0));
		if (i->w[0] >> 16 & 1)
			buffer_to_lds(w, i, p, l);
		else
			buffer_lane(w, i, p, l, within(&b, offset, scalar, size));
	}
}

/* ---- DS ---- */

static void ds_two(struct gcn_wave *w, const struct gcn_inst *i, unsigned int lane)
{
	unsigned int size = i->op->size, scale = i->op->kind & FAR ? size * 64 : size;
	u32 at = w->v[i->w[1] & 0xff][lane];
	struct place p0 = { true, at + (i->w[0] & 0xff) * scale }, p1 = { true, at + (i->w[0] >> 8 & 0xff) * scale };

	if ((i->op->kind & KINDS) == LOAD_TWO) {
		load(w, p0, i->w[1] >> 24, lane, size, LOAD);
		load(w, p1, (i->w[1] >> 24) + size / 4, lane, size, LOAD);
	} else {
		store(w, p0, i->w[1] >> 8 & 0xff, lane, size, false);
		store(w, p1, i->w[1] >> 16 & 0xff, lane, size, false);
	}
}

/* Compare and swap has what is compared first, other than FLAT's. */
static void ds_atomic(struct gcn_wave *w, const struct gcn_inst *i, struct place p, unsigned int lane)
{
	unsigned int size = i->op->size;
	u8 kind = i->op->kind & KINDS;
	u64 data0 = lane_data(w, i->w[1] >> 8 & 0xff, lane, size),
	    data1 = lane_data(w, i->w[1] >> 16 & 0xff, lane, size);
	u64 old = kind == COMPARE_SWAP ? atomic(w, p, kind, size, data1, data0) : atomic(w, p, kind, size, data0, 0);

	if (i->op->kind & RTN)
		set_lane_data(w, i->w[1] >> 24, lane, size, old);
}

static void ds_lane(struct gcn_wave *w, const struct gcn_inst *i, unsigned int lane)
{
	struct place p = { true, w->v[i->w[1] & 0xff][lane] + (i->w[0] & 0xffff) };
	u8 kind = i->op->kind & KINDS;

	if (is_load(kind))
		return load(w, p, i->w[1] >> 24, lane, i->op->size, kind);
	switch (kind) {
	case STORE:
	case STORE_HIGH:
		return store(w, p, i->w[1] >> 8 & 0xff, lane, i->op->size, kind == STORE_HIGH);
	case LOAD_TWO:
	case STORE_TWO:
		return ds_two(w, i, lane);
	default:
		return ds_atomic(w, i, p, lane);
	}
}

/* The lane that @l reads: one of its four, or the one that AND, OR and XOR make of its number in 32. */
static u32 swizzled(u32 l, u32 how)
{
	if (how >> 15)
		return (l & ~3u) + (how >> 2 * (l & 3) & 3);
	return (l & 32) | ((((l & how) | how >> 5) ^ how >> 10) & 31);
}

/* Lanes give each other values; of a lane that is switched off comes 0. */
static void ds_permute(struct gcn_wave *w, const struct gcn_inst *i, u64 exec)
{
	const u32 *addr = w->v[i->w[1] & 0xff], *data = w->v[i->w[1] >> 8 & 0xff];
	u32 r[GCN_LANES] = { 0 }, offset = i->w[0] & 0xffff, other;

	for (unsigned int l = 0; l < GCN_LANES; l++) {
		other = (addr[l] + offset) / 4 % GCN_LANES;
		if (i->op->kind == SWIZZLE)
			r[l] = exec >> swizzled(l, offset) & 1 ? addr[swizzled(l, offset)] : 0;
		else if (i->op->kind == BACK_PERMUTE)
			r[l] = exec >> other & 1 ? data[other] : 0;
		else if (exec >> l & 1)
			r[other] = data[l];
	}
	for (unsigned int l = 0; l < GCN_LANES; l++)
		if (exec >> l & 1)
			w->v[i->w[1] >> 24][l] = r[l];
}

void gcn_ds(struct gcn_wave *w, const struct gcn_inst *i)
{
	u64 exec = gcn_s64(w, GCN_EXEC);

	if (i->w[0] >> 16 & 1)
		return gcn_stop(w, "no such form of the instruction", i->w[0]);
	if (i->op->kind >= PERMUTE && i->op->kind <= SWIZZLE)
		return ds_permute(w, i, exec);
	for (unsigned int l = 0; l < GCN_LANES && w->state != GCN_STOPPED; l++)
		if (exec >> l & 1)
			ds_lane(w, i, l);
}
