/*
 * What one checkpoint holds, as bytes in memory: state.json's text and files of floats.
 *
 * A view points into the trainer and is good until its next step; a copy owns its bytes, so that a
 * thread may write it while steps go on. A copy keeps its memory between checkpoints: only the
 * first one pays for the pages.
 */
#ifndef WORKER_TRAIN_CHECKPOINT_CHECKPOINT_IMAGE_H
#define WORKER_TRAIN_CHECKPOINT_CHECKPOINT_IMAGE_H

#include "base/strbuf.h"
#include "worker/train/trainer.h"

#define IMAGE_BLOBS   5
#define IMAGE_PARTS   2
#define IMAGE_WEIGHTS 0 /* the blob of the parameters */

/* One file of floats: up to two arrays, one after the other. */
struct image_blob {
    const char *name;
    float *part[IMAGE_PARTS];
    size_t n[IMAGE_PARTS];
};

struct checkpoint_image {
    int64_t step;
    struct strbuf state; /* state.json */
    struct image_blob blobs[IMAGE_BLOBS];
    float *memory; /* of a copy */
};

void checkpoint_image_init(struct checkpoint_image *img);
void checkpoint_image_release(struct checkpoint_image *img);

/* The blobs of the trainer as they are (or are to be filled) after `step` steps. */
void checkpoint_image_blobs(const struct trainer *t, int64_t step,
                            struct image_blob out[IMAGE_BLOBS]);
/* Points into the trainer; valid until its next step. */
int checkpoint_image_view(struct checkpoint_image *img, const struct trainer *t,
                          struct err *err) MUST_CHECK;
/* ERR_OTHER without memory. */
int checkpoint_image_copy(struct checkpoint_image *img, const struct trainer *t,
                          struct err *err) MUST_CHECK;

/* Bytes that a copy of a run's last checkpoint takes. */
double checkpoint_image_bytes(const struct train_options *opt);

/* state.json of a checkpoint: all of struct trainer that is neither weights, moments nor history.
 */

/* Replaces what `out` held. */
int checkpoint_state_text(const struct trainer *t, struct strbuf *out, struct err *err) MUST_CHECK;
/* The record of the mark at a fraction in state.json's "marks" (or NULL), or NULL. */
const cJSON *checkpoint_state_find_mark(const cJSON *marks, double at);
int checkpoint_state_read(struct trainer *t, const char *path, struct err *err) MUST_CHECK;

#endif
