#include "tests/unit/ctl/receipt/forger.h"

#include <stdlib.h>
#include <string.h>

#include "base/files/digest.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "ctl/receipt/files.h"

/* ---- the chain ---- */

static void add_row(struct strbuf *out, cJSON *row, int64_t seq, char prev[DIGEST_HEX_SIZE])
{
    struct strbuf text = STRBUF_INIT;
    struct err err;
    cJSON_DeleteItemFromObjectCaseSensitive(row, "hash");
    cJSON_DeleteItemFromObjectCaseSensitive(row, "seq");
    json_put_int(row, "seq", seq);
    strbuf_adds(&text, prev);
    if (json_canonical(row, &text, &err) == 0) {
        const struct digest d = digest_bytes(text.buf, text.len);
        digest_hex(&d, prev);
        json_put_string(row, "hash", prev);
        (void)!json_canonical(row, out, &err);
    }
    strbuf_release(&text);
}

void forge_chain(struct strbuf *journal)
{
    struct strbuf out = STRBUF_INIT;
    char prev[DIGEST_HEX_SIZE];
    int64_t seq = 0;
    memset(prev, '0', sizeof(prev) - 1);
    prev[sizeof(prev) - 1] = '\0';
    for (size_t at = 0; at < journal->len;) {
        const char *line = journal->buf + at;
        const char *nl = memchr(line, '\n', journal->len - at);
        const size_t len = nl == NULL ? journal->len - at : (size_t)(nl - line);
        cJSON *row = NULL;
        struct err err;
        if (json_parse(line, len, &row, &err) == 0 && cJSON_IsObject(row)) {
            add_row(&out, row, ++seq, prev);
        } else {
            strbuf_add(&out, line, len);
        }
        if (nl != NULL) {
            strbuf_addc(&out, '\n');
        }
        cJSON_Delete(row);
        at += len + 1;
    }
    strbuf_release(journal);
    *journal = out;
}

/* ---- the sums ---- */

static int write_at(const char *folder, const char *name, const struct strbuf *text,
                    struct err *err)
{
    char *path = path_join(folder, name);
    int rc = file_write_atomic(path, text->buf, text->len, 0644, err);
    free(path);
    return rc;
}

static cJSON *subjects(const struct receipt_files *files)
{
    cJSON *list = json_array();
    for (size_t i = 0; i < files->n; i++) {
        const struct receipt_file *file = &files->items[i];
        if (!layout_is_summed(file->name) || strcmp(file->name, RECEIPT_STATEMENT) == 0) {
            continue;
        }
        char hex[DIGEST_HEX_SIZE];
        cJSON *s = json_object();
        cJSON *digest = json_object();
        digest_hex(&file->digest, hex);
        json_put_string(digest, "sha256", hex);
        json_put_string(s, "name", file->name);
        json_put(s, "digest", digest);
        json_push(list, s);
    }
    return list;
}

static int forge_statement(const struct receipt_files *files, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    struct err f = {0};
    cJSON *statement = NULL;
    int rc = 0;
    if (files_read_json(files, RECEIPT_STATEMENT, &statement, &f) == 0) {
        cJSON *list = subjects(files);
        if (!cJSON_ReplaceItemInObjectCaseSensitive(statement, "subject", list)) {
            cJSON_Delete(list);
        }
        rc = json_pretty(statement, &text, err);
        strbuf_addc(&text, '\n');
        rc = rc == 0 ? write_at(files->folder, RECEIPT_STATEMENT, &text, err) : rc;
    }
    cJSON_Delete(statement);
    strbuf_release(&text);
    return rc;
}

int forge_sums(const char *folder, struct err *err)
{
    struct receipt_files files = {.fd = -1};
    struct strbuf text = STRBUF_INIT;
    struct err f = {0};
    int rc = files_open(&files, folder, &f) == 0 && sums_make(&files, &text, &f) == 0
                 ? forge_statement(&files, err)
                 : err_join(&f, err);
    strbuf_clear(&text);
    if (rc == 0) {
        rc = sums_make(&files, &text, &f) == 0 ? write_at(folder, RECEIPT_SUMS, &text, err)
                                               : err_join(&f, err);
    }
    files_release(&files);
    strbuf_release(&text);
    return rc;
}
