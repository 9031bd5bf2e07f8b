// SPDX-License-Identifier: GPL-2.0-only
/*
 * First process of the test machine, linked statically on the host. Runs guest/start, then the user's command with
 * its output copied to a file of the host, then guest/finish, and switches the machine off. Reaps whatever is
 * orphaned meanwhile. Everything goes through files in /run/vm, which is a directory of the host: a write has
 * reached the host when it returns, so that nothing is lost when the machine stops.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RUN_DIR "/run/vm/"

static int log_fd = STDERR_FILENO;

static void __attribute__((format(printf, 1, 2))) complain(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	dprintf(log_fd, "vm-agent: ");
	vdprintf(log_fd, format, args);
	dprintf(log_fd, "\n");
	va_end(args);
}

/* The host looks for these files; they appear complete or not at all. */
static void report(const char *name, const char *format, ...)
{
	char tmp[PATH_MAX], path[PATH_MAX];
	va_list args;
	int fd;

	snprintf(path, sizeof(path), RUN_DIR "%s", name);
	snprintf(tmp, sizeof(tmp), RUN_DIR ".%s", name);
	fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0) {
		complain("%s: %s", tmp, strerror(errno));
		return;
	}
	va_start(args, format);
	vdprintf(fd, format, args);
	va_end(args);
	close(fd);
	if (rename(tmp, path) < 0)
		complain("%s: %s", path, strerror(errno));
}

static int exit_code(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* A session of its own, so that all of it can be killed; out_fd becomes stdout and stderr. -1 when fork failed. */
static pid_t spawn(char *const argv[], int out_fd, bool on_terminal)
{
	sigset_t none;
	pid_t pid;

	pid = fork();
	if (pid)
		return pid;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	if (on_terminal && ioctl(out_fd, TIOCSCTTY, 1) < 0)
		complain("controlling terminal: %s", strerror(errno));
	if (dup2(on_terminal ? out_fd : open("/dev/null", O_RDONLY), STDIN_FILENO) < 0 ||
	    dup2(out_fd, STDOUT_FILENO) < 0 || dup2(out_fd, STDERR_FILENO) < 0)
		_exit(127);
	close_range(STDERR_FILENO + 1, ~0U, 0);
	execv(argv[0], argv);
	dprintf(STDERR_FILENO, "vm-agent: %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* Runs a step to its end on the console; the exit code. */
static int run_step(const char *path)
{
	char *const argv[] = { (char *)path, NULL };
	int status = 0;
	pid_t pid, got;

	pid = spawn(argv, log_fd, false);
	if (pid < 0)
		return 127;
	do {
		got = wait(&status);
	} while (got != pid && (got > 0 || errno == EINTR));
	return exit_code(status);
}

static void write_all(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			complain("output: %s", strerror(errno));
			return;
		}
		data += n;
		len -= n;
	}
}

/* Copies what is in the pipe; true when somebody may still write to it. */
static bool copy_output(int pipe_fd, int out_fd)
{
	static char buf[256 * 1024];
	ssize_t n;

	for (;;) {
		n = read(pipe_fd, buf, sizeof(buf));
		if (n > 0)
			write_all(out_fd, buf, n);
		else if (n == 0 || errno != EINTR)
			return n < 0 && errno == EAGAIN;
	}
}

/* True, with the command's status, when the command is among the dead. */
static bool reap(pid_t command, int *ret_status)
{
	bool found = false;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == command) {
			*ret_status = status;
			found = true;
		}
	}
	return found;
}

static int ms_until(time_t deadline)
{
	time_t left = deadline - time(NULL);

	if (left <= 0)
		return 0;
	return left > INT_MAX / 1000 ? INT_MAX : left * 1000;
}

/* Serves the command until it ends or time is up. True with its status, false on time-out. */
static bool watch(pid_t command, int signal_fd, int pipe_fd, int out_fd, time_t deadline, int *ret_status)
{
	struct pollfd fds[2] = { { signal_fd, POLLIN, 0 }, { pipe_fd, POLLIN, 0 } };
	struct signalfd_siginfo info;
	int n;

	for (;;) {
		n = poll(fds, 2, ms_until(deadline));
		if (n == 0 && ms_until(deadline) == 0)
			return false;
		if (n < 0)
			continue;
		if (fds[1].revents && !copy_output(pipe_fd, out_fd))
			fds[1].fd = -1;
		if (!fds[0].revents || read(signal_fd, &info, sizeof(info)) < 0 || !reap(command, ret_status))
			continue;
		/* A background process may hold the pipe open for ever: what is in it now is all there is. */
		if (fds[1].fd >= 0)
			copy_output(pipe_fd, out_fd);
		return true;
	}
}

/* The command, with its output into the host's file "output" and its end into "status". */
static void run_command(time_t deadline)
{
	char *const argv[] = { RUN_DIR "command", NULL };
	int pipe_fds[2], out_fd, signal_fd, status = 0;
	sigset_t child;
	pid_t pid;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	signal_fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	out_fd = open(RUN_DIR "output", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (signal_fd < 0 || out_fd < 0 || pipe2(pipe_fds, O_CLOEXEC) < 0) {
		complain("preparing the output: %s", strerror(errno));
		return;
	}
	fcntl(pipe_fds[0], F_SETFL, O_NONBLOCK);
	pid = spawn(argv, pipe_fds[1], false);
	close(pipe_fds[1]);
	if (pid < 0) {
		complain("fork: %s", strerror(errno));
		return;
	}
	if (watch(pid, signal_fd, pipe_fds[0], out_fd, deadline, &status)) {
		report("status", "exit %d\n", exit_code(status));
		return;
	}
	kill(-pid, SIGKILL);
	copy_output(pipe_fds[0], out_fd);
	report("status", "timeout\n");
}

static void run_shell(void)
{
	char *const argv[] = { RUN_DIR "command", NULL };
	int status = 0;
	pid_t pid, got;

	pid = spawn(argv, log_fd, true);
	do {
		got = wait(&status);
	} while (got != pid && (got > 0 || errno == EINTR));
	report("status", "exit %d\n", exit_code(status));
}

/*
 * One perf event for as long as the machine runs. criu's breakpoints are perf events too: with the first one and after
 * the last one the kernel patches its scheduler while the other processors run it. Under QEMU's translation a machine
 * died there of an exception in finish_task_switch(). The event counts nothing.
 */
static void keep_perf_events_on(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
	};

	if (syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC) < 0)
		complain("perf_event_open: %s", strerror(errno));
}

static void switch_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	complain("power off: %s", strerror(errno));
	for (;;)
		pause();
}

int main(void)
{
	const char *deadline = getenv("vm_deadline"), *shell = getenv("vm_shell");
	int ret;

	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	setenv("HOME", "/root", 1);
	log_fd = open("/dev/ttyS0", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (log_fd < 0)
		log_fd = STDERR_FILENO;
	if (chdir("/share") < 0)
		complain("/share: %s", strerror(errno));
	keep_perf_events_on();
	ret = run_step(RUN_DIR "start");
	if (ret) {
		report("status", "start %d\n", ret);
		switch_off();
	}
	report("up", "\n");
	if (shell)
		run_shell();
	else
		run_command(deadline ? atoll(deadline) : LONG_MAX);
	ret = run_step(RUN_DIR "finish");
	report("finished", "%d\n", ret);
	switch_off();
}
