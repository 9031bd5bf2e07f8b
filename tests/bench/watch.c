// SPDX-License-Identifier: GPL-2.0-only
/*
 * watch: runs a command and samples, while it runs, what the simulated engines have moved,
 * what a disk has transferred, and the most memory that the command and its children had.
 *
 *     watch SAMPLES DISK COMMAND [ARG...]
 *
 * SAMPLES gets a line "SECONDS ENGINE_BYTES DISK_BYTES" each 100 ms, the bytes since the
 * start. The end is seen at once. Prints "SECONDS PEAK_KIB" at the end, and ends with the command's status.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ENGINES	     "/sys/kernel/debug/asicsim/engines"
#define SECTOR_BYTES 512
#define EVERY_NS     100000000

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static FILE *must_open(const char *path, const char *mode)
{
	FILE *f = fopen(path, mode);

	if (!f) {
		fprintf(stderr, "watch: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	return f;
}

static uint64_t engine_bytes(void)
{
	FILE *f = must_open(ENGINES, "re");
	uint64_t bytes, sum = 0;

	while (fscanf(f, "%*x %*u %" SCNu64, &bytes) == 1)
		sum += bytes;
	fclose(f);
	return sum;
}

static uint64_t disk_bytes(const char *disk)
{
	uint64_t read, written;
	char path[256];
	FILE *f;
	int n;

	snprintf(path, sizeof(path), "/sys/block/%s/stat", disk);
	f = must_open(path, "re");
	n = fscanf(f, "%*u %*u %" SCNu64 " %*u %*u %*u %" SCNu64, &read, &written);
	fclose(f);
	if (n != 2) {
		fprintf(stderr, "watch: %s: not the two numbers that were expected\n", path);
		exit(1);
	}
	return (read + written) * SECTOR_BYTES;
}

/* 0 when the process has gone meanwhile. */
static long peak_kib_of(pid_t pid)
{
	char path[64], line[256];
	long kib = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f) && sscanf(line, "VmHWM: %ld", &kib) != 1)
		;
	fclose(f);
	return kib;
}

static long peak_kib(pid_t pid)
{
	long most = peak_kib_of(pid), kib;
	char path[64];
	int child;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	f = fopen(path, "re");
	if (!f)
		return most;
	while (fscanf(f, "%d", &child) == 1) {
		kib = peak_kib_of(child);
		most = kib > most ? kib : most;
	}
	fclose(f);
	return most;
}

static pid_t start(char **command, const sigset_t *before)
{
	pid_t pid = fork();

	if (pid < 0) {
		fprintf(stderr, "watch: fork: %s\n", strerror(errno));
		exit(1);
	}
	if (pid)
		return pid;
	sigprocmask(SIG_SETMASK, before, NULL);
	execvp(command[0], command);
	fprintf(stderr, "watch: %s: %s\n", command[0], strerror(errno));
	_exit(127);
}

int main(int argc, char **argv)
{
	const struct timespec every = { .tv_nsec = EVERY_NS };
	sigset_t child, before;
	uint64_t engines, disk;
	int status = 0;
	long most = 0;
	double begin;
	FILE *out;
	pid_t pid;

	if (argc < 4) {
		fprintf(stderr, "usage: watch SAMPLES DISK COMMAND [ARG...]\n");
		return 2;
	}
	out = must_open(argv[1], "we");
	engines = engine_bytes();
	disk = disk_bytes(argv[2]);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &before);
	begin = now();
	pid = start(argv + 3, &before);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		long kib = peak_kib(pid);

		most = kib > most ? kib : most;
		fprintf(out, "%.3f %" PRIu64 " %" PRIu64 "\n", now() - begin, engine_bytes() - engines,
			disk_bytes(argv[2]) - disk);
		sigtimedwait(&child, NULL, &every);
	}
	printf("%.3f %ld\n", now() - begin, most);
	if (fclose(out)) {
		fprintf(stderr, "watch: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
