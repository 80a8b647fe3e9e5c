/* A forger who makes everything anew that follows from what he changed: the chain, its head where
 * coverage, provenance and statement name it, the verdict's digest in the journal, subjects and
 * sums. What he is found by is named; what nothing can find is told of every receipt. */
/* cmocka.h wants those four before it */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/digest.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/export.h"
#include "ctl/receipt/layout.h"
#include "ctl/receipt/verify/verify.h"
#include "ctl/receipt/verify/verify_parts.h"
#include "tests/unit/check.h"
#include "tests/unit/ctl/receipt/fixture.h"
#include "tests/unit/ctl/receipt/forger.h"
#include "tests/unit/scratch.h"

#define TEXT_MAX ((size_t)1 << 24)

static const char *const NAMES[] = {RECEIPT_JOURNAL,    RECEIPT_RECORDS,  RECEIPT_ENVIRONMENT,
                                    RECEIPT_PROVENANCE, RECEIPT_COVERAGE, RECEIPT_VERDICT,
                                    RECEIPT_STATEMENT,  RECEIPT_SUMS};

struct world {
    char *folder;
    char *program;
    struct export_made made;
    struct strbuf was[ARRAY_LEN(NAMES)];
};

static char *path_of(const struct world *w, const char *name)
{
    return path_join(w->made.folder, name);
}

static void read_file(const struct world *w, const char *name, struct strbuf *out)
{
    struct err err;
    char *path = path_of(w, name);
    strbuf_clear(out);
    assert_int_equal(file_read(path, TEXT_MAX, out, &err), 0);
    free(path);
}

static void write_file(const struct world *w, const char *name, const struct strbuf *text)
{
    struct err err;
    char *path = path_of(w, name);
    assert_int_equal(file_write_atomic(path, text->buf, text->len, 0644, &err), 0);
    free(path);
}

static int set_up(void **state)
{
    static const struct fixture f = {.n_seeds = 2, .n_evals = 1, .n_metrics = 1};
    struct world *w = xcalloc(1, sizeof(*w));
    struct err err = {0};
    w->folder = scratch_make();
    char *out = path_join(w->folder, "out");
    int rc = fixture_make(&f, w->folder, &w->program, &err);
    rc = rc == 0 ? receipt_export(&(struct export_spec){.program_folder = w->program, .out = out},
                                  &w->made, &err)
                 : rc;
    if (rc != 0) {
        print_error("%s\n", err.msg);
    }
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(NAMES); i++) {
        read_file(w, NAMES[i], &w->was[i]);
    }
    free(out);
    *state = w;
    return rc;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    scratch_remove(w->folder);
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        strbuf_release(&w->was[i]);
    }
    export_made_release(&w->made);
    free(w->program);
    free(w);
    return 0;
}

/* ---- changing ---- */

/* The n-th, from 1; 0: all. How many were. */
static size_t replace(struct strbuf *text, const char *from, const char *to, size_t nth)
{
    struct strbuf out = STRBUF_INIT;
    const char *at = text->buf;
    size_t n = 0;
    for (const char *next; (next = strstr(at, from)) != NULL; at = next + strlen(from)) {
        n++;
        strbuf_add(&out, at, (size_t)(next - at));
        strbuf_adds(&out, nth == 0 || nth == n ? to : from);
    }
    strbuf_adds(&out, at);
    strbuf_release(text);
    *text = out;
    return n;
}

static void replace_in(const struct world *w, const char *name, const char *from, const char *to)
{
    struct strbuf text = STRBUF_INIT;
    read_file(w, name, &text);
    (void)replace(&text, from, to, 0);
    write_file(w, name, &text);
    strbuf_release(&text);
}

/* The last but n-th line, from 0, and the one after change places. */
static void swap_lines(struct strbuf *text, size_t n)
{
    size_t ends[64];
    size_t n_lines = 0;
    struct strbuf out = STRBUF_INIT;
    for (size_t i = 0; i < text->len; i++) {
        if (text->buf[i] == '\n') {
            assert_true(n_lines < ARRAY_LEN(ends));
            ends[n_lines++] = i + 1;
        }
    }
    assert_true(n_lines > n + 1 && n > 0);
    const size_t a = ends[n_lines - n - 2];
    const size_t b = ends[n_lines - n - 1];
    const size_t c = ends[n_lines - n];
    strbuf_add(&out, text->buf, a);
    strbuf_add(&out, text->buf + b, c - b);
    strbuf_add(&out, text->buf + a, b - a);
    strbuf_add(&out, text->buf + c, text->len - c);
    strbuf_release(text);
    *text = out;
}

struct edit {
    const char *file;
    const char *from; /* NULL: `to` is put to the end, or lines change places */
    const char *to;
    size_t nth;
};

struct forgery {
    const char *name;
    struct edit edits[6];
    const char *where; /* NULL: it follows */
    const char *what;
};

static void apply(const struct world *w, const struct forgery *f)
{
    for (size_t i = 0; i < ARRAY_LEN(f->edits) && f->edits[i].file != NULL; i++) {
        const struct edit *e = &f->edits[i];
        struct strbuf text = STRBUF_INIT;
        read_file(w, e->file, &text);
        if (e->from != NULL) {
            const size_t n = replace(&text, e->from, e->to, e->nth);
            if (n == 0 || n < e->nth) {
                print_error("%s: %s has no %s\n", f->name, e->file, e->from);
            }
            assert_true(n > 0 && n >= e->nth);
        } else if (e->to != NULL) {
            strbuf_adds(&text, e->to);
        } else {
            swap_lines(&text, e->nth);
        }
        write_file(w, e->file, &text);
        strbuf_release(&text);
    }
}

/* ---- what follows ---- */

static void hex_of(const struct strbuf *text, char hex[DIGEST_HEX_SIZE])
{
    const struct digest d = digest_bytes(text->buf, text->len);
    digest_hex(&d, hex);
}

static const char *hash_in(const char *line)
{
    const char *at = strstr(line, "\"hash\":\"");
    assert_non_null(at);
    return at + 8;
}

/* The head that each row had, where the other files name it. */
static void forge_heads(const struct world *w, const char *was, const char *is)
{
    static const char *const files[] = {RECEIPT_COVERAGE, RECEIPT_PROVENANCE, RECEIPT_STATEMENT};
    while (was != NULL && *was != '\0' && is != NULL && *is != '\0') {
        char a[DIGEST_HEX_SIZE];
        char b[DIGEST_HEX_SIZE];
        (void)snprintf(a, sizeof(a), "%s", hash_in(was));
        (void)snprintf(b, sizeof(b), "%s", hash_in(is));
        for (size_t i = 0; i < ARRAY_LEN(files); i++) {
            replace_in(w, files[i], a, b);
        }
        was = strchr(was, '\n');
        is = strchr(is, '\n');
        was = was == NULL ? NULL : was + 1;
        is = is == NULL ? NULL : is + 1;
    }
}

static void forge_all(const struct world *w)
{
    struct strbuf verdict = STRBUF_INIT;
    struct strbuf journal = STRBUF_INIT;
    struct err err;
    char was[DIGEST_HEX_SIZE];
    char is[DIGEST_HEX_SIZE];
    hex_of(&w->was[5], was);
    read_file(w, RECEIPT_VERDICT, &verdict);
    hex_of(&verdict, is);
    read_file(w, RECEIPT_JOURNAL, &journal);
    (void)replace(&journal, was, is, 0);
    if (strstr(journal.buf, "\r\n") == NULL) {
        forge_chain(&journal);
    }
    write_file(w, RECEIPT_JOURNAL, &journal);
    forge_heads(w, w->was[0].buf, journal.buf);
    assert_int_equal(forge_sums(w->made.folder, &err), 0);
    strbuf_release(&verdict);
    strbuf_release(&journal);
}

static void restore(const struct world *w)
{
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        CHECK_ROW("%s", NAMES[i]);
        write_file(w, NAMES[i], &w->was[i]);
    }
}

/* ---- the forgeries ---- */

#define AMENDED(level)                                                                             \
    "\"amendment\":{\"head\":"                                                                     \
    "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\",\"level\":\"" level      \
    "\",\"number\":1},\"event\":\"amended\""

#define OPENED                                                                                     \
    "\"status\":{\"paused\":0,\"reported\":false,\"unblinded\":false,\"unsealed\":true,"           \
    "\"verdict\":false}"
#define READY_AGAIN                                                                                \
    OPENED ",\"task\":{\"attempts\":1,\"best_checkpoint\":-1,\"best_done\":-1,\"cause\":\"\","     \
           "\"cell\":\"arch=moe,seed=2\",\"crashes\":0,\"ending\":\"\",\"from\":\"blocked\","      \
           "\"idle\":0,"                                                                           \
           "\"index\":7,\"no_space\":0,\"not_before_ms\":0,\"spent\":0,\"stage\":\"e0\","          \
           "\"state\":\"ready\"}"

static const struct forgery forgeries[] = {
    {"a counted task tried again after its scores were open",
     {{RECEIPT_JOURNAL, "\"event\":\"paused\"", "\"event\":\"task_retried\"", 0},
      {RECEIPT_JOURNAL, OPENED, READY_AGAIN, 2}},
     RECEIPT_JOURNAL,
     "is tried again after its scores could be seen"},
    {"a task that nobody tried again, and that is said to have been revived",
     {{RECEIPT_JOURNAL, "\"event\":\"unsealed\"", "\"event\":\"task_revived\"", 0},
      {RECEIPT_JOURNAL, OPENED, READY_AGAIN, 1}},
     RECEIPT_JOURNAL,
     "was not paused for failures"},
    {"attempts that started before the lock",
     {{RECEIPT_JOURNAL, "\"started\":\"20", "\"started\":\"19", 0},
      {RECEIPT_PROVENANCE, "\"started\": \"20", "\"started\": \"19", 0},
      {RECEIPT_ENVIRONMENT, "\"started\":\"20", "\"started\":\"19", 0}},
     RECEIPT_JOURNAL,
     "attempt.started is before the lock's time"},
    {"an attempt that ends with another start",
     {{RECEIPT_JOURNAL, "\"started\":\"20", "\"started\":\"29", 2},
      {RECEIPT_PROVENANCE, "\"started\": \"20", "\"started\": \"29", 1},
      {RECEIPT_ENVIRONMENT, "\"started\":\"20", "\"started\":\"29", 1}},
     RECEIPT_JOURNAL,
     "attempt.started"},
    {"scores that no row opened",
     {{RECEIPT_JOURNAL, "\"event\":\"unsealed\"", "\"event\":\"resumed\"", 0}},
     RECEIPT_JOURNAL,
     "status.unsealed: no row says"},
    {"an unblinding that unblinds nothing",
     {{RECEIPT_JOURNAL, "\"event\":\"reported\"", "\"event\":\"unblinded\"", 0}},
     RECEIPT_JOURNAL,
     "a row \"unblinded\" whose status is not"},
    {"a report that nobody told of",
     {{RECEIPT_JOURNAL, "\"reported\":false", "\"reported\":true", 0}},
     RECEIPT_JOURNAL,
     "status.reported: no row says"},
    {"scores opened twice",
     {{RECEIPT_JOURNAL, "\"event\":\"paused\"", "\"event\":\"unsealed\"", 0}},
     RECEIPT_JOURNAL,
     "a second row \"unsealed\""},
    {"cells removed, and not",
     {{RECEIPT_JOURNAL, "\"event\":\"paused\"", "\"event\":\"removed\"", 0}},
     RECEIPT_JOURNAL,
     "a row \"removed\" whose status is not"},
    {"scores opened before the last was in",
     {{RECEIPT_JOURNAL, NULL, NULL, 4}},
     RECEIPT_JOURNAL,
     "scores are opened while counted task"},
    {"an amendment after the scores that says nothing had run",
     {{RECEIPT_JOURNAL, "\"event\":\"paused\"", AMENDED("nothing_run"), 0}},
     RECEIPT_JOURNAL,
     "amendment.level"},
    {"an amendment that no file tells of",
     {{RECEIPT_JOURNAL, "\"event\":\"paused\"", AMENDED("seen"), 0}},
     RECEIPT_JOURNAL,
     "tells of amendment 1"},
    {"an amendment in another row",
     {{RECEIPT_JOURNAL, "\"event\":\"paused\"",
       "\"amendment\":{\"level\":\"seen\",\"number\":1},\"event\":\"paused\"", 0}},
     RECEIPT_JOURNAL,
     "is not what a row says of one"},
    {"a verdict with a number written otherwise",
     {{RECEIPT_VERDICT, "\"schema\": 1", "\"schema\": 1.0", 0}},
     RECEIPT_VERDICT,
     "other bytes"},
    {"a verdict with lines as Windows ends them",
     {{RECEIPT_VERDICT, "\n", "\r\n", 0}},
     RECEIPT_VERDICT,
     "other bytes"},
    {"a journal with such lines",
     {{RECEIPT_JOURNAL, "\n", "\r\n", 0}},
     RECEIPT_JOURNAL,
     "is not in the form"},
    {"sums with such lines", {{RECEIPT_SUMS, "\n", "\r\n", 0}}, RECEIPT_SUMS, ""},
    {"more after the verdict", {{RECEIPT_VERDICT, NULL, "{}\n", 0}}, RECEIPT_VERDICT, ""},
    {"more after the provenance", {{RECEIPT_PROVENANCE, NULL, "[]", 0}}, RECEIPT_PROVENANCE, ""},
    {"an empty line after the coverage",
     {{RECEIPT_COVERAGE, NULL, "\n", 0}},
     RECEIPT_COVERAGE,
     "other bytes"},
    {"a key twice in the provenance",
     {{RECEIPT_PROVENANCE, "\"history\": \"verified\"",
       "\"history\": \"verified\", \"history\": \"verified\"", 0}},
     RECEIPT_PROVENANCE,
     "is duplicated"},
    {"a key twice in a record",
     {{RECEIPT_RECORDS, "\"end\":\"done\"", "\"end\":\"blocked\",\"end\":\"done\"", 1}},
     RECEIPT_RECORDS,
     "is duplicated"},
    {"a cell with a letter of another alphabet",
     {{RECEIPT_JOURNAL, "arch=moe",
       "arch=m\xd0\xbe"
       "e",
       0},
      {RECEIPT_RECORDS, "arch=moe",
       "arch=m\xd0\xbe"
       "e",
       0},
      {RECEIPT_PROVENANCE, "arch=moe",
       "arch=m\xd0\xbe"
       "e",
       0},
      {RECEIPT_ENVIRONMENT, "arch=moe",
       "arch=m\xd0\xbe"
       "e",
       0},
      {RECEIPT_COVERAGE, "arch=moe",
       "arch=m\xd0\xbe"
       "e",
       0}},
     RECEIPT_JOURNAL,
     "task.cell"},
    {"an excluded task that a person is said to have given up",
     {{RECEIPT_JOURNAL, "\"cause\":\"crash\"", "\"cause\":\"cancelled\"", 0},
      {RECEIPT_RECORDS, "\"cause\":\"crash\"", "\"cause\":\"cancelled\"", 0},
      {RECEIPT_PROVENANCE, "\"cause\": \"crash\"", "\"cause\": \"cancelled\"", 0},
      {RECEIPT_COVERAGE, "\"crash\":", "\"cancelled\":", 0}},
     RECEIPT_COVERAGE,
     "counted.excluded"},
    {"a row at another time, by a clock that was behind",
     {{RECEIPT_JOURNAL, "\"event\":\"submitted\"",
       "\"clock\":\"1996-01-01T00:00:00.000Z\",\"event\":\"submitted\"", 0},
      {RECEIPT_JOURNAL, "\"time\":\"20", "\"time\":\"21", 0}},
     RECEIPT_JOURNAL,
     "the time of the row before it"},
    {"a row of a clock that was not behind",
     {{RECEIPT_JOURNAL, "\"event\":\"submitted\"",
       "\"clock\":\"2196-01-01T00:00:00.000Z\",\"event\":\"submitted\"", 0}},
     RECEIPT_JOURNAL,
     "\"clock\" is not before"},
    /* what makes another receipt that follows: the answer says that anyone can */
    {"rows at another time", {{RECEIPT_JOURNAL, "\"time\":\"20", "\"time\":\"21", 0}}, NULL, NULL},
};

static bool is_told(const cJSON *list, const char *part)
{
    const cJSON *o = NULL;
    cJSON_ArrayForEach(o, list)
    {
        if (strstr(o->valuestring, part) != NULL) {
            return true;
        }
    }
    return false;
}

static void expect(const struct world *w, const struct forgery *f)
{
    struct verify_answer a;
    int rc = receipt_verify(&(struct verify_spec){.folder = w->made.folder}, &a);
    const cJSON *told = json_member(a.json, "not_shown");
    bool right = f->where == NULL
                     ? rc == 0 && a.level == LEVEL_CONSISTENT &&
                           is_told(told, "anyone can make another set of these files") &&
                           is_told(told, "the times are its maker's word")
                     : rc == ERR_LOCK && strcmp(a.fault.file, f->where) == 0 &&
                           strstr(a.fault.msg, f->what) != NULL && a.level == LEVEL_NONE &&
                           cJSON_GetArraySize(told) == 0;
    if (!right) {
        print_error("%s: wanted %s: %s; is %s:%zu: %s (%s, %s)\n", f->name,
                    f->where == NULL ? "nothing" : f->where, f->what == NULL ? "" : f->what,
                    a.fault.file, a.fault.line, a.fault.msg, a.fault.expected, a.fault.found);
    }
    assert_true(right);
    verify_answer_release(&a);
}

static void test_forgeries(void **state)
{
    static const struct forgery none = {.name = "as it was made"};
    const struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(forgeries); i++) {
        CHECK_ROW("%s", forgeries[i].name);
        const bool of_sums = strcmp(forgeries[i].edits[0].file, RECEIPT_SUMS) == 0;
        if (!of_sums) {
            apply(w, &forgeries[i]);
        }
        forge_all(w);
        if (of_sums) {
            apply(w, &forgeries[i]);
        }
        expect(w, &forgeries[i]);
        restore(w);
    }
    expect(w, &none);
    forge_all(w); /* who changes nothing makes the same */
    expect(w, &none);
}

/* Names of checks are looked up one by one: there may not be any number of them. */
static void test_many_checks(void **state)
{
    const struct world *w = *state;
    struct strbuf journal = STRBUF_INIT;
    struct strbuf row = STRBUF_INIT;
    const char *first = strchr(w->was[0].buf, '\n') + 1; /* task 0 starts */
    const char *second = strchr(first, '\n') + 1;
    strbuf_add(&journal, w->was[0].buf, (size_t)(first - w->was[0].buf));
    for (size_t i = 0; i <= HISTORY_CHECKS_MAX; i++) {
        char name[40];
        (void)snprintf(name, sizeof(name), "\"apparatus\":\"c%zu\",\"cell\"", i);
        strbuf_clear(&row);
        strbuf_add(&row, first, (size_t)(second - first));
        assert_int_equal(replace(&row, "\"cell\"", name, 0), 1);
        assert_int_equal(replace(&row, "\"index\":0,", "\"index\":99,", 0), 1);
        strbuf_add(&journal, row.buf, row.len);
    }
    write_file(w, RECEIPT_JOURNAL, &journal);
    forge_all(w);
    expect(w, &(struct forgery){.name = "any number of checks",
                                .where = RECEIPT_JOURNAL,
                                .what = "more than 1000 checks"});
    restore(w);
    strbuf_release(&row);
    strbuf_release(&journal);
}

/* The second run of a check starts behind row n, while tasks of the grid are open or not. */
static void test_second_run_too_early(void **state)
{
    static const struct {
        const char *behind; /* the first row of this event; NULL: the first of all */
        const char *where;
        const char *what;
    } cases[] = {{NULL, RECEIPT_JOURNAL, "apparatus/c@end while task 0 is ready"},
                 {"\"event\":\"attempt_started\"", RECEIPT_JOURNAL,
                  "apparatus/c@end while task 0 is starting"},
                 {"\"event\":\"unsealed\"", RECEIPT_COVERAGE, "journal.rows"}};
    const struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%zu", i);
        struct strbuf journal = STRBUF_INIT;
        struct strbuf row = STRBUF_INIT;
        const char *start = strchr(w->was[0].buf, '\n') + 1; /* task 0 starts */
        const char *at =
            cases[i].behind == NULL ? w->was[0].buf : strstr(w->was[0].buf, cases[i].behind);
        assert_non_null(at);
        at = strchr(at, '\n') + 1;
        strbuf_add(&row, start, (size_t)(strchr(start, '\n') + 1 - start));
        assert_int_equal(replace(&row, "\"cell\"", "\"apparatus\":\"c@end\",\"cell\"", 0), 1);
        assert_int_equal(replace(&row, "\"index\":0,", "\"index\":99,", 0), 1);
        strbuf_add(&journal, w->was[0].buf, (size_t)(at - w->was[0].buf));
        strbuf_add(&journal, row.buf, row.len);
        strbuf_adds(&journal, at);
        write_file(w, RECEIPT_JOURNAL, &journal);
        forge_all(w);
        expect(w, &(struct forgery){
                      .name = "a second run", .where = cases[i].where, .what = cases[i].what});
        restore(w);
        strbuf_release(&row);
        strbuf_release(&journal);
    }
}

/* The rows of the journal that name this task, up to n of them from the first of it. */
static void add_rows(const struct world *w, struct strbuf *to, const char *task, size_t skip,
                     size_t n)
{
    const char *line = w->was[0].buf;
    for (const char *end; n > 0 && (end = strchr(line, '\n')) != NULL; line = end + 1) {
        const char *at = strstr(line, task);
        if (at == NULL || at > end) {
            continue;
        }
        n -= skip == 0 ? 1 : 0;
        if (skip > 0) {
            skip--;
        } else {
            strbuf_add(to, line, (size_t)(end + 1 - line));
        }
    }
}

/* A row of the program, from the one that opens the scores. */
static void add_status(const struct world *w, struct strbuf *to, const char *event, unsigned paused)
{
    char text[80];
    struct strbuf row = STRBUF_INIT;
    add_rows(w, &row, "\"event\":\"unsealed\"", 0, 1);
    (void)snprintf(text, sizeof(text), "\"event\":\"%s\"", event);
    assert_int_equal(replace(&row, "\"event\":\"unsealed\"", text, 0), 1);
    (void)snprintf(text, sizeof(text), "\"paused\":%u", paused);
    assert_int_equal(replace(&row, "\"paused\":0", text, 0), 1);
    assert_int_equal(replace(&row, "\"unsealed\":true", "\"unsealed\":false", 0), 1);
    strbuf_add(to, row.buf, row.len);
    strbuf_release(&row);
}

/* The first attempt of task 0 ends and blocks it. */
static void add_end(const struct world *w, struct strbuf *to)
{
    struct strbuf row = STRBUF_INIT;
    add_rows(w, &row, "\"index\":0,", 1, 1);
    assert_int_equal(replace(&row, "\"state\":\"ready\"", "\"state\":\"blocked\"", 0), 1);
    assert_int_equal(replace(&row, "\"cause\":\"\"", "\"cause\":\"crash\"", 0), 1);
    strbuf_add(to, row.buf, row.len);
    strbuf_release(&row);
}

/* It is revived; the row is made from its first, less the attempt. */
static void add_revival(const struct world *w, struct strbuf *to)
{
    struct strbuf row = STRBUF_INIT;
    struct strbuf attempt = STRBUF_INIT;
    add_rows(w, &row, "\"index\":0,", 0, 1);
    const char *from = strstr(row.buf, "\"attempt\":{");
    strbuf_add(&attempt, from, (size_t)(strchr(from, '}') + 2 - from));
    assert_int_equal(replace(&row, attempt.buf, "", 0), 1);
    assert_int_equal(replace(&row, "attempt_started", "task_revived", 0), 1);
    assert_int_equal(replace(&row, "\"from\":\"ready\"", "\"from\":\"blocked\"", 0), 1);
    assert_int_equal(replace(&row, "\"state\":\"starting\"", "\"state\":\"ready\"", 0), 1);
    strbuf_add(to, row.buf, row.len);
    strbuf_release(&attempt);
    strbuf_release(&row);
}

/* A pause for failures is lifted while task 0 is at work, which is revived when its attempt has
 * ended: only if its stage had no result when the pause was lifted, in the row after that end. */
static void test_revived(void **state)
{
    static const struct {
        const char *name;
        bool lifted, done_before, done_since, row_between;
        bool allowed;
    } cases[] = {
        {.name = "answered by the resumption", .lifted = true, .allowed = true},
        {.name = "never answered"},
        {.name = "another is done since", .lifted = true, .done_since = true, .allowed = true},
        {.name = "another was done before", .lifted = true, .done_before = true},
        {.name = "a row lies between", .lifted = true, .row_between = true},
    };
    const struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].name);
        struct strbuf journal = STRBUF_INIT;
        struct verify_answer a;
        add_rows(w, &journal, "\"event\":\"submitted\"", 0, 1);
        add_rows(w, &journal, "\"index\":0,", 0, 1);
        add_rows(w, &journal, "\"index\":2,", 0, cases[i].done_before ? 2 : 0);
        if (cases[i].lifted) {
            add_status(w, &journal, "paused", PAUSE_FAILURES);
            add_status(w, &journal, "resumed", 0);
        }
        add_rows(w, &journal, "\"index\":2,", 0, cases[i].done_since ? 2 : 0);
        add_end(w, &journal);
        if (cases[i].row_between) {
            add_status(w, &journal, "paused", PAUSE_PERSON);
        }
        add_revival(w, &journal);
        write_file(w, RECEIPT_JOURNAL, &journal);
        forge_all(w);
        assert_int_not_equal(receipt_verify(&(struct verify_spec){.folder = w->made.folder}, &a),
                             0);
        const bool refused = strstr(a.fault.msg, "was not paused for failures") != NULL;
        if (refused == cases[i].allowed) {
            print_error("%s: %s:%zu: %s\n", cases[i].name, a.fault.file, a.fault.line, a.fault.msg);
        }
        assert_int_equal(refused, !cases[i].allowed);
        verify_answer_release(&a);
        restore(w);
        strbuf_release(&journal);
    }
}

/* A link that takes a file's place once the folder was listed is not followed, though what it leads
 * to is the very file. */
static void test_swapped(void **state)
{
    static const char *const names[] = {RECEIPT_GRID, RECEIPT_LOCK};
    const struct world *w = *state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        CHECK_ROW("%s", names[i]);
        struct err f = {0};
        struct verify_answer a = {.json = NULL};
        struct verify_spec spec = {.folder = w->made.folder};
        struct verifying v = {.spec = &spec, .out = &a, .err = &f, .files = {.fd = -1}};
        char *path = path_of(w, names[i]);
        char *away = path_join(w->folder, "away");
        char *to = path_absolute(NULL, away);
        assert_int_equal(files_open(&v.files, w->made.folder, &f), 0);
        assert_int_equal(rename(path, away), 0);
        assert_int_equal(symlink(to, path), 0);
        assert_int_not_equal(verify_lock(&v), 0);
        assert_string_equal(f.file, names[i]);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(rename(away, path), 0);
        lock_free(v.lock);
        program_free(v.program);
        v.lock = NULL;
        v.program = NULL;
        assert_int_equal(verify_lock(&v), 0);
        lock_free(v.lock);
        program_free(v.program);
        files_release(&v.files);
        free(to);
        free(away);
        free(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_swapped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_revived, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_many_checks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_second_run_too_early, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_forgeries, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
