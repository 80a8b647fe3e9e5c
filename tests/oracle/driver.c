/*
 * What the engine computes, as plain files a program in another language can read.
 *
 *   oracle_driver corpus FILE           the text of the kept cases
 *   oracle_driver inputs FOLDER         FOLDER/task.json -> what a reference starts from
 *   oracle_driver steps FOLDER          the same, then every step of the horizon
 *
 * Inputs: layout.json (number type, tensors, sizes), init.bin, tokens.bin and targets.bin (uint32:
 * steps, sequences, context), val_SOURCE.bin (uint32). Steps: logits.bin (of step 0, before it),
 * grad.bin (of step 0, before clipping), params.bin, moment1.bin, moment2.bin and bias.bin (at the
 * end), losses.bin (float64: steps), router.json (per step and mixture). Numbers are in the type
 * the driver was built with.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/oracle/engine.h"

static int write_array(const char *folder, const char *name, const void *data, size_t bytes,
                       struct err *err)
{
    char *path = path_join(folder, name);
    int rc = file_write_atomic(path, data, bytes, 0644, err);

    free(path);
    return rc;
}

static int write_reals(const char *folder, const char *name, const real *x, size_t n,
                       struct err *err)
{
    return write_array(folder, name, x, n * sizeof(*x), err);
}

static int write_json(const char *folder, const char *name, cJSON *value, struct err *err)
{
    char *path = path_join(folder, name);
    int rc = json_write_file(path, value, 0644, err);

    free(path);
    cJSON_Delete(value);
    return rc;
}

static cJSON *describe_tensors(const struct tensor_table *table)
{
    cJSON *tensors = json_array();

    for (size_t i = 0; i < table->n; i++) {
        cJSON *t = json_object();
        json_put_string(t, "name", table->items[i].name);
        json_put_int(t, "offset", (int64_t)table->items[i].offset);
        json_put_int(t, "rows", (int64_t)table->items[i].rows);
        json_put_int(t, "cols", (int64_t)table->items[i].cols);
        json_put_bool(t, "decays", table->items[i].decays);
        json_push(tensors, t);
    }
    return tensors;
}

static int write_layout(const struct engine *e, const char *folder, struct err *err)
{
    cJSON *layout = json_object(), *model = json_object();

    model_config_put(&e->opt.model, model);
    json_put_string(layout, "real", sizeof(real) == sizeof(double) ? "float64" : "float32");
    json_put_int(layout, "steps", e->opt.steps);
    json_put_int(layout, "sequences", (int64_t)engine_step_sequences(e));
    json_put_int(layout, "micro_batch", e->opt.micro_batch);
    json_put_int(layout, "val_tokens", e->opt.val_tokens);
    json_put_number(layout, "rope_theta", e->opt.model.rope_theta);
    json_put_number(layout, "norm_eps", e->opt.model.norm_eps);
    json_put(layout, "model", model);
    json_put(layout, "tensors", describe_tensors(&e->trainer.w.table));
    return write_json(folder, "layout.json", layout, err);
}

static int write_order(const struct engine *e, const char *folder, struct err *err)
{
    size_t context = (size_t)e->opt.model.context;
    size_t n = (size_t)e->opt.steps * engine_step_sequences(e);
    uint32_t *tokens = xcalloc(n * context, sizeof(*tokens));
    uint32_t *targets = xcalloc(n * context, sizeof(*targets));

    for (size_t i = 0; i < n; i++)
        train_data_sequence(&e->data, i, tokens + i * context, targets + i * context);
    int rc = write_array(folder, "tokens.bin", tokens, n * context * sizeof(*tokens), err);
    if (rc == 0)
        rc = write_array(folder, "targets.bin", targets, n * context * sizeof(*targets), err);
    free(tokens);
    free(targets);
    return rc;
}

static int write_held_out(const struct engine *e, const char *folder, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < e->data.n_sources; i++) {
        const struct train_source *src = &e->data.sources[i];
        char *name = xasprintf("val_%s.bin", src->name);
        rc = write_array(folder, name, src->val.ids, src->val.n * sizeof(*src->val.ids), err);
        free(name);
    }
    return rc;
}

static int write_inputs(const struct engine *e, const char *folder, struct err *err)
{
    const struct weights *w = &e->trainer.w;

    int rc = write_layout(e, folder, err);
    if (rc == 0)
        rc = write_reals(folder, "init.bin", w->params, w->table.n_params, err);
    if (rc == 0)
        rc = write_order(e, folder, err);
    if (rc == 0)
        rc = write_held_out(e, folder, err);
    return rc;
}

/* What the routers did in the step just taken: the last pass's losses, the whole batch's counts. */
static cJSON *describe_routers(const struct engine *e)
{
    const struct health *h = &e->trainer.health;
    cJSON *layers = json_array();

    for (size_t i = (size_t)e->opt.model.dense_layers; i < h->layers && h->experts > 0; i++) {
        cJSON *layer = json_object(), *counts = json_array(), *p = json_array();
        for (size_t k = 0; k < h->experts; k++) {
            json_push_number(counts, (double)h->step[i].counts[k]);
            json_push_number(p, h->step[i].p_sum[k]);
        }
        json_put_number(layer, "balance", h->step[i].balance);
        json_put_number(layer, "z", h->step[i].z);
        json_put_number(layer, "z_sum", h->step[i].z_sum);
        json_put_int(layer, "dropped", (int64_t)h->step[i].dropped);
        json_put(layer, "counts", counts);
        json_put(layer, "p_sum", p);
        json_push(layers, layer);
    }
    return layers;
}

static int take_steps(struct engine *e, const char *folder, struct err *err)
{
    struct trainer *t = &e->trainer;
    double *losses = xcalloc((size_t)e->opt.steps, sizeof(*losses));
    cJSON *routers = json_array();
    int rc = 0;

    while (rc == 0 && t->step < e->opt.steps) {
        rc = trainer_step(t, &losses[t->step], err);
        json_push(routers, describe_routers(e));
    }
    if (rc == 0)
        rc = write_array(folder, "losses.bin", losses, (size_t)e->opt.steps * sizeof(*losses), err);
    if (rc == 0)
        rc = write_json(folder, "router.json", routers, err);
    else
        cJSON_Delete(routers);
    free(losses);
    return rc;
}

static int write_gradient(struct engine *e, const char *folder, struct err *err)
{
    size_t n = e->trainer.w.table.n_params;
    real *gradient = engine_gradient(e);

    if (gradient == NULL)
        return err_set(err, ERR_OTHER, "no memory for %zu gradients", n);
    int rc = write_reals(folder, "grad.bin", gradient, n, err);
    free(gradient);
    return rc;
}

static int write_steps(struct engine *e, const char *folder, struct err *err)
{
    const struct weights *w = &e->trainer.w;
    size_t n = (size_t)e->opt.batch_tokens * (size_t)e->opt.model.vocab;
    real *logits = engine_logits(e, 0);

    if (logits == NULL)
        return err_set(err, ERR_OTHER, "no memory for %zu logits", n);
    int rc = write_reals(folder, "logits.bin", logits, n, err);
    free(logits);
    if (rc == 0)
        rc = write_gradient(e, folder, err);
    if (rc == 0)
        rc = take_steps(e, folder, err);
    if (rc == 0)
        rc = write_reals(folder, "params.bin", w->params, w->table.n_params, err);
    if (rc == 0)
        rc = write_reals(folder, "moment1.bin", e->trainer.optimiser.m, w->table.n_params, err);
    if (rc == 0)
        rc = write_reals(folder, "moment2.bin", e->trainer.optimiser.v,
                         e->trainer.optimiser.n_second, err);
    if (rc == 0 && w->route_bias != NULL)
        rc = write_reals(folder, "bias.bin", w->route_bias, weights_n_bias(&w->cfg), err);
    return rc;
}

static int run(const char *what, const char *where, struct err *err)
{
    struct engine e;
    bool steps = strcmp(what, "steps") == 0;

    if (strcmp(what, "corpus") == 0)
        return engine_write_corpus(where, err);
    if (!steps && strcmp(what, "inputs") != 0)
        return err_set(err, ERR_USAGE, "no command \"%s\"", what);
    char *task = path_join(where, "task.json");
    int rc = engine_open(&e, task, err);
    if (rc == 0)
        rc = write_inputs(&e, where, err);
    if (rc == 0 && steps)
        rc = write_steps(&e, where, err);
    engine_close(&e);
    free(task);
    return rc;
}

int main(int argc, char **argv)
{
    struct err err = {0};

    if (argc != 3) {
        (void)fprintf(stderr, "usage: oracle_driver corpus FILE | inputs FOLDER | steps FOLDER\n");
        return 64;
    }
    if (run(argv[1], argv[2], &err) < 0) {
        (void)fprintf(stderr, "oracle_driver: %s\n", err.msg);
        return 1;
    }
    return 0;
}
