/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For tests linked with -Wl,--wrap=NAME: a call of NAME that fails when hit(NAME), of the
 * including file, says so. @args: the parameters in parentheses; @pass: their names likewise.
 */
#ifndef WRAP_H
#define WRAP_H

#define WRAP(type, name, args, pass, failure) \
	type __real_##name args;              \
	type __wrap_##name args               \
	{                                     \
		if (hit(#name))               \
			return failure;       \
		return __real_##name pass;    \
	}

#endif
