/* The GPUs of one attempt: the variables of its worker, the pinned model, and a GPU that is gone.
 */
#include <stdlib.h>

#include "base/json/json.h"
#include "daemon/program/gpu_grant.h"
#include "tests/unit/check.h"

#define THREE                                                                                      \
    "[{\"uuid\":\"GPU-a\",\"model\":\"NVIDIA H100 80GB\",\"processes\":[{\"pid\":1}]},"            \
    "{\"uuid\":\"GPU-b\",\"model\":\"NVIDIA T4\"},"                                                \
    "{\"uuid\":\"GPU-c\",\"model\":\"AMD X\",\"vendor\":\"amd\",\"index\":0},"                     \
    "{\"uuid\":\"AMD-1\",\"model\":\"AMD X\",\"vendor\":\"amd\",\"index\":1}]"

static void note(void *ctx, const char *name, const char *value)
{
    strbuf_addf(ctx, "%s=%s;", name, value);
}

static struct gpu_list read_list(const char *text)
{
    struct gpu_list list;
    struct err err;
    if (gpu_list_read(text, strlen(text), &list, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    return list;
}

static void test_environment(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *list;
        const char *gpus;
        enum executor_kind executor;
        const char *env;
        const char *gets;
    } rows[] = {
        {"none here", "[]", "", EXECUTOR_LOCAL, NULL, ""},
        {"one", THREE, "GPU-b", EXECUTOR_LOCAL, NULL,
         "CUDA_VISIBLE_DEVICES=GPU-b;CUDA_DEVICE_ORDER=PCI_BUS_ID;ROCR_VISIBLE_DEVICES=;"},
        {"two", THREE, "GPU-a,GPU-b", EXECUTOR_LOCAL, NULL,
         "CUDA_VISIBLE_DEVICES=GPU-a,GPU-b;CUDA_DEVICE_ORDER=PCI_BUS_ID;ROCR_VISIBLE_DEVICES=;"},
        {"AMD, one without identity", THREE, "GPU-c,AMD-1", EXECUTOR_LOCAL, NULL,
         "CUDA_VISIBLE_DEVICES=;ROCR_VISIBLE_DEVICES=GPU-c,1;"},
        {"without GPUs", THREE, "", EXECUTOR_LOCAL, NULL,
         "CUDA_VISIBLE_DEVICES=;ROCR_VISIBLE_DEVICES=;"},
        {"its own value", THREE, "", EXECUTOR_LOCAL, "{\"CUDA_VISIBLE_DEVICES\":\"7\"}",
         "ROCR_VISIBLE_DEVICES=;"},
        {"under Slurm", THREE, "", EXECUTOR_SLURM, NULL, ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_ROW("%s", rows[i].name);
        struct gpu_list list = read_list(rows[i].list);
        struct placement at = {.executor = rows[i].executor};
        struct gpu_grant grant;
        struct strbuf text = STRBUF_INIT;
        cJSON *env = rows[i].env == NULL ? NULL : cJSON_Parse(rows[i].env);
        const struct plan_stage stage = {.env = env};
        (void)snprintf(at.gpus, sizeof(at.gpus), "%s", rows[i].gpus);
        gpu_grant_fill(&grant, &at, &list);
        gpu_grant_environment(&grant, &stage, note, &text);
        assert_string_equal(text.buf, rows[i].gets);
        gpu_grant_release(&grant);
        gpu_list_release(&list);
        strbuf_release(&text);
        cJSON_Delete(env);
    }
}

/* A daemon that may see none must not let its workers see all. */
static void test_hidden_from_the_daemon(void **state)
{
    (void)state;
    struct gpu_grant grant;
    struct strbuf text = STRBUF_INIT;
    const struct placement at = {.executor = EXECUTOR_LOCAL};
    (void)setenv("CUDA_VISIBLE_DEVICES", "", 1);
    gpu_grant_fill(&grant, &at, NULL);
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
    gpu_grant_environment(&grant, &(struct plan_stage){0}, note, &text);
    assert_string_equal(text.buf, "CUDA_VISIBLE_DEVICES=;");
    strbuf_release(&text);
}

static void test_check(void **state)
{
    (void)state;
    struct gpu_list list = read_list(THREE);
    struct placement at = {.executor = EXECUTOR_LOCAL, .gpus = "GPU-a"};
    struct gpu_grant grant;
    struct err err = {0};
    gpu_grant_fill(&grant, &at, &list);
    assert_int_equal(grant.given.items[0].n_processes, 0);
    assert_int_equal(gpu_grant_check(&grant, NULL, &err), 0);
    assert_int_equal(gpu_grant_check(&grant, "NVIDIA H100", &err), 0);
    assert_int_equal(gpu_grant_check(&grant, "NVIDIA A100", &err), ERR_LOCK);
    assert_string_equal(err.msg, "[pin] gpu: locked \"NVIDIA A100\", and GPU GPU-a is a \"NVIDIA "
                                 "H100 80GB\"");
    gpu_grant_release(&grant);
    (void)snprintf(at.gpus, sizeof(at.gpus), "GPU-a,GPU-z");
    gpu_grant_fill(&grant, &at, &list);
    assert_int_equal(gpu_grant_check(&grant, NULL, &err), ERR_BUSY);
    assert_string_equal(err.msg, "GPU GPU-z is not there any more");
    gpu_grant_release(&grant);
    gpu_list_release(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_hidden_from_the_daemon),
        cmocka_unit_test(test_check),
    };
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
    (void)unsetenv("ROCR_VISIBLE_DEVICES");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
