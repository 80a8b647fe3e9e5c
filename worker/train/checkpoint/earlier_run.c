/*
 * The parameters of a run are in the manifest of each of its checkpoints, so that a later one can
 * name what differs. They are compared as written: a default that one of the two spells out is a
 * difference. A width that was solved is compared instead of the `match` that it came from.
 */
#include "worker/train/checkpoint/earlier_run.h"

#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"

#define VALUE_SHOWN 60

static void put_digest(cJSON *obj, const char *name, const struct digest *d)
{
    char hex[DIGEST_HEX_SIZE];

    digest_hex(d, hex);
    json_put_string(obj, name, hex);
}

static void drop(cJSON *obj, const char *key)
{
    cJSON_DeleteItemFromObjectCaseSensitive(obj, key);
}

static cJSON *comparable_params(const struct worker_task *task, const struct train_options *opt)
{
    static const char *const free_keys[] = {"init", "marks", "match", "resume_any_core",
                                            "snapshots"};
    const char *width = opt->model.experts > 0 ? "expert_ffn" : "ffn";
    cJSON *params = json_copy(task->params);

    for (size_t i = 0; i < ARRAY_LEN(free_keys); i++)
        drop(params, free_keys[i]);
    cJSON *horizon = cJSON_GetObjectItemCaseSensitive(params, "horizon");
    if (horizon != NULL)
        drop(horizon, "stop");
    if (opt->solved) {
        drop(params, width);
        json_put_int(params, width, opt->solved_ffn);
    }
    return params;
}

cJSON *earlier_run_identity(const struct worker_task *task, const struct train_options *opt,
                            const struct train_data *data)
{
    cJSON *obj = json_object(), *digests;

    json_put(obj, CHECKPOINT_RUN_PARAMS, comparable_params(task, opt));
    if (data == NULL)
        return obj;
    digests = json_object();
    for (size_t i = 0; i < data->n_sources; i++)
        put_digest(digests, data->sources[i].name, &data->sources[i].read);
    if (data->validation.name != NULL)
        put_digest(digests, data->validation.name, &data->validation.read);
    if (!digest_is_zero(&data->tokenizer_read))
        put_digest(digests, opt->tokenizer, &data->tokenizer_read);
    json_put(obj, CHECKPOINT_RUN_DATA, digests);
    return obj;
}

/* --- what the earlier run was --- */

static bool holds_manifest(const char *folder)
{
    char *path = path_join(folder, CHECKPOINT_MANIFEST);
    bool found = access(path, F_OK) == 0;

    free(path);
    return found;
}

/* The folder of the checkpoint: the data's own, or "run" in it. The caller's. */
static int find_folder(const struct worker_task *task, const struct train_options *opt,
                       struct task_data *entry, char **out, struct err *err)
{
    int rc = task_find_data(task, opt->init_run, entry, err);

    *out = NULL;
    if (rc < 0)
        return rc;
    char *inner = path_join(entry->path, EARLIER_RUN_FOLDER);
    if (holds_manifest(entry->path))
        *out = xstrdup(entry->path);
    else if (holds_manifest(inner))
        *out = xstrdup(inner);
    free(inner);
    return *out != NULL
               ? 0
               : err_set(err, ERR_NOT_FOUND,
                         "%s: no run that can be continued: expected the folder \"run\" that "
                         "horizon.stop leaves, or a checkpoint",
                         entry->path);
}

/* A value as JSON, cut; "absent" for NULL. */
static void show(const cJSON *v, char out[VALUE_SHOWN])
{
    struct strbuf text = STRBUF_INIT;
    struct err ignored;

    if (v == NULL || json_canonical(v, &text, &ignored) < 0)
        (void)snprintf(out, VALUE_SHOWN, "absent");
    else
        (void)snprintf(out, VALUE_SHOWN, "%s", text.buf);
    strbuf_release(&text);
}

static void compare_key(const char *key, const cJSON *theirs, const cJSON *ours,
                        struct param_faults *faults)
{
    char a[VALUE_SHOWN], b[VALUE_SHOWN];
    struct params p;

    if (theirs != NULL && ours != NULL && json_equal(theirs, ours))
        return;
    show(theirs, a);
    show(ours, b);
    params_init(&p, NULL, faults);
    params_fault(&p, ours == NULL ? "init.run" : key, "%s%sthe earlier run has %s, this one %s",
                 ours == NULL ? key : "", ours == NULL ? ": " : "", a, b);
}

static void compare_params(const cJSON *theirs, const cJSON *ours, struct param_faults *faults)
{
    const cJSON *v;

    cJSON_ArrayForEach(v, ours) compare_key(v->string, json_member(theirs, v->string), v, faults);
    cJSON_ArrayForEach(v, theirs) if (json_member(ours, v->string) == NULL)
        compare_key(v->string, v, NULL, faults);
}

/* Marks behind the run's beginning can only be the earlier run's. */
static void check_marks(const cJSON *state, const struct train_options *opt, int64_t step,
                        struct param_faults *faults)
{
    const cJSON *marks = json_member(state, "marks");
    struct params p;

    params_init(&p, NULL, faults);
    for (size_t i = 0; i < opt->n_marks; i++) {
        const cJSON *m = checkpoint_state_find_mark(marks, opt->marks[i]);
        int64_t at = horizon_fraction(opt->steps, opt->marks[i]);
        if (at < step && opt->is_snapshot[i])
            params_fault(&p, "snapshots", "%g is the earlier run's to leave, which is beyond it",
                         opt->marks[i]);
        else if (at < step && m == NULL)
            params_fault(&p, "marks", "%g was not a mark of the earlier run, which is beyond it",
                         opt->marks[i]);
    }
}

/* Whether an uninterrupted run with these options evaluates at a step before its end. */
static bool is_evaluated(const struct train_options *opt, int64_t step)
{
    for (size_t i = 0; i < opt->n_marks; i++)
        if (horizon_fraction(opt->steps, opt->marks[i]) == step)
            return true;
    return opt->eval_every > 0 && step > 0 && step % opt->eval_every == 0;
}

/* The lowest loss and the target's step of the state count the evaluations at the earlier run's
 * marks, so an uninterrupted run has to make those too. */
static void check_their_marks(const cJSON *state, const struct train_options *opt, int64_t step,
                              struct param_faults *faults)
{
    const cJSON *m;
    struct params p;

    params_init(&p, NULL, faults);
    cJSON_ArrayForEach(m, json_member(state, "marks"))
    {
        const cJSON *at = json_member(m, "at");
        if (!cJSON_IsNumber(at) || !(at->valuedouble > 0.0 && at->valuedouble <= 1.0))
            continue; /* not a state of ours: loading it reports why */
        const int64_t their = horizon_fraction(opt->steps, at->valuedouble);
        if (their < step && !is_evaluated(opt, their))
            params_fault(&p, "marks",
                         "the earlier run has the mark %g, this one does not: add it, since the "
                         "evaluation there counts for best_val_loss and target_step",
                         at->valuedouble);
    }
}

static void check_step(struct train_options *opt, int64_t step, struct param_faults *faults)
{
    const int64_t end = train_options_end(opt);
    struct params p;

    params_init(&p, NULL, faults);
    if (step >= end)
        params_fault(&p, "init.run", "the earlier run is at step %lld, this one ends at step %lld",
                     (long long)step, (long long)end);
    else if (opt->model.experts > 0 && step > horizon_tail_begin(end))
        params_fault(&p, "init.run",
                     "the earlier run is at step %lld, after step %lld, from which on the routers' "
                     "facts are summed",
                     (long long)step, (long long)horizon_tail_begin(end));
}

static int read_json(const char *folder, const char *name, size_t most, cJSON **out,
                     struct err *err)
{
    char *path = path_join(folder, name);
    int rc = json_read_file(path, most, out, err);

    free(path);
    return rc;
}

static int read_earlier(const char *folder, cJSON **manifest, cJSON **state, int64_t *step,
                        struct err *err)
{
    int64_t version = 0;
    int rc;

    if ((rc = read_json(folder, CHECKPOINT_MANIFEST, CHECKPOINT_MANIFEST_MAX, manifest, err)) < 0 ||
        (rc = json_get_int(*manifest, "preregd_checkpoint", CHECKPOINT_VERSION, CHECKPOINT_VERSION,
                           &version, err)) < 0 ||
        (rc = json_get_int(*manifest, "step", 1, INT32_MAX, step, err)) < 0)
        return rc;
    return read_json(folder, CHECKPOINT_STATE, CHECKPOINT_STATE_MAX, state, err);
}

static void compare(const cJSON *manifest, const cJSON *state, int64_t step,
                    const struct worker_task *task, struct train_options *opt,
                    struct param_faults *faults)
{
    const size_t before = faults->n;
    const cJSON *theirs = json_member(manifest, CHECKPOINT_IDENTITY);
    cJSON *ours = earlier_run_identity(task, opt, NULL);

    theirs = theirs == NULL ? NULL : json_member(theirs, CHECKPOINT_RUN_PARAMS);
    compare_params(theirs, json_member(ours, CHECKPOINT_RUN_PARAMS), faults);
    cJSON_Delete(ours);
    if (faults->n > before)
        return;
    if (task->try_steps > 0) { /* fewer steps, from the run's weights */
        opt->whole_work -= (double)step * (double)opt->batch_tokens;
        return;
    }
    check_step(opt, step, faults);
    check_marks(state, opt, step, faults);
    check_their_marks(state, opt, step, faults);
    opt->first_step = step;
}

int earlier_run_check(const struct worker_task *task, struct train_options *opt,
                      struct param_faults *faults, struct err *err)
{
    struct task_data entry;
    cJSON *manifest = NULL, *state = NULL;
    char *folder = NULL;
    int64_t step = 0;

    if (opt->init_run == NULL)
        return 0;
    int rc = find_folder(task, opt, &entry, &folder, err);
    if (rc == 0 && (rc = read_earlier(folder, &manifest, &state, &step, err)) == 0)
        compare(manifest, state, step, task, opt, faults);
    cJSON_Delete(manifest);
    cJSON_Delete(state);
    free(folder);
    return rc < 0 ? err_wrap(err, "init.run") : 0;
}

int earlier_run_verify(const struct worker_task *task, const struct train_options *opt,
                       struct train_data *data, struct err *err)
{
    struct task_data entry;

    if (opt->init_run == NULL)
        return 0;
    int rc = task_find_data(task, opt->init_run, &entry, err);
    if (rc == 0)
        rc = task_verify_data(&entry, &data->init, err);
    return rc < 0 ? err_wrap(err, "init.run") : 0;
}

int earlier_run_load(struct trainer *t, const struct worker_task *task,
                     const struct checkpoint_run *run, struct err *err)
{
    struct task_data entry;
    char *folder = NULL;

    int rc = find_folder(task, t->opt, &entry, &folder, err);
    if (rc == 0)
        rc = checkpoint_continue(t, folder, run, task->try_steps > 0, err);
    free(folder);
    return rc < 0 ? err_wrap(err, "init.run") : 0;
}

int earlier_run_write(const struct trainer *t, const struct checkpoint_run *run, struct err *err)
{
    struct checkpoint_image view;

    checkpoint_image_init(&view);
    int rc = dir_remove(EARLIER_RUN_FOLDER, err); /* of an attempt by hand, in the same folder */
    if (rc == 0 && (rc = checkpoint_image_view(&view, t, err)) == 0)
        rc = checkpoint_write_to(&view, run, EARLIER_RUN_FOLDER, err);
    checkpoint_image_release(&view);
    return rc;
}

int earlier_run_artifacts(struct worker_result *r, struct err *err)
{
    /* history.bin and the manifest differ from run to run: they hold times. */
    static const char *const names[] = {"weights.bin", "moment1.bin", "moment2.bin", "router.bin",
                                        CHECKPOINT_STATE};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(names); i++) {
        char *path = path_join(EARLIER_RUN_FOLDER, names[i]);
        rc = result_artifact(r, path, err);
        free(path);
    }
    return rc;
}
