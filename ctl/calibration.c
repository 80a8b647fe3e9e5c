/*
 * One row for each program from its folder, then sums over the rows. Scores (bits, Brier) come from
 * truthtable's scoring_*; what is decided here is what may be scored. A program's files may be
 * edited, so nothing is taken from verdict.json before it was tied to the lock and to the journal's
 * chain (of an executed program) or computed again from the records (of an imported one).
 */
#include "ctl/calibration.h"

#include <math.h>
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
#include "prereg/program/verdict_kind.h"
#include "state/journal/cursor.h"
#include "state/rows.h"
#include "truthtable/evaluate/scoring.h"
#include "truthtable/evaluate/verdict.h"
#include "truthtable/evaluate/verdict_file.h"

/* limits for files that may have been edited */

/* ---- one program ---- */

struct reading_of {
    const char *folder;
    struct lock *lock;
    cJSON *verdict; /* NULL: there is none yet */
    struct digest digest;
    cJSON *row;
};

/* A text member; "" when it is absent. */
static const char *text_of(const cJSON *o, const char *key)
{
    const cJSON *m = json_member(o, key);
    return cJSON_IsString(m) ? m->valuestring : "";
}

struct journal_claim {     /* what a journal says, as far as it was read */
    struct digest verdict; /* the last one named */
    bool has;              /* a verdict was named */
    bool bound;            /* the verdict's row was read: later amendments do not affect it */
    char head[DIGEST_HEX_SIZE];
    char verdict_head[DIGEST_HEX_SIZE];
};

/* Remembers the head and the digest of the verdict that a row names. */
static int read_row(void *ctx, const struct journal_row *row, struct err *err)
{
    struct journal_claim *c = ctx;
    const cJSON *line = row->line.json;
    const char *event = text_of(line, "event");
    const char *said = text_of(json_member(line, "status"), "verdict_digest");
    if (strcmp(event, row_kind_name(ROW_AMENDED)) == 0) {
        (void)snprintf(c->head, sizeof(c->head), "%s",
                       text_of(json_member(line, "amendment"), "head"));
    } else if (strcmp(event, row_kind_name(ROW_VERDICT)) == 0) {
        c->bound = true;
    }
    if (!c->bound) {
        memcpy(c->verdict_head, c->head, sizeof(c->head));
    }
    if (said[0] == '\0') {
        return 0;
    }
    c->has = true;
    return digest_from_hex(said, &c->verdict, err);
}

/* Reads the journal from its first row to its last, and fails at the first row that was edited,
 * removed or inserted. */
static int read_journal(const struct reading_of *r, struct journal_claim *c, struct err *err)
{
    struct journal_chain chain = {0};
    struct journal_cursor cursor;
    char *path = path_join(r->folder, LAYOUT_JOURNAL);
    *c = (struct journal_claim){0};
    memcpy(c->head, r->lock->root, sizeof(c->head));
    int rc = journal_cursor_open(&cursor, path, err);
    if (rc != 0) {
        goto out;
    }
    rc = journal_replay(&cursor, &chain, read_row, c, err);
    if (rc == 0 && journal_cursor_is_torn(&cursor)) {
        rc = err_set(err, ERR_LOCK, "the line has no end");
    }
    if (rc != 0) {
        rc = err_wrap(err, "journal.jsonl:%lld", (long long)chain.n_rows + 1);
    }
out:
    journal_cursor_release(&cursor);
    free(path);
    return rc;
}

/* Computes the outcome of an imported program again from the records beside its verdict. */
static int check_imported(const struct reading_of *r, struct err *err)
{
    char *grid = path_join(r->folder, LAYOUT_GRID);
    char *records = path_join(r->folder, LAYOUT_RECORDS);
    struct plan_program *p = NULL;
    struct diag diag;
    struct table_verdict v;
    diag_init(&diag, grid);
    int rc = program_load(grid, &p, &diag, err);
    if (rc != 0 || (rc = lock_verify(p, r->lock, LOCK_PLAN, NULL, NULL, err)) != 0 ||
        (rc = replay_run(p, r->lock->root, records, &v, err)) != 0) {
        goto out;
    }
    const char *outcome = text_of(verdict_summary(&v), "outcome");
    if (strcmp(text_of(r->verdict, "outcome"), outcome) != 0) {
        rc = err_set(err, ERR_LOCK, "verdict.json is not that of records.json, which is %.64s",
                     outcome);
    }
    verdict_release(&v);
out:
    program_free(p);
    diag_release(&diag);
    free(records);
    free(grid);
    return rc;
}

/* Ties the verdict to its lock. The head of an executed program's verdict is the one that held
 * when it was computed, because instruments may be amended after it. */
static int check_verdict(struct reading_of *r, bool executed, struct err *err)
{
    struct journal_claim chain;
    const char *head = r->lock->head;
    if (executed) {
        int rc = read_journal(r, &chain, err);
        if (rc != 0) {
            return rc;
        }
        /* an amendment's file was added or removed since */
        if (strcmp(chain.head, r->lock->head) != 0) {
            return err_set(err, ERR_LOCK, "the amendments are not those of the journal");
        }
        if (!chain.has || !digest_equal(&chain.verdict, &r->digest)) {
            return err_set(err, ERR_LOCK, "verdict.json is not the one that the journal ends with");
        }
        /* later amendments, of instruments, do not change the verdict's head */
        head = chain.verdict_head;
    }
    if (strcmp(text_of(r->verdict, "root"), r->lock->root) != 0 ||
        strcmp(text_of(r->verdict, "head"), head) != 0) {
        return err_set(err, ERR_LOCK, "verdict.json is not of this lock");
    }
    return executed ? 0 : check_imported(r, err);
}

/* Reads lock and verdict. A program without verdict.json has no verdict yet, which is not an
 * error. */
static int read_files(struct reading_of *r, bool executed, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    char *path = path_join(r->folder, LAYOUT_IN_REPORT(LAYOUT_VERDICT));
    int rc = lock_read_amended(r->folder, &r->lock, err);
    if (rc != 0) {
        goto out;
    }
    json_put_string(r->row, "program", text_of(json_member(r->lock->plan, "program"), "name"));
    json_put_string(r->row, "root", r->lock->root);
    if (file_kind_at(path) == FILE_ABSENT) {
        goto out;
    }
    if ((rc = file_read(path, LAYOUT_REPORT_MAX, &text, err)) != 0 ||
        (rc = json_parse(text.buf, text.len, &r->verdict, err)) != 0) {
        goto out;
    }
    r->digest = digest_bytes(text.buf, text.len);
    rc = check_verdict(r, executed, err);
out:
    strbuf_release(&text);
    free(path);
    return rc;
}

/* The status of a program that cannot be scored; of an unsound one also why. */
static const char *status_without_score(const struct reading_of *r, const char *outcome, bool sound)
{
    const enum verdict_kind kind = verdict_kind_of(outcome);
    if (kind != VERDICT_BOUND) {
        return verdict_kind_name(kind);
    }
    json_put_string(r->row, "why",
                    sound ? "the lock does not state the outcome of verdict.json"
                          : "the lock's priors are not probabilities of its outcomes");
    return "unverified";
}

/* Puts bits and Brier score of the outcome under the lock's priors, and every stated prior with
 * whether its outcome came. */
static const char *put_scores(const struct reading_of *r)
{
    const char *outcome = text_of(r->verdict, "outcome");
    const cJSON *outcomes = json_member(r->lock->plan, "outcome");
    const size_t n = (size_t)cJSON_GetArraySize(outcomes);
    double *priors = xcalloc(n + 1, sizeof(*priors));
    size_t hit = n;
    size_t i = 0;
    bool sound = true;
    cJSON *stated = json_array();
    const cJSON *o = NULL;
    cJSON_ArrayForEach(o, outcomes)
    {
        const cJSON *prior = json_member(o, "prior");
        priors[i] = cJSON_IsNumber(prior) ? prior->valuedouble : (double)NAN;
        /* a prior of 0 or 1 has no finite score */
        sound = sound && priors[i] > 0 && priors[i] < 1;
        hit = strcmp(o->string, outcome) == 0 ? i : hit;
        cJSON *one = json_object();
        json_put_number(one, "prior", priors[i]);
        json_put_bool(one, "held", hit == i);
        json_push(stated, one);
        i++;
    }
    /* hit == n: no outcome of the lock came */
    const double brier = scoring_prior_brier(priors, n, hit);
    sound = sound && isfinite(brier);
    const bool bound = sound && hit < n;
    if (bound) {
        json_put_number(r->row, "prior", priors[hit]);
        json_put_number(r->row, "bits", scoring_bits(priors[hit]));
        json_put_number(r->row, "brier", brier);
        json_put(r->row, "stated", stated);
    } else {
        cJSON_Delete(stated);
    }
    free(priors);
    return bound ? "scored" : status_without_score(r, outcome, sound);
}

/* The truth of a forecast as prereg-report computed it; NULL when the report's forecast has
 * another condition or confidence than the plan's. */
static const cJSON *forecast_told(const cJSON *file, const cJSON *stated)
{
    const cJSON *f = NULL;
    cJSON_ArrayForEach(f, json_member(file, "forecasts"))
    {
        if (strcmp(text_of(f, "name"), stated->string) == 0) {
            const bool same =
                strcmp(text_of(f, "condition"), text_of(stated, "condition")) == 0 &&
                json_equal(json_member(f, "confidence"), json_member(stated, "confidence"));
            return same ? f : NULL;
        }
    }
    return NULL;
}

/* Puts every forecast of the plan with its truth, which is null without a report for this root:
 * a missing file must not make a forecast disappear. */
static void put_forecasts(const struct reading_of *r)
{
    struct err err = {0};
    cJSON *file = NULL;
    cJSON *list = json_array();
    char *path = path_join(r->folder, LAYOUT_IN_REPORT(LAYOUT_INSTRUMENTS));
    int rc = json_read_file(path, LAYOUT_REPORT_MAX, &file, &err);
    if (rc == 0 && strcmp(text_of(file, "root"), r->lock->root) != 0) {
        rc = err_set(&err, ERR_LOCK, "instruments.json is not of this lock");
    }
    const cJSON *stated = NULL;
    cJSON_ArrayForEach(stated, json_member(r->lock->plan, "forecast"))
    {
        const cJSON *told = rc == 0 ? forecast_told(file, stated) : NULL;
        const cJSON *outcome = json_member(told, "outcome");
        cJSON *one = json_object();
        json_put_string(one, "name", stated->string);
        json_put(one, "confidence", json_copy(json_member(stated, "confidence")));
        json_put(one, "outcome", outcome == NULL ? cJSON_CreateNull() : json_copy(outcome));
        json_put_bool(one, "post_hoc", cJSON_IsTrue(json_member(told, "post_hoc")));
        json_push(list, one);
    }
    json_put_string(r->row, "forecasts_why", rc != 0 && list->child != NULL ? err.msg : NULL);
    json_put(r->row, "forecasts", list);
    cJSON_Delete(file);
    free(path);
}

/* A folder that cannot be verified is a row with the reason, never an error. */
cJSON *calibration_program(const char *folder)
{
    struct reading_of r = {.folder = folder, .row = json_object()};
    struct err err = {0};
    const bool executed = !imported_is_folder(folder);
    const char *status = "no verdict";
    json_put_string(r.row, "folder", folder);
    json_put_string(r.row, "history", executed ? "executed" : "imported");
    if (read_files(&r, executed, &err) != 0) {
        status = "unverified";
        json_put_string(r.row, "why", err.msg);
    } else if (r.verdict != NULL) {
        json_put_string(r.row, "outcome", text_of(r.verdict, "outcome"));
        status = put_scores(&r);
        put_forecasts(&r);
        if (!executed && imported_lock(r.lock)) {
            json_put_string(r.row, "why", "locked at import: no pre-registration");
        }
    }
    if (r.lock != NULL) {
        const char *old = text_of(json_member(r.lock->plan, "program"), "supersedes");
        json_put_string(r.row, "supersedes", old[0] == '\0' ? NULL : old);
    }
    json_put_string(r.row, "status", status);
    cJSON_Delete(r.verdict);
    lock_free(r.lock);
    return r.row;
}

/* ---- all of them ---- */

/* Forecasts, or priors, of about the same confidence: their number, how many held, the sum of
 * confidences. */
struct bin {
    size_t n;
    size_t held;
    double said;
};

/* Bins are [from, to), the last one includes 1. */
static void bin_add(struct bin *bins, double said, bool held)
{
    size_t i = said >= 1 ? CALIBRATION_BINS - 1 : (size_t)(said * CALIBRATION_BINS);
    bins[i].n++;
    bins[i].held += held ? 1 : 0;
    bins[i].said += said;
}

/* Means of empty bins are null. */
static cJSON *bins_json(const struct bin *bins)
{
    cJSON *list = json_array();
    for (size_t i = 0; i < CALIBRATION_BINS; i++) {
        cJSON *o = json_object();
        json_put_number(o, "from", (double)i / CALIBRATION_BINS);
        json_put_number(o, "to", (double)(i + 1) / CALIBRATION_BINS);
        json_put_int(o, "n", (int64_t)bins[i].n);
        json_put_int(o, "held", (int64_t)bins[i].held);
        json_put_number(o, "said", bins[i].n == 0 ? (double)NAN : bins[i].said / (double)bins[i].n);
        json_put_number(o, "share",
                        bins[i].n == 0 ? (double)NAN : (double)bins[i].held / (double)bins[i].n);
        json_push(list, o);
    }
    return list;
}

/* Replaces the status of a row. */
static void set_status(cJSON *row, const char *status)
{
    cJSON_DeleteItemFromObjectCaseSensitive(row, "status");
    json_put_string(row, "status", status);
}

/* Marks programs that another one supersedes. A scored program stays scored: a successor takes
 * back no outcome. One without a verdict has been replaced by its successor. */
static void mark_superseded(cJSON *rows)
{
    cJSON *row = NULL;
    cJSON_ArrayForEach(row, rows)
    {
        const cJSON *by = NULL;
        const cJSON *found = NULL;
        cJSON_ArrayForEach(by, rows)
        {
            const char *old = text_of(by, "supersedes");
            const bool named = old[0] != '\0' && strcmp(old, text_of(row, "root")) == 0;
            found = by != row && named ? by : found;
        }
        json_put_string(row, "superseded_by", found == NULL ? NULL : text_of(found, "program"));
        if (found != NULL && strcmp(text_of(row, "status"), "no verdict") == 0) {
            set_status(row, "superseded");
        }
    }
}

static bool is(const cJSON *row, const char *status)
{
    return strcmp(text_of(row, "status"), status) == 0;
}

/* Whether the row's forecasts count: the program came to its end, with or without an outcome. */
static bool counts(const cJSON *row)
{
    return is(row, "scored") || is(row, verdict_kind_name(VERDICT_INDETERMINATE));
}

/* Marks rows whose root was counted before: the same plan, or the same folder given twice, is
 * scored once. */
static void mark_repeated(cJSON *rows)
{
    cJSON *row = NULL;
    cJSON_ArrayForEach(row, rows)
    {
        const char *root = text_of(row, "root");
        const cJSON *before = rows->child;
        while (before != row &&
               (root[0] == '\0' || !counts(before) || strcmp(root, text_of(before, "root")) != 0)) {
            before = before->next;
        }
        if (before != row && counts(row)) {
            set_status(row, "repeated");
        }
    }
}

struct calibration_score {
    size_t n;
    double bits;
    double brier;
};

/* Sum and mean of the scores; means of nothing are null. */
static cJSON *score_json(const struct calibration_score *s, const struct bin *bins)
{
    const double n = (double)s->n;
    cJSON *o = json_object();
    json_put_int(o, "scored", (int64_t)s->n);
    json_put_number(o, "bits", s->bits);
    json_put_number(o, "mean_bits", s->n == 0 ? (double)NAN : s->bits / n);
    json_put_number(o, "mean_brier", s->n == 0 ? (double)NAN : s->brier / n);
    json_put(o, "bins", bins_json(bins));
    return o;
}

/* Scores the forecasts that have a truth and were not made post hoc; returns how many were
 * stated. */
static size_t add_forecasts(const cJSON *row, struct calibration_score *s, struct bin *bins)
{
    const cJSON *f = NULL;
    size_t stated = 0;
    cJSON_ArrayForEach(f, json_member(row, "forecasts"))
    {
        const cJSON *confidence = json_member(f, "confidence");
        const cJSON *outcome = json_member(f, "outcome");
        stated++;
        if (!cJSON_IsBool(outcome) || !cJSON_IsNumber(confidence) ||
            !(confidence->valuedouble > 0 && confidence->valuedouble < 1) ||
            cJSON_IsTrue(json_member(f, "post_hoc"))) {
            continue;
        }
        const bool held = cJSON_IsTrue(outcome);
        s->n++;
        s->bits += scoring_forecast_bits(confidence->valuedouble, held);
        s->brier += scoring_forecast_brier(confidence->valuedouble, held);
        bin_add(bins, confidence->valuedouble, held);
    }
    return stated;
}

/* Superseded and repeated rows are marked first, because marks decide what counts. */
cJSON *calibration_sum(cJSON *rows)
{
    struct calibration_score outcomes = {0};
    struct calibration_score forecasts = {0};
    struct bin of_priors[CALIBRATION_BINS] = {0};
    struct bin of_forecasts[CALIBRATION_BINS] = {0};
    size_t n_stated = 0;
    const cJSON *row = NULL;
    mark_superseded(rows);
    mark_repeated(rows);
    cJSON_ArrayForEach(row, rows)
    {
        const cJSON *one = NULL;
        if (counts(row)) {
            n_stated += add_forecasts(row, &forecasts, of_forecasts);
        }
        if (!is(row, "scored")) {
            continue;
        }
        outcomes.n++;
        outcomes.bits += json_member(row, "bits")->valuedouble;
        outcomes.brier += json_member(row, "brier")->valuedouble;
        cJSON_ArrayForEach(one, json_member(row, "stated"))
        {
            bin_add(of_priors, json_member(one, "prior")->valuedouble,
                    cJSON_IsTrue(json_member(one, "held")));
        }
    }
    cJSON *answer = json_object();
    cJSON *said = score_json(&forecasts, of_forecasts);
    json_put_int(said, "stated", (int64_t)n_stated);
    json_put(answer, "programs", rows);
    json_put(answer, "priors", score_json(&outcomes, of_priors));
    json_put(answer, "forecasts", said);
    return answer;
}
