/*
 * Runs the stages recursively: the pieces of one stage are the texts of the next, the last stage's
 * go to the sink. Only valid UTF-8 reaches PCRE2, because split_run() cuts the text at invalid
 * bytes first; that also allows PCRE2's own check to be skipped.
 *
 * JIT code has a small fixed stack. When it overflows, the same match is tried by the interpreter,
 * which uses the heap; the result is the same.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "worker/data/tokenizer/split.h"

#include <assert.h>
#include <pcre2.h>

#include "base/text.h"
#include "base/xalloc.h"

#define WORD_SIZE sizeof(uint64_t)

struct split_stage {
    char *pattern;
    pcre2_code *code;
    bool jit;
    bool scanner; /* the pattern is GPT-2's */
};

void split_init(struct split *s)
{
    *s = (struct split){0};
}

void split_release(struct split *s)
{
    for (size_t i = 0; i < s->n_stages; i++) {
        pcre2_code_free(s->stages[i]->code);
        free(s->stages[i]->pattern);
        free(s->stages[i]);
    }
    split_init(s);
}

/* Translates, compiles, and refuses patterns that match the empty string, which would never
 * advance. */
static int compile(const char *pattern, pcre2_code **out, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    PCRE2_UCHAR message[120];
    PCRE2_SIZE at = 0;
    uint32_t empty = 0;
    int code = 0;
    int rc = split_translate(pattern, &text, err);

    if (rc == 0) {
        *out =
            pcre2_compile((PCRE2_SPTR)text.buf, text.len, PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
        if (*out == NULL) {
            (void)pcre2_get_error_message(code, message, sizeof(message));
            rc = err_set(err, ERR_SYNTAX, "split pattern, character %zu: %s", (size_t)at + 1,
                         (const char *)message);
        }
    }
    strbuf_release(&text);
    if (rc < 0)
        return rc;
    (void)pcre2_pattern_info(*out, PCRE2_INFO_MATCHEMPTY, &empty);
    if (empty != 0) {
        pcre2_code_free(*out);
        return err_set(err, ERR_REFUSED, "split pattern %.100s: matches the empty string", pattern);
    }
    return 0;
}

int split_add_pattern(struct split *s, const char *pattern, struct err *err)
{
    pcre2_code *code = NULL;

    if (s->n_stages == SPLIT_STAGES_MAX)
        return err_set(err, ERR_REFUSED, "over %d split patterns", SPLIT_STAGES_MAX);
    if (!text_is_utf8(pattern, strlen(pattern)))
        return err_set(err, ERR_SYNTAX, "split pattern: not UTF-8");
    int rc = compile(pattern, &code, err);
    if (rc < 0)
        return rc;
    struct split_stage *stage = xcalloc(1, sizeof(*stage));
    stage->pattern = xstrdup(pattern);
    stage->code = code;
    stage->jit = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
    stage->scanner = strcmp(pattern, SPLIT_GPT2) == 0;
    s->stages[s->n_stages++] = stage;
    return 0;
}

const char *split_pattern(const struct split *s, size_t stage)
{
    assert(stage < s->n_stages);
    return s->stages[stage]->pattern;
}

void split_disable_scanner(struct split *s)
{
    for (size_t i = 0; i < s->n_stages; i++)
        s->stages[i]->scanner = false;
}

void split_scratch_release(struct split_scratch *scratch)
{
    pcre2_match_data_free(scratch->match);
    scratch->match = NULL;
}

/* The first match at or after `from`: its bounds, or both len when there is none. */
static int find_match(const struct split_stage *stage, struct split_scratch *scratch,
                      const char *text, size_t len, size_t bounds[2], struct err *err)
{
    PCRE2_SPTR subject = (PCRE2_SPTR)text;
    size_t from = bounds[1];
    int n = PCRE2_ERROR_JIT_STACKLIMIT;

    if (scratch->match == NULL)
        scratch->match = pcre2_match_data_create(1, NULL);
    if (scratch->match == NULL)
        return err_set(err, ERR_OTHER, "no memory to match a pattern");
    if (stage->jit)
        n = pcre2_jit_match(stage->code, subject, len, from, 0, scratch->match, NULL);
    if (n == PCRE2_ERROR_JIT_STACKLIMIT)
        n = pcre2_match(stage->code, subject, len, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                        scratch->match, NULL);
    if (n == PCRE2_ERROR_NOMATCH) {
        bounds[0] = bounds[1] = len;
        return 0;
    }
    if (n < 0)
        return err_set(err, ERR_RANGE, "split pattern %.100s: gave up (PCRE2 error %d)",
                       stage->pattern, n);
    const PCRE2_SIZE *found = pcre2_get_ovector_pointer(scratch->match);
    bounds[0] = found[0];
    bounds[1] = found[1];
    return 0;
}

static int run_stage(const struct split *s, size_t i, struct split_scratch *scratch,
                     const char *text, size_t len, struct split_sink *sink, struct err *err);

/* Passes a piece to the next stage, or after the last stage to the sink. */
static int hand_on(const struct split *s, size_t i, struct split_scratch *scratch, const char *text,
                   size_t len, struct split_sink *sink, struct err *err)
{
    if (len == 0)
        return 0;
    return i + 1 < s->n_stages ? run_stage(s, i + 1, scratch, text, len, sink, err)
                               : sink->piece(sink, text, len, err);
}

/* Runs stage i and those after it on valid UTF-8. */
static int run_stage(const struct split *s, size_t i, struct split_scratch *scratch,
                     const char *text, size_t len, struct split_sink *sink, struct err *err)
{
    const struct split_stage *stage = s->stages[i];
    int rc = 0;

    for (size_t at = 0; rc == 0 && at < len;) {
        size_t n = stage->scanner ? split_gpt2_piece(text + at, len - at) : 0;
        size_t bounds[2] = {at, at + n};
        if (n == 0) {
            bounds[1] = at;
            rc = find_match(stage, scratch, text, len, bounds, err);
        }
        if (rc == 0 && (rc = hand_on(s, i, scratch, text + at, bounds[0] - at, sink, err)) == 0)
            rc = hand_on(s, i, scratch, text + bounds[0], bounds[1] - bounds[0], sink, err);
        at = bounds[1];
    }
    return rc;
}

/* How many bytes from the start are valid UTF-8 (want) or belong to no character (!want). */
static size_t run_length(const char *text, size_t len, bool want)
{
    size_t at = 0;

    while (at < len) {
        uint64_t word;
        if (want && len - at >= WORD_SIZE) {
            memcpy(&word, text + at, WORD_SIZE);
            if ((word & 0x8080808080808080u) == 0) {
                at += WORD_SIZE;
                continue;
            }
        }
        size_t n = text_utf8_next(text + at, len - at, NULL);
        if ((n > 0) != want)
            break;
        at += n > 0 ? n : 1;
    }
    return at;
}

int split_run(const struct split *s, struct split_scratch *scratch, const char *text, size_t len,
              struct split_sink *sink, struct err *err)
{
    int rc = 0;

    for (size_t at = 0; rc == 0 && at < len;) {
        size_t n = run_length(text + at, len - at, true);
        if (n > 0)
            rc = s->n_stages > 0 ? run_stage(s, 0, scratch, text + at, n, sink, err)
                                 : sink->piece(sink, text + at, n, err);
        at += n;
        n = run_length(text + at, len - at, false);
        if (rc == 0 && n > 0)
            rc = sink->piece(sink, text + at, n, err);
        at += n;
    }
    return rc;
}
