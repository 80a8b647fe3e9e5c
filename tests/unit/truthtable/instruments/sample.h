/* A program from text with made-up scores, and what its instruments say. Everything aborts the test
 * on failure. */
#ifndef TESTS_UNIT_TRUTHTABLE_INSTRUMENTS_SAMPLE_H
#define TESTS_UNIT_TRUTHTABLE_INSTRUMENTS_SAMPLE_H

#include <cjson/cJSON.h>

#include "prereg/program/program.h"
#include "truthtable/evidence/evidence.h"

/* Factors arch = dense, moe and seed = 1, 2, 3, stages train and score, measures acc (of score,
 * with chance .25, floor .3, 1000 items) and loss (of train, not counted), contrast arch = moe -
 * dense, the binding counter k; `more` is appended: instruments, forecasts. */
#define TOLD_PROGRAM                                                                               \
    "[program]\nname = \"computed\"\nschema = 1\n"                                                 \
    "[[factor]]\nname = \"arch\"\nlevels = [\"dense\", \"moe\"]\n"                                 \
    "[[factor]]\nname = \"seed\"\nlevels = [1, 2, 3]\nreplicate = true\n"                          \
    "[stage.train]\ncommand = [\"./w\"]\n"                                                         \
    "[stage.score]\nafter = [\"train\"]\ncommand = [\"./w\"]\n"                                    \
    "[measure]\n"                                                                                  \
    "acc = { metric = \"score.acc\", items = 1000, chance = 0.25, floor = 0.3 }\n"                 \
    "loss = { metric = \"train.loss\", better = \"lower\", counted = false }\n"                    \
    "text = { metric = \"train.loss:text\", better = \"lower\", counted = false }\n"               \
    "code = { metric = \"train.loss:code\", better = \"lower\", counted = false }\n"               \
    "raw = { metric = \"score.raw\", counted = false }\n"                                          \
    "[contrast]\narch = { between = { arch = [\"moe\", \"dense\"] } }\n"                           \
    "[counter]\nk = { contrast = \"arch\", clears = \"every_cell\", binds = true }\n"              \
    "[[input]]\nname = \"cleared\"\nlevels = [[\"yes\", \"counter.k == 1\"], [\"no\", "            \
    "\"otherwise\"]]\n"                                                                            \
    "[table]\ninputs = [\"cleared\"]\nrows = [[\"yes\", \"O1\"], [\"no\", \"O2\"]]\n"              \
    "[outcome]\nO1 = { prior = 0.4, title = \"a\" }\nO2 = { prior = 0.5, title = \"b\" }\n"

struct sample_program {
    struct plan_program *p;
    struct evidence e;
    const char *folder;      /* or NULL */
    const cJSON *amendments; /* or NULL */
    const cJSON *provenance; /* or NULL */
};

/* All tasks done, without values. */
void sample_open(struct sample_program *t, const char *toml);
void sample_close(struct sample_program *t);
/* By the name of a measure; by stage and name of a fact. */
void sample_metric(struct sample_program *t, const char *cell, const char *measure, double v);
void sample_fact(struct sample_program *t, const char *cell, const char *fact, double v);
void sample_fact_null(struct sample_program *t, const char *cell, const char *fact,
                      const char *why);
/* The same measure in all six cells of TOLD_PROGRAM: dense 1, 2, 3, then moe. */
void sample_cells(struct sample_program *t, const char *measure, const double v[6]);

/* instruments.json; the caller deletes it. */
cJSON *sample_compute(const struct sample_program *t);
/* Members on the way: "instruments.bayes.measures.0.cells.2.bf10": keys, indices of arrays, and
 * names of instruments. */
const cJSON *sample_at(const cJSON *computed, const char *path);
void sample_expect(const cJSON *computed, const char *path, double v, double relative);
void sample_expect_text(const cJSON *computed, const char *path, const char *text);
void sample_expect_truth(const cJSON *computed, const char *path, bool v);
void sample_expect_null(const cJSON *computed, const char *path);

#endif
