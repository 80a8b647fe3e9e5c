/*
 * Reads each source into one corpus (worker/data), cuts it into held-out and training documents,
 * and keeps two flat token streams per source. A validation text is a source that is held out
 * whole. Which sequence a slot gets is worker/data/order.h's answer; this file only knows where the
 * tokens are.
 */
#include "worker/train/data.h"

#include <assert.h>
#include <math.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "worker/data/order.h"
#include "worker/data/source.h"

static int stream_init(struct token_stream *s, size_t n, struct err *err)
{
    s->ids = malloc((n == 0 ? 1 : n) * sizeof(*s->ids));
    return s->ids == NULL ? err_set(err, ERR_OTHER, "no memory for %zu tokens", n) : 0;
}

static void stream_add(struct token_stream *s, const uint32_t *ids,
                       const struct shard_document *doc)
{
    memcpy(s->ids + s->n, ids, doc->n_tokens * sizeof(*ids));
    s->n += doc->n_tokens;
    s->n_bytes += doc->n_bytes;
    s->n_documents++;
}

/* Which documents of a source are held out. */
enum holdout { HOLDOUT_FRACTION, HOLDOUT_NONE, HOLDOUT_ALL };

static bool is_held(const struct shard_document *doc, enum holdout how, uint64_t limit)
{
    return how == HOLDOUT_ALL || (how == HOLDOUT_FRACTION && doc->hash <= limit);
}

/* Copies documents into the two streams, in their order; `hash` of the text decides. */
static int split(const struct corpus *c, enum holdout how, double fraction,
                 struct train_source *src, struct err *err)
{
    uint64_t limit = how == HOLDOUT_FRACTION ? order_holdout_limit(c, fraction) : 0;
    size_t n_val = 0, at = 0;

    for (size_t i = 0; i < c->n_documents; i++)
        if (is_held(&c->documents[i], how, limit))
            n_val += c->documents[i].n_tokens;
    int rc = stream_init(&src->val, n_val, err);
    if (rc == 0)
        rc = stream_init(&src->train, c->n_tokens - n_val, err);
    for (size_t i = 0; rc == 0 && i < c->n_documents; i++) {
        bool held = is_held(&c->documents[i], how, limit);
        stream_add(held ? &src->val : &src->train, c->tokens + at, &c->documents[i]);
        at += c->documents[i].n_tokens;
    }
    return rc;
}

/* Verified against the locked digest before it is read. */
static int read_source(const struct worker_task *task, const struct tokenizer *tok,
                       enum holdout how, double fraction, struct train_source *src, struct err *err)
{
    struct task_data entry;
    struct corpus corpus;

    corpus_init(&corpus);
    int rc = task_find_data(task, src->name, &entry, err);
    if (rc == 0 && (rc = task_verify_data(&entry, &src->read, err)) == 0 &&
        (rc = source_read(entry.path, tok, &corpus, err)) == 0)
        rc = split(&corpus, how, fraction, src, err);
    corpus_release(&corpus);
    return rc;
}

static int load_source(const struct worker_task *task, const struct train_options *opt,
                       const struct tokenizer *tok, struct train_source *src, struct err *err)
{
    enum holdout how = opt->validation == NULL ? HOLDOUT_FRACTION : HOLDOUT_NONE;
    size_t context = (size_t)opt->model.context;

    int rc = read_source(task, tok, how, opt->val_fraction, src, err);
    if (rc < 0)
        return rc;
    if (src->train.n < 2 * context)
        return err_set(err, ERR_SYNTAX, "data \"%s\": %zu training tokens, the context needs %zu",
                       src->name, src->train.n, 2 * context);
    if (how == HOLDOUT_FRACTION && src->val.n < 2)
        return err_set(err, ERR_SYNTAX, "data \"%s\": nothing is held out", src->name);
    src->n_windows = order_windows(src->train.n, context);
    return 0;
}

static int load_validation(const struct worker_task *task, const struct train_options *opt,
                           struct train_data *data, struct err *err)
{
    struct train_source *src = &data->validation;

    if (opt->validation == NULL)
        return 0;
    src->name = opt->validation;
    src->weight = 1.0;
    int rc = read_source(task, data->tokenizer, HOLDOUT_ALL, 0.0, src, err);
    if (rc == 0 && src->val.n < 2)
        rc = err_set(err, ERR_SYNTAX, "data \"%s\": no text to validate on", src->name);
    return rc;
}

/* Parts of MIX_BLOCK by largest remainder; ties to the earlier source. */
static void share_block(struct train_data *data)
{
    double rest[MIX_MAX];
    uint32_t left = MIX_BLOCK;

    for (size_t i = 0; i < data->n_sources; i++) {
        double exact = data->sources[i].weight * (double)MIX_BLOCK;
        /* 0.58 x 10000 is a hair under 5800 in binary. */
        double whole = floor(exact + 1e-6);
        data->sources[i].block_part = (uint32_t)whole;
        rest[i] = exact - whole;
        left -= data->sources[i].block_part;
    }
    for (; left > 0; left--) {
        size_t best = 0;
        for (size_t i = 1; i < data->n_sources; i++)
            if (rest[i] > rest[best])
                best = i;
        data->sources[best].block_part++;
        rest[best] -= 1.0;
    }
}

/* The model's vocabulary may be larger than the tokenizer's, never smaller. */
static int check_vocab(const struct train_options *opt, const struct tokenizer *tok,
                       struct err *err)
{
    if ((uint32_t)opt->model.vocab >= tokenizer_vocab(tok))
        return 0;
    return err_set(err, ERR_INVALID, "vocab %d is under the %u of tokenizer \"%s\"",
                   opt->model.vocab, tokenizer_vocab(tok), opt->tokenizer);
}

/* The tokenizer that the options name, verified; *read: digest of the file or folder at its path.
 */
static int open_tokenizer(const struct worker_task *task, const struct train_options *opt,
                          struct tokenizer **out, struct digest *read, struct err *err)
{
    struct task_data entry;

    if (strcmp(opt->tokenizer, TOKENIZER_BYTES) == 0)
        return tokenizer_open(opt->tokenizer, out, err);
    int rc = task_find_data(task, opt->tokenizer, &entry, err);
    if (rc == 0 && (rc = task_verify_data(&entry, read, err)) == 0 &&
        (rc = tokenizer_open(entry.path, out, err)) == 0)
        rc = check_vocab(opt, *out, err);
    return rc;
}

struct tokenizer *train_data_tokenizer(const struct worker_task *task,
                                       const struct train_options *opt, struct param_faults *faults)
{
    struct tokenizer *tok = NULL;
    struct task_data entry = {0};
    struct params p;
    struct err err = {0};
    const bool bytes = strcmp(opt->tokenizer, TOKENIZER_BYTES) == 0;

    params_init(&p, NULL, faults);
    if (!bytes && (task_find_data(task, opt->tokenizer, &entry, &err) < 0 ||
                   file_kind_at(entry.path) == FILE_ABSENT))
        return NULL;
    if (tokenizer_open(bytes ? opt->tokenizer : entry.path, &tok, &err) < 0) {
        params_fault(&p, "tokenizer", "%s", err.msg);
        return NULL;
    }
    if (!bytes && check_vocab(opt, tok, &err) < 0)
        params_fault(&p, "vocab", "%s", err.msg);
    return tok;
}

static void check_text(const struct worker_task *task, const char *key, const char *name,
                       const struct tokenizer *tok, struct param_faults *faults)
{
    struct task_data entry;
    struct params p;
    struct err err = {0};
    double ignored = 0.0;

    params_init(&p, NULL, faults);
    if (task_find_data(task, name, &entry, &err) != 0)
        return;
    if (source_check_tokenizer(entry.path, tok, &err) == ERR_CORRUPT)
        params_fault(&p, key,
                     "data \"%s\": %s: pack the text with this run's tokenizer, or name the one "
                     "that it was packed with",
                     name, err.msg);
    else if (source_estimate(entry.path, NULL, &ignored, &err) == ERR_SYNTAX)
        params_fault(&p, key, "data \"%s\" is not text to train on: %s", name, err.msg);
}

void train_data_check_sources(const struct worker_task *task, const struct train_options *opt,
                              const struct tokenizer *tok, struct param_faults *faults)
{
    const char *key = json_member(task->params, "mix") != NULL ? "mix" : "data";

    for (size_t i = 0; i < opt->n_mix; i++)
        check_text(task, key, opt->mix[i].name, tok, faults);
    if (opt->validation != NULL)
        check_text(task, "validation", opt->validation, tok, faults);
}

int train_data_load(const struct worker_task *task, const struct train_options *opt,
                    struct train_data *data, struct err *err)
{
    *data = (struct train_data){.seed = opt->seed, .context = (size_t)opt->model.context};
    int rc = open_tokenizer(task, opt, &data->tokenizer, &data->tokenizer_read, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < opt->n_mix; i++) {
        struct train_source *src = &data->sources[data->n_sources++];
        src->name = opt->mix[i].name;
        src->weight = opt->mix[i].weight;
        rc = load_source(task, opt, data->tokenizer, src, err);
        if (rc < 0)
            return rc;
    }
    share_block(data);
    return load_validation(task, opt, data, err);
}

void train_data_release(struct train_data *data)
{
    for (size_t i = 0; i < data->n_sources; i++) {
        free(data->sources[i].train.ids);
        free(data->sources[i].val.ids);
    }
    free(data->validation.train.ids);
    free(data->validation.val.ids);
    tokenizer_free(data->tokenizer);
    *data = (struct train_data){0};
}

void train_data_sequence(const struct train_data *data, uint64_t slot, uint32_t *tokens,
                         uint32_t *targets)
{
    uint32_t parts[MIX_MAX];

    for (size_t i = 0; i < data->n_sources; i++)
        parts[i] = data->sources[i].block_part;
    struct order_place place = order_slot(data->seed, slot, parts, data->n_sources);
    const struct train_source *src = &data->sources[place.source];
    size_t start = order_start(data->seed, place, src->n_windows, data->context);
    assert(start + data->context < src->train.n);
    memcpy(tokens, src->train.ids + start, data->context * sizeof(*tokens));
    memcpy(targets, src->train.ids + start + 1, data->context * sizeof(*targets));
}
