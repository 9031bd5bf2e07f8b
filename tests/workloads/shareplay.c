// SPDX-License-Identifier: GPL-2.0-only
/*
 * shareplay: main program, the referee and its players, the moves.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fdpass.h"
#include "launch.h"
#include "report.h"
#include "shareplay.h"
#include "state.h"

#define REFEREE	     0u
#define PATIENCE     1200 /* waits of 50 ms for one move */
#define WAIT_NS	     50000000
#define PACE_US	     5000
#define START_NUMBER 3u /* of players, at most */

static const char usage[] =
	"usage: shareplay --state FILE [--seed N] [--background]\n"
	"Up to 8 processes that allocate, share, map, write and free GPU memory as the seed wants it.\n"
	"  --background  return when they play, in a session of its own; messages go to FILE.log\n"
	"SIGUSR1: all check everything. SIGTERM: check, free everything and end; the status is 0 only when all was right.\n"
	"FILE.until: the number of moves after which there is none until the file says more or is gone.\n"
	"       shareplay --hold PID...\n"
	"Has copies of the dma-bufs of these processes and of what their handles are, until it is killed.\n";

static volatile sig_atomic_t verify_wanted, stop_wanted;
static pid_t pids[PLAY_PLAYERS + 1];
static struct state_file state;
static int ready_fd = -1; /* to the launcher */
static char until_path[4096];

static void on_signal(int signal)
{
	if (signal == SIGTERM)
		stop_wanted = 1;
	else
		verify_wanted = 1;
}

unsigned int play_draw(struct play_world *world, unsigned int n)
{
	world->chance ^= world->chance << 13;
	world->chance ^= world->chance >> 7;
	world->chance ^= world->chance << 17;
	return (unsigned int)((world->chance >> 16) % n);
}

/* ---- turns ---- */

static void turn_wait(struct play_world *world, uint32_t seen)
{
	const struct timespec most = { .tv_nsec = WAIT_NS };

	syscall(SYS_futex, &world->turn, FUTEX_WAIT, seen, &most, NULL, 0);
}

static void turn_give(struct play_world *world, uint32_t number)
{
	world->turn = number;
	syscall(SYS_futex, &world->turn, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* ---- moves of a player ---- */

static struct play_name *draw_own(struct play *me, bool (*fits)(const struct play *me, const struct play_name *name))
{
	struct play_world *world = me->world;
	unsigned int from = play_draw(world, PLAY_NAMES);

	for (unsigned int i = 0; i < PLAY_NAMES; i++) {
		struct play_name *name = &world->names[(from + i) % PLAY_NAMES];

		if (name->kind != PLAY_NONE && name->player == me->number && fits(me, name))
			return name;
	}
	return NULL;
}

static bool any(const struct play *me, const struct play_name *name)
{
	(void)me;
	return name->kind;
}

static unsigned int own_names(const struct play *me)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < PLAY_NAMES; i++)
		nr += me->world->names[i].kind != PLAY_NONE && me->world->names[i].player == me->number;
	return nr;
}

static bool has_room(const struct play *me)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < PLAY_BUFFERS; i++)
		nr += me->world->buffers[i].used;
	return nr < PLAY_BUFFERS - 1 && own_names(me) < PLAY_OWN_NAMES;
}

static int move_alloc(struct play *me)
{
	static const uint64_t pages[] = { 1, 1, 2, 3, 5, 7, 16, 33, PLAY_MAX_PAGES };
	static const enum kfd_memory kinds[] = { KFD_MEMORY_VRAM_PUBLIC, KFD_MEMORY_GTT, KFD_MEMORY_VRAM };
	struct play_world *world = me->world;
	unsigned int gpu = play_draw(world, world->nr_gpus);
	uint64_t bytes = pages[play_draw(world, sizeof(pages) / sizeof(*pages))] * KFD_PAGE_SIZE;
	enum kfd_memory kind = kinds[play_draw(world, 3)];
	unsigned int how = play_draw(world, 4);

	if (world->lists && (!world->has_kfd[me->number] || !how))
		return play_create(me, gpu, kind == KFD_MEMORY_VRAM ? KFD_MEMORY_VRAM_PUBLIC : kind, bytes);
	return play_alloc(me, gpu, kind, bytes, world->lists && how == 1);
}

/* A player takes what the message has: a BO, a handle, the dma-buf itself, or it does not want it. */
static int move_take(struct play *me)
{
	struct play_world *world = me->world;
	unsigned int buffer, gpu = play_draw(world, world->nr_gpus), how = play_draw(world, 5);
	int fd, err = fdpass_receive(me->box[1], &buffer, sizeof(buffer), &fd);

	if (err)
		return err;
	if (world->buffers[buffer].kind != KFD_MEMORY_GTT)
		gpu = world->buffers[buffer].gpu;
	if (how < 2 && world->has_kfd[me->number]) {
		err = play_import(me, buffer, gpu, fd);
	} else if (how < 4 && world->lists && !play_has_handle(me, buffer, gpu)) {
		err = play_handle(me, buffer, gpu, fd);
		if (!err && world->has_kfd[me->number] && how == 3)
			err = play_import(me, buffer, gpu, fd);
	} else if (how == 4) {
		return play_keep(me, buffer, fd);
	}
	close(fd);
	return err;
}

static int move_share(struct play *me, const struct play_name *name)
{
	struct play_world *world = me->world;
	unsigned int taker = 1 + play_draw(world, PLAY_PLAYERS);
	int fd, err = play_draw(world, 3) ? 0 : play_describe(me, name);

	err = err ? err : play_export(me, name, &fd);
	if (err)
		return err;
	while (!world->present[taker])
		taker = taker % PLAY_PLAYERS + 1;
	err = fdpass_send(me->box[0], &name->buffer, sizeof(name->buffer), fd);
	close(fd);
	world->follow = PLAY_TAKE;
	world->taker = taker;
	return err;
}

static int move_export(struct play *me, const struct play_name *name)
{
	int fd, err = play_export(me, name, &fd);

	if (!err)
		close(fd);
	return err;
}

static int move_write(struct play *me)
{
	struct play_name *name = draw_own(me, play_can_write);

	if (!name)
		return 0;
	me->world->buffer = name->buffer;
	me->world->follow = PLAY_LOOK;
	return play_write(me, name);
}

static int free_all(struct play *me)
{
	struct play_name *name;
	int err = 0;

	while (!err && (name = draw_own(me, any)))
		err = play_free(me, name);
	return err;
}

static int move(struct play *me)
{
	unsigned int what = play_draw(me->world, 100);
	struct play_name *name = draw_own(me, any);

	if (!name || (what < 25 && has_room(me)))
		return has_room(me) ? move_alloc(me) : 0;
	if (what < 45 && has_room(me))
		return move_share(me, name);
	if (what < 60)
		return play_draw(me->world, 8) ? play_free(me, name) : free_all(me);
	if (what < 75)
		return move_write(me);
	return what < 85 ? play_map(me, name) : move_export(me, name);
}

/* @buffer: of one, or of all. */
static int look(struct play *me, unsigned int buffer)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < PLAY_NAMES; i++) {
		const struct play_name *name = &me->world->names[i];

		if (name->kind == PLAY_NONE || name->player != me->number ||
		    (buffer != PLAY_NOBODY && name->buffer != buffer))
			continue;
		err = play_check(me, name);
		if (!err && buffer == PLAY_NOBODY)
			err = move_export(me, name);
	}
	return err;
}

/* What the player has of a buffer: all, or BOs of the KFD on one GPU. */
static int drop(struct play *me)
{
	struct play_world *world = me->world;
	bool all = world->gpu == PLAY_NOBODY;
	int err = 0;

	for (unsigned int i = 0; !err && i < PLAY_NAMES; i++) {
		struct play_name *name = &world->names[i];

		if (name->kind == PLAY_NONE || name->player != me->number || name->buffer != world->buffer)
			continue;
		if (all || (play_is_kfd(name) && name->gpu == world->gpu))
			err = play_free(me, name);
	}
	return err;
}

static int heir_end(struct play *me)
{
	if (me->heir && (kill(me->heir, SIGKILL) || waitpid(me->heir, NULL, 0) < 0))
		return report(errno, "player %u: ending pid %d: %m", me->number, (int)me->heir);
	me->heir = 0;
	return 0;
}

/* A child that inherits all files, as a DataLoader's do, or that one's end. Nothing that is mapped is inherited. */
static int heir_fork(struct play *me)
{
	if (me->heir)
		return heir_end(me);
	me->heir = fork();
	if (me->heir < 0)
		return report(errno, "fork: %m");
	if (me->heir)
		return 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

static int obey(struct play *me)
{
	switch (me->world->order) {
	case PLAY_START: return play_open(me);
	case PLAY_MOVE: return move(me);
	case PLAY_LOOK: return look(me, me->world->buffer);
	case PLAY_TAKE: return move_take(me);
	case PLAY_DROP: return drop(me);
	case PLAY_FORK: return heir_fork(me);
	case PLAY_LEAVE: _exit(heir_end(me) ? 1 : 0);
	case PLAY_END: return heir_end(me) ? -ECHILD : play_close(me);
	}
	return -EINVAL;
}

static void player_run(struct play *me)
{
	struct play_world *world = me->world;
	int err = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!err) {
		uint32_t turn = world->turn;

		if (turn != me->number) {
			turn_wait(world, turn);
			continue;
		}
		err = obey(me);
		if (!err && world->order == PLAY_END)
			_exit(0);
		if (!err)
			turn_give(world, REFEREE);
	}
	snprintf(world->message, sizeof(world->message), "%s", report_last());
	world->failed = true;
	_exit(1);
}

/* ---- the referee ---- */

/* What has been done, for people. */
static const char *turns(const struct play_world *world)
{
	static const char *const names[] = { "entered", "moves", "looks", "taken", "dropped", "forks", "left", "ended" };
	static char text[256];
	size_t used = 0;

	for (unsigned int i = 0; i <= PLAY_END; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%" PRIu64 " %s", i ? ", " : "",
					 world->counts[i], names[i]);
	return text;
}

static int phase_set(const struct play *me, const char *phase)
{
	state.generation = me->world->moves;
	state_begin(&state, phase);
	state_line(&state, "turns %s", turns(me->world));
	return state_end(&state);
}

static bool is_gone(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%d", (int)pid);
	return access(path, F_OK);
}

/* Ended, and the driver has taken down what it had. */
static int player_reap(const struct play *me, unsigned int number)
{
	int status = 0;

	if (waitpid(pids[number], &status, 0) < 0 || status)
		return report(ECHILD, "player %u (pid %d) ended with status %#x: %s", number, (int)pids[number], status,
			      me->world->message);
	for (unsigned int i = 0; !is_gone(pids[number]); i++) {
		if (i == PATIENCE)
			return report(ETIME, "the driver still has player %u (pid %d)", number, (int)pids[number]);
		usleep(WAIT_NS / 1000);
	}
	/* Whoever has the number next is told nothing before its turn. */
	turn_give(me->world, REFEREE);
	me->world->present[number] = false;
	return 0;
}

/* Gives a player the turn, and waits until it is done or has ended as it was told. */
static int turn(struct play *me, unsigned int number, enum play_order order)
{
	struct play_world *world = me->world;
	bool ends = order == PLAY_LEAVE || order == PLAY_END;

	world->order = order;
	world->follow = PLAY_MOVE;
	world->counts[order]++;
	turn_give(world, number);
	for (unsigned int i = 0; !ends && world->turn != REFEREE; i++) {
		int status = 0;

		if (world->failed || waitpid(pids[number], &status, WNOHANG))
			return report(ECHILD, "player %u (pid %d), told to do %u, has failed, or died with status %#x: %s", number,
				      (int)pids[number], order, status, world->message);
		if (i == PATIENCE)
			return report(ETIME, "player %u does not end its move", number);
		turn_wait(world, number);
	}
	return ends ? player_reap(me, number) : 0;
}

static int turn_all(struct play *me, enum play_order order)
{
	int err = 0;

	for (unsigned int i = 1; !err && i <= PLAY_PLAYERS; i++)
		if (me->world->present[i])
			err = turn(me, i, order);
	return err;
}

static bool any_loose(const struct play_world *world)
{
	return world->nr_loose[0] || world->nr_loose[1] || world->nr_loose[2];
}

/* Not while names are loose: queues and their memory, which nobody exports, would get a number that is lost again. */
static int player_enter(struct play *me)
{
	struct play_world *world = me->world;
	unsigned int number = 1;

	while (number <= PLAY_PLAYERS && world->present[number])
		number++;
	if (number > PLAY_PLAYERS || any_loose(world))
		return 0;
	world->has_kfd[number] = !world->lists || play_draw(world, 5);
	pids[number] = fork();
	if (pids[number] < 0)
		return report(errno, "fork: %m");
	if (!pids[number]) {
		me->number = number;
		close(state.fd);
		close(ready_fd);
		player_run(me);
	}
	world->present[number] = true;
	return turn(me, number, PLAY_START);
}

/* What it has goes with the process. */
static int player_leave(struct play *me, unsigned int number)
{
	int err = turn(me, number, PLAY_LEAVE);

	for (unsigned int i = 0; !err && i < PLAY_NAMES; i++)
		if (me->world->names[i].kind != PLAY_NONE && me->world->names[i].player == number)
			play_forget(me->world, &me->world->names[i]);
	return err;
}

static unsigned int nr_present(const struct play_world *world)
{
	unsigned int nr = 0;

	for (unsigned int i = 1; i <= PLAY_PLAYERS; i++)
		nr += world->present[i];
	return nr;
}

/* What a move has begun comes to its end. */
static int follow_up(struct play *me)
{
	struct play_world *world = me->world;
	enum play_order follow = world->follow;

	if (follow == PLAY_MOVE)
		return 0;
	return follow == PLAY_TAKE ? turn(me, world->taker, PLAY_TAKE) : turn_all(me, follow);
}

/* Whether anybody has a BO of the KFD or a handle of the buffer, on its own GPU (@home) or on others. */
static bool is_held(const struct play_world *world, unsigned int buffer, bool home)
{
	for (unsigned int i = 0; i < PLAY_NAMES; i++) {
		const struct play_name *name = &world->names[i];

		if (name->kind != PLAY_NONE && name->kind != PLAY_DMABUF && name->buffer == buffer &&
		    (name->gpu == world->buffers[buffer].gpu) == home)
			return true;
	}
	return false;
}

/* A buffer that is held on other GPUs than its own only: the plugin refuses it, as the man page says. */
static bool find_away(struct play_world *world)
{
	for (world->buffer = 0; world->buffer < PLAY_BUFFERS; world->buffer++)
		if (world->buffers[world->buffer].used && is_held(world, world->buffer, false) &&
		    !is_held(world, world->buffer, true))
			return true;
	return false;
}

static bool find_loose(struct play_world *world)
{
	for (unsigned int i = 0; i < PLAY_NAMES; i++)
		if (world->names[i].kind != PLAY_NONE && world->names[i].loose) {
			world->buffer = world->names[i].buffer;
			world->gpu = world->names[i].gpu;
			return true;
		}
	return false;
}

/* Where loose names go before the next move, nothing excuses a number that the driver does not know any more. */
static int clear_up(struct play *me)
{
	struct play_world *world = me->world;
	bool tidy = world->tidy || play_draw(world, 3);
	int err = 0;

	while (!err && find_away(world)) {
		world->gpu = PLAY_NOBODY;
		err = turn_all(me, PLAY_DROP);
	}
	while (!err && tidy && find_loose(world))
		err = turn_all(me, PLAY_DROP);
	return err;
}

static int next_move(struct play *me)
{
	struct play_world *world = me->world;
	unsigned int what = play_draw(world, 100), number = 1 + play_draw(world, PLAY_PLAYERS);
	int err;

	world->moves++;
	if (what < 3 || nr_present(world) < 2)
		return player_enter(me);
	while (!world->present[number])
		number = number % PLAY_PLAYERS + 1;
	if (what >= 5 && what < 8)
		return turn(me, number, PLAY_FORK);
	err = what < 5 && nr_present(world) > 2 ? player_leave(me, number) : turn(me, number, PLAY_MOVE);
	err = err ? err : follow_up(me);
	return err ? err : clear_up(me);
}

static int verify(struct play *me)
{
	int err;

	me->world->buffer = PLAY_NOBODY;
	err = turn_all(me, PLAY_LOOK);
	state.verifies += !err;
	return err;
}

/* Whether there is to be no move for now. */
static bool is_paused(const struct play_world *world)
{
	unsigned long long until = UINT64_MAX;
	FILE *file = fopen(until_path, "re");

	if (file && fscanf(file, "%llu", &until) != 1)
		until = UINT64_MAX;
	if (file)
		fclose(file);
	return world->moves >= until;
}

static int play(struct play *me)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < START_NUMBER; i++)
		err = player_enter(me);
	while (!err && !stop_wanted) {
		bool paused = is_paused(me->world);

		if (verify_wanted) {
			verify_wanted = 0;
			err = verify(me);
		} else if (!paused) {
			err = next_move(me);
		}
		err = err ? err : phase_set(me, paused ? "paused" : "running");
		launch_ready(&ready_fd);
		usleep(PACE_US);
	}
	err = err ? err : verify(me);
	return err ? err : turn_all(me, PLAY_END);
}

/* ---- beginning and arguments ---- */

/* Linux 6.18 and later list handles, and say what is mapped. */
static int ask_lists(struct play *me)
{
	int file = kfd_gpu_reopen(&me->kfd.gpus[0]), err = file;
	struct gem_mapping mapping;
	uint32_t handle;

	if (file >= 0)
		err = gem_create(file, KFD_PAGE_SIZE, GEM_DOMAIN_GTT, 0, &handle);
	if (!err)
		me->world->lists = gem_mappings(file, handle, &mapping, 1) >= 0;
	close(file);
	return err;
}

static int begin(struct play *me, uint64_t seed, const char *state_path)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	void *p = mmap(NULL, sizeof(*me->world), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int nr = kfd_topology_read(me->kfd.gpus, KFD_MAX_GPUS);

	if (nr < 0)
		return nr;
	if (p == MAP_FAILED || sigaction(SIGUSR1, &action, NULL) || sigaction(SIGTERM, &action, NULL) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, me->box))
		return report(errno, "shared memory, signals, sockets: %m");
	me->world = p;
	me->world->chance = (seed + 1) * 0x9e3779b97f4a7c15ULL;
	me->world->tidy = play_draw(me->world, 2);
	me->kfd.nr_gpus = (unsigned int)nr;
	me->world->nr_gpus = me->kfd.nr_gpus < PLAY_GPUS ? me->kfd.nr_gpus : PLAY_GPUS;
	me->world->hive = me->kfd.gpus[0].hive_id;
	for (unsigned int i = 1; i < me->world->nr_gpus; i++)
		me->world->hive = me->world->hive && me->kfd.gpus[i].hive_id == me->kfd.gpus[0].hive_id;
	snprintf(until_path, sizeof(until_path), "%s.until", state_path);
	nr = state_open(&state, state_path, 0);
	return nr ? nr : ask_lists(me);
}

/* ---- a process that is not dumped ---- */

/* A copy of a dma-buf, or a dma-buf of the first handle of a render node. */
static bool hold_file(pid_t pid, int pidfd, int fd)
{
	char path[64], target[64] = "";
	int copy, dmabuf;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	if (readlink(path, target, sizeof(target) - 1) < 0 ||
	    !(strstr(target, "/dev/dri/renderD") || strstr(target, "dmabuf")))
		return false;
	copy = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	return copy >= 0 && (strstr(target, "dmabuf") || !gem_export(copy, 1, false, &dmabuf));
}

static int hold(char **pids_of, int nr_pids)
{
	int nr = 0;

	for (int i = 0; i < nr_pids; i++) {
		pid_t pid = atoi(pids_of[i]);
		int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

		for (int fd = 0; pidfd >= 0 && fd < 256; fd++)
			nr += hold_file(pid, pidfd, fd);
	}
	if (!nr)
		return report(ENOENT, "no dma-buf and no handle");
	pause();
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "state", required_argument, NULL, 's' }, { "seed", required_argument, NULL, 'r' },
		{ "background", no_argument, NULL, 'd' },  { "hold", no_argument, NULL, 'h' },
		{ 0 },
	};
	const char *values[128] = { ['r'] = "0" };
	int option, err;
	static struct play me;

	report_name("shareplay");
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		values[option & 127] = optarg ? optarg : "";
	if (values['h'])
		return hold(argv + optind, argc - optind) ? 1 : 0;
	if (values['?'] || !values['s'] || optind != argc) {
		fputs(usage, stderr);
		return 2;
	}
	if (values['d'] && launch_background(values['s'], 1, &ready_fd))
		return 1;
	err = begin(&me, strtoull(values['r'], NULL, 0), values['s']);
	err = err ? err : play(&me);
	phase_set(&me, err ? "failed" : "done");
	return err ? 1 : 0;
}
