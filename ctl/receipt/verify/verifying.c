/* What verify says while it checks: lines about what holds, and the fault that ends it. */
#include "base/text.h"
#include "ctl/receipt/verify/verify.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/files.h"
#include "ctl/receipt/verify/verify_parts.h"

void verifying_says(struct verifying *v, const char *fmt, ...)
{
    char text[600];
    char shown[600];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    text_copy_line(shown, sizeof(shown), text);
    json_push_string(v->established, shown);
}

void verifying_says_whole(struct verifying *v, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *shown = xcalloc(size, 1);
    text_copy_line(shown, size, text);
    json_push_string(v->established, shown);
    free(shown);
}

struct receipt verifying_receipt(const struct verifying *v)
{
    return (struct receipt){.program = v->program,
                            .lock = v->lock,
                            .history = v->imported ? NULL : &v->history,
                            .evidence = &v->evidence,
                            .verdict = &v->verdict};
}

/* Another version may compute a member otherwise, without anyone having changed the file: the fault
 * says which version made the receipt. */
void verifying_versions(struct verifying *v)
{
    char text[sizeof(v->err->msg) + 256];
    (void)snprintf(text, sizeof(text), "%s (version %s made the receipt, %s computes it here)",
                   v->err->msg, v->tool, PREREGD_VERSION);
    text_copy_line(v->err->msg, sizeof(v->err->msg), text); /* the version is the receipt's word */
}
