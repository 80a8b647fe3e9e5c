/* A store in a scratch folder with one submitted program of three cells, and a walker of its tasks:
 * the set-up of tests of the store. fixture_begin and fixture_end also serve a fixture on the
 * stack. */
#ifndef TESTS_UNIT_STATE_FIXTURE_H
#define TESTS_UNIT_STATE_FIXTURE_H

#include "tests/unit/state/support.h"

struct fixture {
    char *dir;
    struct plan_program *program;
    struct store *store;
    uint32_t no;
    struct walker w;
};

void fixture_begin(struct fixture *f);
void fixture_end(struct fixture *f);

/* For cmocka: a fixture on the heap. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* Opens the store of the folder; the caller has closed the one before. Fails the test on an error.
 */
void fixture_open(struct fixture *f);
void fixture_reopen(struct fixture *f);

/* One transaction; fails the test on an error. */
void fixture_commit(struct fixture *f, const struct state_row *rows, size_t n);

/* The text of journal.jsonl; the caller frees it. */
char *fixture_journal(const struct fixture *f);

#endif
