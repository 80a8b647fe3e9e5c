/*
 * Brings an evaluation up in steps: options, verified data, items, what judges them, and for a run
 * the model behind struct lm. The order keeps cheap failures first; weights are read last.
 * lm_score() and lm_generate() count every call with score_counter, so the reported cost is of
 * exactly the calls that were made.
 */
#include "worker/eval/cli/evaluation.h"

#include "base/xalloc.h"
#include "worker/eval/cli/scored_model.h"
#include "worker/report/stop.h"

void evaluation_init(struct eval_session *e, const struct worker_task *task)
{
    *e = (struct eval_session){.task = task, .items = {.fd = -1, .sums_fd = -1}};
    strbuf_init(&e->header);
}

/* Every fault goes to standard error, the first one into err. */
static int read_options(struct eval_session *e, struct err *err)
{
    struct param_faults faults = {0};
    eval_options_read(e->task, &e->options, &faults);
    int rc = param_faults_result(&faults, err);
    param_faults_say(&faults, "prereg-eval");
    param_faults_release(&faults);
    return rc;
}

/* Every parameter that names data, in the order of the header of items.jsonl; `verify` hashes
 * them. */
static int find_reads(struct eval_session *e, bool verify, struct err *err)
{
    const struct eval_options *o = &e->options;
    const struct eval_read reads[] = {
        {.key = "data", .data = &o->data},
        {.key = "more_data", .data = &o->more_data},
        {.key = "fewshot_data", .data = &o->fewshot_data},
        {.key = "second_key", .data = &o->second_key},
        {.key = "task_file", .data = &o->task_file},
        {.key = "model", .data = &o->model_data},
        {.key = "tokenizer", .data = &o->tokenizer},
    };
    int rc = 0;
    for (size_t i = 0; i < ARRAY_LEN(reads) && rc == 0; i++) {
        struct eval_read *read = &e->reads[e->n_reads++];
        *read = reads[i];
        if (verify && read->data->name != NULL)
            rc = task_verify_data(read->data, &read->digest, err);
    }
    return rc;
}

static int lm_score(void *self, struct score_request *r, size_t n, bool (*asked)(void),
                    struct err *err)
{
    struct eval_session *e = self;
    score_counter_score(e->counter, r, n, &e->cost);
    return model_score_all(e->model, r, n, asked, err);
}

static int lm_generate(void *self, struct score_generation *g, size_t n,
                       const struct score_stop *stop, struct err *err)
{
    struct eval_session *e = self;
    score_counter_generate(e->counter, g, n, &e->cost);
    return model_generate_all(e->model, g, n, stop, err);
}

/* The model, its tokenizer, and the scorer over both. */
static int open_model(struct eval_session *e, struct err *err)
{
    const struct eval_options *o = &e->options;
    bool tidies = false;
    int rc = scored_model_open(e->task, o, &e->model, &e->tok, err);
    if (rc == 0)
        rc = scored_model_tidies_spaces(e->task, o, &tidies, err);
    if (rc != 0)
        return rc;
    e->lm = (struct lm){.self = e, .tok = e->tok, .score = lm_score, .generate = lm_generate};
    e->lm.context = (size_t)model_shape(e->model)->context;
    e->lm.tidies_spaces = tidies;
    e->counter = score_counter_create(model_shape(e->model));
    const struct scorer_setup setup = {.prompts = &e->bench.prompts,
                                       .judge = &e->judge,
                                       .lm = &e->lm,
                                       .rules = {.tok = e->tok,
                                                 .max_length = e->lm.context,
                                                 .add_bos = o->add_bos,
                                                 .one_bos = o->rules->one_bos},
                                       .max_tokens = (size_t)o->max_tokens,
                                       .asked = stop_asked};
    return scorer_init(&e->scorer, &setup, err);
}

static int read_second_key(struct eval_session *e, struct err *err)
{
    const struct eval_options *o = &e->options;
    if (o->second_key.name == NULL)
        return 0;
    const struct item_source src = benchmark_source(o, o->second_key.path, o->split);
    return second_key_read(&e->second, o->second_key.name, &e->bench.set, &src, err);
}

/* What the items cost: text that no request before had, and what is generated. */
static double work_of(const struct benchmark *b, const struct eval_options *o, size_t most)
{
    struct benchmark_size size;
    double generated = 0.0;

    benchmark_measure(b, most, &size);
    if (o->spec->kind == TASK_GENERATE)
        generated =
            (double)b->n_selected * (o->max_tokens > 0 ? o->max_tokens : o->spec->max_tokens);
    return size.distinct_bytes + generated;
}

/* Of `preregctl try`: some items of all over the benchmark; their scores are thrown away. */
static int cut_for_try(struct eval_session *e, struct err *err)
{
    size_t most = 0;
    if (e->task->try_items == 0)
        return 0;
    int rc = benchmark_find_most(&e->bench, &e->options, e->tok, e->lm.context, &most, err);
    if (rc != 0)
        return rc;
    e->whole_work = work_of(&e->bench, &e->options, most);
    benchmark_thin(&e->bench, (size_t)e->task->try_items);
    e->tried_work = work_of(&e->bench, &e->options, most);
    return 0;
}

/* All that judging needs, without the model. */
int evaluation_load(struct eval_session *e, bool verify, struct err *err)
{
    int rc = read_options(e, err);
    if (rc != 0 || (rc = find_reads(e, verify, err)) != 0 ||
        (rc = benchmark_load(&e->bench, &e->options, err)) != 0)
        return rc;
    if ((rc = read_second_key(e, err)) != 0)
        return rc;
    return judge_init(&e->judge, &e->bench.set, e->second.name == NULL ? NULL : &e->second, err);
}

int evaluation_prepare(struct eval_session *e, bool verify, struct err *err)
{
    int rc = evaluation_load(e, verify, err);
    if (rc == 0 && (rc = open_model(e, err)) == 0)
        rc = cut_for_try(e, err);
    if (rc == 0) {
        summary_init(&e->summary, &e->judge);
        viability_init(&e->viability, &e->options.viability);
    }
    return rc;
}

void evaluation_release(struct eval_session *e)
{
    items_file_close(&e->items);
    viability_release(&e->viability);
    summary_release(&e->summary);
    scorer_release(&e->scorer);
    score_counter_free(e->counter);
    tokenizer_free(e->tok);
    model_free(e->model);
    judge_release(&e->judge);
    second_key_release(&e->second);
    benchmark_release(&e->bench);
    eval_options_release(&e->options);
    strbuf_release(&e->header);
}
