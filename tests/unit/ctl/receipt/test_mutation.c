/* Whatever is changed in a receipt is found and named: once with SHA256SUMS left alone, once by a
 * forger who makes statement.json and SHA256SUMS anew. What such a forger can do without being
 * found is listed here too, and is in VERIFY.md. */
/* cmocka.h wants those four before it */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/xalloc.h"
#include "ctl/receipt/export.h"
#include "ctl/receipt/files.h"
#include "tests/unit/check.h"
#include "tests/unit/ctl/receipt/forger.h"
#include "tests/unit/ctl/receipt/world.h"

static int set_up(void **state)
{
    static const struct fixture f = {.n_seeds = 2, .n_evals = 1, .n_metrics = 1};
    return world_make(&f, state);
}

/* ---- changing files ---- */

static void read_file(const struct world *w, const char *name, struct strbuf *out)
{
    struct err err;
    char *path = path_join(w->made.folder, name);
    assert_int_equal(file_read(path, (size_t)1 << 24, out, &err), 0);
    free(path);
}

static void write_file(const struct world *w, const char *name, const struct strbuf *text)
{
    struct err err;
    char *path = path_join(w->made.folder, name);
    assert_int_equal(file_write_atomic(path, text->buf, text->len, 0644, &err), 0);
    free(path);
}

static void replace(struct strbuf *text, const char *from, const char *to)
{
    struct strbuf out = STRBUF_INIT;
    char *at = strstr(text->buf, from);
    if (at == NULL) {
        print_error("there is no %s to change\n", from);
    }
    assert_non_null(at);
    strbuf_add(&out, text->buf, (size_t)(at - text->buf));
    strbuf_adds(&out, to);
    strbuf_adds(&out, at + strlen(from));
    strbuf_release(text);
    *text = out;
}

/* The n-th line's beginning; negative counts from the end. */
static size_t line_at(const struct strbuf *text, int n)
{
    size_t n_lines = 0;
    size_t at = 0;
    for (size_t i = 0; i < text->len; i++) {
        n_lines += text->buf[i] == '\n' ? 1 : 0;
    }
    size_t want = n >= 0 ? (size_t)n : n_lines - (size_t)-n;
    assert_true(want < n_lines);
    while (want > 0) {
        want -= text->buf[at++] == '\n' ? 1 : 0;
    }
    return at;
}

static size_t line_end(const struct strbuf *text, size_t from)
{
    return (size_t)(strchr(text->buf + from, '\n') - text->buf) + 1;
}

enum how { REPLACE, REMOVE_LINE, SWAP_LINES, DOUBLE_LINE, CUT_BYTES };

struct mutation {
    const char *name;
    const char *file;
    enum how how;
    int line; /* of the line changes; bytes of the cut */
    const char *from;
    const char *to;
    const char *where; /* by the forger: the file that is named; NULL: it is not found */
    const char *what;  /* part of what is said of it */
};

static const struct mutation mutations[] = {
    {"a score", "records.jsonl", REPLACE, 0, "\\\"value\\\": 0.", "\\\"value\\\": 0.9",
     "records.jsonl", "not the one that the journal accepted"},
    {"a result's digest", "records.jsonl", REPLACE, 0, "\"sha256\":\"", "\"sha256\":\"0",
     "records.jsonl", "sha256"},
    {"a task's end", "records.jsonl", REPLACE, 0, "\"end\":\"done\"", "\"end\":\"blocked\"",
     "records.jsonl", "end"},
    {"a task's cause", "records.jsonl", REPLACE, 0, "\"cause\":\"crash\"", "\"cause\":\"oom\"",
     "records.jsonl", "cause"},
    {"attempts of a task", "records.jsonl", REPLACE, 0, "\"attempts\":2", "\"attempts\":1",
     "records.jsonl", "attempts"},
    {"resumes of a task", "records.jsonl", REPLACE, 0, "\"resumes\":1", "\"resumes\":0",
     "records.jsonl", "resumes"},
    {"the items' digest", "records.jsonl", REPLACE, 0,
     "\"items\":{\"path\":\"items.jsonl\",\"sha256\":\"0",
     "\"items\":{\"path\":\"items.jsonl\",\"sha256\":\"1", "records.jsonl", "items.sha256"},
    {"a space in a record", "records.jsonl", REPLACE, 0, ",\"stage\"", ", \"stage\"",
     "records.jsonl", "other bytes"},
    {"a record removed", "records.jsonl", REMOVE_LINE, 1, NULL, NULL, "records.jsonl", "cell"},
    {"the last record removed", "records.jsonl", REMOVE_LINE, -1, NULL, NULL, "records.jsonl",
     "lines, one for each planned task"},
    {"two records swapped", "records.jsonl", SWAP_LINES, 1, NULL, NULL, "records.jsonl", "cell"},
    {"a record twice", "records.jsonl", DOUBLE_LINE, 2, NULL, NULL, "records.jsonl", ""},
    {"records cut off", "records.jsonl", CUT_BYTES, 5, NULL, NULL, "records.jsonl", "torn"},
    {"a row's time", "journal.jsonl", REPLACE, 0, "\"time\":\"2", "\"time\":\"3", "journal.jsonl",
     "hash"},
    {"a row's hash", "journal.jsonl", REPLACE, 0, "\"hash\":\"", "\"hash\":\"0", "journal.jsonl",
     "hash"},
    {"a row's digest of a result", "journal.jsonl", REPLACE, 0, "\"result\":{\"digest\":\"",
     "\"result\":{\"digest\":\"0", "journal.jsonl", "hash"},
    {"a space in a row", "journal.jsonl", REPLACE, 0, ",\"seq\"", ", \"seq\"", "journal.jsonl",
     "form"},
    {"the first row removed", "journal.jsonl", REMOVE_LINE, 0, NULL, NULL, "journal.jsonl",
     "number"},
    {"a row removed", "journal.jsonl", REMOVE_LINE, 3, NULL, NULL, "journal.jsonl", "number"},
    {"two rows swapped", "journal.jsonl", SWAP_LINES, 3, NULL, NULL, "journal.jsonl", "number"},
    {"a row twice", "journal.jsonl", DOUBLE_LINE, 3, NULL, NULL, "journal.jsonl", "number"},
    {"the journal without its last row", "journal.jsonl", REMOVE_LINE, -1, NULL, NULL,
     "coverage.json", "journal.rows"},
    {"the journal cut in its last row", "journal.jsonl", CUT_BYTES, 9, NULL, NULL, "journal.jsonl",
     "torn"},
    {"a prior", "grid.toml", REPLACE, 0, "prior = 0.4", "prior = 0.45", "grid.toml",
     "outcome.O1.prior: locked 0.4, now 0.45"},
    {"a floor", "grid.toml", REPLACE, 0, "floor = 0.3 ", "floor = 0.2 ", "grid.toml", "floor"},
    {"a row of the table", "grid.toml", REPLACE, 0, "[\"no\", \"O2\"]", "[\"no\", \"O1\"]",
     "grid.toml", "table"},
    {"no TOML", "grid.toml", REPLACE, 0, "[program]", "[program", "grid.toml", ""},
    {"a prior in the lock", "grid.toml.lock", REPLACE, 0, "\"prior\": 0.4", "\"prior\": 0.45",
     "grid.toml.lock", "was changed after locking"},
    {"the root", "grid.toml.lock", REPLACE, 0, "\"root\": \"", "\"root\": \"0", "grid.toml.lock",
     "was changed after locking"},
    {"a digest of data in the lock", "grid.toml.lock", REPLACE, 0, "\"corpus\": \"",
     "\"corpus\": \"0", "grid.toml.lock", "was changed after locking"},
    {"the lock's time, later", "grid.toml.lock", REPLACE, 0, "\"time\": \"2", "\"time\": \"3",
     "journal.jsonl", "before the lock"},
    {"a processor", "environment.jsonl", REPLACE, 0, "AMD EPYC", "AMD EPIC", "environment.jsonl",
     "cpu"},
    {"an environment removed", "environment.jsonl", REMOVE_LINE, 1, NULL, NULL, "environment.jsonl",
     ""},
    {"an environment twice", "environment.jsonl", DOUBLE_LINE, -1, NULL, NULL, "environment.jsonl",
     "a line more"},
    {"what an attempt took", "provenance.json", REPLACE, 0, "\"user_ms\": 12", "\"user_ms\": 13",
     "provenance.json", "user_ms"},
    {"a BLAS", "provenance.json", REPLACE, 0, "core Haswell", "core Zen", "provenance.json",
     "blas is not what the result says"},
    {"an instruction set", "provenance.json", REPLACE, 0, "\"instructions\": \"avx512\"",
     "\"instructions\": \"avx2\"", "provenance.json", "instructions is not what the result says"},
    {"a version of the arithmetic", "provenance.json", REPLACE, 0, "\"arithmetic\": 2",
     "\"arithmetic\": 1", "provenance.json", "arithmetic is not what the result says"},
    {"another worker", "environment.jsonl", REPLACE, 0, "\"worker\":\"", "\"worker\":\"0",
     "environment.jsonl", "worker"},
    {"a worker that the lock does not pin", "provenance.json", REPLACE, 0, "\"worker\": \"",
     "\"worker\": \"0", "provenance.json", "is not the one that the lock pins"},
    {"a resume", "provenance.json", REPLACE, 0, "\"resumed_from\": 100", "\"resumed_from\": null",
     "provenance.json", "resumed_from"},
    {"how an attempt ended", "provenance.json", REPLACE, 0, "\"cause\": \"crash\"",
     "\"cause\": \"oom\"", "provenance.json", "cause"},
    {"an attempt's id", "provenance.json", REPLACE, 0, "\"id\": \"", "\"id\": \"0",
     "provenance.json", "id"},
    {"a task's attempts", "provenance.json", REPLACE, 0, "\"attempts\": [", "\"attempts\": [{},",
     "provenance.json", "attempts"},
    {"an unblinding", "provenance.json", REPLACE, 0, "\"unblindings\": []",
     "\"unblindings\": [\"x\"]", "provenance.json", "unblindings"},
    {"how it was run", "provenance.json", REPLACE, 0, "\"crashes\": 7", "\"crashes\": 3",
     "provenance.json", "run.train.crashes"},
    {"a level of its own", "provenance.json", REPLACE, 0, "\"assurance\": \"self-consistent\"",
     "\"assurance\": \"signed\"", "provenance.json", "assurance"},
    {"where the history is from", "provenance.json", REPLACE, 0, "\"verified\"", "\"sworn\"",
     "provenance.json", "history"},
    {"provenance of another program", "provenance.json", REPLACE, 0, "\"program\": \"",
     "\"program\": \"x", "provenance.json", "program"},
    {"the journal's head", "provenance.json", REPLACE, 0, "\"head\": \"", "\"head\": \"0",
     "provenance.json", "head"},
    {"coverage", "coverage.json", REPLACE, 0, "\"done\": ", "\"done\": 1", "coverage.json",
     "tasks.done"},
    {"the budget", "coverage.json", REPLACE, 0, "\"budget\": ", "\"budget\": 1", "coverage.json",
     "counted.budget"},
    {"blocked tasks", "coverage.json", REPLACE, 0, "\"blocked\": 1", "\"blocked\": 0",
     "coverage.json", "tasks.blocked"},
    {"attempts of a cell", "coverage.json", REPLACE, 0, "\"attempts\": 3", "\"attempts\": 2",
     "coverage.json", "cells[0].attempts"},
    {"resumes of a cell", "coverage.json", REPLACE, 0, "\"resumes\": 1", "\"resumes\": 0",
     "coverage.json", "cells[0].resumes"},
    {"resumes in all", "coverage.json", REPLACE, 0, "\"resumed\": 1", "\"resumed\": 0",
     "coverage.json", "attempts.resumed"},
    {"a figure of the verdict", "verdict.json", REPLACE, 0, "\"score\": 0.", "\"score\": 0.1",
     "verdict.json", "score"},
    {"the outcome", "verdict.json", REPLACE, 0, "\"outcome\": ", "\"outcomes\": ", "verdict.json",
     "outcome"},
    {"the statement's verdict", "statement.json", REPLACE, 0, "\"kind\": \"", "\"kind\": \"un",
     "statement.json", "predicate.kind"},
    {"the statement's question", "statement.json", REPLACE, 0, "Does it", "Did it",
     "statement.json", "predicate.question"},
    {"the statement's type", "statement.json", REPLACE, 0, "\"_type\": \"https",
     "\"_type\": \"http", "statement.json", "_type"},
    {"the statement's kind of predicate", "statement.json", REPLACE, 0, "\"predicateType\": \"",
     "\"predicateType\": \"x", "statement.json", "predicateType"},
    {"the statement's outcome", "statement.json", REPLACE, 0,
     "\"outcome\": ", "\"outcome\": [],\"x\": ", "statement.json", "predicate.outcome"},
    {"instruments that bind", "instruments.json", REPLACE, 0, "\"binds\": false", "\"binds\": true",
     "instruments.json", "binds"},
    {"instruments of another plan", "instruments.json", REPLACE, 0, "\"root\": \"", "\"root\": \"0",
     "instruments.json", "root"},
    {"a newer schema", "statement.json", REPLACE, 0, "\"schema\": 2", "\"schema\": 3",
     "statement.json", "this version"},
    {"an older schema", "statement.json", REPLACE, 0, "\"schema\": 2", "\"schema\": 1",
     "statement.json", "this version"},
    /* what a forger can do: none of it binds or is recomputed, and VERIFY.md says so */
    {"a figure of an instrument", "instruments.json", REPLACE, 0, "0.125", "0.25", NULL, NULL},
    {"a word of the report", "report.md", REPLACE, 0, "report", "forged", NULL, NULL},
    {"a word of VERIFY.md", "VERIFY.md", REPLACE, 0, "sha256sum", "sha512sum", NULL, NULL},
    {"the lock's tool", "grid.toml.lock", REPLACE, 0, "\"name\": \"preregd\"",
     "\"name\": \"another\"", NULL, NULL},
};

static void mutate(const struct mutation *m, struct strbuf *text)
{
    if (m->how == REPLACE) {
        replace(text, m->from, m->to);
        return;
    }
    if (m->how == CUT_BYTES) {
        text->len -= (size_t)m->line;
        return;
    }
    struct strbuf out = STRBUF_INIT;
    const size_t a = line_at(text, m->line);
    const size_t b = line_end(text, a);
    const size_t c = m->how == SWAP_LINES ? line_end(text, b) : b;
    strbuf_add(&out, text->buf, a);
    if (m->how == SWAP_LINES) {
        strbuf_add(&out, text->buf + b, c - b);
    }
    if (m->how != REMOVE_LINE) {
        strbuf_add(&out, text->buf + a, b - a);
    }
    if (m->how == DOUBLE_LINE) {
        strbuf_add(&out, text->buf + a, b - a);
    }
    strbuf_add(&out, text->buf + c, text->len - c);
    strbuf_release(text);
    *text = out;
}

/* ---- the forger ---- */

static void forge(const struct world *w)
{
    struct err err;
    assert_int_equal(forge_sums(w->made.folder, &err), 0);
}

static void expect(const struct world *w, const char *name, const char *where, const char *what)
{
    const struct verify_spec spec = {.folder = w->made.folder};
    struct verify_answer a;
    int rc = receipt_verify(&spec, &a);
    bool right = where == NULL ? rc == 0
                               : rc != 0 && strcmp(a.fault.file, where) == 0 &&
                                     strstr(a.fault.msg, what) != NULL && a.level == LEVEL_NONE;
    if (!right) {
        print_error("%s: wanted %s: %s; is %s:%zu: %s (%s, %s)\n", name,
                    where == NULL ? "nothing" : where, what == NULL ? "" : what, a.fault.file,
                    a.fault.line, a.fault.msg, a.fault.expected, a.fault.found);
    }
    assert_true(right);
    verify_answer_release(&a);
}

static void test_mutations(void **state)
{
    const struct world *w = *state;
    struct strbuf sums = STRBUF_INIT;
    struct strbuf statement = STRBUF_INIT;
    read_file(w, "SHA256SUMS", &sums);
    read_file(w, "statement.json", &statement);
    for (size_t i = 0; i < ARRAY_LEN(mutations); i++) {
        CHECK_ROW("%s", mutations[i].name);
        const struct mutation *m = &mutations[i];
        struct strbuf old = STRBUF_INIT;
        struct strbuf now = STRBUF_INIT;
        read_file(w, m->file, &old);
        strbuf_add(&now, old.buf, old.len);
        mutate(m, &now);
        write_file(w, m->file, &now);
        expect(w, m->name, m->file, "its SHA-256 is not the one");
        forge(w);
        expect(w, m->name, m->where, m->what);
        write_file(w, m->file, &old);
        write_file(w, "statement.json", &statement);
        write_file(w, "SHA256SUMS", &sums);
        strbuf_release(&old);
        strbuf_release(&now);
    }
    expect(w, "restored", NULL, NULL);
    strbuf_release(&sums);
    strbuf_release(&statement);
}

/* Whoever makes the chain anew as well: what else says how the journal ends does not go with it. */
static void test_forged_chain(void **state)
{
    static const struct mutation CASES[] = {
        {"a row's time", "journal.jsonl", REPLACE, 0, "\"time\":\"2", "\"time\":\"3",
         "coverage.json", "journal.head"},
        {"a row removed", "journal.jsonl", REMOVE_LINE, 3, NULL, NULL, "journal.jsonl",
         "task.from"},
        {"two rows swapped", "journal.jsonl", SWAP_LINES, 2, NULL, NULL, "journal.jsonl",
         "task.from"},
        {"a digest of a result", "journal.jsonl", REPLACE, 0, "\"result\":{\"digest\":\"",
         "\"result\":{\"digest\":\"0", "journal.jsonl", "64"},
        {"no verdict", "journal.jsonl", REMOVE_LINE, -2, NULL, NULL, "journal.jsonl",
         "status.verdict: no row says"},
        {"attempts", "journal.jsonl", REPLACE, 0, "\"attempts\":1", "\"attempts\":2",
         "journal.jsonl", "task.attempts"},
        {"another program", "journal.jsonl", REPLACE, 0, "\"name\":\"made_up\"",
         "\"name\":\"made\"", "journal.jsonl", "program.name"}};
    const struct world *w = *state;
    struct strbuf sums = STRBUF_INIT;
    struct strbuf statement = STRBUF_INIT;
    struct strbuf old = STRBUF_INIT;
    read_file(w, "SHA256SUMS", &sums);
    read_file(w, "statement.json", &statement);
    read_file(w, "journal.jsonl", &old);
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%s", CASES[i].name);
        struct strbuf now = STRBUF_INIT;
        strbuf_add(&now, old.buf, old.len);
        mutate(&CASES[i], &now);
        forge_chain(&now);
        write_file(w, "journal.jsonl", &now);
        forge(w);
        expect(w, CASES[i].name, CASES[i].where, CASES[i].what);
        strbuf_release(&now);
    }
    write_file(w, "journal.jsonl", &old);
    write_file(w, "statement.json", &statement);
    write_file(w, "SHA256SUMS", &sums);
    expect(w, "restored", NULL, NULL);
    strbuf_release(&sums);
    strbuf_release(&statement);
    strbuf_release(&old);
}

/* ---- the folder itself ---- */

static bool may_be_missing(const char *name)
{
    return strcmp(name, "report.md") == 0 || strcmp(name, "instruments.json") == 0;
}

/* Each file taken away, or under another name; by the forger too. */
static void test_missing(void **state)
{
    const struct world *w = *state;
    struct name_list names;
    struct err err;
    struct strbuf sums = STRBUF_INIT;
    struct strbuf statement = STRBUF_INIT;
    read_file(w, "SHA256SUMS", &sums);
    read_file(w, "statement.json", &statement);
    assert_int_equal(dir_list(w->made.folder, &names, &err), 0);
    for (size_t i = 0; i < names.n; i++) {
        const char *name = names.names[i];
        char *path = path_join(w->made.folder, name);
        char *other = xasprintf("%s.old", path);
        char *away = path_join(w->folder, "away");
        char *named = xasprintf("%s.old", name);
        assert_int_equal(rename(path, other), 0);
        expect(w, name, named, "no receipt of this version has such a file");
        assert_int_equal(rename(other, away), 0);
        expect(w, name, may_be_missing(name) ? "SHA256SUMS" : name, "is missing");
        if (strcmp(name, "SHA256SUMS") != 0 && strcmp(name, "statement.json") != 0) {
            forge(w);
            bool found = !may_be_missing(name);
            expect(w, name, found ? name : NULL, "is missing");
        }
        assert_int_equal(rename(away, path), 0);
        write_file(w, "statement.json", &statement);
        write_file(w, "SHA256SUMS", &sums);
        free(named);
        free(away);
        free(other);
        free(path);
    }
    expect(w, "restored", NULL, NULL);
    name_list_release(&names);
    strbuf_release(&sums);
    strbuf_release(&statement);
}

/* Files that a receipt may have, and this one has not; by the forger. */
static void test_added(void **state)
{
    static const struct {
        const char *name;
        const char *text;
        const char *what;
    } CASES[] = {{"amendments/0001.json", "{}", ""},
                 {"amendments/0002.toml", "x = 1\n", "the chain of amendments ends before it"},
                 {"apparatus/reference.json", "{}", "the plan knows no such check"},
                 {"signatures/nobody.sig", "x", ""},
                 {"grid.toml.lock.tsr", "x", NULL}, /* not looked at without --ca, which is told */
                 {"imported.json", "{}", ""},
                 {"records.json", "{}", "an imported program"}};
    const struct world *w = *state;
    struct strbuf sums = STRBUF_INIT;
    struct strbuf statement = STRBUF_INIT;
    read_file(w, "SHA256SUMS", &sums);
    read_file(w, "statement.json", &statement);
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%s", CASES[i].name);
        struct err err;
        struct strbuf text = STRBUF_INIT;
        char *path = path_join(w->made.folder, CASES[i].name);
        char *parent = path_folder(path);
        strbuf_adds(&text, CASES[i].text);
        assert_int_equal(dir_make(parent, 0755, &err), 0);
        write_file(w, CASES[i].name, &text);
        forge(w);
        const bool imported = strcmp(CASES[i].name, "imported.json") == 0;
        expect(w, CASES[i].name,
               CASES[i].what == NULL ? NULL
               : imported            ? "records.json"
                                     : CASES[i].name,
               CASES[i].what);
        assert_int_equal(unlink(path), 0);
        (void)rmdir(parent);
        write_file(w, "statement.json", &statement);
        write_file(w, "SHA256SUMS", &sums);
        strbuf_release(&text);
        free(parent);
        free(path);
    }
    strbuf_release(&sums);
    strbuf_release(&statement);
}

static void test_other_files(void **state)
{
    static const struct {
        const char *name;
        const char *what;
    } CASES[] = {{"run.sh", "no receipt of this version has such a file"},
                 {"Records.jsonl", "only in the case of letters"},
                 {"imported.json", "is missing"},
                 {"amendments/1.json", "no receipt of this version"},
                 {"amendments/0001.json", "is not listed"},
                 {"apparatus/reference.json", "is not listed"},
                 {"signatures/x y.sig", "no receipt of this version"},
                 {"a\xff", "not UTF-8"}};
    const struct world *w = *state;
    struct err err;
    struct strbuf text = STRBUF_INIT;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%s", CASES[i].name);
        char *path = path_join(w->made.folder, CASES[i].name);
        char *parent = path_folder(path);
        assert_int_equal(dir_make(parent, 0755, &err), 0);
        write_file(w, CASES[i].name, &text);
        const struct verify_spec spec = {.folder = w->made.folder};
        struct verify_answer a;
        assert_int_equal(receipt_verify(&spec, &a), ERR_LOCK);
        if (strstr(a.fault.msg, CASES[i].what) == NULL) {
            print_error("%s: %s\n", CASES[i].name, a.fault.msg);
        }
        assert_non_null(strstr(a.fault.msg, CASES[i].what));
        verify_answer_release(&a);
        assert_int_equal(unlink(path), 0);
        (void)rmdir(parent);
        free(parent);
        free(path);
    }
    expect(w, "restored", NULL, NULL);
}

static void test_no_files(void **state)
{
    const struct world *w = *state;
    char *path = path_join(w->made.folder, "report.html");
    assert_int_equal(symlink("report.md", path), 0);
    expect(w, "a link", "report.html", "is a link");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect(w, "a pipe", "report.html", "is not a file");
    assert_int_equal(unlink(path), 0);
    free(path);
    path = path_join(w->made.folder, "journal.jsonl");
    char *away = path_join(w->folder, "journal.jsonl");
    assert_int_equal(rename(path, away), 0);
    expect(w, "no journal", "journal.jsonl", "is missing");
    assert_int_equal(rename(away, path), 0);
    free(away);
    free(path);
}

static void test_sums(void **state)
{
    static const struct {
        const char *line;
        const char *where;
        const char *what;
    } CASES[] = {{"%s  ../../etc/passwd\n", "SHA256SUMS", "leads out of the folder"},
                 {"%s  /etc/passwd\n", "SHA256SUMS", "leads out of the folder"},
                 {"%s  amendments/../grid.toml\n", "SHA256SUMS", "leads out of the folder"},
                 {"%s  GRID.toml\n", "SHA256SUMS", "case of letters"},
                 {"%s  SHA256SUMS\n", "SHA256SUMS", "not summed"},
                 {"%s grid.toml\n", "SHA256SUMS", "is not a digest"},
                 {"%s  grid.toml\n", "SHA256SUMS", "duplicated or out of order"}};
    static const char hex[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const struct world *w = *state;
    struct strbuf old = STRBUF_INIT;
    read_file(w, "SHA256SUMS", &old);
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%s", CASES[i].line);
        struct strbuf now = STRBUF_INIT;
        char line[128];
        const char *at = strchr(CASES[i].line, 's') + 1;
        (void)snprintf(line, sizeof(line), "%s%s", hex, at);
        strbuf_add(&now, old.buf, old.len);
        strbuf_adds(&now, line);
        write_file(w, "SHA256SUMS", &now);
        expect(w, CASES[i].line, CASES[i].where, CASES[i].what);
        strbuf_release(&now);
    }
    static const struct mutation CHANGES[] = {
        {"a digest", "SHA256SUMS", REPLACE, 0, "  VERIFY.md", " *VERIFY.md", "SHA256SUMS",
         "is not a digest"},
        {"a line removed", "SHA256SUMS", REMOVE_LINE, 2, NULL, NULL, "environment.jsonl",
         "is not listed"},
        {"the last line removed", "SHA256SUMS", REMOVE_LINE, -1, NULL, NULL, "verdict.json",
         "is not listed"},
        {"two lines swapped", "SHA256SUMS", SWAP_LINES, 1, NULL, NULL, "coverage.json",
         "is not listed"},
        {"a line twice", "SHA256SUMS", DOUBLE_LINE, 1, NULL, NULL, "SHA256SUMS",
         "duplicated or out of order"},
        {"cut off", "SHA256SUMS", CUT_BYTES, 1, NULL, NULL, "SHA256SUMS", "torn"}};
    for (size_t i = 0; i < ARRAY_LEN(CHANGES); i++) {
        CHECK_ROW("%s", CHANGES[i].name);
        struct strbuf now = STRBUF_INIT;
        strbuf_add(&now, old.buf, old.len);
        mutate(&CHANGES[i], &now);
        write_file(w, "SHA256SUMS", &now);
        expect(w, CHANGES[i].name, CHANGES[i].where, CHANGES[i].what);
        strbuf_release(&now);
    }
    write_file(w, "SHA256SUMS", &old);
    strbuf_release(&old);
}

/* One bit of a byte of a file, and back again. */
static int flip_and_verify(const struct world *w, const char *name, struct strbuf *text, size_t at,
                           bool forged)
{
    const struct verify_spec spec = {.folder = w->made.folder};
    struct verify_answer a;
    text->buf[at] = (char)(text->buf[at] ^ (char)(1 << (at % 8)));
    write_file(w, name, text);
    if (forged) {
        forge(w);
    }
    int rc = receipt_verify(&spec, &a);
    verify_answer_release(&a);
    text->buf[at] = (char)(text->buf[at] ^ (char)(1 << (at % 8)));
    return rc;
}

/* Of every file, or with PREREGD_LONG unset of one byte in some hundred. */
static size_t step_of_bytes(void)
{
    return getenv("PREREGD_LONG") != NULL ? 1 : 151;
}

static void test_every_byte(void **state)
{
    const struct world *w = *state;
    struct name_list names;
    struct err err;
    size_t n = 0;
    assert_int_equal(dir_list(w->made.folder, &names, &err), 0);
    for (size_t i = 0; i < names.n; i++) {
        struct strbuf text = STRBUF_INIT;
        read_file(w, names.names[i], &text);
        for (size_t at = 0; at < text.len; at += step_of_bytes(), n++) {
            if (flip_and_verify(w, names.names[i], &text, at, false) == 0) {
                fail_msg("%s: byte %zu changed, and nothing is found", names.names[i], at);
            }
        }
        write_file(w, names.names[i], &text);
        strbuf_release(&text);
    }
    print_message("%zu bytes changed\n", n);
    name_list_release(&names);
    expect(w, "restored", NULL, NULL);
}

/* By the forger: of what binds no byte is his. grid.toml has its comments and spaces, the lock its
 * remarks, provenance.json what is the daemon's word. */
static void test_every_byte_forged(void **state)
{
    static const struct {
        const char *name;
        bool all_found;
    } FILES[] = {{"records.jsonl", true},   {"journal.jsonl", true},   {"environment.jsonl", true},
                 {"coverage.json", true},   {"verdict.json", true},    {"grid.toml", false},
                 {"grid.toml.lock", false}, {"provenance.json", false}};
    const struct world *w = *state;
    struct strbuf sums = STRBUF_INIT;
    struct strbuf statement = STRBUF_INIT;
    read_file(w, "SHA256SUMS", &sums);
    read_file(w, "statement.json", &statement);
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++) {
        CHECK_ROW("%s", FILES[i].name);
        struct strbuf text = STRBUF_INIT;
        size_t n = 0;
        size_t n_found = 0;
        read_file(w, FILES[i].name, &text);
        for (size_t at = 0; at < text.len; at += step_of_bytes(), n++) {
            n_found += flip_and_verify(w, FILES[i].name, &text, at, true) != 0 ? 1 : 0;
        }
        print_message("%s: %zu of %zu bytes found\n", FILES[i].name, n_found, n);
        assert_true(FILES[i].all_found ? n_found == n : n_found > 0);
        write_file(w, FILES[i].name, &text);
        write_file(w, "statement.json", &statement);
        write_file(w, "SHA256SUMS", &sums);
        strbuf_release(&text);
    }
    expect(w, "restored", NULL, NULL);
    strbuf_release(&sums);
    strbuf_release(&statement);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_forged_chain),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_added),
        cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_no_files),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_every_byte),
        cmocka_unit_test(test_every_byte_forged),
    };
    return cmocka_run_group_tests(tests, set_up, world_drop);
}
