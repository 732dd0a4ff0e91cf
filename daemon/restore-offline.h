/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once
/* `cpuclassd --restore`: puts back what an earlier daemon left behind (it was killed, or the package is being removed). */

#include "daemon/manager.h"

/* Does it and prints one line for people. Returns an exit code: 0 all is back, 1 something failed, 3 a daemon runs. */
int restore_offline(const ManagerConfig *config);
