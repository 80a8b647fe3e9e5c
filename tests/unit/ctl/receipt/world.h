/* A receipt of the fixture's program, exported into a folder of its own. */
#ifndef TESTS_UNIT_CTL_RECEIPT_WORLD_H
#define TESTS_UNIT_CTL_RECEIPT_WORLD_H

#include "ctl/receipt/export.h"
#include "tests/unit/ctl/receipt/fixture.h"

struct world {
    char *folder; /* everything lies in it */
    char *program;
    struct export_made made;
};

/* For a group's set-up and tear-down: *state is a struct world; `template` ends in six X. */
int world_make(const struct fixture *f, void **state);
int world_drop(void **state);

#endif
