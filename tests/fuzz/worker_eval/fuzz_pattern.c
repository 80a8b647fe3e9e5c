/* Expressions of filters over texts: what comes before the first line feed is the expression. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"
#include "worker/eval/task/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct pattern *p, const char *text)
{
    struct strbuf found = STRBUF_INIT;
    struct strbuf left = STRBUF_INIT;
    struct err err = {0};
    bool any = false;
    if (pattern_find(p, text, 0, &found, &any, &err) == 0 && !any && found.len > 0)
        abort();
    strbuf_clear(&found);
    (void)!pattern_find(p, text, -1, &found, &any, &err);
    if (pattern_delete(p, text, &left, &err) == 0 && left.len > strlen(text))
        abort();
    strbuf_release(&found);
    strbuf_release(&left);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pattern *p = NULL;
    struct err err = {0};
    char *text = xstrndup((const char *)data, size);
    char *feed = strchr(text, '\n');
    if (feed != NULL && text_is_utf8(text, strlen(text))) {
        *feed = '\0';
        if (pattern_compile(text, &p, &err) == 0)
            check(p, feed + 1);
        pattern_free(p);
    }
    free(text);
    return 0;
}
