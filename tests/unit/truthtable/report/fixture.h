/* A program's folder as the daemon leaves it, made up from a fixture's grid.toml: lock, cells with
 * results and events, verdict (computed by the real engine) and provenance. Values are a fixed
 * function of cell and measure. */
#ifndef TESTS_UNIT_TRUTHTABLE_REPORT_FIXTURE_H
#define TESTS_UNIT_TRUTHTABLE_REPORT_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct fixture {
    const char *toml;          /* in fixtures/ */
    double height;             /* of the scores: 0 at chance, 1 at the floor */
    const char *blocked_stage; /* or NULL */
    const char *blocked_cause;
    size_t n_blocked; /* its first cells */
    bool no_curves;
    bool no_provenance;
    bool unverified;
    bool unblinded;
};

/* folder is made; it must not exist. */
int fixture_make(const struct fixture *f, const char *folder, struct err *err) MUST_CHECK;

/* Amends a made folder's program: a part of its text is replaced, as of a level of access. */
struct fixture_change {
    const char *from;
    const char *to;
    const char *level;
    const char *known; /* results of checks, as JSON; NULL: none */
};
int fixture_amend(const char *folder, const struct fixture_change *change,
                  struct err *err) MUST_CHECK;
/* Sets a member of a JSON file of the folder. */
int fixture_put(const char *folder, const char *file, const char *key, const char *json,
                struct err *err) MUST_CHECK;

#endif
