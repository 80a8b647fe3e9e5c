#include "tests/unit/worker/model/formats/place.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/worker/shape.h"

void place_write(const char *path, const void *data, size_t len)
{
    struct err err = {0};

    if (file_write_atomic(path, data, len, 0644, &err) < 0)
        fail_msg("%s", err.msg);
}

struct strbuf place_read(const char *path)
{
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};

    if (file_read(path, 1 << 26, &text, &err) < 0)
        fail_msg("%s", err.msg);
    return text;
}

void place_write_safetensors(const char *path, const char *header, const void *data, size_t n_data)
{
    struct strbuf file = STRBUF_INIT;
    uint64_t length = strlen(header);

    strbuf_add(&file, &length, sizeof(length));
    strbuf_adds(&file, header);
    strbuf_add(&file, data, n_data);
    place_write(path, file.buf, file.len);
    strbuf_release(&file);
}

struct model_config place_dense(void)
{
    return (struct model_config)SHAPE(2, 8, 2, 2, 257, 16, .ffn = 12, .tie_embeddings = true,
                                      .renormalise = true);
}

struct model_config place_grouped(void)
{
    struct model_config cfg = place_dense();

    cfg.heads = 4;
    cfg.tie_embeddings = false;
    return cfg;
}

struct model_config place_mixture(void)
{
    struct model_config cfg = place_grouped();

    cfg.ffn = 0;
    cfg.experts = 4;
    cfg.top_k = 2;
    cfg.expert_ffn = 6;
    return cfg;
}

char *place_shared(const char *name)
{
    const char *shared = getenv("PREREGD_SHARED");
    char *path = path_join(shared == NULL ? TEST_SOURCE_DIR "/../shared" : shared, name);

    if (file_kind_at(path) != FILE_ABSENT)
        return path;
    free(path);
    return NULL;
}
