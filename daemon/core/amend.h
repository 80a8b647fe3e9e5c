/* What an amendment is judged by: how far a program has run, and whether its scores were open. */
#ifndef DAEMON_CORE_AMEND_H
#define DAEMON_CORE_AMEND_H

#include "daemon/core/core.h"

/* O(tasks). False when there is no such program. */
bool core_access_get(const struct core *c, uint32_t program, struct core_access *out);

#endif
