/*
 * Walks over the matches of a PCRE2 expression as Python's re does: an empty match may not follow
 * where the previous one was empty, then the search moves on. The interpreter runs without JIT and
 * under limits of steps and memory, so that giving up depends on the text alone. The only rewriting
 * is \Z, which means \z in PCRE2.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "worker/eval/task/pattern.h"

#include <pcre2.h>

#include "base/text.h"
#include "base/xalloc.h"
#include "worker/eval/task/pytext.h"

#define STEPS_MAX     2000000u
#define HEAP_KIB_MAX  16384u
#define PATTERN_BYTES 4096u

struct pattern {
    pcre2_code *code;
    pcre2_match_context *limits;
    pcre2_match_data *match;
    uint32_t n_groups;
};

/* A walk over the matches in a text. */
struct match_walk {
    const struct pattern *p;
    PCRE2_SPTR text;
    size_t len;
    size_t at;
    uint32_t options;
    const PCRE2_SIZE *bounds; /* of the match: whole, then its groups */
};

/* Python's \Z, the very end, is PCRE2's \z. */
static void translate(const char *text, struct strbuf *out)
{
    for (const char *at = text; *at != '\0'; at++) {
        strbuf_addc(out, *at);
        if (*at == '\\' && at[1] != '\0') {
            at++;
            strbuf_addc(out, *at == 'Z' ? 'z' : *at);
        }
    }
}

/* The limits belong to the compiled expression. */
int pattern_compile(const char *text, struct pattern **out, struct err *err)
{
    PCRE2_UCHAR message[120];
    PCRE2_SIZE at = 0;
    struct strbuf ours = STRBUF_INIT;
    int code = 0;

    if (strlen(text) > PATTERN_BYTES || !text_is_utf8(text, strlen(text)))
        return err_set(err, ERR_SYNTAX, "not an expression of UTF-8 text up to %u bytes",
                       PATTERN_BYTES);
    translate(text, &ours);
    struct pattern *p = xcalloc(1, sizeof(*p));
    p->code = pcre2_compile((PCRE2_SPTR)ours.buf, ours.len,
                            PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code, &at, NULL);
    strbuf_release(&ours);
    if (p->code == NULL) {
        (void)pcre2_get_error_message(code, message, sizeof(message));
        free(p);
        return err_set(err, ERR_SYNTAX, "'%.80s', byte %zu: %s", text, (size_t)at + 1,
                       (const char *)message);
    }
    p->limits = pcre2_match_context_create(NULL);
    p->match = pcre2_match_data_create_from_pattern(p->code, NULL);
    if (p->limits == NULL || p->match == NULL) {
        pattern_free(p);
        return err_set(err, ERR_OTHER, "no memory for an expression");
    }
    (void)pcre2_set_match_limit(p->limits, STEPS_MAX);
    (void)pcre2_set_heap_limit(p->limits, HEAP_KIB_MAX);
    (void)pcre2_pattern_info(p->code, PCRE2_INFO_CAPTURECOUNT, &p->n_groups);
    *out = p;
    return 0;
}

void pattern_free(struct pattern *p)
{
    if (p == NULL)
        return;
    pcre2_match_data_free(p->match);
    pcre2_match_context_free(p->limits);
    pcre2_code_free(p->code);
    free(p);
}

/* Before the first match. */
static struct match_walk walk_start(const struct pattern *p, const char *text)
{
    return (struct match_walk){.p = p, .text = (PCRE2_SPTR)text, .len = strlen(text)};
}

/* The next match; *more is false after the last. An empty match may not begin where one just
 * ended empty. */
static int walk_next(struct match_walk *w, bool *more, struct err *err)
{
    const int n = pcre2_match(w->p->code, w->text, w->len, w->at, w->options | PCRE2_NO_JIT,
                              w->p->match, w->p->limits);
    *more = n > 0;
    if (n == PCRE2_ERROR_NOMATCH)
        return 0;
    if (n < 0)
        return err_set(err, ERR_RANGE, "the expression gives up on this text (PCRE2 error %d)", n);
    w->bounds = pcre2_get_ovector_pointer(w->p->match);
    /* \K in a lookahead can put the start behind the end; such a match would never move on. */
    if (w->bounds[0] > w->bounds[1] || w->bounds[1] < w->at)
        return err_set(err, ERR_RANGE, "the expression moves backwards");
    w->at = w->bounds[1];
    w->options = w->bounds[0] == w->bounds[1] ? PCRE2_NOTEMPTY_ATSTART : 0;
    return 0;
}

/* What findall() gives of a match. */
static void add_match(const struct match_walk *w, struct strbuf *out)
{
    const PCRE2_SIZE *bounds = w->bounds;
    for (uint32_t g = 1; g <= w->p->n_groups; g++) {
        const PCRE2_SIZE *group = w->bounds + 2 * (size_t)g;
        const bool filled = group[0] != PCRE2_UNSET && group[1] > group[0];
        if (w->p->n_groups == 1 || filled) {
            bounds = group;
            break;
        }
    }
    if (bounds[0] == PCRE2_UNSET || bounds[1] <= bounds[0])
        return;
    const char *text = (const char *)w->text + bounds[0];
    const size_t len = pytext_rstrip(text, bounds[1] - bounds[0]);
    const size_t skip = pytext_lstrip(text, len);
    strbuf_add(out, text + skip, len - skip);
}

static int count_matches(const struct pattern *p, const char *text, size_t *n, struct err *err)
{
    struct match_walk w = walk_start(p, text);
    bool more = true;
    int rc = 0;
    *n = 0;
    while ((rc = walk_next(&w, &more, err)) == 0 && more)
        (*n)++;
    return rc;
}

/* Counts the matches first when `select` counts from the end; the walk is cheap. */
int pattern_find(const struct pattern *p, const char *text, int select, struct strbuf *out,
                 bool *found, struct err *err)
{
    struct match_walk w = walk_start(p, text);
    size_t n = 0;
    bool more = true;

    *found = false;
    int rc = count_matches(p, text, &n, err);
    const int64_t wanted = select < 0 ? (int64_t)n + select : select;
    if (rc != 0 || wanted < 0 || wanted >= (int64_t)n)
        return rc;
    for (int64_t i = 0; i <= wanted && rc == 0 && more; i++)
        rc = walk_next(&w, &more, err);
    if (rc == 0 && more) {
        add_match(&w, out);
        *found = true;
    }
    return rc;
}

int pattern_delete(const struct pattern *p, const char *text, struct strbuf *out, struct err *err)
{
    struct match_walk w = walk_start(p, text);
    size_t kept = 0;
    bool more = true;
    int rc = 0;
    while ((rc = walk_next(&w, &more, err)) == 0 && more) {
        strbuf_add(out, text + kept, w.bounds[0] - kept);
        kept = w.bounds[1];
    }
    if (rc == 0)
        strbuf_add(out, text + kept, w.len - kept);
    return rc;
}
