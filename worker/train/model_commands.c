/*
 * The three commands share a small reader of arguments (read_words()) and open_both(), which finds
 * a model and the tokenizer that belongs to it and refuses a pair that does not match. Scores come
 * from worker/model/score.h, as in an evaluation, so the numbers do not depend on BLAS or threads.
 */
#include "worker/train/model_commands.h"

#include <errno.h>
#include <math.h>

#include "base/json/json.h"
#include "base/math/elementary.h"
#include "base/terminal.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "worker/data/source.h"
#include "worker/data/tokenizer/tokenizer.h"
#include "worker/model/formats/hf_export.h"
#include "worker/model/model.h"
#include "worker/model/score.h"

#define TOKENS_DEFAULT 256
#define TOKENS_MAX     (1 << 20)

/* One command's words. */
struct call_words {
    const char *model;
    const char *hf;
    const char *tokenizer;
    const char *prompt;
    const char *text;
    int64_t tokens;
    int64_t context; /* 0: the model's */
    bool no_tokenizer;
    bool force;
    bool ids;
};

/* An option either takes a value (text or number) or is a switch. */
struct option_word {
    const char *name;
    const char **text;
    int64_t *number;
    int64_t max;
    bool *on;
};

/* Matches argv[*i] and consumes its value, if it has one. */
static int take_word(const struct option_word *known, size_t n, int argc, char **argv, int *i,
                     struct err *err)
{
    for (size_t k = 0; k < n; k++) {
        if (strcmp(known[k].name, argv[*i]) != 0)
            continue;
        if (known[k].on != NULL) {
            *known[k].on = true;
            return 0;
        }
        if (*i + 1 == argc)
            return err_set(err, ERR_USAGE, "%s needs a value", argv[*i]);
        (*i)++;
        if (known[k].text != NULL) {
            *known[k].text = argv[*i];
            return 0;
        }
        if (text_to_int(argv[*i], 1, known[k].max, known[k].number, err) < 0) {
            err->code = ERR_USAGE;
            return err_wrap(err, "%s", known[k].name);
        }
        return 0;
    }
    return err_set(err, ERR_USAGE, "unknown option %.60s", argv[*i]);
}

static int read_words(int argc, char **argv, const struct option_word *known, size_t n,
                      const char **model, struct err *err)
{
    for (int i = 0; i < argc; i++) {
        int rc = 0;
        if (argv[i][0] == '-')
            rc = take_word(known, n, argc, argv, &i, err);
        else if (*model != NULL)
            rc = err_set(err, ERR_USAGE, "two models: %.60s and %.60s", *model, argv[i]);
        else
            *model = argv[i];
        if (rc < 0)
            return rc;
    }
    return *model != NULL ? 0 : err_set(err, ERR_USAGE, "no model is named");
}

int model_command_export(int argc, char **argv, FILE *out, struct err *err)
{
    struct call_words w = {0};
    const struct option_word known[] = {
        {.name = "--hf", .text = &w.hf},
        {.name = "--tokenizer", .text = &w.tokenizer},
        {.name = "--no-tokenizer", .on = &w.no_tokenizer},
        {.name = "--force", .on = &w.force},
    };

    int rc = read_words(argc, argv, known, ARRAY_LEN(known), &w.model, err);
    if (rc < 0)
        return rc;
    if (w.hf == NULL)
        return err_set(err, ERR_USAGE, "--hf DIR: the folder to make is not named");
    if (w.tokenizer != NULL && w.no_tokenizer)
        return err_set(err, ERR_USAGE, "--tokenizer and --no-tokenizer exclude each other");
    const struct hf_export job = {.model = w.model,
                                  .out = w.hf,
                                  .tokenizer = w.tokenizer,
                                  .no_tokenizer = w.no_tokenizer,
                                  .force = w.force};
    rc = hf_export(&job, err);
    if (rc == 0)
        (void)fprintf(out, "%s\n", w.hf);
    return rc;
}

/* The model and its tokenizer: the one given, else the one beside it, else the one it names. */
static int open_both(const struct call_words *w, struct model **m, struct tokenizer **tok,
                     struct err *err)
{
    int rc = model_open(w->model, m, err);
    if (rc < 0)
        return rc;
    struct digest want = model_tokenizer_digest(*m);
    const char *spec = w->tokenizer != NULL ? w->tokenizer : model_tokenizer_file(*m);
    if (spec == NULL)
        spec = model_tokenizer_spec(*m);
    if (w->tokenizer == NULL && model_tokenizer_file(*m) == NULL &&
        strcmp(spec, TOKENIZER_BYTES) != 0)
        return err_set(err, ERR_USAGE,
                       "no tokenizer is beside the model: give %.60s with --tokenizer",
                       spec[0] != '\0' ? spec : "it");
    rc = tokenizer_open(spec, tok, err);
    if (rc < 0)
        return rc;
    struct digest found = tokenizer_digest(*tok);
    if (!digest_is_zero(&want) && !digest_equal(&want, &found))
        return err_set(err, ERR_CORRUPT, "tokenizer %s is not the one the model was trained with",
                       spec);
    if (tokenizer_vocab(*tok) > (uint32_t)model_shape(*m)->vocab)
        return err_set(err, ERR_USAGE, "tokenizer %s has %u tokens, the model %d", spec,
                       tokenizer_vocab(*tok), model_shape(*m)->vocab);
    return 0;
}

/* list: the end-of-text token, the prompt, and then what the model adds. */
static int generate(struct model *m, const struct tokenizer *tok, const struct call_words *w,
                    struct token_list *list, struct err *err)
{
    size_t context = (size_t)model_shape(m)->context, tokens = (size_t)w->tokens;

    token_list_add(list, tokenizer_end_of_text(tok));
    int rc = tokenizer_encode(tok, w->prompt, strlen(w->prompt), list, err);
    if (rc < 0)
        return rc;
    if (list->n > context)
        return err_set(err, ERR_USAGE, "--prompt has %zu tokens, the model takes %zu", list->n - 1,
                       context - 1);
    size_t room = context + 1 - list->n;
    struct score_generation g = {
        .prompt = list->ids, .n = list->n, .max_tokens = tokens < room ? tokens : room};
    const struct score_stop stop = {.end_of_text = tokenizer_end_of_text(tok)};
    rc = model_generate_all(m, &g, 1, &stop, err);
    if (rc == 0 && !g.finite)
        rc = err_set(err, ERR_REFUSED, "the model's answer is not finite");
    for (size_t i = 0; rc == 0 && i < g.out.n; i++)
        token_list_add(list, g.out.ids[i]);
    token_list_release(&g.out);
    return rc;
}

static int print_tokens(const struct tokenizer *tok, const struct token_list *list, bool ids,
                        FILE *out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int rc = 0;

    for (size_t i = 1; ids && i < list->n; i++)
        strbuf_addf(&text, "%s%u", i == 1 ? "" : " ", list->ids[i]);
    /* A model's vocabulary may be padded beyond its tokenizer's: such an id has no text. */
    for (size_t i = 1; !ids && rc == 0 && i < list->n; i++)
        if (list->ids[i] < tokenizer_vocab(tok))
            rc = tokenizer_decode(tok, &list->ids[i], 1, &text, err);
    size_t skip = !ids && tokenizer_adds_space(tok) && text.len > 0 && text.buf[0] == ' ';
    strbuf_addc(&text, '\n');
    if (rc == 0)
        terminal_data(out, text.buf + skip, text.len - skip);
    if (rc == 0 && ferror(out))
        rc = err_set_errno(err, errno, "write");
    strbuf_release(&text);
    return rc;
}

int model_command_generate(int argc, char **argv, FILE *out, struct err *err)
{
    struct call_words w = {.prompt = "", .tokens = TOKENS_DEFAULT};
    const struct option_word known[] = {
        {.name = "--prompt", .text = &w.prompt},
        {.name = "--tokenizer", .text = &w.tokenizer},
        {.name = "--tokens", .number = &w.tokens, .max = TOKENS_MAX},
        {.name = "--ids", .on = &w.ids},
    };
    struct model *m = NULL;
    struct tokenizer *tok = NULL;
    struct token_list list = {0};

    int rc = read_words(argc, argv, known, ARRAY_LEN(known), &w.model, err);
    if (rc == 0 && (rc = open_both(&w, &m, &tok, err)) == 0 &&
        (rc = generate(m, tok, &w, &list, err)) == 0)
        rc = print_tokens(tok, &list, w.ids, out, err);
    token_list_release(&list);
    tokenizer_free(tok);
    model_free(m);
    return rc;
}

/* Sum of the losses of stream[1 ..], each window of one context scored by itself. */
static int add_losses(struct model *m, const struct token_list *stream, size_t context, double *sum,
                      struct err *err)
{
    struct score_request *r = xcalloc(stream->n / context + 1, sizeof(*r));
    size_t n = 0;

    for (size_t at = 0; at + 1 < stream->n; at += context) {
        size_t length = stream->n - at - 1 < context ? stream->n - at - 1 : context;
        r[n++] = (struct score_request){.tokens = stream->ids + at, .n = length + 1, .first = 1};
    }
    int rc = model_score_all(m, r, n, NULL, err);
    *sum = 0.0;
    for (size_t i = 0; rc == 0 && i < n; i++)
        *sum -= r[i].sum;
    free(r);
    if (rc == 0 && !isfinite(*sum))
        rc = err_set(err, ERR_REFUSED, "the model's answer is not finite");
    return rc;
}

/* Prints the line of JSON for one source. */
static int measure(struct model *m, const struct tokenizer *tok, const struct call_words *w,
                   FILE *out, struct err *err)
{
    size_t context = (size_t)model_shape(m)->context;
    struct token_list stream = {0};
    struct corpus corpus;
    double sum = 0.0;

    if (w->context > (int64_t)context)
        return err_set(err, ERR_USAGE, "--context %lld: the model takes %zu", (long long)w->context,
                       context);
    if (w->context > 0)
        context = (size_t)w->context;
    corpus_init(&corpus);
    int rc = source_read(w->text, tok, &corpus, err);
    if (rc < 0)
        goto out;
    if (corpus.n_tokens == 0) {
        rc = err_set(err, ERR_SYNTAX, "%s: no text", w->text);
        goto out;
    }
    token_list_add(&stream, tokenizer_end_of_text(tok));
    for (size_t i = 0; i < corpus.n_tokens; i++)
        token_list_add(&stream, corpus.tokens[i]);
    rc = add_losses(m, &stream, context, &sum, err);
    if (rc < 0)
        goto out;
    (void)fprintf(out,
                  "{\"loss\":%.9g,\"bits_per_byte\":%.9g,\"tokens\":%zu,\"bytes\":%llu,"
                  "\"documents\":%zu,\"context\":%zu}\n",
                  sum / (double)corpus.n_tokens, sum / ELEMENTARY_LN_2 / (double)corpus.n_bytes,
                  corpus.n_tokens, (unsigned long long)corpus.n_bytes, corpus.n_documents, context);
out:
    corpus_release(&corpus);
    token_list_release(&stream);
    return rc;
}

int model_command_loss(int argc, char **argv, FILE *out, struct err *err)
{
    struct call_words w = {0};
    const struct option_word known[] = {
        {.name = "--text", .text = &w.text},
        {.name = "--tokenizer", .text = &w.tokenizer},
        {.name = "--context", .number = &w.context, .max = TOKENS_MAX},
    };
    struct model *m = NULL;
    struct tokenizer *tok = NULL;

    int rc = read_words(argc, argv, known, ARRAY_LEN(known), &w.model, err);
    if (rc == 0 && w.text == NULL)
        rc = err_set(err, ERR_USAGE, "--text SOURCE: the text is not named");
    if (rc == 0 && (rc = open_both(&w, &m, &tok, err)) == 0)
        rc = measure(m, tok, &w, out, err);
    tokenizer_free(tok);
    model_free(m);
    return rc;
}
