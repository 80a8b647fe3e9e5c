/*
 * Runs `COMMAND --describe task.json` for every condition and stage, one process after another, in
 * a temporary folder. A process of prereg-eval is asked several tasks, because it then reads items
 * that they share once; where such a process fails, each is asked alone. Workers run from copies,
 * as in a real run, so that a worker that needs a file beside itself fails here and not after
 * locking. Signals are held while anything is on disk or runs; they take effect when the folder is
 * gone. Reading one answer is describe_answer.c's part, and describe_plan.c checks a plan against
 * all answers.
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
#include "base/xalloc.h"
#include "prereg/lock/object.h"
#include "prereg/task/container.h"
#include "prereg/task/describe_answer.h"
#include "prereg/task/task.h"

/* a larger file of a command is used where it is */
#define COPY_BYTES_MAX ((off_t)256 << 20)
#define ASKED_AT_ONCE  32 /* tasks of one process */

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
    cJSON *lines;      /* question -> line of a process that was asked several */
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

/* The file of the i-th task that a process is asked. */
static char *task_file(const struct asking *a, size_t i)
{
    return i == 0 ? xstrdup(a->task_path) : xasprintf("%s/task-%zu.json", a->work, i + 1);
}

/* argv as a run gives it, with the paths of copies. */
static int build_argv(struct asking *a, size_t stage, size_t n_tasks, struct text_list *argv,
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
        text_list_add(argv, copy != NULL ? copy : xstrdup(s->command[i]));
    }
    text_list_add(argv, xstrdup("--describe"));
    for (size_t i = 0; i < n_tasks; i++) {
        text_list_add(argv, task_file(a, i));
    }
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

/* Runs the worker of a stage over the first n task files. */
static int run_worker(struct asking *a, size_t stage, size_t n_tasks, struct proc_result *r,
                      struct err *err)
{
    struct text_list argv = {0};
    char **env = NULL;
    char *exec = NULL;
    const struct plan_stage *s = &a->p->stages[stage];
    const int64_t timeout_ms = a->timeout_ms * (int64_t)n_tasks;
    const struct container_task inside = {
        .stage = s, .folder = a->work, .task = a->task_path, .timeout_ms = timeout_ms};
    int rc = build_argv(a, stage, n_tasks, &argv, err);
    text_list_add(&argv, NULL);
    if (rc == 0) {
        env = task_environment_list(s, a->work);
        rc = container_command(&inside, &argv.items, &env, &exec, err);
    }
    if (rc == 0) {
        union {
            char **in;
            const char *const *out;
        } args = {.in = argv.items}, envs = {.in = env};
        const struct proc_spec spec = {.exec = exec,
                                       .argv = args.out,
                                       .env = envs.out,
                                       .cwd = a->work,
                                       .timeout_ms = timeout_ms,
                                       .max_out_bytes = DESCRIBE_OUT_BYTES_MAX * n_tasks,
                                       .stops = &a->held};
        rc = proc_run(&spec, r, err);
        a->n_asked++;
    }
    xfree_list(argv.items);
    xfree_list(env);
    free(exec);
    return rc;
}

/* What the worker says of the task in a->task_path: a line that it printed already, or what it
 * prints now. */
static int hear(struct asking *a, size_t stage, const char *question, struct proc_result *r,
                struct err *err)
{
    const cJSON *line = json_member(a->lines, question);
    if (line == NULL) {
        return run_worker(a, stage, 1, r, err);
    }
    strbuf_adds(&r->out, line->valuestring);
    return 0;
}

/* Runs one --describe. The answer, or NULL (after saying why) when there is none. */
static cJSON *run_one(struct asking *a, size_t stage, size_t condition, const char *question)
{
    struct proc_result r = {.out = STRBUF_INIT, .err = STRBUF_INIT};
    struct err err;
    cJSON *answer = NULL;
    if (hear(a, stage, question, &r, &err) != 0) {
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

/* The task that a worker is asked about. */
static cJSON *task_asked(const struct asking *a, const struct task_attempt *attempt,
                         size_t condition)
{
    const size_t stage = attempt->stage;
    cJSON *task = task_json_build(a->p, NULL, attempt);
    if (is_ours(&a->p->stages[stage])) {
        json_put_string(task, "rates", a->rates);
        json_put(task, "producers", producers_of(a, stage, condition));
    }
    return task;
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
    cJSON *task = task_asked(a, attempt, condition);
    char *question = question_text(task);
    const cJSON *known = json_member(a->answers, question);
    int rc = 0;
    if (known == NULL && proc_signal_waits(&a->held)) {
        rc = err_set(err, ERR_REFUSED, "stopped by a signal");
    } else if (known == NULL) {
        rc = json_write_file(a->task_path, task, 0600, err);
        if (rc == 0) {
            cJSON *answer = run_one(a, stage, condition, question);
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

/* Tasks that one process is asked. */
struct asked_batch {
    size_t stage; /* of the first of them */
    char *questions[ASKED_AT_ONCE];
    size_t n;
};

/* Keeps a line for each question; nothing unless the process printed exactly one for each. */
static void keep_lines(struct asking *a, const struct asked_batch *b, const struct strbuf *out)
{
    size_t n_lines = 0;
    for (size_t i = 0; i < out->len; i++) {
        n_lines += out->buf[i] == '\n';
    }
    if (n_lines != b->n || out->buf[out->len - 1] != '\n') {
        return;
    }
    const char *line = out->buf;
    for (size_t i = 0; i < b->n; i++) {
        const char *end = strchr(line, '\n');
        if (end == NULL) {
            return; /* a zero byte in it */
        }
        char *text = xasprintf("%.*s", (int)(end - line), line);
        json_put_string(a->lines, b->questions[i], text);
        free(text);
        line = end + 1;
    }
}

/* Asks the tasks of the batch, whose files are written, and empties it. A failure is not reported:
 * each is then asked alone. */
static void ask_batch(struct asking *a, struct asked_batch *b)
{
    struct proc_result r = {.out = STRBUF_INIT, .err = STRBUF_INIT};
    struct err err;
    if (b->n > 1 && run_worker(a, b->stage, b->n, &r, &err) == 0 && r.signal == 0 && r.code == 0 &&
        r.out.len > 0) {
        keep_lines(a, b, &r.out);
    }
    for (size_t i = 0; i < b->n; i++) {
        free(b->questions[i]);
    }
    b->n = 0;
    proc_result_release(&r);
}

/* Adds the task of (condition, stage), unless an equal one is in the batch or was asked. */
static int batch_add(struct asking *a, struct asked_batch *b, size_t stage, size_t condition,
                     struct err *err)
{
    const struct task_attempt of = {.cell = a->p->conditions[condition].first_cell, .stage = stage};
    cJSON *task = task_asked(a, &of, condition);
    char *question = question_text(task);
    bool known = json_member(a->lines, question) != NULL;
    for (size_t i = 0; i < b->n; i++) {
        known = known || strcmp(b->questions[i], question) == 0;
    }
    int rc = 0;
    if (!known) {
        char *path = task_file(a, b->n);
        rc = json_write_file(path, task, 0600, err);
        free(path);
    }
    if (known || rc != 0) {
        free(question);
    } else {
        b->stage = b->n == 0 ? stage : b->stage;
        b->questions[b->n++] = question;
    }
    cJSON_Delete(task);
    return rc;
}

/* Asks the stages [first, end) of all conditions, several tasks in one process. */
static int ask_in_batches(struct asking *a, size_t first, size_t end, struct err *err)
{
    struct asked_batch b = {0};
    int rc = 0;
    for (size_t s = first; rc == 0 && s < end; s++) {
        for (size_t c = 0; rc == 0 && c < a->p->n_conditions; c++) {
            rc = batch_add(a, &b, s, c, err);
            if (rc == 0 && b.n == ASKED_AT_ONCE) {
                ask_batch(a, &b);
            }
        }
    }
    if (rc != 0 || proc_signal_waits(&a->held)) {
        while (b.n > 0) {
            free(b.questions[--b.n]);
        }
        return rc;
    }
    ask_batch(a, &b);
    return 0;
}

/* Whether the worker may be asked several tasks at once: only that of evaluations reads what they
 * share. */
static bool takes_several(const struct plan_stage *s)
{
    return s->describes && s->n_command == 1 && strcmp(s->command[0], "prereg-eval") == 0;
}

/* Whether two stages run their worker in the same environment. */
static bool same_environment(const struct asking *a, size_t one, size_t other)
{
    char **x = task_environment_list(&a->p->stages[one], a->work);
    char **y = task_environment_list(&a->p->stages[other], a->work);
    size_t i = 0;
    while (x[i] != NULL && y[i] != NULL && strcmp(x[i], y[i]) == 0) {
        i++;
    }
    bool same = x[i] == NULL && y[i] == NULL;
    xfree_list(x);
    xfree_list(y);
    return same;
}

/* The end of the stages, from the first on, that can be asked without another's answer. */
static size_t independent_end(const struct asking *a, size_t first)
{
    const struct plan_stage *stages = a->p->stages;
    size_t end = first + 1;
    for (; takes_several(&stages[first]) && end < a->p->n_stages; end++) {
        bool alone = takes_several(&stages[end]) && same_environment(a, first, end);
        for (size_t i = 0; alone && i < stages[end].n_after; i++) {
            alone = stages[end].after[i] < first;
        }
        if (!alone) {
            break;
        }
    }
    return end;
}

/* Fills out[CONDITION][STAGE]. */
static int ask_all(struct asking *a, cJSON *out, struct err *err)
{
    int rc = 0;
    size_t end = 0;
    for (size_t c = 0; c < a->p->n_conditions; c++) {
        json_put(out, a->p->conditions[c].name, json_object());
    }
    for (size_t first = 0; rc == 0 && first < a->p->n_stages; first = end) {
        end = independent_end(a, first);
        if (takes_several(&a->p->stages[first])) {
            rc = ask_in_batches(a, first, end, err);
        }
        cJSON *stages = out->child;
        for (size_t c = 0; rc == 0 && c < a->p->n_conditions; c++, stages = stages->next) {
            for (size_t s = first; rc == 0 && s < end; s++) {
                const struct task_attempt of = {.cell = a->p->conditions[c].first_cell, .stage = s};
                cJSON *answer = NULL;
                rc = ask(a, &of, c, &answer, err);
                if (rc == 0) {
                    json_put(stages, a->p->stages[s].name, answer);
                }
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
    a.lines = json_object();
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
    cJSON_Delete(a.lines);
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
