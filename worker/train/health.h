/*
 * Router health: what the mixtures' routers did over the last tenth of the steps, and the two
 * remedies that act on it between steps (choice biases, re-initialised experts). All zero for a
 * dense model.
 *
 * Facts, each the mean over the mixture layers (docs/models.md): load = largest share x E,
 * occupancy = smallest share x E, entropy = H(mean p) / ln E, effective = e^H(mean p), dead =
 * experts under 1 % of a fair share, z = mean lse^2.
 */
#ifndef WORKER_TRAIN_HEALTH_H
#define WORKER_TRAIN_HEALTH_H

#include <cjson/cJSON.h>
#include <stdint.h>

#include "base/err.h"
#include "worker/model/weights.h"
#include "worker/nn/router.h"
#include "worker/train/optimiser.h"

#define DEAD_SHARE 0.01 /* of a fair share */

struct health {
    size_t layers;
    size_t experts;
    struct router_stats *step;   /* (layers) this step's; layers without a mixture stay zero */
    struct router_stats *window; /* (layers) since HORIZON_TAIL before the end */
    uint64_t *since_reset;       /* (layers, E) assignments since the last check for dead experts */
    int64_t kills;
};

/* The facts, in the order in which results name them. */
enum health_name {
    HEALTH_LOAD,
    HEALTH_OCCUPANCY,
    HEALTH_ENTROPY,
    HEALTH_EFFECTIVE,
    HEALTH_DEAD,
    HEALTH_Z,
    HEALTH_SAME, /* by router_log.h */
    HEALTH_NAMES_NR
};
extern const char *const HEALTH_NAMES[HEALTH_NAMES_NR];

struct health_facts {
    double load;
    double occupancy;
    double entropy;
    double effective;
    double dead;
    double z;
};

void health_init(struct health *h, const struct model_config *cfg);
void health_release(struct health *h);

/* Before a step's first pass. */
void health_begin_step(struct health *h);
/* After the update of `step` (from 0): moves the biases, re-initialises dead experts (their moments
 * become zero), and adds to the window. */
void health_end_step(struct health *h, struct weights *w, struct optimiser *optimiser,
                     const struct train_options *opt, int64_t step);

/* The mean over the mixtures; false when there is nothing to measure: a dense model, or no step in
 * the window. */
bool health_facts(const struct health *h, const struct model_config *cfg, struct health_facts *out);

/* The share of all assignments that was over the capacity; NaN without a step in the window. */
double health_dropped(const struct health *h, const struct model_config *cfg);

/* Of one layer's sums, which hold at least one token. */
void health_layer_facts(const struct router_stats *s, size_t experts, struct health_facts *out);

/* Of a run that goes on beyond the end for which the window was summed. */
void health_clear_window(struct health *h);

/* For the checkpoint. */
void health_put(const struct health *h, cJSON *obj);
int health_get(struct health *h, const cJSON *obj, struct err *err) MUST_CHECK;

#endif
