/*
 * Which of a source's samples files is of which task: `samples_<task>_<time>.jsonl` from 0.4.3 on,
 * `<model>_<task>.jsonl` before. The longest name of a task of the results file that fits is meant,
 * so that mmlu's file is not taken for mmlu_anatomy's.
 */
#include <ctype.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "truthtable/imported/import.h"
#include "truthtable/imported/samples.h"

#define PREFIX "samples_"

/* What follows the task's name: a suffix, or the time of the run. */
static bool ends_name(const char *rest)
{
    return strcmp(rest, ".jsonl") == 0 || strcmp(rest, ".json") == 0 ||
           (rest[0] == '_' && isdigit((unsigned char)rest[1]));
}

/* Whether a file's name is that of the task's samples. */
static bool names_task(const char *name, const char *task)
{
    const size_t len = strlen(task);
    const size_t prefix = strlen(PREFIX);
    if (strncmp(name, PREFIX, prefix) == 0 && strncmp(name + prefix, task, len) == 0 &&
        ends_name(name + prefix + len)) {
        return true;
    }
    for (const char *at = strstr(name, task); at != NULL; at = strstr(at + 1, task)) {
        if ((at == name || at[-1] == '_') &&
            (strcmp(at + len, ".jsonl") == 0 || strcmp(at + len, ".json") == 0)) {
            return true;
        }
    }
    return false;
}

/* The task whose samples a file holds, by its name; NULL if no task fits. */
static const struct results_entry *task_of_file(const struct imported_results *r, const char *path)
{
    const struct results_entry *best = NULL;
    const char *name = path_name(path);
    for (size_t i = 0; i < r->n_entries; i++) {
        const struct results_entry *e = &r->entries[i];
        if (e->task[0] != '\0' && names_task(name, e->task) &&
            (best == NULL || strlen(e->task) > strlen(best->task))) {
            best = e;
        }
    }
    return best;
}

/* All files of the source's patterns. A pattern without a file is an error, because it was written
 * for one. */
static int find_files(const struct map_source *source, glob_t *found, struct err *err)
{
    for (size_t i = 0; i < source->n_samples; i++) {
        int flags = i == 0 ? 0 : GLOB_APPEND;
        int status = glob(source->samples[i], flags, NULL, found);
        if (status == GLOB_NOMATCH) {
            return err_set(err, ERR_NOT_FOUND, "no file %s", source->samples[i]);
        }
        if (status != 0) {
            return err_set(err, ERR_IO, "look for %s", source->samples[i]);
        }
    }
    return 0;
}

/* The path of the leaf's samples; NULL when there is none. One file for one task need not be named
 * after it. */
static int choose(const struct import_task *t, const struct results_entry *leaf,
                  const glob_t *found, const char **path, struct err *err)
{
    *path = NULL;
    for (size_t i = 0; i < found->gl_pathc; i++) {
        if (task_of_file(t->results, found->gl_pathv[i]) != leaf) {
            continue;
        }
        if (*path != NULL) {
            return err_set(err, ERR_REFUSED, "two samples files of %.60s: %s and %s", leaf->task,
                           *path, found->gl_pathv[i]);
        }
        *path = found->gl_pathv[i];
    }
    if (*path == NULL && t->n_leaves == 1 && found->gl_pathc == 1 &&
        task_of_file(t->results, found->gl_pathv[0]) == NULL) {
        *path = found->gl_pathv[0];
    }
    return 0;
}

/* Reads the samples of one task, compares them with the results file, and adds a receipt that says
 * what was recomputed. */
static int check_leaf(struct import *im, const struct import_task *t,
                      const struct results_entry *leaf, const char *path, struct err *err)
{
    struct samples s;
    struct strbuf checked = STRBUF_INIT;
    int rc = samples_init(&s, t->results, leaf, err);
    if (rc != 0 || (rc = samples_read(&s, path, err)) != 0) {
        goto out;
    }
    rc = samples_compare(&s, err);
    if (rc == 0 && !leaf->has_n && s.n_filters > 0) {
        rc = results_set_count(t->results, leaf, (int64_t)s.n_docs[0], err);
    }
    if (rc != 0) {
        rc = err_wrap(err, "%s", path);
        goto out;
    }
    cJSON *receipt = import_receipt(im, "samples", path, &s.digest, s.n_bytes);
    samples_describe(&s, &checked);
    json_put_string(receipt, "cell", im->program->cells[t->cell].name);
    json_put_string(receipt, "stage", im->program->stages[t->stage].name);
    json_put_string(receipt, "task", leaf->task);
    json_put_int(receipt, "lines", (int64_t)s.n_lines);
    json_put_string(receipt, "checked", checked.buf);
out:
    strbuf_release(&checked);
    samples_release(&s);
    return rc;
}

/* Tasks without samples are taken as the results file has them, with a warning. */
int sampled_check(struct import *im, const struct import_task *t, const struct map_source *source,
                  struct err *err)
{
    glob_t found = {0};
    size_t n_checked = 0;
    if (source->n_samples == 0) {
        return 0;
    }
    int rc = find_files(source, &found, err);
    for (size_t i = 0; rc == 0 && i < t->n_leaves; i++) {
        const char *path = NULL;
        rc = choose(t, t->leaves[i], &found, &path, err);
        if (rc == 0 && path != NULL) {
            rc = check_leaf(im, t, t->leaves[i], path, err);
            n_checked++;
        }
    }
    if (rc == 0 && n_checked < t->n_leaves) {
        import_warn(im,
                    "%s %s: samples of %zu of %zu tasks; the rest is taken as the results file "
                    "says",
                    im->program->cells[t->cell].name, im->program->stages[t->stage].name, n_checked,
                    t->n_leaves);
    }
    globfree(&found);
    return rc;
}
