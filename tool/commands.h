/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The commands. Each prints the values of the outermost object, and returns its exit status, TOOL_GOOD, TOOL_BAD or
 * TOOL_FAIL, the last after a line.
 */
#ifndef TOOL_COMMANDS_H
#define TOOL_COMMANDS_H

#include "host/host.h"
#include "suspend/suspend.h"
#include "tool/print.h"

/* What a child of this program does with processes. */
enum suspend_verb { RESUME, SUSPEND, LOCK, CHECKPOINT, RESTORE, UNLOCK, NO_VERB };

struct arguments {
	enum suspend_verb verb; /* of command_verb() */
	const char *path;	/* directory or archive of images */
	int pid;		/* instead, of check and resume */
	int *pids;		/* of suspend, resume and state, which take several */
	size_t nr_pids;
	const char *dir;	/* suspend, checkpoint, follow: where buffer data go; NULL: into memory */
	const char *cgroup;	/* likewise: all processes below that directory; NULL: not said */
	const char *wait;	/* resume, restore, state: seconds; NULL: not said */
	const char *timeout;	/* suspend, lock, checkpoint: likewise */
	const char *until;	/* state: that of which it waits; NULL: it does not */
	bool tree;		/* and all descendants */
	bool stopped;		/* follow: also what a signal stops */
	const char *images_dir; /* where a dump would write; NULL: not said */
	const char *machine;	/* directory with a copy of another machine's topology; NULL: this one's */
};

int command_show(const struct arguments *arguments);
int command_verify(const struct arguments *arguments);
int command_match(const struct arguments *arguments);
int command_doctor(const struct arguments *arguments);
int command_check(const struct arguments *arguments);
/* Suspend, resume, or one of their phases. */
int command_verb(const struct arguments *arguments);
int command_follow(const struct arguments *arguments);
int command_state(const struct arguments *arguments);
int command_toggle(const struct arguments *arguments);
int command_get_state(const struct arguments *arguments);
/* Lets queues of a process run again that a killed criu has left stopped. */
int resume_queues(int pid);

struct suspend_work {
	struct suspend_target target;
	const char *dir; /* NULL: into memory */
	unsigned int wait_seconds;
	enum suspend_verb verb;
	bool quiet; /* a failure is not said */
};

/* Does it, says what has become of them, and takes back what a child that fails or is killed leaves half way. */
#define TOOL_NOTHING 4 /* another status: none of them is suspended */
int suspend_in_child(const struct suspend_work *work);

/* The number in the text of that option, NULL: 0. */
int seconds_of(const char *option, const char *text, unsigned int *ret);
/* What "state" says of processes, none: of all of which there is a record. */
int print_states(const struct arguments *arguments);

/* The directory of a cgroup that the user names. */
int cgroup_path(const char *cgroup, char path[PATH_MAX]);

/* A point about what criu would be allowed to, run from here. */
void check_permissions(void);

/* A point about the directory of images, of which a dump needs so many bytes. */
void check_images_dir(const char *directory, uint64_t needed_bytes);

/* Of a GPU: "AMD Instinct MI210" or what the KFD calls it; "gfx90a" and "0000:c1:00.0", "" where it is not said. */
#define NODE_TEXT_MAX 32
#define PRODUCT_TEXT_MAX 64
const char *product_text(const struct topology_node *node, char text[PRODUCT_TEXT_MAX]);
const char *gfx_text(const struct topology_node *node, char text[NODE_TEXT_MAX]);
const char *pci_text(const struct topology_node *node, char text[NODE_TEXT_MAX]);

/*
 * Points about the settings that are not at their defaults, with who says so: the file beside images may be a
 * stranger's. Whether there are any.
 */
bool print_settings(const struct settings *settings);

#endif
