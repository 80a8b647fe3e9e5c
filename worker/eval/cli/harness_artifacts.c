/*
 * The harness's files at the end of a run, as artifacts of its result. A metric without a value
 * leaves no files but a note: the harness has no way to say so. Files of an earlier run by hand are
 * removed first, since they may be of other parameters.
 */
#include <math.h>
#include <stdlib.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "worker/eval/cli/evaluation.h"
#include "worker/eval/cli/run.h"
#include "worker/eval/harness/harness_files.h"

/* The digest of what the parameter read; zero when it is not given. */
static struct digest digest_of(const struct eval_session *e, const char *key)
{
    for (size_t i = 0; i < e->n_reads; i++) {
        if (strcmp(e->reads[i].key, key) == 0)
            return e->reads[i].digest;
    }
    return (struct digest){0};
}

struct harness_files harness_files_of(const struct eval_session *e)
{
    return (struct harness_files){.bench = &e->bench,
                                  .judge = &e->judge,
                                  .items = LAYOUT_ITEMS,
                                  .results = {.options = &e->options,
                                              .data = digest_of(e, "data"),
                                              .fewshot_data = digest_of(e, "fewshot_data"),
                                              .bootstrap = e->options.bootstrap,
                                              .date = (double)NAN}};
}

bool harness_has_no_form(const struct eval_session *e)
{
    for (size_t g = 1; g < e->bench.set.n_groups; g++) {
        if (e->bench.set.groups[g].spec != e->bench.set.groups[0].spec)
            return true;
    }
    return false;
}

/* Every file of the folder becomes an artifact. */
static int add_artifacts(struct worker_result *result, struct err *err)
{
    struct name_list names;
    int rc = dir_list(HARNESS_FOLDER, &names, err);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        char *path = path_join(HARNESS_FOLDER, names.names[i]);
        rc = result_artifact(result, path, err);
        free(path);
    }
    name_list_release(&names);
    return rc;
}

/* Writes the folder, or removes what was begun. */
static int write_into_attempt(struct eval_session *e, struct harness_files *f,
                              struct worker_result *result, struct err *err)
{
    const char *missing = NULL;
    int rc = dir_make(HARNESS_FOLDER, 0755, err);
    if (rc == 0)
        rc = harness_files_write(f, &missing, err);
    if (rc == 0 && missing == NULL)
        return add_artifacts(result, err);
    if (rc == 0) {
        events_note(&e->events, "no %s/: %s has no value", HARNESS_FOLDER, missing);
        return dir_remove(HARNESS_FOLDER, err);
    }
    struct err ignored;
    if (dir_remove(HARNESS_FOLDER, &ignored) != 0)
        (void)err_wrap(err, "%s/ is left behind", HARNESS_FOLDER);
    return rc;
}

int harness_run_write(struct eval_session *e, struct worker_result *result, struct err *err)
{
    char hex[DIGEST_HEX_SIZE];
    struct strbuf environment = STRBUF_INIT;
    struct strbuf end_text = STRBUF_INIT;
    const struct digest digest = model_digest(e->model);
    const uint32_t end = tokenizer_end_of_text(e->tok);
    /* What a run by hand left here before may be of other parameters. */
    int rc = dir_remove(HARNESS_FOLDER, err);
    if (rc != 0 || harness_has_no_form(e))
        return rc;
    digest_hex(&digest, hex);
    /* Nothing that names the machine: the file has a digest in the result. */
    strbuf_addf(&environment, "%s of preregd %s\narithmetic: version %d", EVAL_ENGINE,
                PREREGD_VERSION, model_environment(SCORE_THREADS).arithmetic);
    rc = tokenizer_decode(e->tok, &end, 1, &end_text, err);
    const struct harness_model model = {.sha256 = hex,
                                        .environment = environment.buf,
                                        .end_text = end_text.len == 0 ? NULL : end_text.buf,
                                        .end_id = end,
                                        .parameters = model_config_total(model_shape(e->model)),
                                        .max_length = model_shape(e->model)->context};
    struct harness_files f = harness_files_of(e);
    f.folder = HARNESS_FOLDER;
    f.stamp = "";
    f.samples = e->options.samples;
    f.results.metrics = result->metrics;
    f.results.model = &model;
    if (rc == 0)
        rc = write_into_attempt(e, &f, result, err);
    strbuf_release(&environment);
    strbuf_release(&end_text);
    return rc;
}
