/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SHARE_FILES_H
#define SHARE_FILES_H

#include "share/survey.h"

/* Whether a process has the KFD's address space on a GPU in another file than this one of the same render node. */
bool files_is_another(const struct survey *survey, size_t process, size_t file);

/* Whether two files are of one node and one process, and each may be the one with the KFD's address space. */
bool files_compete(const struct survey *survey, size_t file, size_t other);

/* Whether a process has another file of the node that may as well be the one with the KFD's address space. */
bool files_may_be_another(const struct survey *survey, size_t file);

/* The process, of another task, that has the KFD's address space in this file; nr_processes: none. */
size_t files_owner(const struct survey *survey, size_t file);

#endif
