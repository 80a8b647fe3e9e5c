#include "tests/unit/prereg/amending.h"
#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "prereg/amend/amend_rules.h"
#include "prereg/amend/amendment.h"
#include "tests/unit/prereg/support.h"

const char amending_program[] =
    "[program]\nname = \"p\"\nschema = 1\nquestion = \"Which?\"\n"
    "[[factor]]\nname = \"arch\"\nlevels = [\"dense\", \"moe\"]\n"
    "[[factor]]\nname = \"seed\"\nlevels = [1, 2]\nreplicate = true\n"
    "[data]\ncorpus = \"corpus.txt\"\n"
    "[stage.train]\ncommand = [\"./worker.sh\"]\nthreads = 2\nparams = { lr = 1e-3, data = "
    "\"corpus\" }\n"
    "[stage.train.when.arch]\nmoe = { experts = 4 }\n"
    "[stage.score]\nafter = [\"train\"]\ncommand = [\"./worker.sh\"]\nparams = { shots = 5 }\n"
    "[stage.other]\nafter = [\"train\"]\ncommand = [\"./worker.sh\"]\nenv = { MODE = \"a\" }\n"
    "[measure]\n"
    "acc = { metric = \"score.acc_norm\", items = 100, chance = 0.25, floor = 0.3, best_arm = 0.31 "
    "}\n"
    "more = { metric = \"other.acc\", chance = 0.25, floor = 0.3 }\n"
    "loss = { metric = \"train.val_loss\", better = \"lower\", counted = false }\n"
    "[contrast]\narch = { between = { arch = [\"moe\", \"dense\"] } }\n"
    "[counter]\nk = { contrast = \"arch\", clears = \"every_cell\", binds = true }\n"
    "[[input]]\nname = \"cleared\"\nlevels = [[\"yes\", \"counter.k >= 1\"], [\"no\", "
    "\"otherwise\"]]\n"
    "[table]\ninputs = [\"cleared\"]\nrows = [[\"yes\", \"O1\"], [\"no\", \"O2\"]]\n"
    "[outcome]\nO1 = { prior = 0.4, title = \"cleared\" }\nO2 = { prior = 0.5, title = \"not\" }\n"
    "[exclusion]\nbudget = 0.1\n"
    "[validity]\nstep = { condition = \"0.85 <= ratio(fact.train.step_seconds, arch, 'moe', "
    "'dense') <= 1.2\", on_fail = \"flag\", timing = true }\n"
    "[instrument.bayes]\nkind = \"bayes\"\ncontrast = \"arch\"\npriors = { wide = 0.02 }\n"
    "[forecast]\nahead = { condition = \"contrast.arch.mean > 0\", confidence = 0.8 }\n"
    "[pin]\nworkers = \"record\"\n";

int amending_world_make(void **state)
{
    struct amending_world *w = xcalloc(1, sizeof(*w));
    struct err err = {0};
    w->folder = scratch_make();
    w->amendments = path_join(w->folder, LAYOUT_AMENDMENTS);
    free(scratch_write(w->folder, "corpus.txt", "once upon a time\n", 0600));
    free(scratch_write(w->folder, "copy.txt", "once upon a time\n", 0600));
    free(scratch_write(w->folder, "worker.sh", "#!/bin/sh\nexit 0\n", 0700));
    w->program = program_of(amending_program, w->folder);
    assert_int_equal(lock_build(w->program, NULL, NULL, &w->lock, &err), 0);
    char *path = path_join(w->folder, "grid.toml.lock");
    assert_int_equal(lock_write(w->lock, path, false, &err), 0);
    free(path);
    *state = w;
    return 0;
}

int amending_world_remove(void **state)
{
    struct amending_world *w = *state;
    lock_free(w->lock);
    program_free(w->program);
    scratch_remove(w->folder);
    free(w->amendments);
    free(w);
    return 0;
}

struct amending_judged amending_judge(const struct amending_world *w, const char *text,
                                      enum access_level level, uint64_t started)
{
    struct amending_judged j = {.refused = json_array()};
    struct plan_program *then = program_of(text, w->folder);
    struct amend_state s = {w->program, then, level, {{started}}, NULL};
    cJSON *locked = NULL;
    struct err err = {0};
    if (amend_build_locked(w->lock, &s, NULL, &locked, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    j.changes = amendment_changes(w->lock->locked, locked);
    amend_classify(&s, j.changes, j.refused);
    cJSON_Delete(locked);
    program_free(then);
    return j;
}

void amending_judged_release(struct amending_judged *j)
{
    cJSON_Delete(j->changes);
    cJSON_Delete(j->refused);
}

const char *amending_text_of(const cJSON *o, const char *key)
{
    const char *text = NULL;
    struct err err;
    assert_int_equal(json_get_string(o, key, &text, &err), 0);
    return text;
}

void amending_put_head(cJSON *a)
{
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    char hex[DIGEST_HEX_SIZE];
    cJSON_DeleteItemFromObjectCaseSensitive(a, "head");
    assert_int_equal(amendment_text(a, &text, &err), 0);
    struct digest d = digest_bytes(text.buf, text.len);
    digest_hex(&d, hex);
    json_put_string(a, "head", hex);
    strbuf_release(&text);
}

/* The number-th amendment: the band of validity from one to another. */
cJSON *amending_amendment_of(const struct amending_world *w, int number, const char *previous,
                             const char *const values[2])
{
    cJSON *a = json_object();
    json_put_int(a, "schema", 1);
    json_put_int(a, "number", number);
    json_put_string(a, "program", "p");
    json_put_string(a, "root", w->lock->root);
    json_put_string(a, "previous", previous);
    json_put_string(a, "time", "2026-01-01T00:00:00.000Z");
    json_put_string(a, "level", "nothing_run");
    json_put_string(a, "reason", "because");
    cJSON *path = json_array();
    json_push_string(path, "plan");
    json_push_string(path, "measure");
    json_push_string(path, "acc");
    json_push_string(path, "metric");
    cJSON *change = json_object();
    json_put(change, "path", path);
    json_put_string(change, "section", "metric of a measure");
    json_put_string(change, "from", values[0]);
    json_put_string(change, "to", values[1]);
    json_put_bool(change, "post_hoc", false);
    cJSON *changes = json_array();
    json_push(changes, change);
    json_put(a, "changes", changes);
    json_put_null(a, "signature");
    amending_put_head(a);
    return a;
}

void amending_write_amendment(const struct amending_world *w, size_t number, const cJSON *a)
{
    struct err err = {0};
    char *path = amendment_file(w->amendments, number, "json");
    assert_int_equal(dir_make(w->amendments, 0700, &err), 0);
    assert_int_equal(json_write_file(path, a, 0600, &err), 0);
    free(path);
}

void amending_expect_refused(const struct amending_world *w, int code, const char *word)
{
    struct lock *lock = NULL;
    struct err err = {0};
    assert_int_equal(lock_read_amended(w->folder, &lock, &err), code);
    assert_null(lock);
    if (strstr(err.msg, word) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.msg, word);
    }
}

void amending_set_text(cJSON *a, const char *key, const char *value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(a, key);
    json_put_string(a, key, value);
}

cJSON *amending_amendment_with(const struct amending_world *w, const cJSON *changes,
                               enum access_level level)
{
    const char *const none[2] = {"", ""};
    cJSON *a = amending_amendment_of(w, 1, w->lock->root, none);
    cJSON_DeleteItemFromObjectCaseSensitive(a, "changes");
    json_put(a, "changes", json_copy(changes));
    amending_set_text(a, "level", access_level_name(level));
    amending_put_head(a);
    return a;
}
