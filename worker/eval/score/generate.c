/*
 * The harness's text of a generation in its order: drop special tokens, decode, optionally tidy
 * spaces, cut at the first stop string. Bytes that are not whole characters become U+FFFD as Rust's
 * and Python's decoders put it, since a stop string or a filter may match around them.
 *
 * Whether a generation is over is asked after every token and works on the text, not on tokens: a
 * stop string may begin in the middle of one.
 */
#include "worker/eval/score/generate.h"

#include "base/text.h"
#include "base/xalloc.h"
#include "worker/eval/task/pytext.h"

#define REPLACEMENT "\xef\xbf\xbd"

/* low and high included. */
static bool is_between(unsigned char c, unsigned char low, unsigned char high)
{
    return c >= low && c <= high;
}

/* The bytes at s, which do not begin a whole character, that could be the beginning of one: at
 * least 1. Table 3-7 of the Unicode standard. */
static size_t broken_length(const unsigned char *s, size_t len)
{
    unsigned char low = 0x80;
    unsigned char high = 0xbf;
    size_t n_more = 0;
    if (is_between(s[0], 0xc2, 0xdf)) {
        n_more = 1;
    } else if (is_between(s[0], 0xe0, 0xef)) {
        n_more = 2;
        low = s[0] == 0xe0 ? 0xa0 : low;
        high = s[0] == 0xed ? 0x9f : high;
    } else if (is_between(s[0], 0xf0, 0xf4)) {
        n_more = 3;
        low = s[0] == 0xf0 ? 0x90 : low;
        high = s[0] == 0xf4 ? 0x8f : high;
    }
    size_t n = 1;
    while (n <= n_more && n < len && is_between(s[n], low, high)) {
        low = 0x80;
        high = 0xbf;
        n++;
    }
    return n;
}

void generate_add_utf8(const char *bytes, size_t len, struct strbuf *out)
{
    for (size_t at = 0; at < len;) {
        uint32_t cp = 0;
        size_t n = text_utf8_next(bytes + at, len - at, &cp);
        if (n > 0 && cp != 0) {
            strbuf_add(out, bytes + at, n);
        } else {
            strbuf_adds(out, REPLACEMENT);
            n = n > 0 ? n : broken_length((const unsigned char *)bytes + at, len - at);
        }
        at += n;
    }
}

void generate_tidy_spaces(const char *text, struct strbuf *out)
{
    static const char *const pairs[][2] = {
        {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
        {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
    };
    char *tidy = xstrdup(text);
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        struct strbuf next = STRBUF_INIT;
        pytext_replace(tidy, strlen(tidy), pairs[i][0], pairs[i][1], &next);
        free(tidy);
        tidy = strbuf_detach(&next);
    }
    strbuf_adds(out, tidy);
    free(tidy);
}

/* Ends the text at the stop string; false when it does not occur. */
static bool cut_before(struct strbuf *text, const char *stop)
{
    char *at = stop[0] == '\0' ? NULL : strstr(text->buf, stop);
    if (at == NULL)
        return false;
    text->len = (size_t)(at - text->buf);
    *at = '\0';
    return true;
}

/* Keeps what precedes the first stop string, which end-of-text is too where it is spelled out; true
 * when there was one. */
static int cut(const struct lm *lm, const struct task_spec *spec, struct strbuf *text,
               bool *stopped, struct err *err)
{
    const uint32_t end = tokenizer_end_of_text(lm->tok);
    struct strbuf spelled = STRBUF_INIT;
    int rc = tokenizer_decode(lm->tok, &end, 1, &spelled, err);
    *stopped = rc == 0 && cut_before(text, spelled.buf);
    for (size_t i = 0; i < spec->n_until; i++)
        *stopped = cut_before(text, spec->until[i]) || *stopped;
    strbuf_release(&spelled);
    return rc;
}

/* Replaces what is in `out`. */
static int decode(const struct lm *lm, const struct token_list *tokens, struct strbuf *out,
                  struct err *err)
{
    struct strbuf bytes = STRBUF_INIT;
    struct strbuf text = STRBUF_INIT;
    int rc = tokenizer_decode(lm->tok, tokens->ids, tokens->n, &bytes, err);
    generate_add_utf8(bytes.buf, bytes.len, &text);
    strbuf_clear(out);
    if (lm->tidies_spaces)
        generate_tidy_spaces(text.buf, out);
    else
        strbuf_add(out, text.buf, text.len);
    strbuf_release(&text);
    strbuf_release(&bytes);
    return rc;
}

/* Whether a stop string is there once the special tokens are spelled out. */
static int stops_spelled(const struct lm *lm, const struct task_spec *spec,
                         const struct token_list *tokens, bool *stopped, struct err *err)
{
    struct strbuf spelled = STRBUF_INIT;
    int rc = decode(lm, tokens, &spelled, err);
    if (rc == 0)
        rc = cut(lm, spec, &spelled, stopped, err);
    strbuf_release(&spelled);
    return rc;
}

int generate_text(const struct lm *lm, const struct task_spec *spec,
                  const struct token_list *tokens, struct strbuf *out, bool *stopped,
                  struct err *err)
{
    struct token_list shown = {0};
    for (size_t i = 0; i < tokens->n; i++)
        if (!tokenizer_is_special(lm->tok, tokens->ids[i]))
            token_list_add(&shown, tokens->ids[i]);
    int rc = decode(lm, &shown, out, err);
    if (rc == 0)
        rc = cut(lm, spec, out, stopped, err);
    if (rc == 0 && !*stopped && shown.n < tokens->n)
        rc = stops_spelled(lm, spec, tokens, stopped, err);
    token_list_release(&shown);
    return rc;
}
