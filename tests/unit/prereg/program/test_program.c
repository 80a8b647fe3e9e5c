/* The three programs of the design as they load: grid, parameters, defaults, names. */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/load/program_load.h"
#include "prereg/program/cell_name.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

#define FIXTURES TEST_SOURCE_DIR "/tests/unit/prereg/fixtures/"

static struct plan_program *load_fixture(const char *name)
{
    char *path = xasprintf(FIXTURES "%s.toml", name);
    struct plan_program *p = NULL;
    struct diag diag;
    struct err err = {0};
    diag_init(&diag, path);
    if (program_load(path, &p, &diag, &err) != 0) {
        diag_print(&diag, stderr);
        fail_msg("%s", err.msg);
    }
    assert_int_equal(diag.n_items, 0);
    diag_release(&diag);
    free(path);
    return p;
}

static void assert_params(const struct plan_program *p, const char *stage, const char *cell,
                          const char *expected)
{
    size_t s = program_find_stage(p, stage);
    size_t c = program_find_cell(p, cell);
    assert_int_not_equal(s, INDEX_NONE);
    assert_int_not_equal(c, INDEX_NONE);
    cJSON *params = program_task_params(p, s, c);
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    assert_int_equal(json_canonical(params, &text, &err), 0);
    assert_string_equal(text.buf, expected);
    strbuf_release(&text);
    cJSON_Delete(params);
}

static void test_below_the_floor_grid(void **state)
{
    (void)state;
    struct plan_program *p = load_fixture("below_the_floor");
    assert_string_equal(p->name, "below_the_floor");
    assert_int_equal(p->n_cells, 12);
    assert_int_equal(p->n_conditions, 4);
    assert_int_equal(program_n_tasks(p), 60);
    assert_string_equal(p->cells[0].name, "arch=dense,lr=0.001,seed=42");
    assert_string_equal(p->cells[1].name, "arch=dense,lr=0.001,seed=43");
    assert_string_equal(p->cells[3].name, "arch=dense,lr=0.002,seed=42");
    assert_string_equal(p->cells[11].name, "arch=moe,lr=0.002,seed=44");
    assert_string_equal(p->cells[11].folder, p->cells[11].name);
    assert_string_equal(p->conditions[1].name, "arch=dense,lr=0.002");
    assert_int_equal(p->conditions[1].first_cell, 3);
    assert_int_equal(p->conditions[1].levels[2], INDEX_NONE);
    for (size_t c = 0; c < p->n_cells; c++) {
        assert_int_equal(p->cells[c].index, c);
        assert_int_equal(p->cells[c].condition, c / 3);
        assert_int_equal(program_find_cell(p, p->cells[c].name), c);
    }
    assert_int_equal(program_find_cell(p, "arch=moe"), INDEX_NONE);
    /* What a user writes is matched in any order, what a file says is not. */
    assert_int_equal(program_find_cell(p, "seed=42,lr=0.002,arch=dense"), INDEX_NONE);
    assert_int_equal(program_match_cell(p, "seed=42,lr=0.002,arch=dense"), 3);
    assert_int_equal(program_match_cell(p, "arch=dense,lr=0.002,seed=42"), 3);
    static const char *const others[] = {"",
                                         ",",
                                         "seed=42,lr=0.002",
                                         "seed=42,lr=0.002,arch=dens",
                                         "seed=42,seed=42,arch=dense",
                                         "seed=42,lr=0.002,arch=dense,",
                                         "seed=42,lr=0.002,arch=densee"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        CHECK_ROW("%s", others[i]);
        assert_int_equal(program_match_cell(p, others[i]), INDEX_NONE);
    }
    assert_true(cell_name_has("arch=dense,lr=0.002,seed=42", "seed=42,arch=dense"));
    assert_false(cell_name_has("arch=dense,lr=0.002,seed=42", "seed=4"));
    program_free(p);
}

static void test_below_the_floor_rules(void **state)
{
    (void)state;
    struct plan_program *p = load_fixture("below_the_floor");
    assert_int_equal(p->n_stages, 5);
    assert_int_equal(p->n_measures, 5);
    const struct plan_measure *gsm8k = &p->measures[program_find_measure(p, "gsm8k")];
    assert_string_equal(gsm8k->metric, "exact_match:strict");
    assert_string_equal(p->stages[gsm8k->stage].name, "gsm8k");
    assert_false(gsm8k->counted);
    assert_string_equal(gsm8k->best_arm_text, "0.1");
    const struct plan_measure *mmlu = &p->measures[program_find_measure(p, "mmlu")];
    assert_true(mmlu->counted && mmlu->has_floor && mmlu->has_items);
    assert_int_equal(mmlu->items, 14042);
    assert_string_equal(mmlu->floor_text, "0.27");
    assert_true(p->measures[program_find_measure(p, "loss")].lower_better);
    assert_string_equal(p->counters[p->binding_counter].name, "k");
    const struct plan_contrast *arch = &p->contrasts[program_find_contrast(p, "arch")];
    assert_int_equal(arch->over, OVER_CLEARED);
    assert_string_equal(p->factors[arch->factor].levels[arch->level_a].text, "moe");
    assert_int_equal(p->n_rows, 16);
    assert_string_equal(p->outcomes[p->rows[3].outcome].name, "O4");
    assert_true(p->validity[0].timing);
    assert_int_equal(p->validity[1].on_fail, ON_FAIL_VOID);
    assert_int_equal(p->n_instruments, 4);
    assert_string_equal(p->instruments[2].kind, "mixed");
    assert_int_equal(p->n_forecasts, 2);
    assert_int_equal(p->n_apparatus, 2); /* and its second run */
    assert_string_equal(p->apparatus[1].name, "reference@end");
    assert_int_equal(p->apparatus[0].first, INDEX_NONE);
    assert_int_equal(p->apparatus[1].first, 0);
    assert_true(p->exclusion_budget > 0.0999 && p->exclusion_budget < 0.1001);
    program_free(p);
}

static void test_counted_and_sealed_stages(void **state)
{
    (void)state;
    struct plan_program *p = load_fixture("below_the_floor");
    size_t train = program_find_stage(p, "train");
    assert_true(program_stage_is_counted(p, train));
    assert_false(program_stage_is_sealed(p, train)); /* its loss is not counted */
    assert_true(program_stage_is_sealed(p, program_find_stage(p, "mmlu")));
    assert_false(program_stage_is_counted(p, program_find_stage(p, "gsm8k")));
    program_free(p);
}

static void test_run_settings(void **state)
{
    (void)state;
    struct plan_program *p = load_fixture("below_the_floor");
    const struct stage_run *train = &p->stages[program_find_stage(p, "train")].run;
    assert_int_equal(train->memory_bytes, INT64_C(8) << 30);
    assert_int_equal(train->crashes, 5);
    assert_int_equal(train->attempts, 50);
    assert_int_equal(train->checkpoint_ms, 0);
    assert_int_equal(p->stages[program_find_stage(p, "mmlu")].run.crashes, 3);
    program_free(p);
    p = program_of(SMALL_PROGRAM, NULL);
    assert_int_equal(p->run.slots, 2);
    assert_int_equal(p->stages[0].run.checkpoint_ms, 300000);
    assert_int_equal(p->stages[0].run.deadline_ms[1], 600000);
    assert_int_equal(p->stages[0].run.deadline_ms[0], 0);
    program_free(p);
}

static void test_params(void **state)
{
    (void)state;
    struct plan_program *p = load_fixture("below_the_floor");
    assert_params(p, "train", "arch=dense,lr=0.002,seed=43",
                  "{\"batch_tokens\":2048,\"context\":1024,\"ffn\":768,\"heads\":8,"
                  "\"horizon\":{\"contract\":\"fixed\",\"tokens\":10240000},\"layers\":8,"
                  "\"lr\":0.002,\"mix\":{\"math\":0.12,\"python\":0.3,\"stories\":0.58},"
                  "\"schedule\":{\"floor\":0.1,\"kind\":\"cosine\",\"warmup\":0.02},\"seed\":43,"
                  "\"tokenizer\":\"vocabulary\",\"vocab\":32768,\"width\":512}");
    assert_params(p, "mmlu", "arch=moe,lr=0.001,seed=42",
                  "{\"data\":\"mmlu\",\"shots\":5,\"task\":\"mmlu\"}");
    program_free(p);
}

static void test_substitution_keeps_types_at_any_depth(void **state)
{
    (void)state;
    char *text = text_replace(SMALL_PROGRAM, "seed = \"$seed\"",
                              "seed = \"$seed\", deep = [{ a = \"$arch\" }, [\"$seed\", \"$5\"]], "
                              "plain = \"a $seed\"");
    struct plan_program *p = program_of(text, NULL);
    assert_params(p, "train", "arch=moe,seed=2",
                  "{\"data\":\"corpus\",\"deep\":[{\"a\":\"moe\"},[2,\"$5\"]],\"experts\":4,"
                  "\"lr\":0.001,\"plain\":\"a $seed\",\"seed\":2}");
    assert_params(p, "score", "arch=moe,seed=2", "{}");
    program_free(p);
    free(text);
}

/* A level's params replace members at the top level; later factors win; keys of number levels may
 * be written in any form. */
static void test_level_overrides(void **state)
{
    (void)state;
    char *one =
        text_replace(SMALL_PROGRAM, "moe = { experts = 4 }\n",
                     "moe = { lr = 5, h = { b = 2 } }\n[stage.train.when.seed]\n\"1.0\" = { "
                     "lr = 7 }\n");
    char *text = text_replace(one, "lr = 1e-3,", "lr = 1e-3, h = { a = 1 },");
    struct plan_program *p = program_of(text, NULL);
    assert_params(p, "train", "arch=moe,seed=1",
                  "{\"data\":\"corpus\",\"h\":{\"b\":2},\"lr\":7,\"seed\":1}");
    assert_params(p, "train", "arch=moe,seed=2",
                  "{\"data\":\"corpus\",\"h\":{\"b\":2},\"lr\":5,\"seed\":2}");
    assert_params(p, "train", "arch=dense,seed=2",
                  "{\"data\":\"corpus\",\"h\":{\"a\":1},\"lr\":0.001,\"seed\":2}");
    program_free(p);
    free(text);
    free(one);
}

static void test_other_programs(void **state)
{
    (void)state;
    struct plan_program *p = load_fixture("active_vs_total");
    assert_int_equal(p->n_cells, 9);
    assert_int_equal(p->n_rows, 9);
    assert_int_equal(p->binding_counter, INDEX_NONE);
    program_free(p);
    p = load_fixture("holding_fixed");
    const struct plan_contrast *shift = &p->contrasts[program_find_contrast(p, "shift")];
    assert_true(shift->is_difference);
    assert_string_equal(p->contrasts[shift->of].name, "at_total");
    assert_string_equal(p->contrasts[shift->minus].name, "at_active");
    assert_int_equal(p->contrasts[shift->of].n_where, 1);
    program_free(p);
}

static void test_folders(void **state)
{
    (void)state;
    static const struct {
        const char *level;
        const char *folder;
    } cases[] = {
        {"a/b", "arch=a%2Fb,seed=1"},
        {"..", "arch=..,seed=1"},
        {"a b", "arch=a%20b,seed=1"},
        {"50%", "arch=50%25,seed=1"},
        {"a\\u001b[1m", "arch=a%1B%5B1m,seed=1"},
        {"\xC3\xA9", "arch=\xC3\xA9,seed=1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].level);
        char *level = xasprintf("\"%s\", \"moe\"", cases[i].level);
        char *one = text_replace(SMALL_PROGRAM, "\"dense\", \"moe\"", level);
        char *now = xasprintf("arch = [\"moe\", \"%s\"]", cases[i].level);
        char *text = text_replace(one, "arch = [\"moe\", \"dense\"]", now);
        struct plan_program *p = program_of(text, NULL);
        assert_string_equal(p->cells[0].folder, cases[i].folder);
        program_free(p);
        free(text);
        free(now);
        free(one);
        free(level);
    }
}

static void test_long_folder(void **state)
{
    (void)state;
    char level[401];
    memset(level, 'x', 400);
    level[400] = '\0';
    char *one = text_replace(SMALL_PROGRAM, "[\"dense\"", "[\"LEVEL\"");
    char *two = text_replace(one, "\"LEVEL\"", "\"moe2\", \"LEVEL\"");
    char *three = text_replace(two, "LEVEL", level);
    char *text = text_replace(three, "\"moe\", \"dense\"", "\"moe\", \"moe2\"");
    struct plan_program *p = program_of(text, NULL);
    const struct plan_cell *a = &p->cells[2];
    const struct plan_cell *b = &p->cells[3];
    assert_true(strlen(a->name) > 400);
    assert_true(strlen(a->folder) <= 200);
    assert_string_not_equal(a->folder, b->folder);
    assert_memory_equal(a->folder, "arch=xxx", 8);
    program_free(p);
    free(text);
    free(three);
    free(two);
    free(one);
}

/* A copy of the file elsewhere keeps the meaning of its relative paths. */
static void test_load_from_folder(void **state)
{
    (void)state;
    char *folder = scratch_make();
    char *path = scratch_write(folder, "grid.toml", SMALL_PROGRAM, 0600);
    struct plan_program *p = NULL;
    struct diag diag;
    struct err err = {0};
    diag_init(&diag, path);
    assert_int_equal(program_load_from(path, "/somewhere/else", &p, &diag, &err), 0);
    assert_string_equal(p->data[0].abs_path, "/somewhere/else/corpus.txt");
    program_free(p);
    assert_int_equal(program_load(path, &p, &diag, &err), 0);
    assert_string_equal(p->folder, folder);
    program_free(p);
    assert_int_equal(program_load("/nowhere/grid.toml", &p, &diag, &err), ERR_NOT_FOUND);
    assert_null(p);
    assert_int_equal(program_load(folder, &p, &diag, &err), ERR_INVALID);
    diag_release(&diag);
    free(path);
    scratch_remove(folder);
}

/* A script that an interpreter is to run is a file as well, behind options of one letter. */
static void test_missing_script(void **state)
{
    static const struct {
        const char *command;
        bool is_fault;
    } rows[] = {
        {"\"sh\", \"trian.sh\"", true},          {"\"sh\", \"-u\", \"trian.sh\"", true},
        {"\"sh\", \"train.sh\"", false},         {"\"sh\", \"-c\", \"./run.sh x\"", false},
        {"\"sh\", \"/nowhere/x.sh\"", false},    {"\"sh\", \"trian\"", false},
        {"\"sh\", \"--out\", \"x.sh\"", false},  {"\"sh\", \"-c\", \"./run.sh\"", false},
        {"\"sh\", \"cd x && ./run.sh\"", false}, {"\"/usr/bin/python3.11\", \"trian.sh\"", true},
        {"\"./worker.sh\", \"trian.sh\"", false}};
    (void)state;
    char *folder = scratch_make();
    free(scratch_write(folder, "train.sh", "", 0600));
    free(scratch_write(folder, "corpus.txt", "x", 0600));
    free(scratch_write(folder, "worker.sh", "#!/bin/sh\n", 0700));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%s", rows[i].command);
        char *text = text_replace(SMALL_PROGRAM, "\"./worker.sh\", \"--quick\"", rows[i].command);
        struct plan_program *p = program_of(text, folder);
        struct diag diag;
        diag_init(&diag, "grid.toml");
        program_check_files(p, &diag);
        assert_int_equal(diag.n_errors, rows[i].is_fault);
        if (rows[i].is_fault) {
            assert_non_null(strstr(diag.items[0].msg, "trian.sh does not exist"));
            assert_int_equal(diag.items[0].line, 14);
        }
        diag_release(&diag);
        program_free(p);
        free(text);
    }
    scratch_remove(folder);
}

static void test_missing_files(void **state)
{
    (void)state;
    char *folder = scratch_make();
    struct plan_program *p = program_of(SMALL_PROGRAM, folder);
    struct diag diag;
    diag_init(&diag, "grid.toml");
    program_check_files(p, &diag);
    assert_int_equal(diag.n_errors, 3); /* the data, and the worker of two stages */
    assert_non_null(strstr(diag.items[0].msg, "corpus.txt does not exist"));
    assert_int_equal(diag.items[0].line, 13);
    assert_non_null(strstr(diag.items[1].msg, "worker.sh does not exist"));
    diag_release(&diag);
    free(scratch_write(folder, "corpus.txt", "x", 0600));
    free(scratch_write(folder, "worker.sh", "#!/bin/sh\n", 0700));
    diag_init(&diag, "grid.toml");
    program_check_files(p, &diag);
    assert_int_equal(diag.n_errors, 0);
    diag_release(&diag);
    program_free(p);
    scratch_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_below_the_floor_grid),
        cmocka_unit_test(test_below_the_floor_rules),
        cmocka_unit_test(test_counted_and_sealed_stages),
        cmocka_unit_test(test_run_settings),
        cmocka_unit_test(test_params),
        cmocka_unit_test(test_substitution_keeps_types_at_any_depth),
        cmocka_unit_test(test_level_overrides),
        cmocka_unit_test(test_other_programs),
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_long_folder),
        cmocka_unit_test(test_load_from_folder),
        cmocka_unit_test(test_missing_files),
        cmocka_unit_test(test_missing_script),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
