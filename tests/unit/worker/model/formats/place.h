/* What the tests of interchange share: files in the scratch folder that they enter. */
#ifndef TESTS_UNIT_WORKER_MODEL_FORMATS_PLACE_H
#define TESTS_UNIT_WORKER_MODEL_FORMATS_PLACE_H

#include <stddef.h>

#include "base/strbuf.h"
#include "tests/unit/scratch.h"
#include "worker/model/weights.h"

void place_write(const char *path, const void *data, size_t len);
struct strbuf place_read(const char *path);
/* A safetensors file: the length of the header, the header, n_data bytes. */
void place_write_safetensors(const char *path, const char *header, const void *data, size_t n_data);

/* Small shapes: dense and tied, grouped and untied, a mixture of 4 with 2 chosen. */
struct model_config place_dense(void);
struct model_config place_grouped(void);
struct model_config place_mixture(void);

/* The file of the shared data, or NULL where there is none; the caller frees it. */
char *place_shared(const char *name);

#endif
