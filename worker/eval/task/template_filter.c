/*
 * The filters, each a function from text to text named after what Python does in the reference
 * tasks. A filter that cannot apply is an error and not the unchanged text: a record of another
 * form must not become an item. The table at the end has names, numbers of arguments and what the
 * arguments are.
 */
#include "worker/eval/task/template_filter.h"

#include "base/text.h"
#include "base/xalloc.h"
#include "worker/eval/task/pytext.h"
#include "worker/eval/task/template_private.h"

/* str.lstrip, str.rstrip */
static int lstrip(const char *s, const struct filter_args *args, struct strbuf *out,
                  struct err *err)
{
    (void)args;
    (void)err;
    strbuf_adds(out, s + pytext_lstrip(s, strlen(s)));
    return 0;
}

static int rstrip(const char *s, const struct filter_args *args, struct strbuf *out,
                  struct err *err)
{
    (void)args;
    (void)err;
    strbuf_add(out, s, pytext_rstrip(s, strlen(s)));
    return 0;
}

static int strip(const char *s, const struct filter_args *args, struct strbuf *out, struct err *err)
{
    s += pytext_lstrip(s, strlen(s));
    return rstrip(s, args, out, err);
}

static int capitalize(const char *s, const struct filter_args *args, struct strbuf *out,
                      struct err *err)
{
    (void)args;
    (void)err;
    pytext_capitalize(s, out);
    return 0;
}

/* s[0].lower() + s[1:] */
static int lower_first(const char *s, const struct filter_args *args, struct strbuf *out,
                       struct err *err)
{
    (void)args;
    if (*s == '\0')
        return err_set(err, ERR_SYNTAX, "the text is empty");
    pytext_lower_first(s, out);
    return 0;
}

/* s[:-1] */
static int drop_last(const char *s, const struct filter_args *args, struct strbuf *out,
                     struct err *err)
{
    (void)args;
    (void)err;
    size_t len = strlen(s);
    while (len > 0 && ((unsigned char)s[len - 1] & 0xc0) == 0x80)
        len--;
    strbuf_add(out, s, len > 0 ? len - 1 : 0);
    return 0;
}

static int find_mark(const char *s, const char *mark, const char **at, struct err *err)
{
    *at = strstr(s, mark);
    return *at != NULL ? 0 : err_set(err, ERR_SYNTAX, "has no %.40s", mark);
}

/* s[:s.index(mark)] */
static int before(const char *s, const struct filter_args *args, struct strbuf *out,
                  struct err *err)
{
    const char *at = NULL;
    int rc = find_mark(s, args->texts[0], &at, err);
    if (rc == 0)
        strbuf_add(out, s, (size_t)(at - s));
    return rc;
}

/* s[s.index(mark) + len(mark):] */
static int after(const char *s, const struct filter_args *args, struct strbuf *out, struct err *err)
{
    const char *at = NULL;
    int rc = find_mark(s, args->texts[0], &at, err);
    if (rc == 0)
        strbuf_adds(out, at + strlen(args->texts[0]));
    return rc;
}

/* " ".join(s.split(" ")[:-1]) */
static int words_but_last(const char *s, const struct filter_args *args, struct strbuf *out,
                          struct err *err)
{
    (void)args;
    (void)err;
    const char *last = strrchr(s, ' ');
    strbuf_add(out, s, last == NULL ? 0 : (size_t)(last - s));
    return 0;
}

/* s.split(" ")[-1] */
static int last_word(const char *s, const struct filter_args *args, struct strbuf *out,
                     struct err *err)
{
    (void)args;
    (void)err;
    const char *last = strrchr(s, ' ');
    strbuf_adds(out, last == NULL ? s : last + 1);
    return 0;
}

/* str.replace */
static int replace(const char *s, const struct filter_args *args, struct strbuf *out,
                   struct err *err)
{
    if (args->texts[0][0] == '\0')
        return err_set(err, ERR_SYNTAX, "nothing to replace");
    pytext_replace(s, strlen(s), args->texts[0], args->texts[1], out);
    return 0;
}

/* Puts the argument in front. */
static int prefix(const char *s, const struct filter_args *args, struct strbuf *out,
                  struct err *err)
{
    (void)err;
    strbuf_adds(out, args->texts[0]);
    strbuf_adds(out, s);
    return 0;
}

/* What does not begin or end so is refused: the file is not of the form it was taken for. */
static int without_prefix(const char *s, const struct filter_args *args, struct strbuf *out,
                          struct err *err)
{
    const size_t n = strlen(args->texts[0]);
    if (strncmp(s, args->texts[0], n) != 0)
        return err_set(err, ERR_SYNTAX, "does not begin with '%.40s'", args->texts[0]);
    strbuf_adds(out, s + n);
    return 0;
}

/* Pairs: what is equal to the first becomes the second. */
static int map(const char *s, const struct filter_args *args, struct strbuf *out, struct err *err)
{
    for (size_t i = 0; i + 1 < args->n; i += 2) {
        if (strcmp(s, args->texts[i]) == 0) {
            strbuf_adds(out, args->texts[i + 1]);
            return 0;
        }
    }
    return err_set(err, ERR_SYNTAX, "'%.40s' is none of those it may be", s);
}

/* Pairs: an end equal to the first becomes the second. */
static int map_end(const char *s, const struct filter_args *args, struct strbuf *out,
                   struct err *err)
{
    const size_t len = strlen(s);
    for (size_t i = 0; i + 1 < args->n; i += 2) {
        const size_t n = strlen(args->texts[i]);
        if (len >= n && strcmp(s + len - n, args->texts[i]) == 0) {
            strbuf_add(out, s, len - n);
            strbuf_adds(out, args->texts[i + 1]);
            return 0;
        }
    }
    return err_set(err, ERR_SYNTAX, "'%.40s' ends with none of those it may", s);
}

/* [arguments].index(s) */
static int index_of(const char *s, const struct filter_args *args, struct strbuf *out,
                    struct err *err)
{
    for (size_t i = 0; i < args->n; i++) {
        if (strcmp(s, args->texts[i]) == 0) {
            strbuf_addf(out, "%zu", i);
            return 0;
        }
    }
    struct strbuf known = STRBUF_INIT;
    for (size_t i = 0; i < args->n; i++)
        strbuf_addf(&known, "%s\"%.20s\"", i == 0 ? "" : ", ", args->texts[i]);
    int rc = err_set(err, ERR_SYNTAX, "is \"%.40s\", not one of %.120s", s, known.buf);
    strbuf_release(&known);
    return rc;
}

/* Checks that the text is a whole number and writes it in decimal. */
static int number(const char *s, const struct filter_args *args, struct strbuf *out,
                  struct err *err)
{
    int64_t n = 0;
    (void)args;
    if (text_to_int(s, -(1LL << 53), 1LL << 53, &n, err) != 0)
        return err_set(err, ERR_SYNTAX, "'%.40s' is not a whole number", s);
    strbuf_addf(out, "%lld", (long long)n);
    return 0;
}

static int hellaswag_clean(const char *s, const struct filter_args *args, struct strbuf *out,
                           struct err *err)
{
    (void)args;
    (void)err;
    pytext_clean_hellaswag(s, out);
    return 0;
}

static int wikitext_detokenize(const char *s, const struct filter_args *args, struct strbuf *out,
                               struct err *err)
{
    (void)args;
    (void)err;
    wikitext_add_detokenized(s, out);
    return 0;
}

static const struct filter filters[] = {
    {.name = "strip", .apply = strip},
    {.name = "lstrip", .apply = lstrip},
    {.name = "rstrip", .apply = rstrip},
    {.name = "capitalize", .apply = capitalize},
    {.name = "lower_first", .apply = lower_first},
    {.name = "drop_last", .apply = drop_last},
    {"before", 1, 1, false, false, false, before},
    {"after", 1, 1, false, false, false, after},
    {.name = "words_but_last", .apply = words_but_last},
    {.name = "last_word", .apply = last_word},
    {"replace", 2, 2, false, false, false, replace},
    {"prefix", 1, 1, false, false, false, prefix},
    {"without_prefix", 1, 1, false, false, false, without_prefix},
    {"map", 2, FILTER_ARGS_MAX, false, false, true, map},
    {"map_end", 2, FILTER_ARGS_MAX, false, false, true, map_end},
    {"index", 1, FILTER_ARGS_MAX, true, true, false, index_of},
    {.name = "integer", .numbers = true, .apply = number},
    {.name = "number", .numbers = true, .apply = number},
    {.name = "hellaswag_clean", .apply = hellaswag_clean},
    {.name = "wikitext_detokenize", .apply = wikitext_detokenize},
};

const struct filter *filter_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(filters); i++)
        if (strcmp(filters[i].name, name) == 0)
            return &filters[i];
    return NULL;
}

const char *filter_nearest(const char *name)
{
    const char *names[ARRAY_LEN(filters)];
    for (size_t i = 0; i < ARRAY_LEN(filters); i++)
        names[i] = filters[i].name;
    return text_nearest(name, names, ARRAY_LEN(names));
}
