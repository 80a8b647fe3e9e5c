/* Rebuilds each rerun file from the accepted results and from the results that it claims: all of
 * it follows but that claim, which is its writer's. Records are read a second time for this,
 * cell by cell, so that only one cell's results are in memory. */
#include <string.h>

#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "ctl/receipt/files.h"
#include "ctl/receipt/rerun_file.h"
#include "ctl/receipt/verify/verify_parts.h"

#define CLAIMS_MAX ((size_t)20) /* one sentence each */

/* One rerun file. */
struct of_cell {
    size_t cell;
    const char *file; /* its name in the receipt */
};

struct rerun_reading {
    struct verifying *v;
    struct of_cell *list; /* by cell, then by name */
    size_t n;
    size_t cap;
    size_t at;            /* the first whose cell has not been read */
    cJSON **results;      /* of the cell at hand, one a stage; NULL: not done */
    const cJSON **places; /* where they were made, as provenance.json has it */
};

/* ---- files by cell ---- */

/* Orders files by cell, then by name. */
static int by_cell(const void *a, const void *b)
{
    const struct of_cell *x = a;
    const struct of_cell *y = b;
    return x->cell != y->cell ? (x->cell < y->cell ? -1 : 1) : strcmp(x->file, y->file);
}

/* Adds a file with its cell, and lets go of its contents again. */
static int take_file(struct rerun_reading *r, const char *name)
{
    struct verifying *v = r->v;
    struct rerun_head head;
    cJSON *file = NULL;
    int rc = files_read_json(&v->files, name, &file, v->err);
    if (rc == 0 && rerun_file_head(file, &head, v->err) != 0) {
        rc = mismatch_code(v->err);
    }
    if (rc == 0) {
        size_t cell = program_find_cell(v->program, head.cell);
        ARRAY_GROW(r->list, r->n, r->cap);
        r->list[r->n++] = (struct of_cell){cell, name};
        rc = cell == INDEX_NONE
                 ? err_set(v->err, ERR_LOCK, "the plan has no cell \"%.80s\"", head.cell)
                 : 0;
    }
    cJSON_Delete(file);
    return rc;
}

/* Lists the rerun files with their cells, sorted by cell as the records are. */
static int list_files(struct rerun_reading *r)
{
    static const char prefix[] = LAYOUT_RERUNS "/";
    const struct receipt_files *files = &r->v->files;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < files->n; i++) {
        if (strncmp(files->items[i].name, prefix, sizeof(prefix) - 1) == 0) {
            rc = take_file(r, files->items[i].name);
        }
    }
    if (rc == 0 && r->n > 0) {
        qsort(r->list, r->n, sizeof(*r->list), by_cell);
    }
    return rc;
}

/* ---- one file ---- */

/* A rerun cannot precede the lock. */
static int check_time(struct verifying *v, const char *text)
{
    const cJSON *locked = json_member(v->lock->json, "time");
    struct wall_time time;
    struct wall_time lock;
    if (!clock_wall_parse(text, &time)) {
        return err_set(v->err, ERR_LOCK, "\"%.40s\" is not a time", text);
    }
    return cJSON_IsString(locked) && clock_wall_parse(locked->valuestring, &lock) &&
                   time.ms < lock.ms
               ? err_set(v->err, ERR_LOCK, "it ran before the plan was locked")
               : 0;
}

/* Whether the plan ever had that head. */
static bool is_head(const struct verifying *v, const char *head)
{
    const cJSON *a;
    if (strcmp(head, v->lock->root) == 0) {
        return true;
    }
    cJSON_ArrayForEach(a, v->history.amended)
    {
        const cJSON *its = json_member(a, "head");
        if (cJSON_IsString(its) && strcmp(its->valuestring, head) == 0) {
            return true;
        }
    }
    return false;
}

/* Adds one stage to the rebuilt file. *next is the first stage that may follow: stages are in
 * the plan's order. */
static int add_stage(struct rerun_reading *r, size_t cell, const cJSON *stage, size_t *next,
                     cJSON *expected)
{
    const int schema = (int)json_member(expected, "schema")->valuedouble;
    struct verifying *v = r->v;
    struct rerun_stage s = {0};
    char hex[DIGEST_HEX_SIZE];
    cJSON *again = NULL;
    cJSON *place = NULL;
    int rc = rerun_file_stage(stage, &s, &again, v->err) != 0 ? mismatch_code(v->err) : 0;
    if (rc != 0) {
        goto out;
    }
    const size_t i = program_find_stage(v->program, s.name);
    if (i == INDEX_NONE || i < *next) {
        rc = err_set(v->err, ERR_LOCK, "stage \"%.60s\" is none of the plan's, or out of its order",
                     s.name);
        goto out;
    }
    if (r->results[i] == NULL) {
        rc = err_set(v->err, ERR_LOCK, "%s of this cell has no accepted result", s.name);
        goto out;
    }
    if (!is_head(v, s.head)) {
        rc = err_set(v->err, ERR_LOCK, "%s: no plan of this program has the head %.16s", s.name,
                     s.head);
        goto out;
    }
    *next = i + 1;
    place = rerun_environment_of(r->places[i], schema);
    digest_hex(&v->history.tasks[cell * v->program->n_stages + i].result, hex);
    s.digest = hex;
    s.accepted = (struct rerun_side){r->results[i], place};
    rerun_file_add(expected, &s);
out:
    cJSON_Delete(place);
    cJSON_Delete(again);
    return rc;
}

/* Builds the file as it must be if its claimed results are true. */
static int make_again(struct rerun_reading *r, size_t cell, const cJSON *file, cJSON **expected)
{
    struct verifying *v = r->v;
    struct rerun_head head;
    const cJSON *stage;
    size_t next = 0;
    if (rerun_file_head(file, &head, v->err) != 0) {
        return mismatch_code(v->err);
    }
    int rc = check_time(v, head.time);
    head.program = v->program->name;
    head.root = v->lock->root;
    *expected = rerun_file_begin(&head);
    cJSON_ArrayForEach(stage, json_member(file, "stages"))
    {
        if (rc == 0) {
            rc = add_stage(r, cell, stage, &next, *expected);
        }
    }
    rerun_file_end(*expected, v->program);
    return rc;
}

/* The rebuilt file must have the bytes of the given one. */
static int compare(struct verifying *v, const cJSON *expected, const struct strbuf *found)
{
    struct strbuf text = STRBUF_INIT;
    int rc = json_pretty(expected, &text, v->err) != 0 ? mismatch_code(v->err) : 0;
    if (rc == 0) {
        strbuf_addc(&text, '\n');
        rc = mismatch_texts(v->err, &text, found);
    }
    strbuf_release(&text);
    return rc;
}

static const char *text_of(const cJSON *o, const char *key)
{
    const cJSON *m = json_member(o, key);
    return cJSON_IsString(m) ? m->valuestring : NULL;
}

/* Keeps what a file that follows claims, for the answer. */
static void tell(struct verifying *v, const char *name, const cJSON *file)
{
    cJSON *o = json_object();
    cJSON *differs = json_array();
    const cJSON *s;
    cJSON_ArrayForEach(s, json_member(file, "stages"))
    {
        if (!cJSON_IsTrue(json_member(s, "same"))) {
            json_push_string(differs, text_of(s, "stage"));
        }
    }
    json_put_string(o, "file", name);
    json_put_string(o, "cell", text_of(file, "cell"));
    json_put_string(o, "time", text_of(file, "time"));
    json_put_string(o, "claims", text_of(file, "level"));
    json_put(o, "differs", differs);
    json_put(o, "left_out", json_copy(json_member(file, "left_out")));
    json_push(v->reruns, o);
}

/* Rebuilds one file and compares it; only then is its claim reported. */
static int check_file(struct rerun_reading *r, const struct of_cell *of)
{
    struct verifying *v = r->v;
    struct strbuf text = STRBUF_INIT;
    cJSON *file = NULL;
    cJSON *expected = NULL;
    int rc = files_read(&v->files, of->file, &text, v->err);
    if (rc != 0) {
        goto out;
    }
    if (nodes_check(text.buf, text.len, v->err) != 0 ||
        json_parse(text.buf, text.len, &file, v->err) != 0) {
        rc = mismatch_code(v->err);
        goto out;
    }
    if ((rc = make_again(r, of->cell, file, &expected)) != 0 ||
        (rc = compare(v, expected, &text)) != 0) {
        goto out;
    }
    tell(v, of->file, expected);
out:
    cJSON_Delete(expected);
    cJSON_Delete(file);
    strbuf_release(&text);
    return rc;
}

/* ---- the accepted results ---- */

/* The accepted attempt's entry in provenance.json. */
static const cJSON *place_of(const struct verifying *v, size_t task, const cJSON *said)
{
    const cJSON *a;
    cJSON_ArrayForEach(a, json_member(said, "attempts"))
    {
        const cJSON *no = json_member(a, "no");
        if (cJSON_IsNumber(no) && no->valuedouble == (double)v->history.tasks[task].accepted) {
            return a;
        }
    }
    return NULL;
}

/* Reads the accepted result out of a line, which verify_records() has checked. */
static int take_result(struct rerun_reading *r, size_t stage, const char *text, size_t len)
{
    cJSON *line = NULL;
    int rc = json_parse(text, len, &line, r->v->err);
    const char *result = rc == 0 ? text_of(line, "result") : NULL;
    if (result != NULL) {
        rc = json_parse_lax(result, strlen(result), &r->results[stage], r->v->err);
    }
    cJSON_Delete(line);
    return rc == 0 ? 0 : mismatch_code(r->v->err);
}

/* Releases the results of the cell before. */
static void forget_cell(struct rerun_reading *r)
{
    for (size_t i = 0; i < r->v->program->n_stages; i++) {
        cJSON_Delete(r->results[i]);
        r->results[i] = NULL;
        r->places[i] = NULL;
    }
}

/* Takes one line of records.jsonl; with the last one of a cell, checks its files. */
static int take_line(struct rerun_reading *r, size_t task, const cJSON *said, const char *text,
                     size_t len)
{
    struct verifying *v = r->v;
    const size_t n_stages = v->program->n_stages;
    const size_t cell = task / n_stages;
    /* no rerun of this cell */
    if (cell != r->list[r->at].cell) {
        return 0;
    }
    r->places[task % n_stages] = place_of(v, task, said);
    int rc = take_result(r, task % n_stages, text, len);
    if (rc != 0 || task % n_stages + 1 < n_stages) {
        return rc;
    }
    while (rc == 0 && r->at < r->n && r->list[r->at].cell == cell) {
        rc = check_file(r, &r->list[r->at++]);
    }
    forget_cell(r);
    return rc;
}

/* Goes through records.jsonl and the tasks of provenance.json side by side, until the last file
 * is checked. */
static int read_records(struct rerun_reading *r)
{
    struct verifying *v = r->v;
    struct receipt_lines l;
    const char *text = NULL;
    size_t len = 0;
    const cJSON *tasks = json_member(v->provenance, "tasks");
    const cJSON *said = tasks == NULL ? NULL : tasks->child;
    int rc = lines_open(&l, &v->files, RECEIPT_RECORDS, RECEIPT_LINE_MAX, v->err);
    for (size_t task = 0; rc == 0 && r->at < r->n; task++) {
        rc = lines_next(&l, &text, &len, v->err);
        if (rc != 0 || text == NULL) {
            break;
        }
        rc = take_line(r, task, said, text, len);
        said = said == NULL ? NULL : said->next;
    }
    lines_release(&l);
    return rc;
}

/* ---- in words ---- */

/* One sentence under "claimed": the verifier has not seen the rerun. */
static void say_one(struct verifying *v, const cJSON *o)
{
    const cJSON *differs = json_member(o, "differs");
    const char *level = text_of(o, "claims");
    char *what = differs->child != NULL ? xasprintf("something else came out, first in %s",
                                                    differs->child->valuestring)
                 : level != NULL        ? xasprintf("the same came out in every stage (%s)", level)
                                        : xstrdup("the same came out as far as it went");
    char *text = xasprintf("%s: %s ran again at %s, and %s.", text_of(o, "file"),
                           text_of(o, "cell"), text_of(o, "time"), what);
    json_push_string(v->claimed, text);
    free(text);
    free(what);
}

/* The claims of all files, at most CLAIMS_MAX of them in words. */
static void say_all(struct verifying *v)
{
    const cJSON *o;
    size_t n = 0;
    cJSON_ArrayForEach(o, v->reruns)
    {
        if (n++ < CLAIMS_MAX) {
            say_one(v, o);
        }
    }
    if (n > CLAIMS_MAX) {
        char *text = xasprintf("%zu rerun files more (--json has all).", n - CLAIMS_MAX);
        json_push_string(v->claimed, text);
        free(text);
    }
}

int verify_reruns(struct verifying *v)
{
    struct rerun_reading r = {.v = v};
    if (v->imported) {
        return 0; /* has no such files */
    }
    r.results = xcalloc(v->program->n_stages, sizeof(*r.results));
    r.places = xcalloc(v->program->n_stages, sizeof(*r.places));
    int rc = list_files(&r);
    if (rc == 0 && r.n > 0) {
        rc = read_records(&r);
    }
    if (rc == 0) {
        say_all(v);
    }
    forget_cell(&r);
    free(r.places);
    free(r.results);
    free(r.list);
    return rc;
}
