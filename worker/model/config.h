/*
 * The shape of a model: plain data, read from the parameters of a stage or from model.json, and
 * counted exactly (spec: docs/models.md). A dense model has experts == 0.
 */
#ifndef WORKER_MODEL_CONFIG_H
#define WORKER_MODEL_CONFIG_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "worker/report/params.h"

/* Upper limits of a shape, wherever it comes from. With these, and widths that a match solves
 * (worker/train/width_match.c), every count of parameters stays under 2^63. */
#define MODEL_DIM_MAX    (1 << 20)
#define MODEL_WIDTH_MAX  (1 << 17)
#define MODEL_LAYERS_MAX (1 << 10)

struct model_config {
    int layers;
    int width;
    int heads;
    int kv_heads;
    int ffn; /* width of dense blocks; 0 when there are none */
    int vocab;
    int context; /* tokens a training sequence has; the most that a forward takes */
    bool tie_embeddings;
    int experts; /* 0: dense */
    int top_k;
    int expert_ffn;
    int shared;       /* shared experts of width expert_ffn each */
    int dense_layers; /* the number of blocks at the start that are dense */
    bool renormalise; /* the chosen experts' weights are made to sum to 1 */
    double rope_theta;
    double norm_eps;
};

/* Reads the shape's keys of p with their defaults; faults go to p. ffn may be absent when
 * `ffn_solved` (a match is to be solved). Does not call params_finish(). */
void model_config_read(struct params *p, bool ffn_solved, struct model_config *cfg);
/* What must hold between the numbers; faults go to p. */
void model_config_check(struct params *p, const struct model_config *cfg);
/* The same checks for a shape that was read from a file: ERR_CORRUPT with the first fault. */
int model_config_validate(const struct model_config *cfg, struct err *err) MUST_CHECK;

/* Mixture blocks: all but the first dense_layers, or none without experts. */
int model_config_moe_layers(const struct model_config *cfg);
bool model_config_is_moe(const struct model_config *cfg, int layer);
/* Width of a layer's dense feed-forward part: F, S Fe of the shared experts, or 0. */
size_t model_config_dense_ffn(const struct model_config *cfg, int layer);
/* (H + 2 G) D: queries, keys and values of one token. */
size_t model_config_qkv(const struct model_config *cfg);
/* Every trainable parameter, tied ones once. */
int64_t model_config_total(const struct model_config *cfg);
/* total - L_moe (E - K) 3 C Fe */
int64_t model_config_active(const struct model_config *cfg);
/* F, or (K + S) Fe. */
int64_t model_config_active_ffn(const struct model_config *cfg);
/* 6 (active - embedding rows that are looked up, not multiplied) + 12 L C T / 2. */
double model_config_flops_per_token(const struct model_config *cfg);

/* Appends every number of the shape that a time depends on, in a few words. */
void model_config_name(const struct model_config *cfg, struct strbuf *out);
/* A shape of the same width, of about so many parameters where that can be had, whose operations
 * cost alike: fewer layers, then fewer experts that are not chosen, then fewer words. */
void model_config_shrink(struct model_config *cfg, int64_t most);
/* The members of model.json that describe the shape. */
void model_config_put(const struct model_config *cfg, cJSON *obj);
/* ERR_USAGE with the first fault of the shape. */
int model_config_get(const cJSON *obj, struct model_config *cfg, struct err *err) MUST_CHECK;

#endif
