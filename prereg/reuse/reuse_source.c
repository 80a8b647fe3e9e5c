/*
 * Opens a receipt for reuse. Every file that is read here is compared with SHA256SUMS, whose own
 * digest the lock pins, so that nothing can differ from what was verified. Of the records only what
 * matching needs is parsed; a result's text is parsed when it is taken.
 */
#include "prereg/reuse/reuse_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "prereg/amend/amendment.h"
#include "prereg/load/program_load.h"
#include "prereg/lock/imported.h"

#define SUMS_MAX    ((size_t)8 << 20)
#define RECORDS_MAX ((size_t)1 << 30)

int reuse_check_sum(const char *folder, const char *sums, const char *name, struct err *err)
{
    struct digest found;
    char hex[DIGEST_HEX_SIZE];
    char *path = path_join(folder, name);
    int rc = digest_file(path, &found, NULL, err);
    free(path);
    if (rc != 0) {
        return err_wrap(err, "the receipt's %.100s", name);
    }
    digest_hex(&found, hex);
    char *line = xasprintf("%s  %s\n", hex, name);
    const char *at = strstr(sums, line);
    const bool listed = at != NULL && (at == sums || at[-1] == '\n');
    free(line);
    return listed ? 0
                  : err_set(err, ERR_LOCK, "%.200s/%.100s is not what " LAYOUT_SUMS " says", folder,
                            name);
}

/* An amendment that changes what tasks do leaves open under which plan a result was made. */
static int check_amended(const struct lock *lock, struct err *err)
{
    static const char *const parts[] = {"data", "files", "solved", "environments"};
    static const char *const sections[] = {"factor", "stage", "data", "pin"};
    const cJSON *then = json_member(lock->json, "locked");
    bool same = true;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        same = same && json_equal(json_member(then, parts[i]), json_member(lock->locked, parts[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        same = same && json_equal(json_member(json_member(then, "plan"), sections[i]),
                                  json_member(lock->plan, sections[i]));
    }
    return same ? 0
                : err_set(err, ERR_INVALID,
                          "an amendment of its program changed what tasks do: which results were "
                          "made before it is not in the receipt");
}

/* Plan and lock, which must be those of an executed program that ran the workers it locked. */
static int read_plan(struct reuse_source *src, struct err *err)
{
    struct diag diag;
    char *grid = path_join(src->folder, LAYOUT_GRID);
    diag_init(&diag, grid);
    int rc = program_load(grid, &src->program, &diag, err);
    if (rc != 0 || (rc = lock_read_amended(src->folder, &src->lock, err)) != 0 ||
        (rc = lock_verify(src->program, src->lock, LOCK_PLAN, NULL, NULL, err)) != 0) {
        goto out;
    }
    if (imported_lock(src->lock)) {
        rc = err_set(err, ERR_INVALID, "its records are imported: nothing shows what was run");
    } else if (src->program->pin_workers_record) {
        rc = err_set(err, ERR_INVALID,
                     "it was locked with [pin] workers = \"record\": what ran may be another "
                     "worker than the lock's");
    } else if (src->lock->n_amendments > 0) {
        rc = check_amended(src->lock, err);
    }
out:
    diag_release(&diag);
    free(grid);
    return rc;
}

/* Keeps the line, and what matching needs of it. */
static int take_record(struct reuse_record *r, const char *text, size_t len, struct err *err)
{
    cJSON *o = NULL;
    const char *end = NULL;
    const char *hex = NULL;
    r->line = xstrndup(text, len);
    int rc = json_parse(text, len, &o, err);
    if (rc == 0 && (rc = json_get_string(o, "end", &end, err)) == 0) {
        (void)snprintf(r->end, sizeof(r->end), "%s", end);
        if (strcmp(end, "done") == 0 && (rc = json_get_string(o, "sha256", &hex, err)) == 0) {
            rc = digest_from_hex(hex, &r->text, err);
        }
    }
    cJSON_Delete(o);
    return rc;
}

static int read_records(struct reuse_source *src, struct err *err)
{
    const size_t n = program_n_tasks(src->program);
    struct reuse_pin *pins = NULL;
    struct strbuf text = STRBUF_INIT;
    char *path = path_join(src->folder, REUSE_RECORDS);
    src->records = xcalloc(n, sizeof(*src->records));
    int rc = reuse_pins(src->program, src->lock, &pins, err);
    rc = rc == 0 ? file_read(path, RECORDS_MAX, &text, err) : rc;
    size_t task = 0;
    for (const char *at = text.buf; rc == 0 && at != NULL && *at != '\0'; task++) {
        const size_t len = strcspn(at, "\n");
        if (task >= n) {
            rc = err_set(err, ERR_LOCK, "more lines than the %zu tasks of its plan", n);
        } else if ((rc = take_record(&src->records[task], at, len, err)) == 0) {
            src->records[task].reused = pins != NULL && pins[task].of != NULL;
        }
        at += len + (at[len] == '\n' ? 1 : 0);
    }
    if (rc == 0 && task != n) {
        rc = err_set(err, ERR_LOCK, "%zu lines, expected one for each of %zu tasks", task, n);
    }
    free(pins);
    free(path);
    strbuf_release(&text);
    return rc == 0 ? 0 : err_wrap(err, REUSE_RECORDS);
}

/* All files that are read: with amendments, their chain. */
static int check_sums(const struct reuse_source *src, const char *sums, struct err *err)
{
    static const char *const names[] = {LAYOUT_GRID, LAYOUT_LOCK, REUSE_RECORDS};
    struct name_list list = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(names); i++) {
        rc = reuse_check_sum(src->folder, sums, names[i], err);
    }
    char *amendments = path_join(src->folder, LAYOUT_AMENDMENTS);
    if (rc == 0 && file_kind_at(amendments) == FILE_FOLDER) {
        rc = dir_list(amendments, &list, err);
    }
    for (size_t i = 0; rc == 0 && i < list.n; i++) {
        char *name = path_join(LAYOUT_AMENDMENTS, list.names[i]);
        rc = reuse_check_sum(src->folder, sums, name, err);
        free(name);
    }
    name_list_release(&list);
    free(amendments);
    return rc;
}

int reuse_open(struct reuse_source *src, const char *folder, struct err *err)
{
    struct strbuf sums = STRBUF_INIT;
    char *path = path_join(folder, LAYOUT_SUMS);
    *src = (struct reuse_source){.folder = xstrdup(folder)};
    int rc = file_kind_at(folder) == FILE_REGULAR
                 ? err_set(err, ERR_INVALID, "expected a folder; extract the archive first: tar xf")
                 : file_read(path, SUMS_MAX, &sums, err);
    if (rc == ERR_NOT_FOUND) {
        rc = err_set(err, ERR_INVALID, "no receipt is there (no %s)", path);
    }
    if (rc == 0) {
        src->sums = digest_bytes(sums.buf, sums.len);
        rc = check_sums(src, sums.buf, err);
    }
    if (rc == 0 && (rc = read_plan(src, err)) == 0) {
        rc = read_records(src, err);
    }
    strbuf_release(&sums);
    free(path);
    return rc == 0 ? 0 : err_wrap(err, "reuse.receipt: %.150s", folder);
}

void reuse_close(struct reuse_source *src)
{
    for (size_t i = 0; src->records != NULL && i < program_n_tasks(src->program); i++) {
        free(src->records[i].line);
    }
    free(src->records);
    lock_free(src->lock);
    program_free(src->program);
    free(src->folder);
    *src = (struct reuse_source){0};
}
