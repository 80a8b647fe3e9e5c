/* Two programs with a NUL between them: the [run] of the second is put into the first. What comes
 * out is put together from their lines, doing it twice changes nothing, and where "run" stands in
 * headers alone it is the first program with the second one's [run]. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "prereg/load/program_load.h"
#include "prereg/program/program.h"
#include "prereg/program/run_change.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

static struct plan_program *parse(const char *text)
{
    struct plan_program *p = NULL;
    struct diag diag;
    struct err err = {0};
    diag_init(&diag, "grid.toml");
    (void)!program_parse(text, strlen(text), "/grid.toml", &p, &diag, &err);
    diag_release(&diag);
    return p;
}

static bool same_plan(const struct plan_program *a, const struct plan_program *b)
{
    struct strbuf x = STRBUF_INIT;
    struct strbuf y = STRBUF_INIT;
    struct err err = {0};
    must(program_canonical(a, &x, &err) == 0 && program_canonical(b, &y, &err) == 0);
    bool same = x.len == y.len && memcmp(x.buf, y.buf, x.len) == 0;
    strbuf_release(&x);
    strbuf_release(&y);
    return same;
}

/* "run" begins no name but that of a header "[run" at the start of a line, and no text runs over
 * lines. */
static bool is_plain(const char *text)
{
    bool plain = strstr(text, "\"\"\"") == NULL && strstr(text, "'''") == NULL;
    for (const char *at = text; plain && (at = strstr(at, "run")) != NULL; at += 3) {
        bool starts = at - text == 1 || (at - text > 1 && at[-2] == '\n');
        plain = at > text && at[-1] == '[' && starts && (at[3] == ']' || at[3] == '.') &&
                strpbrk(at, "\n") != NULL && strcspn(at, "\"'#") > strcspn(at, "\n");
    }
    return plain && strchr(text, '\\') == NULL;
}

static void check_programs(const char *text, const char *from, const char *out)
{
    struct plan_program *p = parse(text);
    struct plan_program *f = p == NULL ? NULL : parse(from);
    struct plan_program *o = f == NULL ? NULL : parse(out);
    if (f != NULL && is_plain(text) && is_plain(from)) {
        must(o == NULL || same_plan(o, p));
        must(o == NULL || program_same_run(o, f));
        /* its [run] may name a stage that the first one does not have */
        must(o != NULL || !same_plan(p, f));
    }
    program_free(p);
    program_free(f);
    program_free(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *gap = size == 0 ? NULL : memchr(data, 0, size);
    const uint8_t *rest = gap == NULL ? NULL : gap + 1;
    if (gap == NULL || memchr(rest, 0, (size_t)(data + size - rest)) != NULL) {
        return 0;
    }
    char *text = xstrndup((const char *)data, (size_t)(gap - data));
    char *from = xstrndup((const char *)rest, (size_t)(data + size - rest));
    struct strbuf out = STRBUF_INIT;
    struct strbuf twice = STRBUF_INIT;
    run_text_replace(text, from, &out);
    strbuf_addc(&out, '\0');
    out.len--;
    must(out.len <= strlen(text) + strlen(from) + 2);
    run_text_replace(out.buf, from, &twice);
    strbuf_addc(&twice, '\0');
    must(strcmp(out.buf, twice.buf) == 0);
    check_programs(text, from, out.buf);
    strbuf_release(&out);
    strbuf_release(&twice);
    free(text);
    free(from);
    return 0;
}
