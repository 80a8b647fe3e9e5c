#include <math.h>

#include "base/file.h"
#include "base/json.h"
#include "worker/report/describe.h"
#include "worker/train/memory.h"
#include "worker/train/outcome.h"
#include "worker/train/train.h"

#define PARAMS_FILE_MAX     (1u << 20)
#define FLOPS_PER_SECOND    5e10 /* of one thread, for the estimate of time alone */
#define START_SECONDS       1.0
#define BACKWARD_FACTOR     3.0 /* training costs three times a forward pass */
#define CHECKPOINTS_ON_DISK 3.0 /* two, and the third while it is written */

static void add_metric(void *ctx, const char *name)
{
    description_metric(ctx, name);
}

/* Evaluations, each a forward pass over every source's held-out tokens. */
static double evaluated_tokens(const struct train_options *opt)
{
    double evaluations = 1.0 + (double)opt->n_marks;

    if (opt->eval_every > 0)
        evaluations += (double)(opt->steps / opt->eval_every);
    return evaluations * (double)opt->n_mix * (double)opt->val_tokens;
}

static void describe_facts(const struct train_options *opt, const struct memory_need *need,
                           int threads, struct description *d)
{
    const struct model_config *cfg = &opt->model;
    double total = (double)model_config_total(cfg), flops = model_config_flops_per_token(cfg);
    double tokens = (double)opt->steps * (double)opt->batch_tokens;

    description_fact(d, "params_total", total);
    description_fact(d, "params_active", (double)model_config_active(cfg));
    description_fact(d, "active_ffn", (double)model_config_active_ffn(cfg));
    description_fact(d, "tokens", tokens);
    description_fact(d, "steps", (double)opt->steps);
    description_fact(d, "flops_per_token", flops);
    if (cfg->experts > 0)
        description_fact(d, "tokens_per_expert", tokens * cfg->top_k / cfg->experts);
    if (opt->solved) {
        description_fact(d, "match_ratio", opt->match_ratio);
        description_param(d, cfg->experts > 0 ? "expert_ffn" : "ffn", (double)opt->solved_ffn);
    }
    description_fact(d, "memory_bytes", memory_most(need));
    description_fact(d, "disk_bytes", sizeof(real) * total * (3.0 * CHECKPOINTS_ON_DISK + 1.0));
    description_seconds(d, START_SECONDS + flops *
                                               (tokens + evaluated_tokens(opt) / BACKWARD_FACTOR) /
                                               (FLOPS_PER_SECOND * threads));
}

int train_describe(const struct task *task, FILE *out, struct err *err)
{
    struct param_faults faults = {0};
    struct train_options opt;
    struct description d;
    struct memory_need need = {0};

    description_init(&d);
    train_options_read(task, &opt, &faults);
    if (faults.n == 0) {
        /* Against the task's limit alone: this need not be the machine that will run it. */
        memory_need_of(&opt, memory_corpus_of_files(task, &opt), task->threads, &need);
        memory_check(&need, (double)task->memory_bytes, &opt, &faults);
    }
    if (faults.n == 0) {
        outcome_metric_names(&opt, add_metric, &d);
        describe_facts(&opt, &need, task->threads, &d);
    }
    int rc = description_print(&d, &faults, out, err);
    description_release(&d);
    param_faults_release(&faults);
    return rc;
}

int train_count(const char *path, FILE *out, struct err *err)
{
    struct model_config cfg;
    cJSON *obj = NULL;

    int rc = json_read_file(path, PARAMS_FILE_MAX, &obj, err);
    if (rc == 0)
        rc = model_config_get(obj, &cfg, err);
    if (rc == 0)
        (void)fprintf(out, "{\"params_total\":%lld,\"params_active\":%lld,\"active_ffn\":%lld}\n",
                      (long long)model_config_total(&cfg), (long long)model_config_active(&cfg),
                      (long long)model_config_active_ffn(&cfg));
    cJSON_Delete(obj);
    return rc;
}
