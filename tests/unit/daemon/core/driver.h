/* Drives one core by hand and writes what it answers as text. */
#ifndef TESTS_UNIT_DAEMON_CORE_DRIVER_H
#define TESTS_UNIT_DAEMON_CORE_DRIVER_H

#include "base/strbuf.h"
#include "daemon/core/core.h"
#include "daemon/core/explain.h"

struct driver {
    struct core *core;
    struct core_out out;
    struct strbuf trace;
    int64_t now_ms;
};

/* Backoff from 1 s to 8 s. */
void driver_init(struct driver *d, uint32_t cores);
void driver_release(struct driver *d);
/* Steps at now_ms; appends "<time> <event>", then its rows and acts, two spaces before each. */
void driver_step(struct driver *d, struct core_event ev);
/* The usual ones. */
void driver_add(struct driver *d, uint32_t program, const struct core_plan *plan);
void driver_at(struct driver *d, enum core_event_kind kind, uint32_t task, uint32_t no);
void driver_exit(struct driver *d, uint32_t task, uint32_t no, int code);
void driver_end(struct driver *d, uint32_t task, uint32_t no, enum end_reason reason);
void driver_checked(struct driver *d, uint32_t task, uint32_t no, enum core_result_check result);
void driver_probed(struct driver *d, uint32_t task, uint32_t no, enum core_health health);
void driver_said(struct driver *d, uint32_t task, uint32_t no, int64_t from, int64_t done);
/* Whether the last step's acts hold one of this kind. */
bool driver_did(const struct driver *d, enum core_act_kind kind);
struct task_row driver_row(const struct driver *d, uint32_t task);

#endif
