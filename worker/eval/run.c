#include "worker/eval/run.h"

#include "base/json.h"
#include "base/xalloc.h"
#include "worker/eval/benchmark.h"
#include "worker/eval/items_file.h"
#include "worker/eval/scorer.h"
#include "worker/eval/subject.h"
#include "worker/eval/tally.h"
#include "worker/report/events.h"
#include "worker/report/result.h"
#include "worker/report/stop.h"

/* Zeroed, then filled from top to bottom; always valid to release. */
struct evaluation {
    const struct task *task;
    struct eval_options options;
    struct digest data_digest;
    struct digest fewshot_digest;
    struct digest model_digest;     /* of the data that holds the model; zero: an input does */
    struct digest tokenizer_digest; /* of the data that holds the tokenizer; zero: none given */
    struct benchmark bench;
    struct model *model;
    struct tokenizer *tok;
    struct lm lm;
    struct scorer scorer;
    struct events events;
    struct items_file items;
    struct strbuf header; /* of items.jsonl */
    struct outcome outcome;
    /* over the items done so far */
    size_t n_done;
    size_t n_faults;
    size_t n_viable; /* generations that came to an end with a number in them */
    double n_cut;
    struct tally *tallies; /* metrics x groups */
    const char *null_why;  /* why the metrics have no value; NULL: they have */
};

static int read_options(struct evaluation *e, struct err *err)
{
    struct param_faults faults = {0};
    eval_options_read(e->task, &e->options, &faults);
    int rc = param_faults_result(&faults, err);
    param_faults_say(&faults, "prereg-eval");
    param_faults_release(&faults);
    return rc;
}

static int verify_data(struct evaluation *e, struct err *err)
{
    int rc = task_verify_data(&e->options.data, &e->data_digest, err);
    if (rc == 0 && e->options.fewshot_data.name != NULL)
        rc = task_verify_data(&e->options.fewshot_data, &e->fewshot_digest, err);
    if (rc == 0 && e->options.model_data.name != NULL)
        rc = task_verify_data(&e->options.model_data, &e->model_digest, err);
    if (rc == 0 && e->options.tokenizer.name != NULL)
        rc = task_verify_data(&e->options.tokenizer, &e->tokenizer_digest, err);
    return rc;
}

static int lm_score(void *self, const uint32_t *tokens, size_t n, size_t first, double *logprob,
                    bool *is_top, struct err *err)
{
    return model_score(self, tokens, n, first, logprob, is_top, err);
}

static int lm_next_logits(void *self, const uint32_t *tokens, size_t n, float *logits,
                          struct err *err)
{
    return model_next_logits(self, tokens, n, logits, err);
}

static int open_model(struct evaluation *e, struct err *err)
{
    int rc = subject_open(e->task, &e->options, &e->model, &e->tok, err);
    if (rc != 0)
        return rc;
    const struct model_config *config = model_config(e->model);
    e->lm = (struct lm){.self = e->model,
                        .tok = e->tok,
                        .context = (size_t)config->context,
                        .vocab = (size_t)config->vocab,
                        .score = lm_score,
                        .next_logits = lm_next_logits};
    return scorer_init(&e->scorer, e->options.spec, &e->bench.prompts, &e->lm,
                       (size_t)e->options.max_tokens, err);
}

static void put_digest(cJSON *obj, const char *key, const struct digest *d)
{
    char hex[DIGEST_HEX_SIZE];
    digest_hex(d, hex);
    json_put_string(obj, key, hex);
}

/* Everything the lines of items.jsonl follow from. */
static int make_header(struct evaluation *e, struct err *err)
{
    const struct digest model = model_digest(e->model);
    const struct digest tokenizer = tokenizer_digest(e->tok);
    struct strbuf params = STRBUF_INIT;
    int rc = json_canonical(e->task->params, &params, err);
    const struct digest task = digest_bytes(params.buf, params.len);
    strbuf_release(&params);
    if (rc != 0)
        return rc;
    cJSON *header = json_object();
    json_put_string(header, "engine", EVAL_ENGINE);
    json_put_string(header, "blas", model_blas_text());
    json_put_int(header, "threads", e->task->threads);
    put_digest(header, "model", &model);
    put_digest(header, "model_data", &e->model_digest);
    put_digest(header, "tokenizer", &tokenizer);
    put_digest(header, "params", &task);
    put_digest(header, "data", &e->data_digest);
    put_digest(header, "fewshot_data", &e->fewshot_digest);
    rc = json_line(header, &e->header, err);
    cJSON_Delete(header);
    return rc;
}

/* Takes the current outcome into the sums. */
static void count_outcome(struct evaluation *e)
{
    const struct outcome *o = &e->outcome;
    const size_t group = e->bench.set.items[e->bench.selected[e->n_done]].group;
    e->n_done++;
    if (o->fault[0] != '\0') {
        e->n_faults++;
        return;
    }
    e->n_cut += (double)o->n_cut;
    for (size_t m = 0; m < e->options.spec->n_metrics; m++) {
        struct tally *t = &e->tallies[m * e->bench.set.n_groups + group];
        t->n++;
        t->passed += o->passed[m];
    }
    if (e->options.spec->kind == TASK_GENERATE && e->n_done <= (size_t)e->options.viability_items)
        e->n_viable += o->ended && strcmp(o->answer[1].buf, "[invalid]") != 0;
}

static bool believe_line(void *self, size_t index, const char *line, size_t len)
{
    struct evaluation *e = self;
    if (index >= e->bench.n_selected)
        return false;
    const size_t item = e->bench.selected[index];
    if (!outcome_read_line(&e->outcome, e->options.spec, &e->bench.set.items[item], item, line,
                           len))
        return false;
    count_outcome(e);
    return true;
}

/* Names the members in which the two headers differ. */
static void note_other_header(struct evaluation *e, const struct strbuf *other)
{
    struct err err = {0};
    struct strbuf names = STRBUF_INIT;
    cJSON *ours = NULL;
    cJSON *theirs = NULL;
    const cJSON *member = NULL;
    if (json_parse(e->header.buf, e->header.len, &ours, &err) == 0 &&
        json_parse(other->buf, other->len, &theirs, &err) == 0) {
        cJSON_ArrayForEach(member, ours)
        {
            if (!cJSON_Compare(member, json_member(theirs, member->string), true))
                strbuf_addf(&names, "%s%s", names.len == 0 ? "" : ", ", member->string);
        }
    }
    events_note(&e->events, "the items of an earlier attempt are not taken over; changed since: %s",
                names.len == 0 ? "the header" : names.buf);
    cJSON_Delete(ours);
    cJSON_Delete(theirs);
    strbuf_release(&names);
}

/* From the newest earlier attempt that has lines under our header. */
static int take_over(struct evaluation *e, struct err *err)
{
    const struct items_reader reader = {believe_line, e};
    struct strbuf taken = STRBUF_INIT;
    struct strbuf other = STRBUF_INIT;
    size_t n_taken = 0;
    for (size_t i = 0; i < e->task->n_resume && n_taken == 0; i++) {
        enum items_found found =
            items_file_take(e->task->resume[i], e->header.buf, &reader, &taken, &n_taken, &other);
        if (found == ITEMS_OTHER)
            note_other_header(e, &other);
    }
    int rc = items_file_create(&e->items, e->header.buf, &taken, err);
    if (rc == 0 && n_taken > 0)
        events_resumed(&e->events, (int64_t)n_taken);
    strbuf_release(&taken);
    strbuf_release(&other);
    return rc;
}

/* Whether the generations so far show that this model can be asked for answers at all. */
static int check_viability(struct evaluation *e, struct err *err)
{
    const struct eval_options *o = &e->options;
    size_t looked_at = (size_t)o->viability_items;
    if (looked_at > e->bench.n_selected)
        looked_at = e->bench.n_selected;
    if (o->spec->kind != TASK_GENERATE || looked_at == 0 || e->n_done != looked_at ||
        e->n_viable >= (size_t)o->viability_least)
        return 0;
    return err_set(err, ERR_REFUSED,
                   "cannot be measured: of the first %zu generations fewer than %d came to an end "
                   "with a number in them; this model does not generate answers",
                   looked_at, o->viability_least);
}

static int ask_item(struct evaluation *e, struct strbuf *line, struct err *err)
{
    const size_t item = e->bench.selected[e->n_done];
    int rc = scorer_ask(&e->scorer, item, &e->outcome, err);
    if (rc != 0)
        return err_wrap(err, "item %zu", item);
    if (!e->outcome.finite) {
        e->null_why = "not_finite";
        events_note(&e->events, "item %zu (line %u): the model's answer is not finite", item,
                    e->bench.set.items[item].line);
        return 0;
    }
    strbuf_clear(line);
    outcome_add_line(&e->outcome, e->options.spec, &e->bench.set.items[item], item, line);
    count_outcome(e);
    return items_file_append(&e->items, line, err);
}

static int ask_items(struct evaluation *e, struct err *err)
{
    struct strbuf line = STRBUF_INIT;
    int rc = 0;
    events_section(&e->events, SECTION_EVAL);
    while (rc == 0 && e->null_why == NULL && e->n_done < e->bench.n_selected) {
        events_progress(&e->events, (int64_t)e->n_done, (int64_t)e->bench.n_selected, "item");
        rc = stop_asked() ? err_set(err, ERR_BUSY, "asked to stop after %zu items", e->n_done)
                          : ask_item(e, &line, err);
        if (rc == 0)
            rc = check_viability(e, err);
    }
    if (rc == 0)
        events_progress(&e->events, (int64_t)e->n_done, (int64_t)e->bench.n_selected, "item");
    strbuf_release(&line);
    struct err sync_err = {0};
    int sync_rc = items_file_sync(&e->items, &sync_err);
    /* "Asked to stop" promises that what is done is on disk; other errors stay what they are. */
    if (sync_rc != 0 && (rc == 0 || rc == ERR_BUSY)) {
        *err = sync_err;
        rc = sync_rc;
    }
    return rc;
}

static void put_metrics(const struct evaluation *e, struct result *r)
{
    const size_t n_groups = e->bench.set.n_groups;
    for (size_t m = 0; m < e->options.spec->n_metrics; m++) {
        const char *name = e->options.spec->metrics[m].name;
        const struct tally *groups = &e->tallies[m * n_groups];
        struct tally all = {0};
        for (size_t g = 0; g < n_groups; g++) {
            all.n += groups[g].n;
            all.passed += groups[g].passed;
        }
        if (e->null_why != NULL)
            result_metric_null(r, name, e->null_why, NULL);
        else if (all.n == 0)
            result_metric_null(r, name, "no_items", NULL);
        else
            result_metric(r, name, tally_mean(&all), all.n,
                          tally_pooled_se(groups, (int64_t)n_groups));
    }
}

static int write_result(struct evaluation *e, struct err *err)
{
    struct result r;
    result_init(&r, e->task);
    put_metrics(e, &r);
    result_fact(&r, "items", (double)e->bench.n_selected);
    result_fact(&r, "faulty_items", (double)e->n_faults);
    result_fact(&r, "cut_tokens", e->n_cut);
    result_fact_sheet(&r, e->task->threads, model_blas_text());
    result_read(&r, e->options.data.name, &e->data_digest);
    if (e->options.fewshot_data.name != NULL)
        result_read(&r, e->options.fewshot_data.name, &e->fewshot_digest);
    if (e->options.model_data.name != NULL)
        result_read(&r, e->options.model_data.name, &e->model_digest);
    if (e->options.tokenizer.name != NULL)
        result_read(&r, e->options.tokenizer.name, &e->tokenizer_digest);
    result_items(&r, ITEMS_FILE_NAME);
    int rc = result_artifact(&r, ITEMS_FILE_NAME, err);
    if (rc == 0)
        rc = result_write(&r, err);
    result_release(&r);
    return rc;
}

static int run(struct evaluation *e, struct err *err)
{
    int rc = read_options(e, err);
    if (rc == 0)
        rc = verify_data(e, err);
    if (rc == 0)
        rc = benchmark_load(&e->bench, &e->options, err);
    if (rc == 0)
        rc = open_model(e, err);
    if (rc == 0)
        rc = make_header(e, err);
    if (rc != 0)
        return rc;
    e->tallies = xcalloc(e->options.spec->n_metrics * e->bench.set.n_groups, sizeof(*e->tallies));
    rc = take_over(e, err);
    if (rc == 0 && (rc = check_viability(e, err)) == 0)
        rc = ask_items(e, err);
    if (rc == 0 && e->n_faults > 0)
        events_note(&e->events, "%zu items could not be asked; items.jsonl names them",
                    e->n_faults);
    if (rc == 0)
        rc = write_result(e, err);
    return rc != 0 ? rc : events_result(&e->events, err);
}

static void evaluation_release(struct evaluation *e)
{
    items_file_close(&e->items);
    outcome_release(&e->outcome);
    scorer_release(&e->scorer);
    tokenizer_free(e->tok);
    model_free(e->model);
    benchmark_release(&e->bench);
    strbuf_release(&e->header);
    free(e->tallies);
    eval_options_release(&e->options);
}

int eval_run(const struct task *task, struct err *err)
{
    struct evaluation e = {.task = task, .items = {-1}};
    outcome_init(&e.outcome);
    strbuf_init(&e.header);
    int rc = events_open(&e.events, err);
    if (rc != 0) {
        evaluation_release(&e);
        return rc;
    }
    events_section(&e.events, SECTION_SETUP);
    rc = run(&e, err);
    if (rc == ERR_REFUSED)
        events_note(&e.events, "%s", err->msg);
    events_close(&e.events);
    evaluation_release(&e);
    return rc;
}
