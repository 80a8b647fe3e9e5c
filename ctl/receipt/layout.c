/*
 * One table of fixed names with the kinds of receipts that need or may have them, and a pattern for
 * each folder. Names are checked before anything is opened or written, both for folders and for
 * archives.
 */
#include "ctl/receipt/layout.h"

#include <string.h>

#include "base/files/digest.h"
#include "base/layout/layout.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "ctl/receipt/rerun_file.h"
#include "prereg/program/apparatus_name.h"

enum need { NEED_NONE = 0, NEED_EXECUTED = 1, NEED_IMPORTED = 2, NEED_ALL = 3 };

static const struct {
    const char *name;
    enum need need;
    enum need of; /* which kinds may have it */
} files[] = {
    {RECEIPT_VERIFY, NEED_ALL, NEED_ALL},
    {RECEIPT_SUMS, NEED_ALL, NEED_ALL},
    {RECEIPT_STATEMENT, NEED_ALL, NEED_ALL},
    {RECEIPT_GRID, NEED_ALL, NEED_ALL},
    {RECEIPT_LOCK, NEED_ALL, NEED_ALL},
    {RECEIPT_TSQ, NEED_NONE, NEED_ALL},
    {RECEIPT_TSR, NEED_NONE, NEED_ALL},
    {RECEIPT_JOURNAL, NEED_EXECUTED, NEED_EXECUTED},
    {RECEIPT_RECORDS, NEED_EXECUTED, NEED_EXECUTED},
    {RECEIPT_ENVIRONMENT, NEED_EXECUTED, NEED_EXECUTED},
    {RECEIPT_IMPORTED, NEED_IMPORTED, NEED_IMPORTED},
    {RECEIPT_GIVEN, NEED_IMPORTED, NEED_IMPORTED},
    {RECEIPT_COVERAGE, NEED_ALL, NEED_ALL},
    {RECEIPT_VERDICT, NEED_ALL, NEED_ALL},
    {RECEIPT_PROVENANCE, NEED_ALL, NEED_ALL},
    {RECEIPT_INSTRUMENTS, NEED_NONE, NEED_ALL},
    {RECEIPT_REUSE, NEED_NONE, NEED_EXECUTED},
    {LAYOUT_REPORT_HTML, NEED_NONE, NEED_ALL},
    {LAYOUT_REPORT_MD, NEED_NONE, NEED_ALL},
    {LAYOUT_REPORT_JSON, NEED_NONE, NEED_ALL},
};

/* Whether the name begins with the prefix. */
static bool has_prefix(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* The part between prefix and suffix, its length in *n; NULL when the name does not have both. */
static const char *stem_of(const char *name, const char *prefix, const char *suffix, size_t *n)
{
    const size_t len = strlen(name);
    const size_t a = strlen(prefix);
    const size_t b = strlen(suffix);
    if (len <= a + b || !has_prefix(name, prefix) || strcmp(name + len - b, suffix) != 0) {
        return NULL;
    }
    *n = len - a - b;
    return name + a;
}

/* amendments/NNNN.json or .toml */
static bool is_amendment(const char *name)
{
    size_t n = 0;
    const char *stem = stem_of(name, LAYOUT_AMENDMENTS "/", ".json", &n);
    stem = stem != NULL ? stem : stem_of(name, LAYOUT_AMENDMENTS "/", ".toml", &n);
    return stem != NULL && n == 4 && strspn(stem, "0123456789") == 4;
}

/* apparatus/NAME.json, apparatus/NAME@end.json */
static bool is_apparatus(const char *name)
{
    size_t n = 0;
    const char *stem = stem_of(name, LAYOUT_APPARATUS "/", ".json", &n);
    if (stem == NULL || n > 64 + strlen(APPARATUS_END)) {
        return false;
    }
    char *text = xstrndup(stem, n);
    text[apparatus_name_length(text)] = '\0';
    bool is_name = text_is_name(text);
    free(text);
    return is_name;
}

/* reruns/NAME.json */
static bool is_rerun(const char *name)
{
    static const char prefix[] = LAYOUT_RERUNS "/";
    return has_prefix(name, prefix) && rerun_file_is_name(name + sizeof(prefix) - 1);
}

bool layout_is_items(const char *name)
{
    size_t n = 0;
    const char *stem = stem_of(name, RECEIPT_ITEMS "/", ".jsonl", &n);
    return stem != NULL && n == DIGEST_HEX_SIZE - 1 && strspn(stem, "0123456789abcdef") == n;
}

bool layout_is_signature(const char *name)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t n = 0;
    const char *stem = stem_of(name, RECEIPT_SIGNATURES, ".sig", &n);
    return stem != NULL && strspn(stem, letters) == n;
}

bool layout_is_summed(const char *name)
{
    return strcmp(name, RECEIPT_SUMS) != 0 && !has_prefix(name, RECEIPT_SIGNATURES);
}

const char *layout_refuses(const char *name)
{
    const size_t n = strlen(name);
    if (!text_is_utf8(name, n)) {
        return "its name is not UTF-8";
    }
    if (name[0] == '/' || strcmp(name, "..") == 0 || has_prefix(name, "../") ||
        strstr(name, "/../") != NULL || (n > 2 && strcmp(name + n - 3, "/..") == 0)) {
        return "its name leads out of the folder";
    }
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        if (strcmp(name, files[i].name) == 0) {
            return NULL;
        }
        /* two such files would be one on a file system that ignores case */
        if (strcasecmp(name, files[i].name) == 0) {
            return "its name differs from a receipt's file only in the case of letters";
        }
    }
    /* the patterns match one folder deep, so no other path gets through */
    bool known =
        n <= RECEIPT_NAME_MAX && (is_amendment(name) || is_apparatus(name) || is_rerun(name) ||
                                  layout_is_items(name) || layout_is_signature(name));
    return known ? NULL : "no receipt of this version has such a file";
}

int64_t layout_bytes_max(const char *name)
{
    bool by_line = strcmp(name, RECEIPT_JOURNAL) == 0 || strcmp(name, RECEIPT_RECORDS) == 0 ||
                   strcmp(name, RECEIPT_ENVIRONMENT) == 0 || strcmp(name, RECEIPT_REUSE) == 0 ||
                   layout_is_items(name);
    return by_line                                ? RECEIPT_FILE_BYTES_MAX
           : is_rerun(name)                       ? (int64_t)RERUN_BYTES_MAX
           : strcmp(name, RECEIPT_STATEMENT) == 0 ? RECEIPT_STATEMENT_MAX
                                                  : RECEIPT_WHOLE_MAX;
}

const char *layout_missing(bool imported, layout_has_fn *has, void *ctx)
{
    const enum need kind = imported ? NEED_IMPORTED : NEED_EXECUTED;
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        if ((files[i].need & kind) != 0 && !has(ctx, files[i].name)) {
            return files[i].name;
        }
    }
    return NULL;
}

bool layout_is_of_other_kind(bool imported, const char *name)
{
    const enum need kind = imported ? NEED_IMPORTED : NEED_EXECUTED;
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        if (strcmp(name, files[i].name) == 0) {
            return (files[i].of & kind) == 0;
        }
    }
    return imported && (is_apparatus(name) || is_rerun(name) || layout_is_items(name));
}
