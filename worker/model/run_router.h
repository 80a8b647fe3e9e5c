/* What the routers of the last pass chose, for the router log (worker/train/router_log.h). */
#ifndef WORKER_MODEL_RUN_ROUTER_H
#define WORKER_MODEL_RUN_ROUTER_H

#include "worker/model/run.h"

/* first[i] is the expert that token i of the last pass chose first in this mixture layer, for all
 * of its n tokens. RUN_TRAIN only: otherwise the layers share one set of buffers. */
void run_first_choices(const struct run *run, int layer, size_t n, uint32_t *first);

#endif
