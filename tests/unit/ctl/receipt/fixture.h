/* The folder of an executed program as the daemon leaves it, made up: a journal by the real store,
 * results, verdict by the real engine, provenance. Values are a fixed function of cell and metric;
 * its last evaluation of the last cell is blocked, and one attempt of the first was resumed. */
#ifndef TESTS_UNIT_CTL_RECEIPT_FIXTURE_H
#define TESTS_UNIT_CTL_RECEIPT_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define FIXTURE_INSTRUCTIONS "avx512" /* of every accepted attempt */

struct fixture {
    size_t n_seeds;   /* two cells each */
    size_t n_evals;   /* stages after train */
    size_t n_metrics; /* of each evaluation; as many measures */
    bool other_model; /* the first evaluation says that it read the model of the second cell */
    bool our_workers; /* the commands are those of our workers, and a training leaves a snapshot */
    bool other_data;  /* the first training says that it read other data than the locked */
    const char *key;  /* signs the lock; NULL: nobody does */
    const char *other_run; /* [run] from the last task's end on; NULL: it is never changed */
};

/* Everything lies under `folder`, which is made; *program is the program's own, for the caller to
 * free. */
int fixture_make(const struct fixture *f, const char *folder, char **program,
                 struct err *err) MUST_CHECK;

#endif
