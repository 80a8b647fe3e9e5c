/* prereg-eval --describe: what would be measured, on how much, in about what time. */
#include "worker/report/describe.h"
#include <math.h>

#include "worker/eval/benchmark.h"
#include "worker/eval/run.h"
#include "worker/eval/subject.h"
#include "worker/eval/summary.h"

/* A guess for models of a few hundred thousand parameters on one core, to be read as an order of
 * magnitude: the model is not known yet. */
#define SECONDS_PER_BYTE 1e-5

static void put_name(void *self, const char *name)
{
    description_metric(self, name);
}

/* What a run will give, also of each group of its items. */
static int describe_metrics(struct description *d, const struct benchmark *bench, struct err *err)
{
    struct judge judge;
    int rc = judge_init(&judge, &bench->set, NULL, err);
    if (rc == 0)
        summary_each_name(&judge, put_name, d);
    judge_release(&judge);
    return rc;
}

static void describe_benchmark(struct description *d, const struct eval_options *o,
                               struct param_faults *faults)
{
    struct benchmark bench;
    struct err err = {0};
    int rc = benchmark_load(&bench, o, &err);
    if (rc == 0)
        rc = describe_metrics(d, &bench, &err);
    if (rc != 0) {
        struct params p;
        params_init(&p, NULL, faults);
        params_fault(&p, "data", "%s", err.msg);
    } else {
        struct benchmark_size size;
        benchmark_measure(&bench, &size);
        if (o->spec->kind == TASK_GENERATE)
            size.bytes += size.requests * (size.longest + o->max_tokens) * o->max_tokens;
        description_fact(d, "items", (double)bench.n_selected);
        description_fact(d, "requests", size.requests);
        description_fact(d, "request_bytes", size.bytes);
        description_fact(d, "longest_request_bytes", size.longest);
        description_seconds(d, ceil(size.bytes * SECONDS_PER_BYTE));
    }
    benchmark_release(&bench);
}

int eval_describe(const struct task *task, FILE *out, struct err *err)
{
    struct param_faults faults = {0};
    struct eval_options options;
    struct description d;
    description_init(&d);
    eval_options_read(task, &options, &faults);
    if (faults.n == 0)
        subject_check(task, &options, &faults);
    if (faults.n == 0)
        describe_benchmark(&d, &options, &faults);
    int rc = description_print(&d, &faults, out, err);
    description_release(&d);
    eval_options_release(&options);
    param_faults_release(&faults);
    return rc;
}
