/* What an amendment is judged by, as the core knows it. */
#ifndef DAEMON_CORE_AMEND_H
#define DAEMON_CORE_AMEND_H

#include "daemon/core/core.h"

/* O(tasks). False when there is no such program. */
bool core_access_get(const struct core *c, uint32_t program, struct core_access *out);

#endif
