/* What a result may say that it read of the stages before its own: any artifact of theirs, and of
 * prereg-eval the one model that its params determine. */
#include "prereg/task/task_inputs.h"

#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

#define LAST "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HALF "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define TOP  "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

#define ARTIFACT(path, hex) "{\"path\":\"" path "\",\"sha256\":\"" hex "\",\"bytes\":1}"
#define LEFT                                                                                       \
    "{\"artifacts\":[" ARTIFACT("snapshot/0.5/model.bin", HALF) "," ARTIFACT("model/model.bin",    \
                                                                             LAST) "]}"

#define TRAIN "command = [\"./prereg-train\"]\n"
#define OTHER "command = [\"./worker.sh\"]\n"
#define EVAL  "command = [\"prereg-eval\"]\n"

static const struct {
    const char *train; /* the command of each stage, with the second's params */
    const char *score;
    const char *left; /* the training's result */
    const char *result;
    int rc;
    const char *says;
} CASES[] = {
    /* prereg-eval, of our own training */
    {TRAIN, EVAL, LEFT, "{\"inputs\":{\"train\":\"" LAST "\"}}", 0, NULL},
    {TRAIN, EVAL, LEFT, "{\"inputs\":{\"train\":\"" HALF "\"}}", ERR_LOCK,
     "read of \"train\" is not model/model.bin"},
    {TRAIN, EVAL "params = { at = 0.5 }\n", LEFT, "{\"inputs\":{\"train\":\"" HALF "\"}}", 0, NULL},
    {TRAIN, EVAL "params = { at = 0.5, model = \"train\" }\n", LEFT,
     "{\"inputs\":{\"train\":\"" LAST "\"}}", ERR_LOCK, "is not snapshot/0.5/model.bin"},
    {TRAIN, EVAL "params = { at = 0.25 }\n", LEFT, "{\"inputs\":{\"train\":\"" HALF "\"}}",
     ERR_LOCK, "has no artifact snapshot/0.25/model.bin"},
    {TRAIN, EVAL, LEFT, "{}", ERR_PROTOCOL, "inputs.train is missing"},
    /* a path listed twice does not let a result choose */
    {TRAIN, EVAL,
     "{\"artifacts\":[" ARTIFACT("model/model.bin", LAST) "," ARTIFACT("model/model.bin",
                                                                       HALF) "]}",
     "{\"inputs\":{\"train\":\"" HALF "\"}}", ERR_LOCK, "is not model/model.bin"},
    /* nor does a model beside those that such a training leaves */
    {TRAIN, EVAL,
     "{\"artifacts\":[" ARTIFACT("model.bin", HALF) "," ARTIFACT("model/model.bin", LAST) "]}",
     "{\"inputs\":{\"train\":\"" HALF "\"}}", ERR_LOCK, "is not model/model.bin"},
    /* prereg-eval, of another worker's training: as it finds a model of our form in a folder */
    {OTHER, EVAL, "{\"artifacts\":[" ARTIFACT("model.bin", TOP) "," ARTIFACT("b", HALF) "]}",
     "{\"inputs\":{\"train\":\"" TOP "\"}}", 0, NULL},
    {OTHER, EVAL, "{\"artifacts\":[" ARTIFACT("model.bin", TOP) "," ARTIFACT("b", HALF) "]}",
     "{\"inputs\":{\"train\":\"" HALF "\"}}", ERR_LOCK, "is not model.bin"},
    {OTHER, EVAL, LEFT, "{\"inputs\":{\"train\":\"" LAST "\"}}", 0, NULL},
    {OTHER, EVAL, LEFT, "{\"inputs\":{\"train\":\"" HALF "\"}}", ERR_LOCK,
     "is not model/model.bin"},
    {OTHER, EVAL, "{\"artifacts\":[" ARTIFACT("b", HALF) "]}",
     "{\"inputs\":{\"train\":\"" HALF "\"}}", ERR_LOCK, "has no artifact model/model.bin"},
    /* it may have left a model of another form, which has no digest */
    {OTHER, EVAL, LEFT, "{}", 0, NULL},
    /* prereg-eval, of data */
    {TRAIN, EVAL "params = { model = \"corpus\" }\n", LEFT, "{}", 0, NULL},
    {TRAIN, EVAL "params = { model = \"corpus\" }\n", LEFT, "{\"inputs\":{\"train\":\"" LAST "\"}}",
     ERR_PROTOCOL, "its params name no model of that stage"},
    /* any other worker: any artifact, of a stage that its own comes after */
    {TRAIN, OTHER, LEFT, "{\"inputs\":{\"train\":\"" HALF "\"}}", 0, NULL},
    {TRAIN, OTHER, LEFT, "{\"inputs\":{\"train\":\"" TOP "\"}}", ERR_LOCK, "has no such artifact"},
    {TRAIN, OTHER, LEFT, "{\"inputs\":{\"score\":\"" LAST "\"}}", ERR_PROTOCOL,
     "the stage does not come after it"},
    {TRAIN, OTHER, LEFT, "{\"inputs\":{\"train\":1}}", ERR_PROTOCOL, "is not a digest"},
    {TRAIN, OTHER, LEFT, "{\"inputs\":[]}", ERR_PROTOCOL, "\"inputs\" is not an object"},
    /* nothing is left to compare with */
    {TRAIN, EVAL, NULL, "{\"inputs\":{\"train\":\"" HALF "\"}}", 0, NULL},
};

static int find(const void *ctx, const char *stage, bool *known, cJSON **result, struct err *err)
{
    const char *left = ctx;
    (void)err;
    *known = strcmp(stage, "train") == 0;
    *result = *known && left != NULL ? cJSON_Parse(left) : NULL;
    return 0;
}

static struct plan_program *plan_of(const char *train, const char *score)
{
    char *one = text_replace(SMALL_PROGRAM, "command = [\"./worker.sh\", \"--quick\"]\n", train);
    char *both = text_replace(one, "after = [\"train\"]\ncommand = [\"./worker.sh\"]\n", score);
    char *after = text_replace(both, "[stage.score]\n", "[stage.score]\nafter = [\"train\"]\n");
    struct plan_program *p = program_of(after, NULL);
    free(one);
    free(both);
    free(after);
    return p;
}

static void test_inputs(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%zu", i);
        struct err err = {0};
        struct plan_program *p = plan_of(CASES[i].train, CASES[i].score);
        cJSON *result = cJSON_Parse(CASES[i].result);
        const struct task_inputs t = {
            .program = p, .cell = 1, .stage = 1, .find = find, .ctx = CASES[i].left};
        assert_non_null(result);
        assert_int_equal(task_inputs_check(&t, result, &err), CASES[i].rc);
        if (CASES[i].says != NULL && strstr(err.msg, CASES[i].says) == NULL) {
            fail_msg("found \"%s\"", err.msg);
        }
        cJSON_Delete(result);
        program_free(p);
    }
}

/* The params are those of the cell. */
static void test_cells(void **state)
{
    (void)state;
    const struct {
        size_t cell;
        const char *reads;
        int rc;
    } cases[] = {{0, LAST, 0}, {0, HALF, ERR_LOCK}, {2, HALF, 0}, {2, LAST, ERR_LOCK}};
    struct plan_program *p = plan_of(TRAIN, EVAL "[stage.score.when.arch]\nmoe = { at = 0.5 }\n");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%zu", i);
        struct err err = {0};
        cJSON *result = json_object();
        cJSON *inputs = json_object();
        json_put_string(inputs, "train", cases[i].reads);
        json_put(result, "inputs", inputs);
        const struct task_inputs t = {
            .program = p, .cell = cases[i].cell, .stage = 1, .find = find, .ctx = LEFT};
        assert_int_equal(task_inputs_check(&t, result, &err), cases[i].rc);
        cJSON_Delete(result);
    }
    program_free(p);
}

/* The task of an apparatus check reads the pinned model under every name. */
static void test_outside_the_grid(void **state)
{
    (void)state;
    struct err err = {0};
    struct plan_program *p = plan_of(TRAIN, EVAL);
    cJSON *result = cJSON_Parse("{\"inputs\":{\"any\":\"" HALF "\"}}");
    const struct task_inputs t = {.program = p, .stage = 1};
    assert_int_equal(task_inputs_check(&t, result, &err), 0);
    cJSON_Delete(result);
    program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inputs),
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_outside_the_grid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
