// SPDX-License-Identifier: GPL-2.0-only
/*
 * Not a workload: a file system of somebody else's, by FUSE, in which a process has a file open.
 *
 *     foreignfs denying|open DIRECTORY
 *
 * denying: of a user, and for nobody else, as by sshfs; open: for all. Prints "open PID", the process that has the
 * file. Whoever stops the server has a file system that does not answer, as of a network.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"

#define USER	  1000
#define FILE_NODE 2

/* What is answered to a request, behind the header, and its length; -errno. */
static int answer(const struct fuse_in_header *request, void *ret)
{
	const struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096 };
	const struct fuse_open_out opened = { 0 };
	const struct fuse_attr_out attr = {
		.attr = { .ino = request->nodeid,
			  .mode = request->nodeid == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644 },
	};
	const struct fuse_entry_out entry = { .nodeid = FILE_NODE,
					      .attr = { .ino = FILE_NODE, .mode = S_IFREG | 0644 } };

	switch (request->opcode) {
	case FUSE_INIT:
		memcpy(ret, &init, sizeof(init));
		return sizeof(init);
	case FUSE_GETATTR:
		memcpy(ret, &attr, sizeof(attr));
		return sizeof(attr);
	case FUSE_LOOKUP:
		memcpy(ret, &entry, sizeof(entry));
		return sizeof(entry);
	case FUSE_OPEN:
		memcpy(ret, &opened, sizeof(opened));
		return sizeof(opened);
	default:
		return -ENOSYS;
	}
}

static int serve(int fuse)
{
	static char in[1 << 17], out[256];
	const struct fuse_in_header *request = (void *)in;
	struct fuse_out_header *header = (void *)out;

	while (read(fuse, in, sizeof(in)) > 0) {
		int len = answer(request, header + 1);

		header->unique = request->unique;
		header->error = len < 0 ? len : 0;
		header->len = (uint32_t)sizeof(*header) + (len < 0 ? 0 : (uint32_t)len);
		/* A request may have been interrupted meanwhile. */
		if (request->opcode != FUSE_FORGET && write(fuse, out, header->len) < 0 && errno != ENOENT)
			return report(errno, "cannot answer request %u", request->opcode);
	}
	return report(errno, "no request");
}

static int use(const char *directory)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/file", directory);
	if (setgid(USER) || setuid(USER) || prctl(PR_SET_PDEATHSIG, SIGKILL))
		return report(errno, "cannot become a user");
	if (open(path, O_RDONLY) < 0)
		return report(errno, "cannot open %s", path);
	printf("open %d\n", getpid());
	fflush(stdout);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[128];

	report_name("foreignfs");
	if (argc != 3 || fuse < 0)
		return report(errno, "needs two arguments and /dev/fuse"), 1;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%d,group_id=%d%s", fuse, USER, USER,
		 strcmp(argv[1], "open") ? "" : ",allow_other");
	if (mount("foreignfs", argv[2], "fuse", MS_NOSUID | MS_NODEV, options))
		return report(errno, "cannot mount %s", argv[2]), 1;
	if (!fork()) {
		close(fuse);
		return use(argv[2]) != 0;
	}
	return serve(fuse) != 0;
}
