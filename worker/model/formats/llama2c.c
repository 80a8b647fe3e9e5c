/*
 * The file is a header and then all tensors of a kind for all layers, where our table goes layer by
 * layer: read_tensors() follows the file's order and seeks in ours. The length of the file must be
 * exactly what the header implies, which is the only check the format allows, besides that every
 * number is finite.
 */
#include "worker/model/formats/llama2c.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "worker/model/store.h"

#define MAGIC_LATER 0x616b3432 /* "ak42": versions 1 and up begin with it */

enum { HEAD_DIM, HEAD_HIDDEN, HEAD_LAYERS, HEAD_HEADS, HEAD_KV, HEAD_VOCAB, HEAD_SEQ, HEAD_NR };

/* The order of the file. A layered section holds the tensor of every layer, one after the other. */
static const struct llama2c_section {
    enum tensor_role role;
    bool layered;
} SECTIONS[] = {
    {TENSOR_EMBED, false},      {TENSOR_NORM_ATTENTION, true},
    {TENSOR_Q, true},           {TENSOR_K, true},
    {TENSOR_V, true},           {TENSOR_O, true},
    {TENSOR_NORM_FFN, true},    {TENSOR_GATE, true},
    {TENSOR_DOWN, true},        {TENSOR_UP, true},
    {TENSOR_NORM_FINAL, false},
};

static bool is_within(int32_t v, int32_t max)
{
    return v >= 1 && v <= max;
}

static int read_header(const int32_t head[HEAD_NR], struct model_config *cfg, struct err *err)
{
    int32_t vocab = head[HEAD_VOCAB];

    if (head[0] == MAGIC_LATER)
        return err_set(err, ERR_VERSION, "llama2.c version %d: only its first format is read",
                       head[1]);
    bool shared = vocab > 0;
    if (vocab == INT32_MIN)
        vocab = 0;
    vocab = shared ? vocab : -vocab;
    if (!is_within(head[HEAD_DIM], MODEL_WIDTH_MAX) ||
        !is_within(head[HEAD_HIDDEN], MODEL_DIM_MAX) ||
        !is_within(head[HEAD_LAYERS], MODEL_LAYERS_MAX) ||
        !is_within(head[HEAD_HEADS], MODEL_DIM_MAX) || !is_within(head[HEAD_KV], MODEL_DIM_MAX) ||
        !is_within(vocab, MODEL_DIM_MAX) || !is_within(head[HEAD_SEQ], MODEL_DIM_MAX))
        return err_set(err, ERR_CORRUPT, "not a llama2.c checkpoint: impossible header");
    *cfg = (struct model_config){.layers = head[HEAD_LAYERS],
                                 .width = head[HEAD_DIM],
                                 .heads = head[HEAD_HEADS],
                                 .kv_heads = head[HEAD_KV],
                                 .ffn = head[HEAD_HIDDEN],
                                 .vocab = vocab,
                                 .context = head[HEAD_SEQ],
                                 .tie_embeddings = shared,
                                 .renormalise = true,
                                 .rope_theta = 10000.0,
                                 .norm_eps = 1e-5};
    return model_config_validate(cfg, err);
}

/* Two tables of (context, D / 2). */
static int64_t rotary_numbers(const struct model_config *cfg)
{
    return (int64_t)cfg->context * (cfg->width / cfg->heads);
}

static int check_length(int fd, const struct model_config *cfg, struct err *err)
{
    struct stat info;
    int64_t numbers = model_config_total(cfg) + rotary_numbers(cfg);
    int64_t want = HEAD_NR * (int64_t)sizeof(int32_t) + numbers * (int64_t)sizeof(float);

    if (fstat(fd, &info) != 0)
        return err_set_errno(err, errno, "stat");
    if (info.st_size != want)
        return err_set(err, ERR_CORRUPT,
                       "not a llama2.c checkpoint: %lld bytes, its header says %lld",
                       (long long)info.st_size, (long long)want);
    return 0;
}

static int open_checkpoint(const char *path, struct model_config *cfg, int *fd, struct err *err)
{
    int32_t head[HEAD_NR] = {0};

    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return err_set_errno(err, errno, "open");
    ssize_t got = read(*fd, head, sizeof(head));
    int rc = got < 0 ? err_set_errno(err, errno, "read") : 0;
    if (rc == 0 && got != (ssize_t)sizeof(head))
        rc = err_set(err, ERR_CORRUPT, "not a llama2.c checkpoint: %zd bytes", got);
    if (rc == 0)
        rc = read_header(head, cfg, err);
    return rc == 0 ? check_length(*fd, cfg, err) : rc;
}

int llama2c_read_config(const char *path, struct model_config *cfg, struct err *err)
{
    int fd;

    int rc = open_checkpoint(path, cfg, &fd, err);
    if (fd >= 0)
        (void)close(fd);
    return rc < 0 ? err_wrap(err, "%s", path) : 0;
}

/* Row 2i + j of a head becomes row j D/2 + i, j in {0, 1}. */
static void neighbours_to_halves(real *rows, size_t n_rows, size_t cols, size_t head_dim)
{
    real *head = xcalloc(head_dim * cols, sizeof(*head));

    for (size_t first = 0; first < n_rows; first += head_dim) {
        real *at = rows + first * cols;
        for (size_t r = 0; r < head_dim; r++) {
            size_t to = (r % 2) * (head_dim / 2) + r / 2;
            memcpy(head + to * cols, at + r * cols, cols * sizeof(*head));
        }
        memcpy(at, head, head_dim * cols * sizeof(*head));
    }
    free(head);
}

/* Reads one tensor at the file's position and brings q and k into our rotary layout. */
static int read_tensor(int fd, struct weights *w, const struct tensor *t,
                       struct digest_stream *stream, struct err *err)
{
    real *out = w->params + t->offset;
    size_t n = tensor_size(t);

    int rc = store_read_floats(fd, out, n, stream, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (!isfinite(out[i]))
            rc = err_set(err, ERR_CORRUPT, "number %zu is not finite", i);
    if (rc < 0)
        return err_wrap(err, "tensor %s", t->name);
    if (t->role == TENSOR_Q || t->role == TENSOR_K)
        neighbours_to_halves(out, t->rows, t->cols, (size_t)(w->cfg.width / w->cfg.heads));
    return 0;
}

static int read_tensors(int fd, struct weights *w, struct err *err)
{
    struct digest_stream unused;
    int rc = 0;

    digest_start(&unused);
    for (size_t s = 0; rc == 0 && s < ARRAY_LEN(SECTIONS); s++) {
        int first = SECTIONS[s].layered ? 0 : -1, end = SECTIONS[s].layered ? w->cfg.layers : 0;
        for (int layer = first; rc == 0 && layer < end; layer++)
            rc = read_tensor(fd, w, tensor_find(&w->table, SECTIONS[s].role, layer), &unused, err);
    }
    if (rc < 0 || w->cfg.tie_embeddings)
        return rc;
    if (lseek(fd, (off_t)rotary_numbers(&w->cfg) * (off_t)sizeof(float), SEEK_CUR) < 0)
        return err_set_errno(err, errno, "seek");
    return read_tensor(fd, w, tensor_find(&w->table, TENSOR_HEAD, -1), &unused, err);
}

int llama2c_read_weights(const char *path, struct weights *w, struct err *err)
{
    struct model_config cfg;
    int fd;

    *w = (struct weights){0};
    int rc = open_checkpoint(path, &cfg, &fd, err);
    if (rc == 0 && (rc = weights_init(w, &cfg, err)) == 0)
        rc = read_tensors(fd, w, err);
    if (fd >= 0)
        (void)close(fd);
    if (rc < 0) {
        weights_release(w);
        return err_wrap(err, "%s", path);
    }
    return 0;
}
