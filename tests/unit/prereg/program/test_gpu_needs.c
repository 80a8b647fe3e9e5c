/* What a program asks of GPUs against those of a machine: what never fits, with the figures; and
 * what loading refuses. */
#include <stdlib.h>

#include "prereg/program/gpu_needs.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

#define GIB "1073741824"
#define LIST                                                                                       \
    "[{\"uuid\":\"GPU-a\",\"model\":\"NVIDIA H100\",\"memory_bytes\":85899345920},"                \
    "{\"uuid\":\"GPU-b\",\"model\":\"NVIDIA H100\",\"memory_bytes\":85899345920},"                 \
    "{\"uuid\":\"GPU-c\",\"model\":\"NVIDIA T4\",\"memory_bytes\":" GIB "},"                       \
    "{\"uuid\":\"MIG-d\",\"model\":\"NVIDIA MIG\"}]"
#define HAS                                                                                        \
    "this machine has 2 x NVIDIA H100 (80 GiB), 1 x NVIDIA T4 (1 GiB), 1 x NVIDIA MIG "            \
    "(memory unknown)\n"

static struct plan_program *program_with(const char *run, const char *pin)
{
    char *with_run = text_replace(SMALL_PROGRAM, "[run.train]\n", run);
    char *text = text_replace(with_run, "[run]\n", pin);
    struct plan_program *p = program_of(text, NULL);
    free(text);
    free(with_run);
    return p;
}

static char *said(const struct plan_program *p, const char *json)
{
    struct strbuf out = STRBUF_INIT;
    struct gpu_list list;
    struct diag diag;
    struct err err;
    assert_int_equal(gpu_list_read(json, strlen(json), &list, &err), 0);
    diag_init(&diag, "grid.toml");
    gpu_needs_check(p, &list, DIAG_WARNING, &diag);
    for (size_t i = 0; i < diag.n_items; i++) {
        assert_int_not_equal(diag.items[i].line, 0);
        strbuf_addf(&out, "%s\n", diag.items[i].msg);
    }
    diag_release(&diag);
    gpu_list_release(&list);
    return strbuf_detach(&out);
}

static void test_never_fits(void **state)
{
    (void)state;
    static const struct {
        const char *run;
        const char *pin;
        const char *list;
        const char *says;
    } rows[] = {
        {"[run.train]\n", "[run]\n", "[]", ""},
        {"[run.train]\ngpus = 0\n", "[run]\n", "[]", ""},
        {"[run.train]\ngpus = 1\n", "[run]\n", LIST, ""},
        {"[run.train]\ngpus = 1\n", "[run]\n", "[]",
         "run.train.gpus: an attempt needs 1 GPU, and this machine has none\n"},
        {"[run.train]\ngpus = 2\n", "[run]\n", LIST, ""},
        {"[run.train]\ngpus = 3\n", "[run]\n", LIST,
         "run.train.gpus: an attempt needs 3 GPUs of one model, and " HAS},
        {"[run.train]\ngpus = 17\n", "[run]\n", LIST,
         "run.train.gpus: an attempt on one machine has at most 16 GPUs\n"},
        {"[run.train]\ngpus = 0.5\ngpu_memory = \"80GiB\"\n", "[run]\n", LIST, ""},
        {"[run.train]\ngpus = 0.5\ngpu_memory = \"81GiB\"\n", "[run]\n", LIST,
         "run.train.gpus: an attempt needs 0.5 of a GPU with 81 GiB, and " HAS},
        {"[run.train]\ngpus = 2\ngpu_memory = \"81GiB\"\n", "[run]\n", LIST,
         "run.train.gpus: an attempt needs 2 GPUs of one model with 81 GiB each, and " HAS},
        {"[run.train]\ngpus = 1\n", "[pin]\ngpu = \"NVIDIA H100\"\n[run]\n", LIST, ""},
        {"[run.train]\ngpus = 1\n", "[pin]\ngpu = \"NVIDIA H\"\n[run]\n", LIST,
         "run.train.gpus: an attempt needs 1 GPU of the model \"NVIDIA H\" ([pin] gpu), and " HAS},
        {"[run.train]\ngpus = 2\n", "[run]\ngpus = [\"GPU-a\", 2]\n", LIST,
         "run.train.gpus: an attempt needs 2 GPUs of one model, and this machine has 1 x NVIDIA "
         "H100 (80 GiB), 1 x NVIDIA T4 (1 GiB)\n"},
        {"[run.train]\ngpus = 1\n", "[run]\ngpus = 0\n", LIST,
         "run.train.gpus: an attempt needs 1 GPU, and this machine has none that [run] gpus "
         "names\n"},
        {"[run.train]\nexecutor = \"slurm\"\ngpus = 9\n", "[run]\n", LIST, ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_ROW("%s%s", rows[i].run, rows[i].pin);
        struct plan_program *p = program_with(rows[i].run, rows[i].pin);
        char *text = said(p, rows[i].list);
        assert_string_equal(text, rows[i].says);
        free(text);
        program_free(p);
    }
}

/* The model is part of the plan, and so of the root. */
static void test_pin_is_locked(void **state)
{
    (void)state;
    struct plan_program *p = program_with("[run.train]\n", "[pin]\ngpu = \"NVIDIA H100\"\n[run]\n");
    struct strbuf text = STRBUF_INIT;
    struct err err;
    assert_string_equal(p->pin_gpu, "NVIDIA H100");
    assert_false(gpu_needs_any(p));
    assert_int_equal(program_canonical(p, &text, &err), 0);
    assert_non_null(strstr(text.buf, "\"pin\":{\"gpu\":\"NVIDIA H100\"}"));
    strbuf_release(&text);
    program_free(p);
}

static void test_refused(void **state)
{
    (void)state;
    char *with_env = text_replace(SMALL_PROGRAM, "[stage.train]\n",
                                  "[stage.train]\nenv = { ROCR_VISIBLE_DEVICES = \"0\" }\n");
    struct plan_program *p = program_of(with_env, NULL); /* without GPUs its value is its own */
    char *text = text_replace(with_env, "[run.train]\n", "[run.train]\ngpus = 1\n");
    char *said_of = diagnostics_of(text);
    assert_non_null(strstr(said_of, "error: run.train.gpus: the stage's env sets "
                                    "ROCR_VISIBLE_DEVICES, so its attempts would not use the GPUs "
                                    "that they are given; remove one of the two\n"));
    free(said_of);
    free(text);
    program_free(p);
    free(with_env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_never_fits),
        cmocka_unit_test(test_pin_is_locked),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
