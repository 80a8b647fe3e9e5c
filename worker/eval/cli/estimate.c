/*
 * A large benchmark is counted on runs of neighbouring items, evenly spread, since neighbours share
 * examples; the whole is to the part as the bytes of text are that the model reads and no request
 * before had.
 *
 * A large model is measured smaller: the head is linear in its words, everything else in layers.
 */
#include "worker/eval/cli/estimate.h"

#include <math.h>

#include "base/xalloc.h"
#include "worker/eval/cli/count.h"
#include "worker/nn/cpu.h"
#include "worker/report/machine_rates.h"

#define PART_BYTES       2e6 /* of requests' texts, that are counted */
#define RATES_NR         8
#define PARAMS_MOST      ((int64_t)16 << 20) /* of a model that is measured as it is */
#define BYTES_MOST       0x1p29              /* of one with a long context, unless that is short */
#define CONTEXT_LEAST    4096
#define START_SECONDS    0.01
#define BYTES_PER_SECOND 5e8 /* weights read, digested and packed */

/* What a usual processor would need, two operations for each parameter. */
static struct score_rates guess(const struct model_config *cfg)
{
    const double rows = (double)cfg->vocab * cfg->width;
    const double params =
        (double)model_config_active(cfg) - rows * (cfg->tie_embeddings ? 1.0 : 2.0);
    struct score_rates r = {.distinct_token = 2.0 * params / TASK_USUAL_FLOPS,
                            .key = 4.0 * cfg->layers * cfg->width / TASK_USUAL_FLOPS,
                            .head_row = 2.0 * rows / TASK_USUAL_FLOPS};
    r.generated = r.distinct_token + r.head_row;
    r.generated_key = r.key;
    return r;
}

/* Measures, within bounds; else `why` gets the reason. */
static bool try_measure(const struct model_config *cfg, struct score_rates *r, struct strbuf *why)
{
    struct err err;
    if (!machine_rates_allowed(model_shape_bytes(cfg), model_shape_flops(cfg), why))
        return false;
    if (model_shape_rates(cfg, r, &err) == 0)
        return true;
    strbuf_adds(why, err.msg);
    return false;
}

/* The model that is measured: smaller, and with a shorter context where its cache is large. */
static struct model_config measured_model(const struct model_config *cfg)
{
    struct model_config small = *cfg;
    model_config_shrink(&small, PARAMS_MOST);
    while (small.context / 2 >= CONTEXT_LEAST && model_shape_bytes(&small) > BYTES_MOST)
        small.context /= 2;
    return small;
}

/* Rates of the shape, kept or measured. */
static struct score_rates rates_of(const struct worker_task *task, const struct model_config *cfg,
                                   struct strbuf *why)
{
    const struct model_config small = measured_model(cfg);
    struct score_rates r = guess(&small);
    double *fields[RATES_NR] = {&r.distinct_token, &r.key,       &r.head_row,      &r.unread,
                                &r.unread_key,     &r.generated, &r.generated_key, &r.step};
    double values[RATES_NR];
    struct strbuf name = STRBUF_INIT;
    strbuf_addf(&name, "score %s: ", nn_cpu_text(nn_cpu()));
    model_config_name(&small, &name);
    if (machine_rates_find(task, name.buf, values, RATES_NR)) {
        for (size_t i = 0; i < RATES_NR; i++)
            *fields[i] = values[i];
    } else if (task->rates != NULL && try_measure(&small, &r, why)) {
        for (size_t i = 0; i < RATES_NR; i++)
            values[i] = *fields[i];
        machine_rates_keep(task, name.buf, values, RATES_NR);
    }
    strbuf_release(&name);
    r.head_row *= (double)cfg->vocab / small.vocab;
    const double more = (double)cfg->layers / small.layers;
    r.distinct_token *= more;
    r.key *= more;
    r.generated *= more;
    r.generated_key *= more;
    r.step *= more;
    return r;
}

/* The part of the selected items that is counted. */
static void take_part(const struct benchmark *bench, double share, struct benchmark *part)
{
    *part = *bench;
    part->selected = xcalloc(bench->n_selected, sizeof(*part->selected));
    memcpy(part->selected, bench->selected, bench->n_selected * sizeof(*part->selected));
    if (share < 1.0)
        benchmark_thin(part, (size_t)ceil(share * (double)bench->n_selected));
}

/* How many times the cost of the part the whole has. */
static int times_more(const struct estimate_of *x, const struct benchmark *part, double *times,
                      struct err *err)
{
    struct benchmark_size all, counted;
    size_t most = 0;
    int rc = benchmark_find_most(part, x->options, x->look->tok, x->look->context, &most, err);
    if (rc != 0)
        return rc;
    benchmark_measure(x->bench, most, &all);
    benchmark_measure(part, most, &counted);
    *times = counted.distinct_bytes > 0.0 ? all.distinct_bytes / counted.distinct_bytes : 1.0;
    return 0;
}

static int count_part(const struct estimate_of *x, const struct benchmark *part,
                      struct request_count *count, struct err *err)
{
    struct judge judge = {0};
    struct scorer scorer = {0};
    struct lm lm = {.tok = x->look->tok, .context = x->look->context};
    const struct scorer_setup setup = {.prompts = &part->prompts,
                                       .judge = &judge,
                                       .lm = &lm,
                                       .rules = {.tok = lm.tok,
                                                 .max_length = lm.context,
                                                 .add_bos = x->options->add_bos,
                                                 .one_bos = x->options->rules->one_bos},
                                       .max_tokens = (size_t)x->options->max_tokens};
    request_count_answers(count, &lm);
    int rc = judge_init(&judge, &part->set, NULL, err);
    if (rc == 0)
        rc = scorer_init(&scorer, &setup, err);
    if (rc == 0)
        rc = request_count_items(count, &scorer, part->selected, part->n_selected, err);
    scorer_release(&scorer);
    judge_release(&judge);
    return rc;
}

double estimate_of_counts(const struct score_cost *cost, const struct score_rates *rates,
                          const struct model_config *cfg)
{
    return START_SECONDS + sizeof(float) * (double)model_config_total(cfg) / BYTES_PER_SECOND +
           score_seconds(cost, rates);
}

int estimate_seconds(const struct estimate_of *x, double *seconds, struct err *err)
{
    const double bytes = x->size->bytes;
    const double share = bytes > PART_BYTES ? PART_BYTES / bytes : 1.0;
    struct model_config cfg = x->look->cfg;
    struct benchmark part;
    double more = 1.0;
    cfg.context = (int)x->look->context;
    struct request_count count = {.counter = score_counter_create(&cfg)};
    take_part(x->bench, share, &part);
    int rc = share < 1.0 ? times_more(x, &part, &more, err) : 0;
    if (rc == 0)
        rc = count_part(x, &part, &count, err);
    if (rc == 0) {
        const struct score_rates rates = rates_of(x->task, &cfg, x->why);
        const double start = estimate_of_counts(&(struct score_cost){0}, &rates, &cfg);
        *seconds = start + more * (score_seconds(&count.cost, &rates) + count.seconds);
    }
    score_counter_free(count.counter);
    free(part.selected);
    return rc;
}
