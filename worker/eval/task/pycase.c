/*
 * Looks code points up in tables of runs by bisection. Two characters need context: a capital sigma
 * is final when the last cased character before it exists and none follows, where ignorable
 * characters do not count; the dotted capital I lowers to two characters. Title case of some
 * characters is several characters, which have a table of their own.
 */
#include "worker/eval/task/pycase.h"

#include <stdbool.h>

#include "base/text.h"
#include "worker/eval/task/pycase_tables.h"

#define CAPITAL_SIGMA    0x3a3u
#define SMALL_SIGMA      0x3c3u
#define FINAL_SIGMA      0x3c2u
#define CAPITAL_DOTTED_I 0x130u
#define DOTTED_I         "i\xcc\x87"

static void add_utf8(struct strbuf *out, uint32_t cp)
{
    if (cp < 0x80) {
        strbuf_addc(out, (char)cp);
    } else if (cp < 0x800) {
        strbuf_addc(out, (char)(0xc0 | cp >> 6));
        strbuf_addc(out, (char)(0x80 | (cp & 0x3f)));
    } else if (cp < 0x10000) {
        strbuf_addc(out, (char)(0xe0 | cp >> 12));
        strbuf_addc(out, (char)(0x80 | (cp >> 6 & 0x3f)));
        strbuf_addc(out, (char)(0x80 | (cp & 0x3f)));
    } else {
        strbuf_addc(out, (char)(0xf0 | cp >> 18));
        strbuf_addc(out, (char)(0x80 | (cp >> 12 & 0x3f)));
        strbuf_addc(out, (char)(0x80 | (cp >> 6 & 0x3f)));
        strbuf_addc(out, (char)(0x80 | (cp & 0x3f)));
    }
}

/* Elements of `size` bytes that begin with a span: the one that holds cp, or NULL. */
static const void *find(const void *elements, size_t size, size_t n, uint32_t cp)
{
    const char *low = elements;
    while (n > 0) {
        const char *middle = low + n / 2 * size;
        const struct case_span *span = (const void *)middle;
        if (cp >= span->first && cp <= span->last)
            return middle;
        if (cp > span->last) {
            low = middle + size;
            n -= n / 2 + 1;
        } else {
            n /= 2;
        }
    }
    return NULL;
}

/* Applies the run that the code point is in, if any. */
static uint32_t change(uint32_t cp, const struct case_run *runs, size_t n)
{
    const struct case_run *run = find(runs, sizeof(*runs), n, cp);
    if (run == NULL || (cp - run->span.first) % run->step != 0)
        return cp;
    return (uint32_t)((int64_t)cp + run->delta);
}

static bool is_ignorable(uint32_t cp)
{
    return find(case_table.ignorable, sizeof(*case_table.ignorable), case_table.n_ignorable, cp) !=
           NULL;
}

static bool is_cased(uint32_t cp)
{
    return find(case_table.cased, sizeof(*case_table.cased), case_table.n_cased, cp) != NULL;
}

/* Whether the last character before `at` that counts has a case. */
static bool cased_before(const char *s, size_t at)
{
    while (at > 0) {
        uint32_t cp = 0;
        at--;
        while (at > 0 && ((unsigned char)s[at] & 0xc0) == 0x80)
            at--;
        (void)text_utf8_next(s + at, 4, &cp);
        if (!is_ignorable(cp))
            return is_cased(cp);
    }
    return false;
}

/* Whether the next character that counts has a case. */
static bool cased_after(const char *s, size_t len, size_t at)
{
    uint32_t cp = 0;
    size_t n;
    while ((n = text_utf8_next(s + at, len - at, &cp)) > 0) {
        if (!is_ignorable(cp))
            return is_cased(cp);
        at += n;
    }
    return false;
}

size_t pycase_add_title(const char *s, size_t len, size_t at, struct strbuf *out)
{
    uint32_t cp = 0;
    const size_t n = text_utf8_next(s + at, len - at, &cp);
    if (n == 0)
        return 0;
    for (size_t i = 0; i < case_table.n_several; i++) {
        if (case_table.several[i].from == cp) {
            strbuf_adds(out, case_table.several[i].to);
            return n;
        }
    }
    add_utf8(out, change(cp, case_table.title, case_table.n_title));
    return n;
}

size_t pycase_add_lower(const char *s, size_t len, size_t at, struct strbuf *out)
{
    uint32_t cp = 0;
    const size_t n = text_utf8_next(s + at, len - at, &cp);
    if (n == 0)
        return 0;
    if (cp == CAPITAL_DOTTED_I)
        strbuf_adds(out, DOTTED_I);
    else if (cp == CAPITAL_SIGMA)
        add_utf8(out,
                 cased_before(s, at) && !cased_after(s, len, at + n) ? FINAL_SIGMA : SMALL_SIGMA);
    else
        add_utf8(out, change(cp, case_table.lower, case_table.n_lower));
    return n;
}
