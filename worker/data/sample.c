/*
 * Reads the source whole, as training would, and then prints documents in a keyed order or the very
 * sequences that order.h gives a run of this seed. Held-out documents are removed first, because a
 * training run's windows do not contain them.
 */
#include "worker/data/sample.h"

#include <inttypes.h>

#include "base/files/file.h"
#include "base/terminal.h"
#include "base/xalloc.h"
#include "worker/data/order.h"
#include "worker/data/philox.h"
#include "worker/data/source.h"

/* As ids, or decoded token by token with end-of-text spelled out. */
static int print_tokens(const struct tokenizer *tok, const uint32_t *ids, size_t n, bool as_ids,
                        FILE *out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (as_ids)
            strbuf_addf(&text, i == 0 ? "%u" : " %u", ids[i]);
        else if (ids[i] == tokenizer_end_of_text(tok))
            strbuf_adds(&text, SOURCE_SEPARATOR);
        else
            rc = tokenizer_decode(tok, ids + i, 1, &text, err);
    }
    if (rc == 0) {
        strbuf_addc(&text, '\n');
        terminal_data(out, text.buf, text.len);
    }
    strbuf_release(&text);
    return rc;
}

static int print_documents(const struct corpus *c, const struct tokenizer *tok,
                           const struct sample_options *opt, FILE *out, struct err *err)
{
    int rc = 0;

    if (opt->from >= c->n_documents)
        return err_set(err, ERR_RANGE, "position %" PRIu64 " of %zu documents", opt->from,
                       c->n_documents);
    size_t *starts = xcalloc(c->n_documents, sizeof(*starts));
    for (size_t i = 1; i < c->n_documents; i++)
        starts[i] = starts[i - 1] + (size_t)c->documents[i - 1].n_tokens;
    for (uint64_t i = 0; rc == 0 && i < opt->n && opt->from + i < c->n_documents; i++) {
        uint64_t d = philox_permute(opt->seed, PHILOX_ORDER, 0, 0, opt->from + i, c->n_documents);
        const struct shard_document *doc = &c->documents[d];
        fprintf(out, "--- document %" PRIu64 ": %" PRIu64 " tokens, %" PRIu64 " bytes\n", d,
                doc->n_tokens, doc->n_bytes);
        rc =
            print_tokens(tok, c->tokens + starts[d], (size_t)doc->n_tokens - 1, opt->ids, out, err);
    }
    free(starts);
    return rc;
}

/* Leaves the tokens of the documents that are not held out; returns how many. */
static size_t drop_held_out(struct corpus *c, double fraction)
{
    uint64_t limit = order_holdout_limit(c, fraction);
    size_t from = 0, to = 0;

    for (size_t i = 0; i < c->n_documents; i++) {
        size_t n = (size_t)c->documents[i].n_tokens;
        if (c->documents[i].hash > limit) {
            memmove(c->tokens + to, c->tokens + from, n * sizeof(*c->tokens));
            to += n;
        }
        from += n;
    }
    return to;
}

static int print_sequences(struct corpus *c, const struct tokenizer *tok,
                           const struct sample_options *opt, FILE *out, struct err *err)
{
    static const uint32_t alone[] = {ORDER_BLOCK};
    size_t length = (size_t)opt->length;
    uint64_t n_windows = order_windows(drop_held_out(c, opt->holdout), length);
    int rc = 0;

    if (n_windows == 0)
        return err_set(err, ERR_RANGE, "too short for a sequence of %zu tokens", length);
    for (uint64_t i = 0; rc == 0 && i < opt->n; i++) {
        struct order_place place = order_slot(opt->seed, opt->from + i, alone, 1);
        size_t start = order_start(opt->seed, place, n_windows, length);
        fprintf(out, "--- sequence %" PRIu64 ": epoch %" PRIu64 ", tokens %zu to %zu\n",
                opt->from + i, place.k / n_windows, start, start + length - 1);
        rc = print_tokens(tok, c->tokens + start, length, opt->ids, out, err);
    }
    return rc;
}

int sample_print(const char *path, const struct tokenizer *tok, const struct sample_options *opt,
                 FILE *out, struct err *err)
{
    struct progress progress;
    struct corpus c;

    corpus_init(&c);
    progress_start(&progress, path_name(path), PROGRESS_BYTES, (double)source_bytes(path));
    int rc = source_read_watched(path, tok, &progress, &c, err);
    progress_end(&progress);
    if (rc == 0 && c.n_documents == 0)
        rc = err_set(err, ERR_SYNTAX, "%s: holds no documents", path);
    if (rc == 0)
        rc = opt->length == 0 ? print_documents(&c, tok, opt, out, err)
                              : print_sequences(&c, tok, opt, out, err);
    corpus_release(&c);
    return rc;
}
