/*
 * Export copies the program's files into a temporary folder beside the target, hides hosts, makes
 * the parts that follow from the copies (export_parts.c), verifies the result as a stranger would,
 * and only then renames it and its tar. Every later step reads the copies: the daemon may go on
 * writing. The time in the tar is the lock's, so that the same folder gives the same bytes.
 */
#include "ctl/receipt/export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "ctl/receipt/export_parts.h"
#include "ctl/receipt/files.h"
#include "ctl/receipt/rerun_file.h"
#include "ctl/receipt/tar.h"
#include "prereg/amend/amendment.h"
#include "prereg/load/program_load.h"
#include "prereg/lock/imported.h"
#include "prereg/reuse/reuse.h"

/* ---- copying ---- */

/* Copies a file that must be there. */
static int copy(const char *from_folder, const char *from, const char *to_folder, const char *to,
                struct err *err)
{
    char *a = path_join(from_folder, from);
    char *b = path_join(to_folder, to);
    int rc = file_copy(a, b, 0644, err);
    free(a);
    free(b);
    return rc;
}

/* Copies a file that may be missing. */
static int copy_if_there(const char *from_folder, const char *from, const char *to_folder,
                         const char *to, struct err *err)
{
    char *path = path_join(from_folder, from);
    bool there = file_kind_at(path) == FILE_REGULAR;
    free(path);
    return there ? copy(from_folder, from, to_folder, to, err) : 0;
}

/* Copies the files of a subfolder that a receipt may have. Others may be left from a crash, or
 * be what the workers of a rerun wrote. */
static int copy_folder(const struct exporting *x, const char *folder, struct err *err)
{
    char *from = path_join(x->from, folder);
    char *to = path_join(x->to, folder);
    struct name_list names = {0};
    int rc = file_kind_at(from) == FILE_FOLDER ? dir_list(from, &names, err) : 0;
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        char *name = path_join(folder, names.names[i]);
        if (layout_refuses(name) == NULL) {
            rc = dir_make(to, 0755, err);
            if (rc == 0) {
                rc = copy(from, names.names[i], to, names.names[i], err);
            }
        }
        free(name);
    }
    name_list_release(&names);
    free(from);
    free(to);
    return rc;
}

/* Copies request and response of the lock's time stamp. The response may arrive long after the
 * submit: it is beside the lock that was submitted, and is taken as long as that lock still has
 * the same bytes. */
static int copy_stamp(const struct exporting *x, struct err *err)
{
    static const char *const stamps[] = {RECEIPT_TSQ, RECEIPT_TSR};
    /* different at first, so that a file that cannot be read never matches */
    struct digest a = {{0}};
    struct digest b = {{1}};
    cJSON *o = NULL;
    const char *grid = NULL;
    struct err ignored;
    char *origin = path_join(x->from, LAYOUT_ORIGIN);
    char *here = path_join(x->from, RECEIPT_LOCK);
    int rc = 0;
    if (json_read_file(origin, LAYOUT_ORIGIN_MAX, &o, &ignored) == 0 &&
        json_get_string(o, "path", &grid, &ignored) == 0) {
        char *there = lock_path_of(grid);
        char *folder = path_folder(grid);
        bool same = digest_file(here, &a, NULL, &ignored) == 0 &&
                    digest_file(there, &b, NULL, &ignored) == 0 && digest_equal(&a, &b);
        for (size_t i = 0; rc == 0 && same && i < ARRAY_LEN(stamps); i++) {
            char *from = xasprintf("%s%s", there, stamps[i] + strlen(RECEIPT_LOCK));
            rc = copy_if_there(folder, path_name(from), x->to, stamps[i], err);
            free(from);
        }
        free(there);
        free(folder);
    }
    cJSON_Delete(o);
    free(here);
    free(origin);
    return rc;
}

/* Refuses a stamp of other bytes, which a verifier with the authority's certificates would find
 * later. A stamp of the lock contains its SHA-256, which is what timestamp_request() asks for. */
static int check_stamp(const struct exporting *x, struct err *err)
{
    struct strbuf stamp = STRBUF_INIT;
    struct digest d;
    char *tsr = path_join(x->to, RECEIPT_TSR);
    char *lock = path_join(x->to, RECEIPT_LOCK);
    int rc = 0;
    if (file_kind_at(tsr) != FILE_REGULAR) {
        goto out;
    }
    if ((rc = file_read(tsr, LAYOUT_TSR_MAX, &stamp, err)) != 0 ||
        (rc = digest_file(lock, &d, NULL, err)) != 0) {
        goto out;
    }
    if (memmem(stamp.buf, stamp.len, d.bytes, sizeof(d.bytes)) == NULL) {
        rc = err_set(err, ERR_LOCK,
                     RECEIPT_TSR " is not a time stamp of this " RECEIPT_LOCK
                                 "'s bytes: take it away, or ask for another");
    }
out:
    strbuf_release(&stamp);
    free(lock);
    free(tsr);
    return rc;
}

/* Copies everything; each pair is the name in the program's folder and the name in the receipt. */
static int copy_all(const struct exporting *x, struct err *err)
{
    static const char *const must[][2] = {
        {LAYOUT_GRID, RECEIPT_GRID},
        {LAYOUT_LOCK, RECEIPT_LOCK},
        {LAYOUT_IN_REPORT(LAYOUT_VERDICT), RECEIPT_VERDICT},
        {LAYOUT_IN_REPORT(LAYOUT_PROVENANCE), RECEIPT_PROVENANCE}};
    static const char *const may[][2] = {
        {RECEIPT_TSQ, RECEIPT_TSQ},
        {RECEIPT_TSR, RECEIPT_TSR},
        {LAYOUT_IN_REPORT(LAYOUT_INSTRUMENTS), RECEIPT_INSTRUMENTS},
        {LAYOUT_IN_REPORT(LAYOUT_REPORT_HTML), LAYOUT_REPORT_HTML},
        {LAYOUT_IN_REPORT(LAYOUT_REPORT_MD), LAYOUT_REPORT_MD},
        {LAYOUT_IN_REPORT(LAYOUT_REPORT_JSON), LAYOUT_REPORT_JSON}};
    static const char *const executed[][2] = {{LAYOUT_JOURNAL, RECEIPT_JOURNAL}};
    static const char *const imported[][2] = {{LAYOUT_RECORDS, RECEIPT_GIVEN},
                                              {LAYOUT_IMPORTED, RECEIPT_IMPORTED}};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(must); i++) {
        rc = copy(x->from, must[i][0], x->to, must[i][1], err);
    }
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(may); i++) {
        rc = copy_if_there(x->from, may[i][0], x->to, may[i][1], err);
    }
    const size_t n = x->imported ? ARRAY_LEN(imported) : ARRAY_LEN(executed);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const char *const *pair = x->imported ? imported[i] : executed[i];
        rc = copy(x->from, pair[0], x->to, pair[1], err);
    }
    if (rc != 0 || (!x->imported && copy_stamp(x, err) != 0) || check_stamp(x, err) != 0 ||
        (!x->imported && copy_folder(x, LAYOUT_RERUNS, err) != 0)) {
        return err->code;
    }
    return copy_folder(x, LAYOUT_AMENDMENTS, err);
}

/* The receipt that [reuse] takes results from, which submit copied; its lock's time makes the
 * bytes.
 */
static int pack_reused(const struct exporting *x, struct err *err)
{
    struct file_writer w;
    struct lock *lock = NULL;
    if (x->lock->reuse == NULL) {
        return 0;
    }
    char *from = path_join(x->from, REUSE_FOLDER "/" REUSE_RECEIPT);
    char *lock_path = path_join(from, RECEIPT_LOCK);
    char *to = path_join(x->to, RECEIPT_REUSE);
    int rc = file_writer_open(&w, to, 0644, err);
    rc = rc == 0 ? lock_read(lock_path, &lock, err) : rc;
    rc = rc == 0 ? tar_write(from, REUSE_RECEIPT, lock_made_at(lock), &w, err) : rc;
    rc = rc == 0 ? file_writer_publish(&w, err) : rc;
    file_writer_release(&w);
    lock_free(lock);
    free(to);
    free(lock_path);
    free(from);
    return rc == 0 ? 0 : err_wrap(err, "the receipt that [reuse] names");
}

/* ---- checks ---- */

/* Refuses a program without verdict.json, before its journal is read at all: the daemon writes
 * that file after the end only. */
static int check_has_verdict(const struct exporting *x, struct err *err)
{
    char *path = path_join(x->from, LAYOUT_IN_REPORT(LAYOUT_VERDICT));
    bool there = file_kind_at(path) == FILE_REGULAR;
    free(path);
    return there ? 0
                 : err_set(err, ERR_REFUSED,
                           "%s has no verdict yet: a receipt is made of what is finished, and not "
                           "while scores are sealed",
                           x->from);
}

/* The program and its amended lock, which must fit each other. */
static int load(struct exporting *x, struct err *err)
{
    struct diag diag;
    char *grid = path_join(x->from, LAYOUT_GRID);
    diag_init(&diag, grid);
    int rc = program_load(grid, &x->program, &diag, err);
    if (rc != 0 || (rc = lock_read_amended(x->from, &x->lock, err)) != 0) {
        goto out;
    }
    rc = lock_verify(x->program, x->lock, LOCK_PLAN, NULL, NULL, err);
out:
    diag_release(&diag);
    free(grid);
    return rc;
}

/* ---- making ---- */

/* Without --with-host, host names become numbers. */
static int hide_hosts(const struct exporting *x, struct err *err)
{
    char *path = path_join(x->to, RECEIPT_PROVENANCE);
    int rc = hosts_hide(path, err);
    free(path);
    return rc;
}

/* Verifies the finished folder before it gets its name. */
static int verify_made(const struct exporting *x, struct export_made *made, struct err *err)
{
    const struct verify_spec spec = {.folder = x->to};
    struct verify_answer answer;
    int rc = receipt_verify(&spec, &answer);
    if (rc != 0) {
        (void)err_join(&answer.fault, err);
        const bool is_of_early =
            answer.verdict_is_early && strcmp(answer.fault.file, RECEIPT_VERDICT) == 0;
        rc = err_wrap(err, "the records in %s do not support its verdict%s", x->from,
                      is_of_early ? " (an earlier version finished it: export it with that)" : "");
    }
    made->verdict_is_early = answer.verdict_is_early;
    verify_answer_release(&answer);
    return rc;
}

/* The SHA-256 of SHA256SUMS, which identifies the whole receipt. */
static int digest_of_sums(const char *folder, char hex[DIGEST_HEX_SIZE], struct err *err)
{
    struct digest d;
    char *path = path_join(folder, RECEIPT_SUMS);
    int rc = digest_file(path, &d, NULL, err);
    if (rc == 0) {
        digest_hex(&d, hex);
    }
    free(path);
    return rc;
}

/* Gives tar and folder their names: both or neither. */
static int publish(const struct exporting *x, const struct export_made *made, struct err *err)
{
    struct file_writer w;
    struct wall_time time = {0};
    const cJSON *text = json_member(x->lock->json, "time");
    if (cJSON_IsString(text)) {
        (void)!clock_wall_parse(text->valuestring, &time);
    }
    struct err ignored;
    int rc = file_writer_open(&w, made->tar, 0644, err);
    if (rc != 0 || (rc = tar_write(x->to, path_name(made->folder), time, &w, err)) != 0 ||
        (rc = dir_publish(x->to, made->folder, false, err)) != 0) {
        goto out;
    }
    rc = file_writer_publish(&w, err);
    if (rc != 0 && dir_remove(made->folder, &ignored) != 0) {
        (void)err_wrap(err, "%s is left behind", made->folder);
    }
out:
    file_writer_release(&w);
    return rc;
}

/* All steps, in the temporary folder. */
static int make(struct exporting *x, struct export_made *made, struct err *err)
{
    if (copy_all(x, err) != 0 || pack_reused(x, err) != 0 || export_check_report(x, err) != 0 ||
        (!x->with_host && hide_hosts(x, err) != 0) || export_parts(x, err) != 0 ||
        verify_made(x, made, err) != 0 || digest_of_sums(x->to, made->sums, err) != 0) {
        return err->code;
    }
    return publish(x, made, err);
}

/* Makes the receipt in a folder beside the target, so that renaming it is atomic; removes it on
 * failure. */
static int make_in_place(struct exporting *x, struct export_made *made, struct err *err)
{
    char *temp = xasprintf("%s.XXXXXX", made->folder);
    char *parent = path_folder(made->folder);
    struct err ignored;
    int rc = dir_make(parent, 0755, err);
    if (rc != 0) {
        goto out;
    }
    if (mkdtemp(temp) == NULL) {
        rc = err_set_errno(err, errno, "make a folder beside %s", made->folder);
        goto out;
    }
    (void)chmod(temp, 0755); /* a receipt is made to be shown */
    x->to = temp;
    rc = make(x, made, err);
    if (rc != 0 && file_kind_at(temp) == FILE_FOLDER && dir_remove(temp, &ignored) != 0) {
        (void)err_wrap(err, "%s is left behind", temp);
    }
out:
    free(parent);
    free(temp);
    return rc;
}

/* An absolute path without "//" and "/./", for the lines that are printed. */
static char *tidy_path(const char *path)
{
    char *out = path_absolute(NULL, path);
    char *to = out;
    for (const char *from = out; *from != '\0';) {
        const size_t n = 1 + strcspn(from + 1, "/");
        const bool nowhere = n == 1 || (n == 2 && from[1] == '.');
        memmove(to, from, n);
        to += nowhere ? 0 : n;
        from += n;
    }
    *to = '\0';
    return out;
}

int receipt_export(const struct export_spec *spec, struct export_made *made, struct err *err)
{
    struct exporting x = {
        .from = spec->program_folder, .with_host = spec->with_host, .with_items = spec->with_items};
    *made = (struct export_made){0};
    x.imported = imported_is_folder(x.from);
    int rc = check_has_verdict(&x, err);
    if (rc == 0 && x.imported && x.with_items) {
        rc = err_set(err, ERR_REFUSED,
                     "%s is an imported program, which has no items of its own: export it without "
                     "--items",
                     x.from);
    }
    if (rc != 0 || (rc = load(&x, err)) != 0) {
        goto out;
    }
    char *id = lock_program_id(x.lock);
    char *out = tidy_path(spec->out);
    made->folder = xasprintf("%s/%s-receipt", out, id);
    made->tar = xasprintf("%s.tar", made->folder);
    free(out);
    free(id);
    /* an existing receipt may carry signatures that cannot be recreated */
    if (file_kind_at(made->folder) != FILE_ABSENT || file_kind_at(made->tar) != FILE_ABSENT) {
        rc = err_set(err, ERR_EXISTS,
                     "%s or its .tar is there: a receipt that may be signed is not replaced; -o "
                     "names another folder",
                     made->folder);
        goto out;
    }
    rc = make_in_place(&x, made, err);
out:
    lock_free(x.lock);
    program_free(x.program);
    return rc;
}

void export_made_release(struct export_made *made)
{
    free(made->folder);
    free(made->tar);
    *made = (struct export_made){0};
}
