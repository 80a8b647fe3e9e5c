/* Which cells of a receipt are taken: each result once, of the same levels, with the work that it
 * rests on; and what is said of results that are too large, and of files that were not pinned. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "prereg/reuse/reuse_source.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

#define EXPERTS "[stage.train.when.arch]\nmoe = { experts = 4 }\n"
#define ALL     "[reuse]\nreceipt = \"old\"\ncells = \"matching\"\n"

static const struct matching_case {
    const char *title;
    const char *then; /* added to the first program */
    const char *kind; /* the name of the second one's factor */
    const char *now;  /* added to it */
    const char *says;
    size_t n_pins; /* tasks; 0: an error */
} CASES[] = {
    {"all of it", EXPERTS, "arch", EXPERTS ALL, "4 of 4 cells are taken", 8},
    {"one result for two cells", EXPERTS, "kind", ALL,
     "kind=moe,seed=2 runs: the receipt has no cell of that name or that work", 4},
    {"of another level", EXPERTS, "arch",
     "[reuse]\nreceipt = \"old\"\ncells = [{ arch = \"moe\", seed = 1 }]\n",
     "arch=moe,seed=1 cannot be reused: stage train: params.experts is nothing, and was 4", 0},
    {"a score of another training", "", "arch",
     "[[same_work]]\nacross = \"arch\"\nstages = [\"train\"]\n" ALL,
     "arch=moe,seed=1 cannot be reused: under [[same_work]] it would rest on another work", 0},
    {"an unpinned file", EXPERTS, "arch", EXPERTS "[pin]\nfiles = [\"more.txt\"]\n" ALL,
     "more.txt was not pinned by the earlier program", 8},
};

static struct plan_program *program_with(const char *factor, const char *more, const char *folder)
{
    char *text = xasprintf(
        "[program]\nname = \"small\"\nschema = 1\nquestion = \"Which?\"\n"
        "[[factor]]\nname = \"%s\"\nlevels = [\"dense\", \"moe\"]\n"
        "[[factor]]\nname = \"seed\"\nlevels = [1, 2]\nreplicate = true\n"
        "[stage.train]\ncommand = [\"./worker.sh\"]\nparams = { seed = \"$seed\" }\n"
        "[stage.score]\nafter = [\"train\"]\ncommand = [\"./worker.sh\"]\n"
        "[measure]\nacc = { metric = \"score.acc\" }\n"
        "[contrast]\narms = { between = { %s = [\"moe\", \"dense\"] } }\n"
        "[[input]]\nname = \"ahead\"\n"
        "levels = [[\"yes\", \"contrast.arms[acc].mean > 0\"], [\"no\", \"otherwise\"]]\n"
        "[table]\ninputs = [\"ahead\"]\nrows = [[\"yes\", \"O1\"], [\"no\", \"O2\"]]\n"
        "[outcome]\nO1 = { prior = 0.4, title = \"yes\" }\nO2 = { prior = 0.5, title = \"no\" }\n"
        "%s",
        factor, factor, more);
    struct plan_program *p = program_of(text, folder);
    free(text);
    return p;
}

/* A receipt in memory in which every task is done, with a result of at least so many bytes. */
static void source_make(struct reuse_source *src, const char *more, const char *folder,
                        size_t n_bytes)
{
    struct strbuf result = STRBUF_INIT;
    struct strbuf line = STRBUF_INIT;
    struct err err = {0};
    *src = (struct reuse_source){.folder = xstrdup(folder),
                                 .program = program_with("arch", more, folder)};
    assert_int_equal(lock_build(src->program, NULL, NULL, &src->lock, &err), 0);
    src->records = xcalloc(program_n_tasks(src->program), sizeof(*src->records));
    strbuf_adds(&result, "{\"metrics\":{},\"more\":\"");
    while (result.len < n_bytes) {
        strbuf_addc(&result, 'x');
    }
    strbuf_adds(&result, "\"}");
    cJSON *record = json_object();
    json_put_string(record, "result", result.buf);
    assert_int_equal(json_line(record, &line, &err), 0);
    for (size_t t = 0; t < program_n_tasks(src->program); t++) {
        src->records[t] = (struct reuse_record){
            .line = xstrdup(line.buf), .end = "done", .text = digest_bytes(result.buf, result.len)};
    }
    cJSON_Delete(record);
    strbuf_release(&result);
    strbuf_release(&line);
}

static void assert_said(const struct diag *d, const char *wanted)
{
    bool said = false;
    for (size_t i = 0; i < d->n_items; i++) {
        said = said || strstr(d->items[i].msg, wanted) != NULL;
    }
    if (!said) {
        fail_msg("nothing says \"%s\"; the first is \"%s\"", wanted,
                 d->n_items > 0 ? d->items[0].msg : "");
    }
}

static char *files_make(void)
{
    char *folder = scratch_make();
    free(scratch_write(folder, "more.txt", "upon\n", 0600));
    free(scratch_write(folder, "worker.sh", "#!/bin/sh\nexit 0\n", 0700));
    return folder;
}

static void match_case(const struct matching_case *x, const char *folder)
{
    struct plan_program *p = program_with(x->kind, x->now, folder);
    struct reuse_source src;
    struct lock *lock = NULL;
    struct diag diag;
    struct err err = {0};
    cJSON *pins = NULL;
    source_make(&src, x->then, folder, 0);
    diag_init(&diag, NULL);
    assert_int_equal(lock_build(p, NULL, NULL, &lock, &err), 0);
    const int rc = reuse_match(p, lock, &src, &diag, &pins, &err);
    assert_said(&diag, x->says);
    assert_int_equal(rc, x->n_pins > 0 ? 0 : ERR_INVALID);
    assert_int_equal(cJSON_GetArraySize(json_member(pins, "tasks")), x->n_pins);
    cJSON_Delete(pins);
    diag_release(&diag);
    lock_free(lock);
    program_free(p);
    reuse_close(&src);
}

static void test_what_is_taken(void **state)
{
    (void)state;
    char *folder = files_make();
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%s", CASES[i].title);
        match_case(&CASES[i], folder);
    }
    scratch_remove(folder);
}

/* The daemon would not take it back from disk. */
static void test_too_large(void **state)
{
    (void)state;
    char *folder = files_make();
    struct reuse_source src;
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    source_make(&src, EXPERTS, folder, LAYOUT_RESULT_MAX - 4096);
    assert_int_equal(reuse_text(&src, 0, &text, NULL, NULL, &err), 0);
    reuse_close(&src);
    strbuf_clear(&text);
    source_make(&src, EXPERTS, folder, LAYOUT_RESULT_MAX - 512);
    assert_int_equal(reuse_text(&src, 0, &text, NULL, NULL, &err), ERR_INVALID);
    assert_non_null(strstr(err.msg, "arch=dense,seed=1 is too large to be accepted again"));
    reuse_close(&src);
    strbuf_release(&text);
    scratch_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_taken),
        cmocka_unit_test(test_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
