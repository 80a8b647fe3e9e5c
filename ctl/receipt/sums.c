/*
 * Listing and SHA256SUMS are both sorted by name, so one pass over the two finds missing, added,
 * repeated and misplaced names. Files are hashed in that pass.
 */
#include "ctl/receipt/files.h"

#include <string.h>

#include "base/text.h"

/* Splits one line, 64 hex digits, two spaces and a name; the caller compares the name with the
 * listing. */
static int split_line(const char *line, size_t len, struct digest *digest, const char **name,
                      struct err *err)
{
    char hex[DIGEST_HEX_SIZE];
    if (len < 67 || strlen(line) != len || line[64] != ' ' || line[65] != ' ') {
        return err_set(err, ERR_LOCK, "is not a digest, two spaces and a name");
    }
    memcpy(hex, line, 64);
    hex[64] = '\0';
    if (digest_from_hex(hex, digest, err) != 0) {
        return mismatch_code(err);
    }
    *name = line + 66;
    return 0;
}

/* The next file that must be covered, from *i on; NULL at the end. */
static struct receipt_file *next_file(struct receipt_files *files, size_t *i)
{
    while (*i < files->n && !layout_is_summed(files->items[*i].name)) {
        (*i)++;
    }
    return *i < files->n ? &files->items[(*i)++] : NULL;
}

/* The fault for a line whose name is not the next file's. */
static int wrong_name(struct err *err, const struct receipt_file *file, const char *name)
{
    const char *why = layout_refuses(name);
    if (why != NULL || !layout_is_summed(name)) {
        return err_set(err, ERR_LOCK, "\"%.60s\": %s", name, why != NULL ? why : "is not summed");
    }
    if (file == NULL || strcmp(name, file->name) < 0) {
        return err_set(err, ERR_LOCK, "%.100s is missing, duplicated or out of order", name);
    }
    err_at(err, file->name, 0);
    return err_set(err, ERR_LOCK, "is not listed in " RECEIPT_SUMS);
}

/* One line against the next file that must be covered. */
static int check_line(struct receipt_files *files, size_t *i, const char *line, size_t len,
                      struct err *err)
{
    struct digest want = {{0}};
    const char *name = NULL;
    int rc = split_line(line, len, &want, &name, err);
    if (rc != 0) {
        return rc;
    }
    struct receipt_file *file = next_file(files, i);
    if (file == NULL || strcmp(file->name, name) != 0) {
        return wrong_name(err, file, name);
    }
    rc = files_digest(files, file, err);
    if (rc == 0 && !digest_equal(&want, &file->digest)) {
        char a[DIGEST_HEX_SIZE];
        char b[DIGEST_HEX_SIZE];
        digest_hex(&want, a);
        digest_hex(&file->digest, b);
        rc = err_differs(err, "its SHA-256 is not the one in " RECEIPT_SUMS, a, b);
    }
    return rc;
}

/* Goes through the lines; files that are left at the end are not listed. */
int sums_check(struct receipt_files *files, struct err *err)
{
    struct receipt_lines l;
    const char *line = NULL;
    size_t len = 0;
    size_t i = 0;
    int rc = lines_open(&l, files, RECEIPT_SUMS, RECEIPT_NAME_MAX + 66, err);
    while (rc == 0) {
        rc = lines_next(&l, &line, &len, err);
        if (rc != 0 || line == NULL) {
            break;
        }
        rc = check_line(files, &i, line, len, err);
    }
    struct receipt_file *left = rc == 0 ? next_file(files, &i) : NULL;
    if (left != NULL) {
        err_at(err, left->name, 0);
        rc = err_set(err, ERR_LOCK, "is not listed in " RECEIPT_SUMS);
    }
    lines_release(&l);
    return rc;
}

int sums_make(struct receipt_files *files, struct strbuf *out, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < files->n; i++) {
        struct receipt_file *file = &files->items[i];
        char hex[DIGEST_HEX_SIZE];
        if (!layout_is_summed(file->name)) {
            continue;
        }
        rc = files_digest(files, file, err);
        digest_hex(&file->digest, hex);
        strbuf_addf(out, "%s  %s\n", hex, file->name);
    }
    return rc;
}
