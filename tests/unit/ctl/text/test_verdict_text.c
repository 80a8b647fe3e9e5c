#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/text/verdict_text.h"
#include "prereg/load/program_load.h"
#include "tests/unit/check.h"
#include "truthtable/evaluate/verdict.h"
#include "truthtable/evaluate/verdict_file.h"

static const struct term plain = {.columns = 80};

static const char sample_json[] =
    "{\"schema\":1,\"program\":\"p\",\"outcome\":\"O4\",\"title\":\"Below\",\"rows_fired\":[4,8,12,"
    "16],"
    "\"inputs\":[{\"name\":\"magnitude\",\"level\":null,\"possible\":[\"decisive\",\"small\"],"
    "\"why\":\"no measure "
    "cleared\"},{\"name\":\"cleared\",\"level\":\"0\",\"possible\":[\"0\"],\"why\":null}],"
    "\"counters\":{\"k\":[0,0],\"k_mean\":[0,2]},"
    "\"gates\":[{\"measure\":\"mmlu\",\"cell\":\"a\",\"score\":0.25,\"n\":100,\"floor\":0.27,"
    "\"cleared\":false},"
    "{\"measure\":\"mmlu\",\"cell\":\"b\",\"score\":0.28,\"n\":100,\"floor\":0.27,\"z\":0.225,"
    "\"cleared\":true}"
    ","
    "{\"measure\":\"copa\",\"cell\":\"a\",\"score\":null,\"n\":null,\"floor\":0.6,\"cleared\":null,"
    "\"why\":\"outside 0..1\"}"
    "],"
    "\"coverage\":{\"tasks\":{\"planned\":60,\"done\":48,\"blocked\":12,\"never_run\":0},"
    "\"counted\":{\"planned\":36,\"excluded\":0,\"budget\":3}},"
    "\"prior\":0.17,\"surprisal_bits\":2.556}";

static void test_bound(void **state)
{
    (void)state;
    cJSON *v = NULL;
    struct err err = {0};
    assert_int_equal(json_parse(sample_json, strlen(sample_json), &v, &err), 0);
    struct strbuf sb = STRBUF_INIT;
    verdict_text(&sb, &plain, v, NULL);
    assert_string_equal(
        sb.buf, "O4  Below\n"
                "rows fired: 4, 8, 12, 16\n"
                "prior 0.17, surprisal 2.556 bits\n"
                "\n"
                "input      level  possible         why\n"
                "magnitude  -      decisive, small  no measure cleared\n"
                "cleared    0      0                -\n"
                "\n"
                "counter k = 0\n"
                "counter k_mean = 0 to 2\n"
                "\n"
                "measure  floor  lowest  highest  best in sigma  unknown  cells that clear\n"
                "mmlu      0.27    0.25     0.28  +0.2                 0  1 of 2\n"
                "copa       0.6       -        -  -                    1  0 of 1\n"
                "best in sigma: how far the best cell is above the floor, in binomial standard "
                "errors\n"
                "\n"
                "undetermined: copa of a: outside 0..1\n"
                "\n"
                "60 tasks planned = 48 done + 12 blocked + 0 never run\n"
                "36 counted tasks planned, 0 excluded of 3 allowed\n");
    strbuf_release(&sb);
    cJSON_Delete(v);
}

static void test_void(void **state)
{
    (void)state;
    static const char text[] =
        "{\"outcome\":\"VOID\",\"title\":null,\"why\":\"4 excluded of 3 allowed\","
        "\"first_error\":{\"task\":\"a=\\u001b1/s\",\"what\":\"a=1/s: blocked (oom)\"},"
        "\"rows_fired\":[],\"prior\":null,\"surprisal_bits\":null}";
    cJSON *v = NULL;
    struct err err = {0};
    assert_int_equal(json_parse(text, strlen(text), &v, &err), 0);
    struct strbuf sb = STRBUF_INIT;
    verdict_text(&sb, &plain, v, NULL);
    assert_string_equal(sb.buf, "VOID\n4 excluded of 3 allowed\nfirst error: a=1/s: blocked (oom)\n"
                                "`preregctl explain a=?1/s` shows more\n");
    strbuf_clear(&sb);
    verdict_text(&sb, &plain, v, "p-01234567"); /* others may have a cell of that name */
    assert_non_null(
        strstr(sb.buf, "\n`preregctl explain a=?1/s --program p-01234567` shows more\n"));
    strbuf_release(&sb);
    cJSON_Delete(v);
}

/* One of a thing is not "1 things". */
static void test_one(void **state)
{
    (void)state;
    static const char text[] =
        "{\"outcome\":\"O1\",\"title\":\"a\",\"prior\":0.5,\"surprisal_bits\":1,"
        "\"coverage\":{\"tasks\":{\"planned\":1,\"done\":0,\"blocked\":0,\"never_run\":0,"
        "\"pending\":1},\"counted\":{\"planned\":1,\"excluded\":0,\"budget\":0}}}";
    cJSON *v = NULL;
    struct err err = {0};
    assert_int_equal(json_parse(text, strlen(text), &v, &err), 0);
    struct strbuf sb = STRBUF_INIT;
    verdict_text(&sb, &plain, v, NULL);
    assert_non_null(strstr(sb.buf, "prior 0.5, surprisal 1 bit\n"));
    assert_non_null(strstr(sb.buf, "\n1 task planned = 0 done + 0 blocked + 0 never run\n"
                                   "1 of them has no record\n"
                                   "1 counted task planned, 0 excluded of 0 allowed\n"));
    strbuf_release(&sb);
    cJSON_Delete(v);
}

/* What is no pair of numbers is not shown as one, and what a record says is not obeyed. */
static void test_hostile(void **state)
{
    (void)state;
    static const char text[] = "{\"outcome\":\"O1\",\"title\":\"a\\u001b[2Jb\",\"why\":\"c\\nd\","
                               "\"counters\":{\"k\":[0],\"l\":null,\"m\":[1,2]},"
                               "\"gates\":[{\"measure\":\"q\",\"cell\":\"x\",\"score\":null,"
                               "\"floor\":0.5,\"cleared\":null,"
                               "\"why\":\"e\\u001b]0;f\\u0007\"}]}";
    cJSON *v = NULL;
    struct err err = {0};
    assert_int_equal(json_parse(text, strlen(text), &v, &err), 0);
    struct strbuf sb = STRBUF_INIT;
    verdict_text(&sb, &plain, v, NULL);
    assert_non_null(strstr(sb.buf, "O1  a?[2Jb\nc d\n"));
    assert_non_null(
        strstr(sb.buf, "counter k = unknown\ncounter l = unknown\ncounter m = 1 to 2\n"));
    assert_non_null(strstr(sb.buf, "undetermined: q of x: e?]0;f?\n"));
    assert_null(strchr(sb.buf, '\033'));
    strbuf_release(&sb);
    cJSON_Delete(v);
}

/* Of a verdict that was computed here the text is that of its verdict.json. */
static void test_computed(void **state)
{
    (void)state;
    char *grid = path_join(TEST_SOURCE_DIR, "tests/unit/prereg/fixtures/below_the_floor.toml");
    char *records = path_join(TEST_SOURCE_DIR, "ops/programs/below_the_floor/replay/records.json");
    struct plan_program *p = NULL;
    struct diag diag;
    struct table_verdict v;
    struct err err = {0};
    struct strbuf of_tree = STRBUF_INIT;
    struct strbuf one_by_one = STRBUF_INIT;
    diag_init(&diag, grid);
    assert_int_equal(program_load(grid, &p, &diag, &err), 0);
    assert_int_equal(replay_run(p, NULL, records, &v, &err), 0);
    verdict_text(&of_tree, &plain, verdict_json(&v), NULL);
    verdict_text_of(&one_by_one, &plain, &v);
    assert_non_null(strstr(of_tree.buf, "mmlu"));
    /* No input reads `lr`, and the one that is read has nothing to be read of. */
    assert_null(strstr(of_tree.buf, "lr, "));
    assert_non_null(strstr(of_tree.buf, "what the inputs read:\n  arch, moe - dense, mean over the "
                                        "measures that cleared: not known (no pairs: "));
    assert_non_null(
        strstr(of_tree.buf, "  counter.k: 0 of 3 measures reach their floor in every cell\n"));
    assert_non_null(strstr(of_tree.buf, "undetermined: gsm8k of "));
    assert_string_equal(one_by_one.buf, of_tree.buf);
    strbuf_release(&of_tree);
    strbuf_release(&one_by_one);
    verdict_release(&v);
    diag_release(&diag);
    program_free(p);
    free(records);
    free(grid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound),   cmocka_unit_test(test_void),     cmocka_unit_test(test_one),
        cmocka_unit_test(test_hostile), cmocka_unit_test(test_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
