// SPDX-License-Identifier: GPL-2.0-only
/*
 * Workloads in the background.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "launch.h"
#include "report.h"

/* Leaves terminal, session and inherited descriptors. */
static int detach(const char *state_path, int *ready_fd)
{
	char path[4096];
	int null, log;

	snprintf(path, sizeof(path), "%s.log", state_path);
	log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
	if (log < 0)
		return report(errno, "%s: %m", path);
	null = open("/dev/null", O_RDWR);
	if (null < 0)
		return report(errno, "/dev/null: %m");
	if (setsid() < 0)
		return report(errno, "setsid: %m");
	if (dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(log, 2) < 0)
		return report(errno, "dup2: %m");
	/* 3 is what the launcher waits on; all above are nobody's. */
	if (dup2(*ready_fd, 3) < 0 || close_range(4, ~0U, 0))
		return report(errno, "closing inherited descriptors: %m");
	*ready_fd = 3;
	return 0;
}

/* Waits for the word of all processes; repeats their messages when one fails. */
static int launcher_wait(const char *state_path, unsigned int nr_processes, int fd)
{
	unsigned int ready = 0;
	char path[4096], text[1024];
	ssize_t n;
	int log;

	while ((n = read(fd, text, sizeof(text))) != 0) {
		if (n < 0 && errno != EINTR)
			return report(errno, "waiting for the job: %m");
		ready += n > 0 ? (unsigned int)n : 0;
	}
	if (ready == nr_processes)
		return 0;
	snprintf(path, sizeof(path), "%s.log", state_path);
	log = open(path, O_RDONLY | O_CLOEXEC);
	while (log >= 0 && (n = read(log, text, sizeof(text))) > 0)
		if (write(STDERR_FILENO, text, (size_t)n) != n)
			break;
	return report(ECHILD, "%u of %u processes are computing", ready, nr_processes);
}

int launch_background(const char *state_path, unsigned int nr_processes, int *ret_ready_fd)
{
	int fds[2];
	pid_t pid;

	if (pipe(fds))
		return report(errno, "pipe: %m");
	pid = fork();
	if (pid < 0)
		return report(errno, "fork: %m");
	if (pid) {
		close(fds[1]);
		exit(launcher_wait(state_path, nr_processes, fds[0]) ? 1 : 0);
	}
	*ret_ready_fd = fds[1];
	return detach(state_path, ret_ready_fd);
}

void launch_ready(int *ready_fd)
{
	if (*ready_fd < 0)
		return;
	if (write(*ready_fd, "r", 1) != 1)
		report(errno, "telling the launcher: %m");
	close(*ready_fd);
	*ready_fd = -1;
}
