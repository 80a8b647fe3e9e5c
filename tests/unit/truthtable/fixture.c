#include "tests/unit/truthtable/fixture.h"
#include "tests/unit/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/text.h"
#include "prereg/load/program_load.h"
#include "tests/unit/sparse.h"

struct plan_program *fixture_program(const char *toml)
{
    struct plan_program *p = NULL;
    struct diag diag;
    struct err err;
    diag_init(&diag, "grid.toml");
    int rc = program_parse(toml, strlen(toml), "grid.toml", &p, &diag, &err);
    if (rc != 0) {
        diag_print(&diag, stderr);
        fail_msg("program_parse: %s", err.msg);
    }
    diag_release(&diag);
    return p;
}

struct plan_program *fixture_program_file(const char *relative)
{
    char *path = path_join(TEST_SOURCE_DIR, relative);
    struct strbuf text = STRBUF_INIT;
    struct err err;
    if (file_read(path, (size_t)1 << 20, &text, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    struct plan_program *p = fixture_program(text.buf);
    strbuf_release(&text);
    free(path);
    return p;
}

void fixture_rules(const struct plan_program *p, struct rules *out)
{
    struct diag diag;
    struct err err;
    diag_init(&diag, "grid.toml");
    if (rules_compile(p, out, &diag, &err) != 0) {
        diag_print(&diag, stderr);
        fail_msg("rules_compile: %s", err.msg);
    }
    diag_release(&diag);
}

void fixture_all_done(struct evidence *e)
{
    for (size_t i = 0; i < program_n_tasks(e->program); i++) {
        evidence_set_task(e, i / e->program->n_stages, i % e->program->n_stages, TASK_END_DONE,
                          NULL);
    }
}

void fixture_score(struct evidence *e, size_t cell, const char *measure, double value, int64_t n)
{
    size_t m = program_find_measure(e->program, measure);
    assert_true(m != INDEX_NONE);
    struct evidence_value v = {.state = VALUE_KNOWN, .value = value, .has_n = n > 0, .n = n};
    evidence_add_metric(e, cell, e->program->measures[m].stage, e->program->measures[m].metric, &v);
}

void fixture_evaluate(struct evidence *e, const struct rules *rules, struct table_evaluation *ev)
{
    struct coverage *coverage = arena_alloc(&e->arena, sizeof(*coverage));
    struct table_reading *reading = arena_alloc(&e->arena, sizeof(*reading));
    coverage_init(coverage, e, &e->arena);
    reading_of_evidence(reading, e, rules, coverage, &e->arena);
    evaluation_run(ev, rules, reading, &e->arena);
}

void fixture_head_text(struct strbuf *out)
{
    strbuf_adds(out, "[program]\nname = \"t\"\nschema = 1\nquestion = \"?\"\n"
                     "[[factor]]\nname = \"arch\"\nlevels = [\"x\", \"y\"]\n");
}

void fixture_table_text(size_t n_inputs, const size_t *n_levels, const size_t *outcomes,
                        size_t n_outcomes, struct strbuf *out)
{
    size_t n_rows = 1;
    strbuf_adds(out, "[table]\ninputs = [");
    for (size_t i = 0; i < n_inputs; i++) {
        strbuf_addf(out, "%s\"i%zu\"", i > 0 ? ", " : "", i);
        n_rows *= n_levels[i];
    }
    strbuf_adds(out, "]\nrows = [\n");
    for (size_t r = 0; r < n_rows; r++) {
        size_t rest = r;
        size_t stride = n_rows;
        strbuf_adds(out, "[");
        for (size_t i = 0; i < n_inputs; i++) {
            stride /= n_levels[i];
            strbuf_addf(out, "\"l%zu\", ", rest / stride);
            rest %= stride;
        }
        strbuf_addf(out, "\"O%zu\"],\n", outcomes[r]);
    }
    strbuf_adds(out, "]\n[outcome]\n");
    for (size_t k = 0; k < n_outcomes; k++) {
        strbuf_addf(out, "O%zu = { prior = 0.3, title = \"%zu\" }\n", k, k);
    }
}

uint64_t fixture_seed(void)
{
    const char *given = getenv("PREREGD_SEED");
    int64_t seed = clock_wall().ms;
    struct err err;
    if (given != NULL && text_to_int(given, 0, INT64_MAX, &seed, &err) != 0) {
        fail_msg("PREREGD_SEED: %s", err.msg);
    }
    print_message("PREREGD_SEED=%lld\n", (long long)seed);
    return (uint64_t)seed;
}

size_t fixture_cases(size_t n)
{
    return n / sparse_part();
}
