/*
 * checkpoint_image_blobs() is the one list of what a checkpoint's files hold; writing, copying and
 * resuming all go through it, so a new array of the trainer is added there. Sizes depend on the
 * step, because histories grow; a copy's memory is reserved once for the last step.
 */
#include "worker/train/checkpoint/checkpoint_image.h"

void checkpoint_image_init(struct checkpoint_image *img)
{
    *img = (struct checkpoint_image){.state = STRBUF_INIT};
}

void checkpoint_image_release(struct checkpoint_image *img)
{
    strbuf_release(&img->state);
    free(img->memory);
    checkpoint_image_init(img);
}

void checkpoint_image_blobs(const struct trainer *t, int64_t step,
                            struct image_blob out[IMAGE_BLOBS])
{
    size_t n = t->w.table.n_params;

    out[IMAGE_WEIGHTS] = (struct image_blob){
        "weights.bin", {t->w.params, t->w.route_bias}, {n, weights_n_bias(&t->w.cfg)}};
    out[1] = (struct image_blob){"moment1.bin", {t->optimiser.m}, {n}};
    out[2] = (struct image_blob){"moment2.bin", {t->optimiser.v}, {t->optimiser.n_second}};
    out[3] = (struct image_blob){"history.bin", {&t->history[0].loss}, {2 * (size_t)step}};
    out[4] = (struct image_blob){
        "router.bin", {t->router.values}, {router_log_length(&t->router, step)}};
}

int checkpoint_image_view(struct checkpoint_image *img, const struct trainer *t, struct err *err)
{
    img->step = t->step;
    checkpoint_image_blobs(t, t->step, img->blobs);
    return checkpoint_state_text(t, &img->state, err);
}

/* Room for the longest image of this run, so that it is asked for once. */
static int reserve(struct checkpoint_image *img, const struct trainer *t, struct err *err)
{
    struct image_blob most[IMAGE_BLOBS];
    size_t n = 0;

    if (img->memory != NULL)
        return 0;
    checkpoint_image_blobs(t, t->opt->steps, most);
    for (size_t i = 0; i < IMAGE_BLOBS; i++)
        n += most[i].n[0] + most[i].n[1];
    img->memory = malloc(n * sizeof(*img->memory));
    return img->memory == NULL ? err_set(err, ERR_OTHER, "no memory for a copy of %zu numbers", n)
                               : 0;
}

int checkpoint_image_copy(struct checkpoint_image *img, const struct trainer *t, struct err *err)
{
    int rc = reserve(img, t, err);

    if (rc == 0)
        rc = checkpoint_image_view(img, t, err);
    if (rc < 0)
        return rc;
    float *at = img->memory;
    for (size_t i = 0; i < IMAGE_BLOBS * IMAGE_PARTS; i++) {
        struct image_blob *b = &img->blobs[i / IMAGE_PARTS];
        size_t part = i % IMAGE_PARTS;
        if (b->n[part] == 0)
            continue;
        memcpy(at, b->part[part], b->n[part] * sizeof(*at));
        b->part[part] = at;
        at += b->n[part];
    }
    return 0;
}

double checkpoint_image_bytes(const struct train_options *opt)
{
    double numbers = 2.0 * (double)model_config_total(&opt->model) +
                     (double)optimiser_size(opt).second + (double)weights_n_bias(&opt->model) +
                     2.0 * (double)opt->steps;

    return sizeof(float) * (numbers + router_log_numbers(opt));
}
