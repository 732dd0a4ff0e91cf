/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* The terminal while top has it: its own screen, keys without Enter, and everything as it was afterwards, whatever ends the program. */

#include "policies/util.h"

/* Takes the terminal (standard input and output). Returns 0 or negative errno (-ENOTTY). */
int terminal_enter(void);
/* Gives it back; safe to call again. */
void terminal_leave(void);
/* Size now; 80 x 24 where the terminal does not say. */
void terminal_size(size_t *ret_width, size_t *ret_height);

typedef enum Key { KEY_NONE = 0, KEY_QUIT = 0x100, KEY_RESIZE, KEY_UP, KEY_DOWN, KEY_PAGE_UP, KEY_PAGE_DOWN, KEY_HOME, KEY_END, KEY_ESCAPE, KEY_ENTER, KEY_BACKSPACE } Key;

/* Waits at most usec for a key or a signal: a byte's value (UTF-8 comes byte by byte) or a Key. Ctrl-C and SIGTERM are KEY_QUIT, Ctrl-Z stops the
 * program with the terminal given back and comes back as KEY_RESIZE. */
int terminal_wait(uint64_t usec);
/* For batch: waits usec; true when the program is to end. */
bool terminal_sleep(uint64_t usec);
