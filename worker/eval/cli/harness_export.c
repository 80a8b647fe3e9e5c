/*
 * prereg-eval export-harness: writes lm-evaluation-harness's files of a finished attempt, under the
 * names and in the folders that its own readers look for. The attempt is loaded as a run would load
 * it, data verified against what the attempt read; its answers come from items.jsonl and its model
 * from the results file that the run left. Nothing is scored again.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "worker/eval/cli/commands.h"
#include "worker/eval/cli/evaluation.h"
#include "worker/eval/harness/harness_files.h"
#include "worker/report/flags.h"

/* What an attempt left. */
struct left {
    struct worker_task task;
    struct eval_session e;
    cJSON *result;
    cJSON *results; /* harness/results.json */
    struct harness_model model;
    struct stat when; /* of result.json */
};

/* What the run wrote about its model into harness/results.json. */
static int read_model(struct left *l, struct err *err)
{
    const cJSON *config = NULL;
    const cJSON *end = NULL;
    char *path = path_join(HARNESS_FOLDER, HARNESS_RESULTS);
    struct harness_model *m = &l->model;
    int rc = json_read_file(path, HARNESS_RESULTS_MAX, &l->results, err);
    if (rc != 0 || (rc = json_get_object(l->results, "config", &config, err)) != 0 ||
        (rc = json_get_string(config, "model_sha", &m->sha256, err)) != 0 ||
        (rc = json_get_int(config, "model_num_parameters", 0, JSON_INT_MAX, &m->parameters, err)) !=
            0 ||
        (rc = json_get_string(l->results, "pretty_env_info", &m->environment, err)) != 0 ||
        (rc = json_get_int(l->results, "eot_token_id", 0, UINT32_MAX, &m->end_id, err)) != 0 ||
        (rc = json_get_int(l->results, "max_length", 1, JSON_INT_MAX, &m->max_length, err)) != 0 ||
        (rc = json_get_array(l->results, "tokenizer_eos_token", &end, err)) != 0)
        (void)err_wrap(err, "%s", path);
    else if (cJSON_IsString(end->child))
        m->end_text = end->child->valuestring;
    free(path);
    return rc;
}

/* The data must be what the attempt read. */
static int check_reads(const struct left *l, struct err *err)
{
    const cJSON *read = NULL;
    int rc = json_get_object(l->result, "read", &read, err);
    for (size_t i = 0; rc == 0 && i < l->e.n_reads; i++) {
        char hex[DIGEST_HEX_SIZE];
        const char *there = NULL;
        const char *name = l->e.reads[i].data->name;
        if (name == NULL)
            continue;
        digest_hex(&l->e.reads[i].digest, hex);
        rc = json_get_string(read, name, &there, err);
        if (rc == 0 && strcmp(hex, there) != 0)
            rc = err_set(err, ERR_CORRUPT, "%s: %s is not what the attempt read", name,
                         l->e.reads[i].data->path);
    }
    return rc == 0 ? 0 : err_wrap(err, "%s", LAYOUT_RESULT);
}

/* Task, result and data of the attempt, which is the working directory. */
static int read_left(struct left *l, struct err *err)
{
    if (stat(LAYOUT_RESULT, &l->when) != 0)
        return err_set(err, ERR_NOT_FOUND, "no %s: the attempt is not done", LAYOUT_RESULT);
    int rc = json_read_file(LAYOUT_RESULT, LAYOUT_RESULT_MAX, &l->result, err);
    if (rc != 0 || (rc = task_read_attempt(".", &l->task, err)) != 0)
        return rc;
    evaluation_init(&l->e, &l->task);
    if ((rc = evaluation_load(&l->e, true, err)) != 0)
        return rc;
    if (harness_has_no_form(&l->e))
        return err_set(err, ERR_REFUSED, "lm-evaluation-harness has no task like '%s'",
                       l->e.options.spec->name);
    if ((rc = check_reads(l, err)) != 0)
        return rc;
    return read_model(l, err);
}

/* "_2026-11-21T09-36-04.772939", local time, as the harness names its files. */
static void add_stamp(const struct timespec *when, struct strbuf *out)
{
    struct tm local;
    char text[32];
    if (localtime_r(&when->tv_sec, &local) != NULL &&
        strftime(text, sizeof(text), "_%Y-%m-%dT%H-%M-%S", &local) > 0)
        strbuf_addf(out, "%s.%06ld", text, when->tv_nsec / 1000);
}

/* The files, in a folder named after the model and stamped with the result's time. */
static int write_left(struct left *l, const char *out, FILE *to, struct err *err)
{
    const char *missing = NULL;
    struct strbuf name = STRBUF_INIT;
    struct strbuf stamp = STRBUF_INIT;
    struct harness_files f = harness_files_of(&l->e);
    harness_model_name(&l->model, &name);
    add_stamp(&l->when.st_mtim, &stamp);
    char *folder = path_join(out, name.buf);
    f.folder = folder;
    f.stamp = stamp.buf;
    f.samples = true;
    f.results.model = &l->model;
    f.results.date = (double)l->when.st_mtim.tv_sec + (double)l->when.st_mtim.tv_nsec * 1e-9;
    int rc = json_get_object(l->result, "metrics", &f.results.metrics, err);
    if (rc != 0 || (rc = dir_make(folder, 0755, err)) != 0 ||
        (rc = harness_files_write(&f, &missing, err)) != 0)
        goto out;
    if (missing != NULL)
        rc = err_set(err, ERR_REFUSED, "%s: %s has no value", LAYOUT_RESULT, missing);
    else
        fprintf(to, "%s/results%s.json\n", folder, stamp.buf);
out:
    free(folder);
    strbuf_release(&name);
    strbuf_release(&stamp);
    return rc;
}

/* Enters the attempt's folder: its task may name data relative to it. */
static int export_from(const char *folder, const char *out, FILE *to, struct err *err)
{
    struct left l = {0};
    /* Before chdir(): the destination is relative to where the user is. */
    char *place = path_absolute(NULL, out);
    int rc = chdir(folder) == 0 ? 0 : err_set_errno(err, errno, "%s", folder);
    if (rc == 0 && (rc = read_left(&l, err)) == 0)
        rc = write_left(&l, place, to, err);
    if (l.e.task != NULL)
        evaluation_release(&l.e);
    task_release(&l.task);
    cJSON_Delete(l.result);
    cJSON_Delete(l.results);
    free(place);
    return rc;
}

/* export-harness ATTEMPT -o FOLDER */
int command_export_harness(char **args, FILE *out, struct err *err)
{
    struct flag to = {.name = "-o"};
    int rc = flags_take(args, &to, 1, err);
    if (rc != 0)
        return rc;
    if (args[0] == NULL || args[1] != NULL || to.value == NULL)
        return err_set(err, ERR_USAGE, "export-harness takes an attempt's folder and -o FOLDER");
    return export_from(args[0], to.value, out, err);
}
