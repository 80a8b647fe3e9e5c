/* Evidence from JSON and from folders of cells. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "tests/unit/truthtable/fixture.h"
#include "truthtable/evidence/linked_results.h"

static const char toml[] =
    "[program]\nname = \"t\"\nschema = 1\nquestion = \"?\"\n"
    "[[factor]]\nname = \"arch\"\nlevels = [\"x\", \"y\"]\n"
    "[stage.train]\ncommand = [\"w\"]\nparams = { a = \"$arch\" }\n"
    "[stage.exam]\ncommand = [\"w\"]\nafter = [\"train\"]\n"
    "[measure]\nq = { metric = \"exam.acc\" }\n"
    "[contrast]\nc = { between = { arch = [\"x\", \"y\"] } }\n"
    "[[input]]\nname = \"i\"\nlevels = [[\"a\", \"contrast.c[q].mean > 0\"], [\"b\", "
    "\"otherwise\"]]\n"
    "[table]\ninputs = [\"i\"]\nrows = [[\"a\", \"O1\"], [\"b\", \"O2\"]]\n"
    "[outcome]\nO1 = { prior = 0.5, title = \"one\" }\nO2 = { prior = 0.4, title = \"two\" }\n";

static cJSON *parse(const char *text)
{
    cJSON *v = NULL;
    struct err err;
    if (json_parse(text, strlen(text), &v, &err) != 0) {
        fail_msg("%s: %s", text, err.msg);
    }
    return v;
}

static void test_result_values(void **state)
{
    static const struct {
        const char *json;
        enum value_state want;
        const char *why;
    } cases[] = {
        {"0.5", VALUE_KNOWN, NULL},
        {"{\"value\":0.5,\"n\":10,\"se\":0.1}", VALUE_KNOWN, NULL},
        {"{\"value\":0.5,\"n\":null}", VALUE_KNOWN, NULL},
        {"{\"value\":0.5,\"n\":0}", VALUE_NULL, "n is not a count"},
        {"{\"value\":0.5,\"n\":1.5}", VALUE_NULL, "n is not a count"},
        {"{\"value\":0.5,\"n\":\"10\"}", VALUE_NULL, "n is not a count"},
        {"{\"value\":0.5,\"se\":\"x\"}", VALUE_NULL, "se is not a number from 0 up"},
        {"{\"value\":0.5,\"se\":-1}", VALUE_NULL, "se is not a number from 0 up"},
        {"{\"value\":null,\"why\":\"not_finite\"}", VALUE_NULL, "not_finite"},
        {"{\"value\":null}", VALUE_NULL, "null or NaN, without a reason"},
        {"{\"value\":null,\"why\":\"not_reached\",\"bound\":\">4864\"}", VALUE_CENSORED,
         "not_reached"},
        {"{\"value\":null,\"bound\":\"4864\"}", VALUE_NULL, "the bound is not readable"},
        {"{\"value\":null,\"bound\":\">x\"}", VALUE_NULL, "the bound is not readable"},
        {"{\"value\":5000,\"bound\":\">4864\"}", VALUE_NULL, "both a value and a bound"},
        {"{\"value\":5000,\"bound\":null}", VALUE_KNOWN, NULL},
        {"{\"value\":\"0.5\"}", VALUE_NULL, "not a number"},
        {"{}", VALUE_NULL, "the record has no value"},
        {"null", VALUE_NULL, "null or NaN, without a reason"},
        {"\"NaN\"", VALUE_NULL, "not a number"},
        {"true", VALUE_NULL, "not a number"},
        {"[]", VALUE_NULL, "not a number"},
    };
    struct plan_program *p = fixture_program(toml);
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].json);
        struct evidence e;
        struct err err;
        char *text = xasprintf(
            "{\"metrics\":{\"acc\":%s},\"facts\":{\"blas\":\"generic\",\"p\":3}}", cases[i].json);
        cJSON *result = parse(text);
        evidence_init(&e, p);
        assert_int_equal(evidence_add_result(&e, 1, 1, result, &err), 0);
        const struct evidence_value *v = evidence_metric(&e, 1, 1, "acc");
        if (v->state != cases[i].want) {
            fail_msg("%s: state %d", cases[i].json, v->state);
        }
        if (cases[i].why != NULL) {
            assert_string_equal(v->why, cases[i].why);
        }
        if (v->state == VALUE_CENSORED) {
            assert_true(v->bound_above && v->bound == 4864);
        }
        assert_int_equal(evidence_fact(&e, 1, 1, "blas")->state, VALUE_NULL);
        assert_int_equal(evidence_fact(&e, 1, 1, "p")->state, VALUE_KNOWN);
        assert_int_equal(evidence_fact(&e, 0, 1, "p")->state, VALUE_MISSING);
        assert_int_equal(evidence_metric(&e, 1, 0, "acc")->state, VALUE_MISSING);
        evidence_release(&e);
        cJSON_Delete(result);
        free(text);
    }
    program_free(p);
}

/* Many names, so that the index grows. */
static void test_index(void **state)
{
    struct plan_program *p = fixture_program(toml);
    struct evidence e;
    (void)state;
    evidence_init(&e, p);
    for (int i = 0; i < 5000; i++) {
        char name[32];
        struct evidence_value v = {.state = VALUE_KNOWN, .value = i};
        (void)snprintf(name, sizeof(name), "m%d", i / 4);
        evidence_add_metric(&e, (size_t)i % 2, (size_t)i / 2 % 2, name, &v);
    }
    for (int i = 0; i < 5000; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "m%d", i / 4);
        const struct evidence_value *v =
            evidence_metric(&e, (size_t)i % 2, (size_t)i / 2 % 2, name);
        assert_true(v->state == VALUE_KNOWN && v->value == i);
    }
    evidence_release(&e);
    program_free(p);
}

static void test_records(void **state)
{
    static const struct {
        const char *json;
        int rc;
        const char *message;
    } cases[] = {
        {"{\"schema\":1,\"program\":\"t\",\"records\":[]}", 0, ""},
        {"{\"schema\":2,\"program\":\"t\",\"records\":[]}", ERR_VERSION, "schema 2"},
        {"{\"schema\":1,\"program\":\"u\",\"records\":[]}", ERR_INVALID, "\"u\""},
        {"{\"schema\":1,\"program\":\"t\"}", ERR_SYNTAX, "\"records\" is missing"},
        {"{\"schema\":1,\"program\":\"t\",\"records\":[{\"cell\":\"arch=z\",\"stage\":\"exam\"}]}",
         ERR_NOT_FOUND, "record 0: the program has no cell \"arch=z\""},
        {"{\"schema\":1,\"program\":\"t\",\"records\":[{\"cell\":\"arch=x\",\"stage\":\"ex\"}]}",
         ERR_NOT_FOUND, "no stage"},
        {"{\"schema\":1,\"program\":\"t\",\"records\":[{\"cell\":\"arch=x\",\"stage\":\"exam\","
         "\"end\":\"maybe\"}]}",
         ERR_SYNTAX, "not done, blocked or never_run"},
        {"{\"schema\":1,\"program\":\"t\",\"records\":[{\"cell\":\"arch=x\",\"stage\":\"exam\","
         "\"end\":\"blocked\"}]}",
         ERR_SYNTAX, "needs a \"cause\""},
        {"{\"schema\":1,\"program\":\"t\",\"records\":[{\"cell\":\"arch=x\",\"stage\":\"exam\","
         "\"end\":\"blocked\",\"cause\":\"sloth\"}]}",
         ERR_SYNTAX, "needs a \"cause\""},
        {"{\"schema\":1,\"program\":\"t\",\"records\":[{\"cell\":\"arch=x\",\"stage\":\"exam\","
         "\"end\":\"blocked\",\"cause\":\"\"}]}",
         ERR_SYNTAX, "needs a \"cause\""},
        {"{\"schema\":1,\"program\":\"t\",\"records\":[{\"cell\":\"arch=x\",\"stage\":\"exam\","
         "\"metrics\":3}]}",
         ERR_PROTOCOL, "not an object"},
        {"{\"schema\":1,\"program\":\"t\",\"records\":[{\"cell\":\"arch=x\",\"stage\":\"exam\"},"
         "{\"cell\":\"arch=x\",\"stage\":\"exam\",\"end\":\"blocked\",\"cause\":\"oom\"}]}",
         ERR_SYNTAX, "record 1: arch=x exam ends in two ways"},
        {"{\"schema\":1,\"program\":\"t\",\"records\":[{\"cell\":\"arch=x\",\"stage\":\"exam\","
         "\"end\":\"blocked\",\"cause\":\"cancelled\"},{\"cell\":\"arch=x\",\"stage\":\"exam\","
         "\"end\":\"blocked\",\"cause\":\"oom\"}]}",
         ERR_SYNTAX, "record 1: arch=x exam ends in two ways"},
        {"{\"schema\":1,\"program\":\"t\",\"records\":[{\"cell\":\"arch=x\",\"stage\":\"exam\","
         "\"end\":\"blocked\",\"cause\":\"oom\"},{\"cell\":\"arch=x\",\"stage\":\"exam\","
         "\"end\":\"blocked\",\"cause\":\"oom\"}]}",
         0, ""},
    };
    struct plan_program *p = fixture_program(toml);
    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
        struct evidence e;
        struct err err = {0};
        const char *text = cases[i / 2].json;
        cJSON *records = parse(text);
        evidence_init(&e, p);
        int rc = i % 2 == 0 ? evidence_read_records(&e, records, &err)
                            : evidence_read_text(&e, text, strlen(text), &err);
        if (rc != cases[i / 2].rc || strstr(err.msg, cases[i / 2].message) == NULL) {
            fail_msg("%s: %d %s", text, rc, err.msg);
        }
        evidence_release(&e);
        cJSON_Delete(records);
    }
    program_free(p);
}

/* Of a text: what is wrong with it has its place, wherever "records" stands. */
static void test_records_text(void **state)
{
    static const struct {
        const char *text;
        int rc;
        const char *message;
    } cases[] = {
        {"{\"records\":[{\"cell\":\"arch=x\",\"stage\":\"exam\",\"metrics\":{\"acc\":0.5}}],\n"
         "\"note\":[{}],\"program\":\"t\",\"schema\":1}",
         0, ""},
        {"{\"records\":[],\"program\":\"u\",\"schema\":1}", ERR_INVALID, "\"u\""},
        {"{\"program\":\"u\",\"schema\":1,\"records\":[{\"cell\":\"arch=z\"}]}", ERR_INVALID,
         "\"u\""},
        {"[1]", ERR_SYNTAX, "an object"},
        {"{\"schema\":1,\"program\":\"t\",\"records\":{}}", ERR_SYNTAX, "not an array"},
        {"{\"schema\":1,\"program\":\"t\",\"records\":[]} []", ERR_SYNTAX,
         "line 1, column 41: text after"},
        {"{\"schema\":1,\"program\":\"t\",\"records\":[\n"
         " {\"cell\":\"arch=x\",\"stage\":\"exam\"},\n"
         " {\"cell\":\"arch=z\",\"stage\":\"exam\"}]}",
         ERR_NOT_FOUND, "line 3, column 2: record 1: the program has no cell \"arch=z\""},
        {"{\"schema\":1,\"program\":\"t\",\"records\":[\n"
         "{\"cell\":\"arch=x\",\"stage\":\"exam\",\"metrics\":{\"acc\":1,\"acc\":1}}]}",
         ERR_SYNTAX, "line 2, column 52: key \"acc\" is duplicated"},
        {"{\"schema\":1,\"program\":\"t\",\"records\":[{\"cell\":1}]}", ERR_SYNTAX,
         "line 1, column 38: record 0: \"cell\" is not a string"},
        {"{\"schema\":1,\"program\":\"t\",\"records\":[1e999]}", ERR_RANGE,
         "column 43: number outside"},
    };
    struct plan_program *p = fixture_program(toml);
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        struct evidence e;
        struct err err = {0};
        evidence_init(&e, p);
        int rc = evidence_read_text(&e, cases[i].text, strlen(cases[i].text), &err);
        if (rc != cases[i].rc || strstr(err.msg, cases[i].message) == NULL) {
            fail_msg("%s: %d %s", cases[i].text, rc, err.msg);
        }
        if (i == 0) {
            assert_true(evidence_metric(&e, 0, 1, "acc")->value == 0.5);
        }
        evidence_release(&e);
    }
    program_free(p);
}

/* What Python writes for a value that is not finite is a record without a value. */
static void test_not_finite(void **state)
{
    static const char text[] =
        "{\"schema\":1,\"program\":\"t\",\"records\":["
        "{\"cell\":\"arch=x\",\"stage\":\"exam\",\"metrics\":{\"acc\":NaN}},"
        "{\"cell\":\"arch=y\",\"stage\":\"exam\",\"metrics\":{\"acc\":{\"value\":-Infinity}}}]}";
    struct plan_program *p = fixture_program(toml);
    struct evidence e;
    struct err err;
    (void)state;
    evidence_init(&e, p);
    assert_int_equal(evidence_read_text(&e, text, strlen(text), &err), 0);
    for (size_t cell = 0; cell < 2; cell++) {
        const struct evidence_value *v = evidence_metric(&e, cell, 1, "acc");
        assert_int_equal(v->state, VALUE_NULL);
        assert_string_equal(v->why, "null or NaN, without a reason");
    }
    evidence_release(&e);
    program_free(p);
}

/* The n of a bound is read, and checked, as that of a value is. */
static void test_bound_has_n(void **state)
{
    static const char text[] =
        "{\"schema\":1,\"program\":\"t\",\"records\":["
        "{\"cell\":\"arch=x\",\"stage\":\"exam\",\"metrics\":{\"acc\":{\"value\":null,\"bound\":"
        "\">0.5\",\"n\":70}}},"
        "{\"cell\":\"arch=y\",\"stage\":\"exam\",\"metrics\":{\"acc\":{\"value\":null,\"bound\":"
        "\">0.5\",\"n\":0.5}}}]}";
    struct plan_program *p = fixture_program(toml);
    struct evidence e;
    struct err err;
    (void)state;
    evidence_init(&e, p);
    assert_int_equal(evidence_read_text(&e, text, strlen(text), &err), 0);
    const struct evidence_value *v = evidence_metric(&e, 0, 1, "acc");
    assert_int_equal(v->state, VALUE_CENSORED);
    assert_true(v->has_n && v->n == 70);
    v = evidence_metric(&e, 1, 1, "acc");
    assert_int_equal(v->state, VALUE_NULL);
    assert_string_equal(v->why, "n is not a count");
    evidence_release(&e);
    program_free(p);
}

static void test_doubled_record(void **state)
{
    struct plan_program *p = fixture_program(toml);
    struct evidence e;
    struct err err;
    cJSON *records = parse("{\"schema\":1,\"program\":\"t\",\"label\":\"by hand\",\"records\":["
                           "{\"cell\":\"arch=x\",\"stage\":\"exam\",\"metrics\":{\"acc\":0.5}},"
                           "{\"cell\":\"arch=x\",\"stage\":\"exam\",\"metrics\":{\"acc\":0.5}}]}");
    (void)state;
    evidence_init(&e, p);
    assert_int_equal(evidence_read_records(&e, records, &err), 0);
    assert_int_equal(evidence_metric(&e, 0, 1, "acc")->state, VALUE_DOUBLED);
    assert_string_equal(e.label, "by hand");
    assert_int_equal(e.tasks[1].end, TASK_END_DONE);
    assert_int_equal(e.tasks[0].end, TASK_END_PENDING);
    cJSON_Delete(records);
    evidence_release(&e);
    program_free(p);
}

static void test_gather(void **state)
{
    char *folder = scratch_make();
    struct plan_program *p = fixture_program(toml);
    struct evidence e;
    struct err err;
    (void)state;
    scratch_put(folder, "arch=x/train/attempt-0001/result.json",
                "{\"metrics\":{\"loss\":{\"value\":2}}}");
    char *link = path_join(folder, "arch=x/train/result.json");
    assert_int_equal(symlink("attempt-0001/result.json", link), 0);
    /* An attempt whose result is not linked is no result. */
    scratch_put(folder, "arch=y/train/attempt-0001/result.json",
                "{\"metrics\":{\"loss\":{\"value\":9}}}");
    cJSON *ends = parse(
        "[{\"cell\":\"arch=x\",\"stage\":\"train\",\"end\":\"done\"},"
        "{\"cell\":\"arch=x\",\"stage\":\"exam\",\"end\":\"blocked\",\"cause\":\"oom\","
        "\"narrower\":\"memory\"},"
        "{\"cell\":\"arch=y\",\"stage\":\"train\",\"end\":\"done\"},"
        "{\"cell\":\"arch=y\",\"stage\":\"exam\",\"end\":\"never_run\",\"cause\":\"cancelled\"}]");
    evidence_init(&e, p);
    assert_int_equal(gather_evidence(&e, folder, ends, &err), 0);
    assert_int_equal(e.tasks[0].end, TASK_END_DONE);
    assert_true(evidence_metric(&e, 0, 0, "loss")->value == 2);
    assert_int_equal(e.tasks[1].end, TASK_END_BLOCKED);
    assert_string_equal(e.tasks[1].cause, "oom");
    assert_string_equal(e.tasks[1].narrower, "memory");
    assert_null(e.tasks[3].narrower);
    assert_int_equal(e.tasks[2].end, TASK_END_PENDING);
    assert_int_equal(evidence_metric(&e, 1, 0, "loss")->state, VALUE_MISSING);
    assert_int_equal(e.tasks[3].end, TASK_END_NEVER_RUN);
    evidence_release(&e);
    /* A linked result that cannot be read is said, not skipped. */
    scratch_put(folder, "arch=y/exam/result.json", "{\"metrics\":");
    evidence_init(&e, p);
    assert_int_equal(gather_evidence(&e, folder, NULL, &err), ERR_SYNTAX);
    assert_non_null(strstr(err.msg, "arch=y/exam/result.json"));
    evidence_release(&e);
    /* So is one that leads nowhere: it is no task without a result. */
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink("attempt-0009/result.json", link), 0);
    evidence_init(&e, p);
    assert_int_equal(gather_evidence(&e, folder, NULL, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, "arch=x/train/result.json"));
    evidence_release(&e);
    scratch_remove(folder);
    cJSON_Delete(ends);
    free(link);
    program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_result_values),  cmocka_unit_test(test_index),
        cmocka_unit_test(test_records),        cmocka_unit_test(test_records_text),
        cmocka_unit_test(test_not_finite),     cmocka_unit_test(test_bound_has_n),
        cmocka_unit_test(test_doubled_record), cmocka_unit_test(test_gather),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
