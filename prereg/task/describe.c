/*
 * Runs `COMMAND --describe task.json` for every condition and stage, one process after another, in
 * a temporary folder. Workers run from copies, as in a real run, so that a worker that needs a file
 * beside itself fails here and not after locking. Signals are held while anything is on disk or
 * runs; they take effect when the folder is gone. Reading one answer is describe_answer.c's part;
 * the checks of a plan against all answers are at the end of this file.
 */
#include "prereg/task/describe.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/temp_folder.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/machine/proc.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "prereg/lock/object.h"
#include "prereg/task/describe_answer.h"
#include "prereg/task/task.h"

/* a larger file of a command is used where it is */
#define COPY_BYTES_MAX ((off_t)256 << 20)

/* The state of asking all workers. */
struct asking {
    const struct plan_program *p;
    struct diag *diag;
    sigset_t held; /* while anything of it is on disk or runs */
    int64_t timeout_ms;
    const char *rates;
    char *folder; /* temporary; objects/ in it holds the copies of workers */
    char *work;   /* in it: to the worker, this is its attempt's folder */
    char *task_path;
    cJSON *copies;     /* path -> copy */
    const cJSON *json; /* the answers so far, as struct describe has them */
    cJSON *answers;    /* question -> answer, so that equal tasks are asked once */
    cJSON *said;       /* faults reported already */
    size_t n_asked;
};

/* Drops peers whose params equal the task's own. They carry no information, and without them
 * more tasks are equal and need not be asked. */
static void drop_equal_peers(cJSON *question)
{
    const cJSON *params = json_member(question, "params");
    const cJSON *peers = json_member(question, "peers");
    for (cJSON *f = peers->child; f != NULL; f = f->next) {
        cJSON *level = f->child;
        while (level != NULL) {
            cJSON *next = level->next;
            if (json_equal(level, params)) {
                cJSON_Delete(cJSON_DetachItemViaPointer(f, level));
            }
            level = next;
        }
    }
}

/* Drops what a producer learns by: our workers ask a producer for its model's shape and tokenizer
 * alone. A parameter that is missing from this list costs a question more, nothing else. */
static void drop_learning(const cJSON *question)
{
    static const char *const keys[] = {"lr",           "adamw_lr", "optimizer",    "weight_decay",
                                       "schedule",     "horizon",  "batch_tokens", "mix",
                                       "precision",    "seed",     "init_std",     "balance_loss",
                                       "router_z_loss"};
    const cJSON *producers = json_member(question, "producers");
    for (const cJSON *one = producers == NULL ? NULL : producers->child; one != NULL;
         one = one->next) {
        cJSON *params = cJSON_GetObjectItemCaseSensitive(one, "params");
        for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
            cJSON_DeleteItemFromObjectCaseSensitive(params, keys[i]);
        }
    }
}

/* The question as canonical text: the task without the names of cell and task, on which no
 * answer may depend. Equal texts are asked once. */
static char *question_text(const cJSON *task)
{
    cJSON *question = json_copy(task);
    struct strbuf text = STRBUF_INIT;
    struct err err;
    cJSON_DeleteItemFromObjectCaseSensitive(question, "cell");
    cJSON_DeleteItemFromObjectCaseSensitive(question, "digest");
    drop_equal_peers(question);
    drop_learning(question);
    if (json_canonical(question, &text, &err) != 0) {
        strbuf_clear(&text);
    }
    cJSON_Delete(question);
    return strbuf_detach(&text);
}

struct text_list {
    char **items; /* NULL-terminated */
    size_t n;
    size_t cap;
};

static void list_add(struct text_list *list, char *item)
{
    ARRAY_GROW(list->items, list->n, list->cap);
    list->items[list->n++] = item;
}

static void list_release(struct text_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->items[i]);
    }
    free(list->items);
}

/* Returns the path to execute for a file of a command: a copy under its digest's name, made
 * once, so that a worker finds no neighbours here either. Where the temporary folder forbids
 * execution (mounted noexec) or has no room, and for files over COPY_BYTES_MAX, it is the file
 * itself. */
static int copy_of(struct asking *a, const char *path, char **out, struct err *err)
{
    const cJSON *known = json_member(a->copies, path);
    if (known == NULL) {
        struct digest digest;
        char hex[DIGEST_HEX_SIZE];
        struct stat st;
        bool small = stat(path, &st) == 0 && st.st_size <= COPY_BYTES_MAX;
        int rc = small ? object_store(a->folder, path, &digest, err) : ERR_NO_SPACE;
        if (rc != 0 && rc != ERR_NO_SPACE) {
            return rc;
        }
        char *copy = NULL;
        if (rc == 0) {
            digest_hex(&digest, hex);
            copy = object_path(a->folder, hex);
        }
        json_put_string(a->copies, path, copy != NULL && access(copy, X_OK) == 0 ? copy : path);
        free(copy);
        known = json_member(a->copies, path);
    }
    *out = xstrdup(known->valuestring);
    return 0;
}

/* argv as a run gives it: argv[0] is as written, *exec is what is executed. */
static int build_argv(struct asking *a, size_t stage, struct text_list *argv, char **exec,
                      struct err *err)
{
    const struct plan_stage *s = &a->p->stages[stage];
    for (size_t i = 0; i < s->n_command; i++) {
        char *path = NULL;
        char *copy = NULL;
        int rc = object_resolve_argument(a->p, stage, i, &path, err);
        if (rc == 0 && path != NULL) {
            rc = copy_of(a, path, &copy, err);
        }
        free(path);
        if (rc != 0) {
            return rc;
        }
        if (i == 0) {
            *exec = copy;
            copy = NULL;
        }
        list_add(argv, copy != NULL ? copy : xstrdup(s->command[i]));
    }
    list_add(argv, xstrdup("--describe"));
    list_add(argv, xstrdup(a->task_path));
    list_add(argv, NULL);
    return 0;
}

/* Reports a fault once, however many conditions share it, at the parameter that it is about. */
static void say_of(struct asking *a, const struct answer_fault *fault, size_t stage,
                   size_t condition)
{
    const struct plan_stage *s = &a->p->stages[stage];
    struct place at =
        fault->key == NULL ? s->place : program_param_place(a->p, stage, condition, fault->key);
    char *message = xasprintf("stage.%s: %s", s->name, fault->text);
    if (json_member(a->said, message) == NULL) {
        json_put_bool(a->said, message, true);
        diag_add(a->diag, fault->level, at.line, at.column, "%s (at %s)", message,
                 a->p->conditions[condition].name);
    }
    free(message);
}

/* Reports a fault that is about no parameter. */
static void say(struct asking *a, enum diag_level level, size_t stage, size_t condition,
                const char *text)
{
    char *copy = xstrdup(text);
    const struct answer_fault fault = {.level = level, .text = copy};
    say_of(a, &fault, stage, condition);
    free(copy);
}

/* Runs one --describe. The answer, or NULL (after saying why) when there is none. */
static cJSON *run_one(struct asking *a, size_t stage, size_t condition)
{
    struct text_list argv = {0};
    char **env = NULL;
    char *exec = NULL;
    struct proc_result r = {.out = STRBUF_INIT, .err = STRBUF_INIT};
    struct err err;
    cJSON *answer = NULL;
    int rc = build_argv(a, stage, &argv, &exec, &err);
    if (rc == 0) {
        env = task_environment_list(&a->p->stages[stage], a->work);
        union {
            char **in;
            const char *const *out;
        } args = {.in = argv.items}, envs = {.in = env};
        const struct proc_spec spec = {.exec = exec,
                                       .argv = args.out,
                                       .env = envs.out,
                                       .cwd = a->work,
                                       .timeout_ms = a->timeout_ms,
                                       .max_out_bytes = DESCRIBE_OUT_BYTES_MAX,
                                       .stops = &a->held};
        rc = proc_run(&spec, &r, &err);
        a->n_asked++;
    }
    if (rc != 0) {
        say(a, DIAG_ERROR, stage, condition, err.msg);
    } else {
        struct answer_faults faults = {0};
        answer = answer_read(&r, &faults);
        for (size_t i = 0; i < faults.n; i++) {
            say_of(a, &faults.items[i], stage, condition);
        }
        answer_faults_release(&faults);
    }
    proc_result_release(&r);
    list_release(&argv);
    object_argv_free(env);
    free(exec);
    return answer;
}

/* Only our own workers keep rates, and estimate a model by what will make it. */
static bool is_ours(const struct plan_stage *s)
{
    return strcmp(s->command[0], "prereg-train") == 0 || strcmp(s->command[0], "prereg-eval") == 0;
}

/* STAGE -> {"params":{...}} for the inputs of a stage: what makes them, with parameters that their
 * workers solved. */
static cJSON *producers_of(const struct asking *a, size_t stage, size_t condition)
{
    const struct plan_stage *s = &a->p->stages[stage];
    cJSON *producers = json_object();
    for (size_t i = 0; i < s->n_after; i++) {
        const cJSON *said = describe_find(a->json, a->p, condition, s->after[i]);
        const cJSON *solved = said == NULL ? NULL : json_member(said, "params");
        cJSON *params =
            task_params(a->p, NULL, a->p->conditions[condition].first_cell, s->after[i]);
        cJSON *one = json_object();
        for (const cJSON *v = solved == NULL ? NULL : solved->child; v != NULL; v = v->next) {
            cJSON_DeleteItemFromObjectCaseSensitive(params, v->string);
            json_put(params, v->string, json_copy(v));
        }
        json_put(one, "params", params);
        json_put(producers, a->p->stages[s->after[i]].name, one);
    }
    return producers;
}

/* The answer of one (condition, stage), or of an apparatus check of the stage, from the cache of
 * questions when an equal task was asked. Null when the worker does not describe. Fails only where
 * the machine does, or on a signal. */
static int ask(struct asking *a, const struct task_attempt *attempt, size_t condition, cJSON **out,
               struct err *err)
{
    const size_t stage = attempt->stage;
    if (!a->p->stages[stage].describes) {
        *out = cJSON_CreateNull();
        return 0;
    }
    cJSON *task = task_json_build(a->p, NULL, attempt);
    if (is_ours(&a->p->stages[stage])) {
        json_put_string(task, "rates", a->rates);
        json_put(task, "producers", producers_of(a, stage, condition));
    }
    char *question = question_text(task);
    const cJSON *known = json_member(a->answers, question);
    int rc = 0;
    if (known == NULL && proc_signal_waits(&a->held)) {
        rc = err_set(err, ERR_REFUSED, "stopped by a signal");
    } else if (known == NULL) {
        rc = json_write_file(a->task_path, task, 0600, err);
        if (rc == 0) {
            cJSON *answer = run_one(a, stage, condition);
            json_put(a->answers, question, answer == NULL ? cJSON_CreateNull() : answer);
            known = json_member(a->answers, question);
        }
    }
    *out = rc == 0 ? json_copy(known) : NULL;
    /* the copy keeps the key that the cache has for it */
    if (*out != NULL && (*out)->string != NULL) {
        cJSON_free((*out)->string);
        (*out)->string = NULL;
    }
    free(question);
    cJSON_Delete(task);
    return rc;
}

/* Fills out[CONDITION][STAGE]. */
static int ask_all(struct asking *a, cJSON *out, struct err *err)
{
    int rc = 0;
    for (size_t c = 0; rc == 0 && c < a->p->n_conditions; c++) {
        cJSON *stages = json_object();
        json_put(out, a->p->conditions[c].name, stages);
        for (size_t s = 0; rc == 0 && s < a->p->n_stages; s++) {
            const struct task_attempt of = {.cell = a->p->conditions[c].first_cell, .stage = s};
            cJSON *answer = NULL;
            rc = ask(a, &of, c, &answer, err);
            if (rc == 0) {
                json_put(stages, a->p->stages[s].name, answer);
            }
        }
    }
    return rc;
}

/* Fills out[DESCRIBE_APPARATUS][NAME] with the time of each check that one of our workers answers
 * for: with the reference model as its input, which may be of another size than the cells'. */
static int ask_checks(struct asking *a, cJSON *out, struct err *err)
{
    cJSON *checks = json_object();
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < a->p->n_apparatus; i++) {
        const struct plan_apparatus *check = &a->p->apparatus[i];
        const struct plan_stage *s = &a->p->stages[check->stage];
        if (check->first != INDEX_NONE || !is_ours(s)) {
            continue;
        }
        char *model = path_absolute(a->p->folder, check->model);
        const char **inputs = xcalloc(s->n_after + 1, sizeof(*inputs));
        for (size_t k = 0; k < s->n_after; k++) {
            inputs[k] = model;
        }
        const struct task_attempt of = {
            .stage = check->stage, .apparatus = check, .input_folders = inputs};
        cJSON *answer = NULL;
        rc = ask(a, &of, 0, &answer, err);
        const cJSON *seconds = json_member(answer, "seconds");
        if (rc == 0 && cJSON_IsNumber(seconds)) {
            cJSON *one = json_object();
            json_put_number(one, "seconds", seconds->valuedouble);
            json_put(checks, check->name, one);
        }
        cJSON_Delete(answer);
        free(inputs);
        free(model);
    }
    if (rc == 0 && checks->child != NULL) {
        json_put(out, DESCRIBE_APPARATUS, checks);
    } else {
        cJSON_Delete(checks);
    }
    return rc;
}

/* Solved values hold for all cells of a condition. They must not replace what the plan gives
 * each cell its own value of, such as a seed that the worker echoes. */
static void check_solved_of(struct asking *a, const cJSON *solved, size_t stage, size_t cell)
{
    const struct plan_program *p = a->p;
    const size_t condition = p->cells[cell].condition;
    if (p->conditions[condition].first_cell == cell) {
        return;
    }
    cJSON *first = program_task_params(p, stage, p->conditions[condition].first_cell);
    cJSON *own = program_task_params(p, stage, cell);
    for (const cJSON *m = solved->child; m != NULL; m = m->next) {
        const cJSON *a_value = json_member(first, m->string);
        const cJSON *b_value = json_member(own, m->string);
        if (a_value != b_value && !json_equal(a_value, b_value)) {
            char *text =
                xasprintf("%.100s: --describe answers with one value under \"params\", and the "
                          "plan gives each replicate its own: all would run with that one; answer "
                          "only with what the worker solves",
                          m->string);
            const struct answer_fault fault = {.level = DIAG_ERROR, .text = text, .key = m->string};
            say_of(a, &fault, stage, condition);
            free(text);
        }
    }
    cJSON_Delete(own);
    cJSON_Delete(first);
}

/* Looks for stages with solved values, and checks each cell of the condition against its first
 * cell. */
static void check_solved(struct asking *a, const cJSON *json)
{
    for (size_t i = 0; i < a->p->n_cells; i++) {
        const size_t condition = a->p->cells[i].condition;
        for (size_t s = 0; s < a->p->n_stages; s++) {
            const cJSON *answer = describe_find(json, a->p, condition, s);
            const cJSON *solved = answer == NULL ? NULL : json_member(answer, "params");
            if (solved != NULL && solved->child != NULL) {
                check_solved_of(a, solved, s, i);
            }
        }
    }
}

int describe_run(const struct plan_program *p, const struct describe_how *how, struct describe *out,
                 struct diag *diag, struct err *err)
{
    struct temp_folder temp;
    struct asking a = {.p = p,
                       .diag = diag,
                       .timeout_ms = how->timeout_ms > 0 ? how->timeout_ms : DESCRIBE_TIMEOUT_MS,
                       .rates = how->rates};
    *out = (struct describe){.json = json_object()};
    sigset_t before;
    proc_hold_signals(&a.held, &before);
    int rc = temp_folder_make("describe", &temp, err);
    if (rc != 0) {
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
        return rc;
    }
    a.folder = temp.path;
    a.work = path_join(a.folder, "attempt");
    a.task_path = path_join(a.work, LAYOUT_TASK);
    a.copies = json_object();
    a.answers = json_object();
    a.json = out->json;
    a.said = json_object();
    rc = dir_make(a.work, 0700, err);
    if (rc == 0) {
        rc = ask_all(&a, out->json, err);
    }
    if (rc == 0 && (rc = ask_checks(&a, out->json, err)) == 0) {
        check_solved(&a, out->json);
    }
    struct err cleanup;
    if (temp_folder_remove(&temp, &cleanup) != 0) {
        diag_add(diag, DIAG_WARNING, 0, 0, "%s", cleanup.msg);
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL); /* what came meanwhile takes effect here */
    out->n_asked = a.n_asked;
    cJSON_Delete(a.answers);
    cJSON_Delete(a.said);
    cJSON_Delete(a.copies);
    free(a.task_path);
    free(a.work);
    return rc;
}

void describe_release(struct describe *d)
{
    cJSON_Delete(d->json);
    *d = (struct describe){0};
}

const cJSON *describe_find(const cJSON *json, const struct plan_program *p, size_t condition,
                           size_t stage)
{
    const cJSON *stages = json == NULL ? NULL : json_member(json, p->conditions[condition].name);
    const cJSON *answer = stages == NULL ? NULL : json_member(stages, p->stages[stage].name);
    return cJSON_IsObject(answer) ? answer : NULL;
}

double describe_check_seconds(const cJSON *json, const struct plan_program *p,
                              const struct plan_apparatus *check)
{
    const char *name = check->first == INDEX_NONE ? check->name : p->apparatus[check->first].name;
    const cJSON *checks = json == NULL ? NULL : json_member(json, DESCRIBE_APPARATUS);
    const cJSON *seconds = json_member(json_member(checks, name), "seconds");
    if (!cJSON_IsNumber(seconds)) {
        seconds = json_member(describe_find(json, p, 0, check->stage), "seconds");
    }
    return cJSON_IsNumber(seconds) ? seconds->valuedouble : (double)NAN;
}

bool describe_fact(const cJSON *answer, const char *fact, double *out)
{
    const cJSON *facts = answer == NULL ? NULL : json_member(answer, "facts");
    const cJSON *v = facts == NULL ? NULL : json_member(facts, fact);
    if (!cJSON_IsNumber(v)) {
        return false;
    }
    *out = v->valuedouble;
    return true;
}

/* Reports a metric that is not among `metrics`, with the nearest name that is. */
static void check_metric(const cJSON *metrics, const char *metric, struct place at,
                         const char *where, struct diag *diag)
{
    size_t n = (size_t)cJSON_GetArraySize(metrics);
    const char **known = xcalloc(n, sizeof(*known));
    bool found = false;
    n = 0;
    for (const cJSON *m = metrics->child; m != NULL; m = m->next) {
        known[n++] = m->valuestring;
        found = found || strcmp(m->valuestring, metric) == 0;
    }
    if (!found) {
        const char *near = text_nearest(metric, known, n);
        diag_add(diag, DIAG_ERROR, at.line, at.column,
                 "%s: its stage yields no metric \"%s\"%s%s%s", where, metric,
                 near == NULL ? "" : "; did you mean \"", near == NULL ? "" : near,
                 near == NULL ? "" : "\"?");
    }
    free(known);
}

/* The metrics a stage says it yields, at the first condition that says so; NULL when none does. */
static const cJSON *metrics_of(const struct plan_program *p, const cJSON *json, size_t stage)
{
    for (size_t c = 0; c < p->n_conditions; c++) {
        const cJSON *answer = describe_find(json, p, c, stage);
        const cJSON *metrics = answer == NULL ? NULL : json_member(answer, "metrics");
        if (cJSON_IsArray(metrics)) {
            return metrics;
        }
    }
    return NULL;
}

void describe_check_metrics(const struct plan_program *p, const cJSON *json, struct diag *diag)
{
    for (size_t i = 0; i < p->n_measures; i++) {
        const struct plan_measure *m = &p->measures[i];
        const cJSON *metrics = metrics_of(p, json, m->stage);
        if (metrics != NULL) {
            char where[96];
            (void)snprintf(where, sizeof(where), "measure.%s", m->name);
            check_metric(metrics, m->metric, m->place, where, diag);
        }
    }
    for (size_t i = 0; i < p->n_apparatus; i++) {
        const struct plan_apparatus *a = &p->apparatus[i];
        const cJSON *metrics = a->first == INDEX_NONE ? metrics_of(p, json, a->stage) : NULL;
        if (metrics != NULL) {
            char where[96];
            (void)snprintf(where, sizeof(where), "apparatus.%s", a->name);
            check_metric(metrics, strchr(a->metric_text, '.') + 1, a->place, where, diag);
        }
    }
}

/* Reports the first condition whose stage scores another number of items. */
static void check_items(const struct plan_program *p, const cJSON *json,
                        const struct plan_measure *m, struct diag *diag)
{
    const bool of_group = strchr(m->metric, ':') != NULL;
    for (size_t c = 0; c < p->n_conditions; c++) {
        double items = 0;
        if (!describe_fact(describe_find(json, p, c, m->stage), "items", &items)) {
            continue;
        }
        if (of_group ? (double)m->items > items : (double)m->items != items) {
            diag_add(diag, DIAG_ERROR, m->items_place.line, m->items_place.column,
                     "measure.%s: %lld items, and stage \"%s\" scores %.15g (at %s)", m->name,
                     (long long)m->items, p->stages[m->stage].name, items, p->conditions[c].name);
            return;
        }
    }
}

void describe_check_items(const struct plan_program *p, const cJSON *json, struct diag *diag)
{
    for (size_t i = 0; i < p->n_measures; i++) {
        const struct plan_measure *m = &p->measures[i];
        if (m->has_items && json == NULL) {
            diag_add(diag, DIAG_NOTE, m->items_place.line, m->items_place.column,
                     "the items of measures were not checked: no worker was asked (--no-run)");
            return;
        }
        if (m->has_items) {
            check_items(p, json, m, diag);
        }
    }
}

/* What the stage cannot do without, at the condition that needs most; 0 when no worker says. */
static double memory_needed(const struct plan_program *p, const cJSON *json, size_t stage,
                            size_t *at)
{
    double most = 0;
    for (size_t c = 0; c < p->n_conditions; c++) {
        const cJSON *answer = describe_find(json, p, c, stage);
        double needed = 0;
        if (!describe_fact(answer, "memory_least_bytes", &needed)) {
            (void)describe_fact(answer, "memory_bytes", &needed);
        }
        if (needed > most) {
            most = needed;
            *at = c;
        }
    }
    return most;
}

void describe_check_memory(const struct plan_program *p, const cJSON *json, double machine_bytes,
                           struct diag *diag)
{
    const double mib = 0x1p20;
    for (size_t i = 0; i < p->n_stages; i++) {
        const struct plan_stage *s = &p->stages[i];
        size_t c = 0;
        double needed = memory_needed(p, json, i, &c);
        double allowed = (double)s->run.memory_bytes;
        if (allowed > 0 && needed > allowed) {
            diag_add(diag, DIAG_ERROR, s->run.memory_place.line, s->run.memory_place.column,
                     "[run] memory: stage \"%s\" needs at least %.1f MiB (at %s) and may use %.1f "
                     "MiB; allow more",
                     s->name, ceil(needed / mib * 10) / 10, p->conditions[c].name, allowed / mib);
        } else if (machine_bytes > 0 && needed > machine_bytes) {
            diag_add(diag, DIAG_ERROR, s->place.line, s->place.column,
                     "stage.%s: needs at least %.1f MiB (at %s), and this machine has %.1f MiB",
                     s->name, ceil(needed / mib * 10) / 10, p->conditions[c].name,
                     machine_bytes / mib);
        }
    }
}
