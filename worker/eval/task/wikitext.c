/*
 * The replacements of the harness's wikitext_detokenizer() in its order, each over the whole text
 * before the next. The order matters, because later rules see what earlier ones made; slips of the
 * reference are kept, since scores depend on them. White space inside brackets and quotes is
 * removed by a scan for the nearest closing mark.
 */
#include "worker/eval/task/template_private.h"

#include <stdbool.h>

#include "base/xalloc.h"
#include "worker/eval/task/pytext.h"

struct change {
    const char *from;
    const char *to;
};

static const struct change contractions[] = {{"s '", "s'"}};

static const struct change marks[] = {
    {" @-@ ", "-"}, {" @,@ ", ","}, {" @.@ ", "."}, {" : ", ": "}, {" ; ", "; "},
    {" . ", ". "},  {" ! ", "! "},  {" ? ", "? "},  {" , ", ", "},
};

static const struct change rest[] = {
    {"= = = =", "===="}, {"= = =", "==="}, {"= =", "=="},  {" \xc2\xb0 ", "\xc2\xb0"},
    {" \n", "\n"},       {"\n ", "\n"},    {" N ", " 1 "}, {" 's", "'s"},
};

/* One change after the other over the whole text; `text` and `spare` change places. */
static void apply(const struct change *changes, size_t n, struct strbuf *text, struct strbuf *spare)
{
    for (size_t i = 0; i < n; i++) {
        strbuf_clear(spare);
        pytext_replace(text->buf, text->len, changes[i].from, changes[i].to, spare);
        const struct strbuf changed = *spare;
        *spare = *text;
        *text = changed;
    }
}

/* re.sub(r"/' [0-9]/", r"/'[0-9]/", text) */
static void apply_digit_rule(struct strbuf *text, struct strbuf *spare)
{
    strbuf_clear(spare);
    for (size_t at = 0; at < text->len;) {
        const char *s = text->buf + at;
        if (text->len - at >= 5 && s[0] == '/' && s[1] == '\'' && s[2] == ' ' && s[3] >= '0' &&
            s[3] <= '9' && s[4] == '/') {
            strbuf_adds(spare, "/'[0-9]/");
            at += 5;
        } else {
            strbuf_addc(spare, text->buf[at++]);
        }
    }
    const struct strbuf changed = *spare;
    *spare = *text;
    *text = changed;
}

/* re.sub(r"\(\s*([^\)]*?)\s*\)", r"(\1)", text) for any two marks: white space inside them goes. */
static void apply_inside(char open, char close, struct strbuf *text, struct strbuf *spare)
{
    strbuf_clear(spare);
    for (size_t at = 0; at < text->len;) {
        const char *s = text->buf + at;
        const char *end = *s == open ? memchr(s + 1, close, text->len - at - 1) : NULL;
        if (end == NULL) {
            strbuf_addc(spare, *s);
            at++;
            continue;
        }
        const char *inside = s + 1 + pytext_lstrip(s + 1, (size_t)(end - s - 1));
        strbuf_addc(spare, open);
        strbuf_add(spare, inside, pytext_rstrip(inside, (size_t)(end - inside)));
        strbuf_addc(spare, close);
        at += (size_t)(end - s) + 1;
    }
    const struct strbuf changed = *spare;
    *spare = *text;
    *text = changed;
}

/* The groups of rules in the reference's order. */
void wikitext_add_detokenized(const char *page, struct strbuf *out)
{
    struct strbuf text = STRBUF_INIT;
    struct strbuf spare = STRBUF_INIT;
    strbuf_adds(&text, page);
    apply(contractions, ARRAY_LEN(contractions), &text, &spare);
    apply_digit_rule(&text, &spare);
    apply(marks, ARRAY_LEN(marks), &text, &spare);
    apply_inside('(', ')', &text, &spare);
    apply_inside('[', ']', &text, &spare);
    apply_inside('{', '}', &text, &spare);
    apply_inside('"', '"', &text, &spare);
    apply_inside('\'', '\'', &text, &spare);
    apply(rest, ARRAY_LEN(rest), &text, &spare);
    strbuf_add(out, text.buf, text.len);
    strbuf_release(&text);
    strbuf_release(&spare);
}
