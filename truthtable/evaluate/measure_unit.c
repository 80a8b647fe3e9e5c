/*
 * Units of measures. A plan does not state units, so they follow from the bundled worker that
 * yields the metric and from the metric's name without what follows its first ':' or '@'. The
 * unit of another worker's metric is unknown, and text then names the metric instead.
 */
#include "truthtable/evaluate/effects.h"

#include <assert.h>
#include <string.h>

#include "base/files/file.h"
#include "base/xalloc.h"

struct metric_unit {
    const char *metric; /* up to its first ':' or '@' */
    const char *unit;
};

static const struct metric_unit of_training[] = {
    {"val_loss", "nats per token"},
    {"train_loss", "nats per token"},
    {"val_bits_per_byte", "bits per byte"},
    {"target_step", "steps"},
};

static const struct metric_unit of_evaluation[] = {
    {"acc", UNIT_PROPORTION},           {"acc_norm", UNIT_PROPORTION},
    {"exact_match", UNIT_PROPORTION},   {"centered", UNIT_PROPORTION},
    {"core", UNIT_PROPORTION},          {"core_partial", UNIT_PROPORTION},
    {"bits_per_byte", "bits per byte"}, {"perplexity", "perplexity"},
    {"word_perplexity", "perplexity"},  {"byte_perplexity", "perplexity"},
};

/* The unit of a metric in one worker's list; NULL if it is not there. */
static const char *find(const struct metric_unit *rows, size_t n, const char *metric)
{
    const size_t len = strcspn(metric, ":@");
    for (size_t i = 0; i < n; i++) {
        if (strlen(rows[i].metric) == len && memcmp(rows[i].metric, metric, len) == 0) {
            return rows[i].unit;
        }
    }
    return NULL;
}

/* A measure with a chance level or a floor is a proportion, whatever its worker. */
const char *measure_unit(const struct plan_program *p, const struct plan_measure *m)
{
    assert(p != NULL && m != NULL && m->stage < p->n_stages);
    const struct plan_stage *s = &p->stages[m->stage];
    const char *worker = s->n_command == 0 ? "" : path_name(s->command[0]);
    if (measure_is_share(m)) {
        return UNIT_PROPORTION;
    }
    if (strcmp(worker, "prereg-train") == 0) {
        return find(of_training, ARRAY_LEN(of_training), m->metric);
    }
    if (strcmp(worker, "prereg-eval") == 0 || strcmp(worker, "prereg-lm-eval") == 0) {
        return find(of_evaluation, ARRAY_LEN(of_evaluation), m->metric);
    }
    return NULL;
}
