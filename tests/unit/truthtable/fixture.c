#include "tests/unit/truthtable/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"

struct program *fixture_program(const char *toml)
{
    struct program *p = NULL;
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

struct program *fixture_program_file(const char *relative)
{
    char *path = path_join(TEST_SOURCE_DIR, relative);
    struct strbuf text = STRBUF_INIT;
    struct err err;
    if (file_read(path, (size_t)1 << 20, &text, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    struct program *p = fixture_program(text.buf);
    strbuf_release(&text);
    free(path);
    return p;
}

void fixture_rules(const struct program *p, struct rules *out)
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
