/*
 * remove: a user gives up the cells of a program that has its verdict. preregctl has verified a
 * receipt before it asks, or was asked for none; the row says which. What another program
 * reads is found here, off the loop: paths of [data], [pin] and apparatus models are resolved.
 */
#include <stdlib.h>
#include <string.h>

#include "base/files/digest.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/answers/answer.h"

#define RECEIPT_TEXT_MAX ((size_t)300) /* of its path, in the row */
#define REASON_MAX       ((size_t)500)

struct read_path { /* a path that a program reads, and which program */
    char *id;
    char *path;
};

struct remove_job {
    struct job job;
    struct shell *shell;
    uint64_t connection;
    struct hosted *hosted;
    char *text;
    char *cells;
    struct read_path *readings; /* of the other programs */
    size_t n;
    size_t cap;
    int rc;
    struct err err;
};

static bool is_inside(const char *path, const char *folder)
{
    const size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static void on_look(struct job *job)
{
    struct remove_job *j = (struct remove_job *)job;
    char *cells = realpath(j->cells, NULL);
    for (size_t i = 0; cells != NULL && j->rc == 0 && i < j->n; i++) {
        char *real = realpath(j->readings[i].path, NULL);
        if (real != NULL && is_inside(real, cells)) {
            j->rc = err_set(&j->err, ERR_REFUSED,
                            "%.80s reads %.120s of its cells: they are not removed",
                            j->readings[i].id, path_name(real));
        }
        free(real);
    }
    free(cells);
}

static void note_path(struct remove_job *j, const struct hosted *h, const char *path)
{
    if (path != NULL) {
        ARRAY_GROW(j->readings, j->n, j->cap);
        j->readings[j->n++] = (struct read_path){
            .id = xstrdup(h->id), .path = path_absolute(h->bundle->program->folder, path)};
    }
}

/* A program whose own cells were removed reads nothing any more. */
static void note_readings(struct remove_job *j)
{
    for (size_t i = 0; i < j->shell->cap_programs; i++) {
        const struct hosted *h = j->shell->programs[i];
        if (h == NULL || h == j->hosted || h->status.removed) {
            continue;
        }
        const struct plan_program *p = h->bundle->program;
        for (size_t k = 0; k < p->n_data; k++) {
            note_path(j, h, p->data[k].abs_path);
        }
        for (size_t k = 0; k < p->n_pin_files; k++) {
            note_path(j, h, p->pin_files[k]);
        }
        for (size_t k = 0; k < p->n_apparatus; k++) {
            note_path(j, h, p->apparatus[k].model);
        }
        for (size_t k = 0; k < p->n_stages; k++) {
            note_path(j, h, p->stages[k].environment_path);
        }
    }
}

static void on_looked(struct job *job)
{
    struct remove_job *j = (struct remove_job *)job;
    cJSON *result = NULL;
    if (!j->shell->stopping) {
        struct core_event ev = {.kind = CORE_REMOVE, .program = j->hosted->no, .text = j->text};
        const bool already = j->hosted->status.removed;
        int rc = j->rc == 0 ? pump_request(j->shell->pump, &ev, &j->err) : j->rc;
        if (rc == 0) {
            result = json_object();
            json_put_string(result, "program", j->hosted->id);
            json_put_bool(result, "removed", true);
            json_put_bool(result, "already", already);
        }
        answer_later(j->shell, j->connection, result, rc == 0 ? NULL : &j->err);
    }
    cJSON_Delete(result);
    for (size_t i = 0; i < j->n; i++) {
        free(j->readings[i].id);
        free(j->readings[i].path);
    }
    free(j->readings);
    free(j->cells);
    free(j->text);
    free(j);
}

/* What the row says: which receipt was kept, or that none was, and why. */
static int make_text(const cJSON *params, char **text, struct err *err)
{
    const char *receipt = NULL;
    const char *sums = NULL;
    const char *reason = NULL;
    bool lose = false;
    struct digest digest;
    if (json_opt_string(params, "receipt", &receipt, err) != 0 ||
        json_opt_string(params, "sums", &sums, err) != 0 ||
        json_opt_string(params, "reason", &reason, err) != 0 ||
        json_opt_bool(params, "lose", &lose, err) != 0) {
        return err->code;
    }
    if ((receipt != NULL && strlen(receipt) > RECEIPT_TEXT_MAX) ||
        (reason != NULL && strlen(reason) > REASON_MAX)) {
        return err_set(err, ERR_USAGE, "a receipt's path has at most %zu bytes, a reason %zu",
                       RECEIPT_TEXT_MAX, REASON_MAX);
    }
    if (receipt == NULL && !lose) {
        return err_set(err, ERR_USAGE, "\"receipt\" with \"sums\", or \"lose\": true, is missing");
    }
    if (receipt != NULL && (sums == NULL || digest_from_hex(sums, &digest, err) != 0)) {
        return err_set(err, ERR_USAGE, "\"sums\" is not the SHA-256 of the receipt's SHA256SUMS");
    }
    const char *between = reason == NULL ? "" : "; ";
    *text = receipt == NULL
                ? xasprintf("without a receipt%s%s", between, reason == NULL ? "" : reason)
                : xasprintf("receipt %s, SHA-256 of SHA256SUMS %s%s%s", receipt, sums, between,
                            reason == NULL ? "" : reason);
    return 0;
}

int answer_remove(struct answer_context *ctx, const cJSON *params, cJSON **result, struct err *err)
{
    struct hosted *h = NULL;
    char *text = NULL;
    (void)result;
    int rc = answer_find_named(ctx->shell, params, &h, err);
    if (rc == 0) {
        rc = make_text(params, &text, err);
    }
    if (rc == 0 && h->report_running) {
        rc = err_set(err, ERR_REFUSED, "its report is being written: ask again");
    }
    if (rc != 0) {
        free(text);
        return rc;
    }
    struct remove_job *j = xcalloc(1, sizeof(*j));
    *j = (struct remove_job){.job = {.work = on_look, .done = on_looked},
                             .shell = ctx->shell,
                             .connection = ctx->call->connection,
                             .hosted = h,
                             .text = text,
                             .cells = path_join(h->folder, LAYOUT_CELLS)};
    note_readings(j);
    ctx->call->later = true;
    job_start(&ctx->shell->loop, &j->job);
    return 0;
}
