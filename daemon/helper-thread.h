/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* Small threads beside the loop, for calls that change the thread that makes them. */

#include <pthread.h>

/* Starts fn on a joinable thread with a small stack and all signals blocked (they belong to the loop, which may not have blocked them yet). 0 or negative errno. */
int helper_thread_start(pthread_t *ret, void *(*fn)(void *userdata), void *userdata);
