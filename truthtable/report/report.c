/*
 * Writes a report: reads the model, computes instruments, builds the document once, renders it
 * three times, and adds the sums of every file. Files are written atomically, and the sums last, so
 * an interrupted report fails its own sums, or has none, instead of passing for a whole one.
 */
#include "truthtable/report/report.h"

#include <string.h>

#include "base/files/digest.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "truthtable/instruments/instruments.h"
#include "truthtable/report/document/render.h"
#include "truthtable/report/report_model.h"
#include "truthtable/report/sections/sections.h"

/* Only the owner may read a report until it is passed on. */
static int write_file(const char *folder, const char *name, const struct strbuf *text,
                      struct err *err)
{
    char *path = path_join(folder, name);
    int rc = file_write_atomic(path, text->buf, text->len, 0600, err);
    free(path);
    return rc;
}

/* One document for all renderings: they cannot disagree. */
static int write_pages(const struct report_model *m, const char *out, struct err *err)
{
    static const struct {
        const char *name;
        void (*render)(const struct doc *d, struct strbuf *out);
    } pages[] = {{LAYOUT_REPORT_MD, render_md},
                 {LAYOUT_REPORT_HTML, render_html},
                 {LAYOUT_REPORT_JSON, render_json}};
    struct doc doc;
    struct strbuf text = STRBUF_INIT;
    int rc = 0;
    doc_init(&doc);
    sections_build(&doc, m);
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(pages); i++) {
        strbuf_clear(&text);
        pages[i].render(&doc, &text);
        rc = write_file(out, pages[i].name, &text, err);
    }
    strbuf_release(&text);
    doc_release(&doc);
    return rc;
}

/* A file of the report: regular, not the sums themselves, not the leftover of an interrupted write.
 */
static bool belongs(const char *folder, const char *name)
{
    char *path = path_join(folder, name);
    bool regular = file_kind_at(path) == FILE_REGULAR;
    free(path);
    return regular && strcmp(name, LAYOUT_SUMS) != 0 && name[0] != '.' &&
           strstr(name, ".tmp") == NULL && strchr(name, '\n') == NULL;
}

/* A line as sha256sum prints it. */
static int add_sum(struct strbuf *sums, const char *folder, const char *name, struct err *err)
{
    struct digest digest;
    char hex[DIGEST_HEX_SIZE];
    char *path = path_join(folder, name);
    int rc = digest_file(path, &digest, NULL, err);
    free(path);
    if (rc == 0) {
        digest_hex(&digest, hex);
        strbuf_addf(sums, "%s  %s\n", hex, name);
    }
    return rc;
}

/* Over every file that belongs to the report, including those that the daemon wrote. */
static int write_sums(const char *out, struct err *err)
{
    struct name_list names = {0};
    struct strbuf sums = STRBUF_INIT;
    int rc = dir_list(out, &names, err);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        /* Leftovers of interrupted writes are not part of the report. */
        if (belongs(out, names.names[i])) {
            rc = add_sum(&sums, out, names.names[i], err);
        }
    }
    if (rc == 0) {
        rc = write_file(out, LAYOUT_SUMS, &sums, err);
    }
    strbuf_release(&sums);
    name_list_release(&names);
    return rc;
}

/* Computes the instruments before the pages, which show them. A failure is reported in the report
 * and stops nothing.
 */
static void add_instruments(struct report_model *m, const char *folder, const char *out)
{
    const struct instruments_input in = {.folder = folder,
                                         .program = m->program,
                                         .lock = m->lock,
                                         .verdict = m->verdict,
                                         .provenance = m->provenance,
                                         .amendments = m->amendments};
    struct err failed = {0};
    char *path = path_join(out, LAYOUT_INSTRUMENTS);
    /* In a child process: a fault there must not cost the report. */
    cJSON *told = instruments_compute_apart(&in, NULL);
    if (json_write_file(path, told, 0600, &failed) == 0) {
        report_model_set_instruments(m, told, NULL);
    } else {
        cJSON_Delete(told);
        report_model_set_instruments(m, NULL, failed.msg);
    }
    free(path);
}

/* `out` may be another folder: the program's own one is then only read. */
int report_write(const char *folder, const char *out, struct err *err)
{
    struct report_model model;
    char *to = out == NULL ? path_join(folder, LAYOUT_REPORT) : path_join(out, "");
    int rc = report_model_read(&model, folder, err);
    if (rc != 0 || (rc = out == NULL ? dir_make_below(folder, to, false, err)
                                     : dir_make(to, 0755, err)) != 0) {
        goto release;
    }
    report_losses_read(&model.losses, &model, folder, &model.arena);
    add_instruments(&model, folder, to);
    if ((rc = write_pages(&model, to, err)) == 0) {
        rc = write_sums(to, err);
    }
release:
    report_model_release(&model);
    free(to);
    return rc;
}
