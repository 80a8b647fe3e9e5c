#include "worker/eval/gsm8k.h"

#include <stddef.h>

#include "base/xalloc.h"

static const char marker[] = "#### ";

#define N_MARKER (sizeof(marker) - 1)

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* How many of s's first bytes are digits or in `more`. */
static size_t span(const char *s, const char *more)
{
    size_t n = 0;
    while (is_digit(s[n]) || (s[n] != '\0' && strchr(more, s[n]) != NULL))
        n++;
    return n;
}

void gsm8k_filter_strict(const char *text, struct strbuf *out)
{
    for (const char *at = text; (at = strstr(at, marker)) != NULL; at++) {
        const char *number = at + N_MARKER;
        const size_t sign = number[0] == '-';
        const size_t n = span(number + sign, ".,");
        if (n > 0) {
            strbuf_add(out, number, sign + n);
            return;
        }
    }
    strbuf_adds(out, GSM8K_NO_MATCH);
}

/* The length of the match that starts exactly at s; 0: none. */
static size_t match_flexible(const char *s)
{
    const size_t sign = s[0] == '-';
    size_t n = span(s + sign, "$.,");
    if (n >= 2)
        return sign + n;
    n = span(s + sign, "");
    return n == 0 ? 0 : sign + n;
}

void gsm8k_filter_flexible(const char *text, struct strbuf *out)
{
    const char *last = GSM8K_NO_MATCH;
    size_t n_last = strlen(last);
    for (const char *at = text; *at != '\0';) {
        size_t n = match_flexible(at);
        if (n > 0) {
            last = at;
            n_last = n;
        }
        at += n > 0 ? n : 1;
    }
    strbuf_add(out, last, n_last);
}

/* The harness deletes, in this order: "," "$" (?s).*####  and \.$ ; then lower-cases. */
static void normalise(const char *s, struct strbuf *out)
{
    struct strbuf kept = STRBUF_INIT;
    for (; *s != '\0'; s++)
        if (*s != ',' && *s != '$')
            strbuf_addc(&kept, *s >= 'A' && *s <= 'Z' ? (char)(*s - 'A' + 'a') : *s);
    const char *rest = kept.buf;
    for (const char *at = rest; (at = strstr(at, marker)) != NULL; at++)
        rest = at + N_MARKER;
    size_t len = strlen(rest);
    if (len > 1 && rest[len - 1] == '\n' && rest[len - 2] == '.') {
        strbuf_add(out, rest, len - 2);
        strbuf_addc(out, '\n');
    } else {
        strbuf_add(out, rest, len > 0 && rest[len - 1] == '.' ? len - 1 : len);
    }
    strbuf_release(&kept);
}

bool gsm8k_same(const char *answer, const char *gold)
{
    struct strbuf a = STRBUF_INIT;
    struct strbuf b = STRBUF_INIT;
    normalise(answer, &a);
    normalise(gold, &b);
    const bool same = strcmp(a.buf, b.buf) == 0;
    strbuf_release(&a);
    strbuf_release(&b);
    return same;
}

bool gsm8k_cut(struct strbuf *text)
{
    static const char *const stops[] = {"Question:", "</s>", "<|im_end|>", "<|endoftext|>"};
    bool stopped = false;
    for (size_t i = 0; i < ARRAY_LEN(stops); i++) {
        char *at = strstr(text->buf, stops[i]);
        if (at == NULL)
            continue;
        text->len = (size_t)(at - text->buf);
        *at = '\0';
        stopped = true;
    }
    return stopped;
}
