/* What an import says of itself: the files that it read, and its warnings. */
#include "truthtable/imported/import.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "truthtable/evaluate/verdict.h"
#include "truthtable/evidence/evidence.h"

void import_put_path(const struct import *im, cJSON *to, const char *key, const char *path)
{
    const size_t n = strlen(im->program->folder);
    const bool below = strncmp(path, im->program->folder, n) == 0 && path[n] == '/';
    char *shown = xstrdup(below ? path + n + 1 : path);
    text_make_utf8(shown);
    json_put_string(to, key, shown);
    free(shown);
}

/* One file's entry; the caller adds what was checked. */
cJSON *import_receipt(struct import *im, const char *kind, const char *path,
                      const struct digest *digest, int64_t n_bytes)
{
    char hex[DIGEST_HEX_SIZE];
    cJSON *r = json_object();
    digest_hex(digest, hex);
    json_put_string(r, "kind", kind);
    import_put_path(im, r, "path", path);
    json_put_string(r, "sha256", hex);
    json_put_int(r, "bytes", n_bytes);
    json_push(im->receipts, r);
    return r;
}

/* Adds a warning once: cells of a stage often give the same one. */
void import_warn(struct import *im, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    text_make_utf8(text); /* what is cut may be cut through a character */
    const cJSON *said = NULL;
    cJSON_ArrayForEach(said, im->warnings)
    {
        if (strcmp(said->valuestring, text) == 0) {
            return; /* of another cell */
        }
    }
    json_push_string(im->warnings, text);
}
