/* Copies of random results against the rule that compares every pair, and the number of pairs that
 * are compared when there are many cells. */
#include <stdlib.h>

#include "base/rng.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/truthtable/fixture.h"
#include "truthtable/evidence/copy_search.h"
#include "truthtable/evidence/measure_scores.h"
#include "truthtable/evidence/task_params.h"

/* Seven stages in a row and one beside them; 24 cells. Stages that name one factor ask
 * the cells of the other the same. */
static const char toml[] =
    "[program]\nname = \"t\"\nschema = 1\nquestion = \"?\"\n"
    "[[factor]]\nname = \"arch\"\nlevels = [\"x\", \"y\", \"z\"]\n"
    "[[factor]]\nname = \"seed\"\nlevels = [1, 2, 3, 4, 5, 6, 7, 8]\nreplicate = true\n"
    "[stage.s0]\ncommand = [\"w\"]\nparams = { s = \"$seed\" }\n"
    "[stage.s1]\ncommand = [\"w\"]\nafter = [\"s0\"]\nparams = { a = \"$arch\", s = \"$seed\" }\n"
    "[stage.alone]\ncommand = [\"w\"]\nafter = [\"s0\"]\nparams = { s = \"$seed\" }\n"
    "[stage.s2]\ncommand = [\"w\"]\nafter = [\"s1\"]\nparams = { a = \"$arch\" }\n"
    "[stage.s3]\ncommand = [\"w\"]\nafter = [\"s2\"]\n"
    "[stage.s4]\ncommand = [\"w\"]\nafter = [\"s3\"]\n"
    "[stage.s5]\ncommand = [\"w\"]\nafter = [\"s4\"]\nparams = { s = \"$seed\" }\n"
    "[stage.s6]\ncommand = [\"w\"]\nafter = [\"s5\"]\n"
    "[measure]\nm1 = { metric = \"s1.m\" }\nm3 = { metric = \"s3.m\" }\nm6 = { metric = \"s6.m\" "
    "}\n"
    "[contrast]\narch = { between = { arch = [\"y\", \"x\"] } }\n"
    "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"contrast.arch[m6].mean > -1\"], "
    "[\"b\", \"otherwise\"]]\n"
    "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"A\"], [\"b\", \"B\"]]\n"
    "[outcome]\nA = { prior = 0.5, title = \"a\" }\nB = { prior = 0.4, title = \"b\" }\n";

static uint64_t print_of(const struct evidence *e, size_t cell, size_t stage)
{
    const struct evidence_task *t = &e->tasks[cell * e->program->n_stages + stage];
    return t->end == TASK_END_DONE ? t->print : 0;
}

/* The first cell with the same result; the cell itself when it is the first or has none. */
static size_t first_of(const struct evidence *e, size_t cell, size_t stage)
{
    size_t first = 0;
    while (print_of(e, cell, stage) == 0 || print_of(e, first, stage) != print_of(e, cell, stage)) {
        if (first == cell) {
            break;
        }
        first++;
    }
    return first;
}

static bool differ(const struct evidence *e, const struct stage_set *before, size_t first,
                   size_t last, const size_t cells[2])
{
    bool differ = false;
    for (size_t s = first + 1; s < last; s++) {
        const uint64_t a = e->tasks[cells[0] * e->program->n_stages + s].print;
        const uint64_t b = e->tasks[cells[1] * e->program->n_stages + s].print;
        differ = differ || (stage_set_has(&before[s], first) && stage_set_has(&before[last], s) &&
                            a != 0 && b != 0 && a != b);
    }
    return differ;
}

/* Fills [measure * n_cells + cell]: of which cell the score is a copy, or INDEX_NONE. */
static void every_pair(const struct evidence *e, const struct score *scores, size_t *copied)
{
    const struct plan_program *p = e->program;
    struct stage_set *before = asked_before(p);
    bool *kept = xcalloc(p->n_cells, sizeof(*kept));
    for (size_t i = 0; i < p->n_measures * p->n_cells; i++) {
        copied[i] = INDEX_NONE;
    }
    for (size_t i = 0; i < p->n_stages * p->n_measures; i++) {
        const size_t stage = i / p->n_measures;
        const size_t measure = i % p->n_measures;
        const size_t own = p->measures[measure].stage;
        const struct score *of = &scores[measure * p->n_cells];
        size_t *copy = &copied[measure * p->n_cells];
        struct stage_set set = {0};
        stage_set_add(&set, stage);
        for (size_t c = 0; c < p->n_cells && stage_set_has(&before[own], stage); c++) {
            const size_t first = first_of(e, c, stage);
            size_t found = own == stage && first != c ? first : INDEX_NONE;
            for (size_t k = 0; own != stage && k < c && found == INDEX_NONE; k++) {
                const struct digest asked[2] = {asked_digest(p, &set, c), asked_digest(p, &set, k)};
                const size_t cells[2] = {c, k};
                found = kept[k] && print_of(e, c, stage) != 0 && first_of(e, k, stage) == first &&
                                of[k].value.lo == of[c].value.lo &&
                                !digest_equal(&asked[0], &asked[1]) &&
                                !differ(e, before, stage, own, cells)
                            ? k
                            : INDEX_NONE;
            }
            kept[c] = found == INDEX_NONE;
            copy[c] = copy[c] == INDEX_NONE ? found : copy[c];
        }
    }
    free(kept);
    free(before);
}

static void fill(struct evidence *e, struct score *scores, struct rng *rng)
{
    const struct plan_program *p = e->program;
    const uint64_t n_prints = 1 + rng_below(rng, 3);
    const uint64_t zero_in = 2 + rng_below(rng, 12);
    uint64_t without = rng_next(rng); /* stages that have no artifact */
    without &= rng_next(rng);
    fixture_all_done(e);
    for (size_t t = 0; t < p->n_cells * p->n_stages; t++) {
        const bool none = (without >> t % p->n_stages & 1) != 0 || rng_below(rng, zero_in) == 0;
        e->tasks[t].print = none ? 0 : 1 + rng_below(rng, n_prints);
        e->tasks[t].end = rng_below(rng, 20) == 0 ? TASK_END_BLOCKED : TASK_END_DONE;
    }
    for (size_t i = 0; i < p->n_measures * p->n_cells; i++) {
        scores[i] = (struct score){.value = number_point((double)rng_below(rng, 2))};
    }
}

static void test_like_every_pair(void **state)
{
    struct plan_program *p = fixture_program(toml);
    const size_t n = p->n_measures * p->n_cells;
    struct score *scores = xcalloc(n, sizeof(*scores));
    size_t *copied = xcalloc(n, sizeof(*copied));
    struct rng rng;
    size_t n_copies = 0;
    (void)state;
    rng_seed(&rng, fixture_seed());
    for (size_t i = 0; i < fixture_cases(300); i++) {
        struct evidence e;
        struct table_reading r = {.scores = scores};
        evidence_init(&e, p);
        fill(&e, scores, &rng);
        every_pair(&e, scores, copied);
        mark_copies(&r, &e, &e.arena);
        for (size_t k = 0; k < n; k++) {
            assert_int_equal(scores[k].copy == NULL ? INDEX_NONE : scores[k].copied, copied[k]);
            n_copies += copied[k] != INDEX_NONE ? 1 : 0;
        }
        evidence_release(&e);
    }
    assert_true(n_copies > 0);
    free(copied);
    free(scores);
    program_free(p);
}

/* One result of the first stage for all cells, another of the second for each, and two scores. Of
 * some cells the second stage has no artifact, and the third has none at all. */
static void test_many_cells(void **state)
{
    enum { N_CELLS = 20000, N_STAGES = 5 };
    struct evidence_task *tasks = xcalloc(N_CELLS * N_STAGES, sizeof(*tasks));
    struct digest *asked = xcalloc(N_CELLS, sizeof(*asked));
    size_t *cells = xcalloc(N_CELLS, sizeof(*cells));
    struct copy_results results = {
        .tasks = tasks, .n_stages = N_STAGES, .n_cells = N_CELLS, .asked = asked};
    (void)state;
    for (size_t s = 1; s < 4; s++) {
        stage_set_add(&results.between, s);
    }
    for (size_t c = 0; c < N_CELLS; c++) {
        asked[c] = digest_bytes(&c, sizeof(c));
        cells[c] = c;
        tasks[c * N_STAGES].print = 1;
        tasks[c * N_STAGES + 1].print = c % 3 == 0 ? 0 : c + 1;
        tasks[c * N_STAGES + 3].print = c + 1;
    }
    struct copy_search *cs = copy_search_create(&results, cells, N_CELLS);
    for (size_t i = 0; i < N_CELLS; i++) {
        if (i == N_CELLS / 2) {
            copy_search_next_group(cs);
        }
        assert_int_equal(copy_search_find(cs, i), INDEX_NONE);
        copy_search_keep(cs, i);
    }
    assert_true(copy_search_n_compared(cs) < 4 * N_CELLS);
    copy_search_free(cs);
    free(cells);
    free(asked);
    free(tasks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_like_every_pair),
                                       cmocka_unit_test(test_many_cells)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
