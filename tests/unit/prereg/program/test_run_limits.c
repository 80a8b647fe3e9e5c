/* Limits of [run]: from JSON as from TOML, and which of two is narrower. */
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/program/run_limits.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

/* Whatever grid.toml may say, both readers find the same. */
static void test_as_loaded(void **state)
{
    static const char many[] =
        "[run]\ndeadlines = { step = \"10min\", setup = \"1s\" }\n"
        "[run.train]\ndeadlines = { step = \"1500ms\", checkpoint = \"3d\" }\n"
        "[run.score]\nmemory = \"2kB\"\n";
    static const char *const runs[] = {
        "",
        "[run]\nslots = 2\nwork = \"/tmp\"\n",
        "[run]\nmemory = \"512MiB\"\ncrashes = 0\nattempts = 7\n",
        "[run]\nmemory = 4096\ndeadlines = { setup = \"10min\", eval = \"2h\" }\n",
        "[run]\nmemory = \"1GiB\"\n[run.train]\nmemory = \"1.5GiB\"\ncrashes = 5\n",
        "[run]\ntime = \"4h\"\nexecutor = \"slurm\"\n[run.train]\ntime = \"30min\"\n",
        "[run.train]\nattempts = 2\ncheckpoint = \"300s\"\n",
        many,
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
        CHECK_ROW("%s", runs[i]);
        struct strbuf text = STRBUF_INIT;
        const char *its_own = strstr(SMALL_PROGRAM, "[run]"); /* the last of it */
        assert_non_null(its_own);
        strbuf_add(&text, SMALL_PROGRAM, (size_t)(its_own - SMALL_PROGRAM));
        strbuf_adds(&text, runs[i]);
        struct plan_program *p = program_of(text.buf, NULL);
        for (size_t s = 0; s < p->n_stages; s++) {
            const struct stage_run *run = &p->stages[s].run;
            struct run_limits found;
            struct err err;
            assert_int_equal(run_limits_read(p->run.covered, p->stages[s].name, &found, &err), 0);
            assert_int_equal(found.of[RUN_MEMORY], run->memory_bytes);
            assert_int_equal(found.of[RUN_TIME], run->time_ms);
            assert_int_equal(found.of[RUN_CRASHES], run->crashes);
            assert_int_equal(found.of[RUN_ATTEMPTS], run->attempts);
            for (int k = 0; k < 4; k++) {
                assert_int_equal(found.of[RUN_SETUP + k], run->deadline_ms[k]);
            }
        }
        program_free(p);
        strbuf_release(&text);
    }
}

/* A journal may come from anywhere. */
static void test_refused(void **state)
{
    static const char *const runs[] = {
        "{\"memory\":0}",
        "{\"memory\":-1}",
        "{\"memory\":1.5}",
        "{\"memory\":1e300}",
        "{\"memory\":\"much\"}",
        "{\"memory\":[]}",
        "{\"crashes\":-1}",
        "{\"crashes\":1000001}",
        "{\"crashes\":\"3\"}",
        "{\"attempts\":0}",
        "{\"attempts\":true}",
        "{\"deadlines\":\"1s\"}",
        "{\"deadlines\":{\"step\":1}}",
        "{\"deadlines\":{\"step\":\"-1s\"}}",
        "{\"deadlines\":{\"eval\":\"99999999999999999999d\"}}",
        "{\"train\":{\"memory\":0}}",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
        CHECK_ROW("%s", runs[i]);
        cJSON *run = NULL;
        struct run_limits found;
        struct err err;
        assert_int_equal(json_parse(runs[i], strlen(runs[i]), &run, &err), 0);
        assert_int_not_equal(run_limits_read(run, "train", &found, &err), 0);
        assert_non_null(strstr(err.msg, "[run]"));
        cJSON_Delete(run);
    }
}

static void test_narrower(void **state)
{
    static const struct {
        enum run_limit limit;
        int64_t a;
        int64_t b;
        bool is; /* a is narrower than b */
    } cases[] = {
        {RUN_MEMORY, 1, 2, true},      {RUN_MEMORY, 2, 1, false},  {RUN_MEMORY, 2, 2, false},
        {RUN_TIME, 1, 2, true},        {RUN_TIME, 2, 0, true},     {RUN_TIME, 0, 2, false},
        {RUN_MEMORY, 2, 0, true},      {RUN_MEMORY, 0, 2, false},  {RUN_MEMORY, 0, 0, false},
        {RUN_CRASHES, 0, 1, true},     {RUN_CRASHES, 3, 1, false}, {RUN_ATTEMPTS, 1, 50, true},
        {RUN_ATTEMPTS, 50, 50, false}, {RUN_STEP, 10, 20, true},   {RUN_STEP, 20, 10, false},
        {RUN_EVAL, 0, 0, false},       {RUN_SETUP, 0, 10, true},   {RUN_CHECKPOINT, 10, 0, true},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("cases[%zu]", i);
        assert_int_equal(run_limit_is_narrower(cases[i].limit, cases[i].a, cases[i].b),
                         cases[i].is);
    }
}

static void test_text(void **state)
{
    static const struct {
        enum run_limit limit;
        int64_t value;
        const char *text;
    } cases[] = {
        {RUN_MEMORY, 0, "no limit of memory"},
        {RUN_TIME, 0, "no limit of time"},
        {RUN_TIME, 60000, "time 60000 ms"},
        {RUN_MEMORY, 1048576, "memory 1048576 bytes"},
        {RUN_CRASHES, 0, "crashes 0"},
        {RUN_ATTEMPTS, 50, "attempts 50"},
        {RUN_STEP, 0, "a measured deadline of step"},
        {RUN_CHECKPOINT, INT64_MAX, "a deadline of checkpoint of 9223372036854775807 ms"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        char text[RUN_LIMIT_TEXT_SIZE];
        run_limit_text(cases[i].limit, cases[i].value, text);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_loaded), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_narrower), cmocka_unit_test(test_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
