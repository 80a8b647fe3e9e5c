/* What a crash leaves of an amendment: mended where grid.toml is the program before or after, and
 * left as it lies where it is neither. */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "prereg/amend/amend_heal.h"
#include "prereg/amend/amendment.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/support.h"

static const char PROGRAM[] =
    "[program]\nname = \"p\"\nschema = 1\n[[factor]]\nname = \"a\"\nlevels = [1, 2]\n"
    "[stage.s]\ncommand = [\"./worker.sh\"]\nparams = { shots = 5 }\n"
    "[measure]\nm = { metric = \"s.x\" }\n"
    "[[input]]\nname = \"i\"\nlevels = [[\"y\", \"otherwise\"]]\n"
    "[table]\ninputs = [\"i\"]\nrows = [[\"y\", \"O\"]]\n"
    "[outcome]\nO = { prior = 0.5, title = \"t\" }\n[run]\nslots = 1\n";

static const char *const SHOTS[] = {"shots = 5", "shots = 4", "shots = 3", "shots = 2"};

/* The text after that many amendments. */
static char *text_after(size_t n)
{
    return text_replace(PROGRAM, SHOTS[0], SHOTS[n]);
}

struct world {
    char *folder;
    struct lock *lock;
    char heads[3][DIGEST_HEX_SIZE]; /* of the root, the first and the second */
};

static void write_file(const struct world *w, size_t number, const char *kind, const char *text)
{
    char *amendments = path_join(w->folder, LAYOUT_AMENDMENTS);
    char *path = amendment_file(amendments, number, kind);
    struct err err = {0};
    assert_int_equal(dir_make(amendments, 0700, &err), 0);
    assert_int_equal(file_write_atomic(path, text, strlen(text), 0600, &err), 0);
    free(path);
    free(amendments);
}

static void write_amendment(struct world *w, size_t number)
{
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    char json[1024];
    char hex[DIGEST_HEX_SIZE];
    cJSON *a = NULL;
    (void)snprintf(
        json, sizeof(json),
        "{\"schema\":1,\"number\":%zu,\"program\":\"p\",\"root\":\"%s\",\"previous\":\"%s\","
        "\"time\":\"2026-01-01T00:00:00.000Z\",\"level\":\"nothing_run\",\"reason\":\"r\","
        "\"changes\":[{\"path\":["
        "\"plan\",\"stage\",\"s\",\"params\",\"shots\"],\"from\":%zu,\"to\":%zu,"
        "\"post_hoc\":false}],\"signature\":null}",
        number, w->lock->root, w->heads[number - 1], 6 - number, 5 - number);
    assert_int_equal(json_parse(json, strlen(json), &a, &err), 0);
    assert_int_equal(amendment_text(a, &text, &err), 0);
    struct digest d = digest_bytes(text.buf, text.len);
    digest_hex(&d, hex);
    json_put_string(a, "head", hex);
    if (number < ARRAY_LEN(w->heads)) {
        memcpy(w->heads[number], hex, sizeof(hex));
    }
    strbuf_clear(&text);
    assert_int_equal(json_line(a, &text, &err), 0);
    char *toml = text_after(number);
    write_file(w, number, "json", text.buf);
    write_file(w, number, "toml", toml);
    free(toml);
    strbuf_release(&text);
    cJSON_Delete(a);
}

static int world_make(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    struct err err = {0};
    w->folder = scratch_make();
    free(scratch_write(w->folder, "worker.sh", "#!/bin/sh\n", 0700));
    struct plan_program *p = program_of(PROGRAM, w->folder);
    assert_int_equal(lock_build(p, NULL, NULL, &w->lock, &err), 0);
    char *path = path_join(w->folder, "grid.toml.lock");
    assert_int_equal(lock_write(w->lock, path, false, &err), 0);
    memcpy(w->heads[0], w->lock->root, DIGEST_HEX_SIZE);
    free(path);
    program_free(p);
    *state = w;
    return 0;
}

static int world_remove(void **state)
{
    struct world *w = *state;
    lock_free(w->lock);
    scratch_remove(w->folder);
    free(w);
    return 0;
}

static char *read_grid(const struct world *w)
{
    struct strbuf text = STRBUF_INIT;
    struct err err = {0};
    char *path = path_join(w->folder, "grid.toml");
    assert_int_equal(file_read(path, 1 << 20, &text, &err), 0);
    free(path);
    return text.buf;
}

static bool is_there(const struct world *w, const char *name)
{
    char *path = xasprintf("%s/" LAYOUT_AMENDMENTS "/%s", w->folder, name);
    bool there = file_kind_at(path) != FILE_ABSENT;
    free(path);
    return there;
}

/* n files are there, the journal tells of `taken`, grid.toml is the text after `grid`. */
static void test_after_a_crash(void **state)
{
    static const struct {
        size_t n, taken, grid;
        bool ok;
    } cases[] = {
        {0, 0, 0, true},  /* never amended */
        {1, 1, 1, true},  /* whole */
        {1, 0, 0, true},  /* no row */
        {1, 1, 0, true},  /* not put in place */
        {2, 1, 1, true},  /* the second: no row */
        {2, 2, 1, true},  /* not put in place */
        {2, 1, 0, true},  /* neither the first in place, nor a row of the second */
        {1, 0, 1, false}, /* the text of what never took effect */
        {2, 2, 0, true},  /* neither was put in place */
        {2, 1, 3, false}, /* of no head */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases) * 2; i++) {
        const size_t k = i / 2;
        CHECK_ROW("cases[%zu], slots %s", k, i % 2 == 0 ? "1" : "7");
        void *made = NULL;
        struct err err = {0};
        char name[32];
        (void)world_make(&made);
        struct world *w = made;
        for (size_t n = 1; n <= cases[k].n; n++) {
            write_amendment(w, n);
        }
        char *grid = text_after(cases[k].grid);
        char *run = text_replace(grid, "slots = 1", i % 2 == 0 ? "slots = 1" : "slots = 7");
        free(scratch_write(w->folder, "grid.toml", run, 0600)); /* [run] may be any */
        for (int twice = 0; twice < 2; twice++) {
            int rc = amendments_heal(w->folder, w->heads[cases[k].taken], &err);
            if (rc != (cases[k].ok ? 0 : ERR_LOCK)) {
                fail_msg("case %zu: %d %s", k, rc, err.msg);
            }
        }
        char *now = read_grid(w);
        const bool placed = cases[k].ok && cases[k].grid < cases[k].taken;
        char *wanted = placed ? text_after(cases[k].taken) : xstrdup(run);
        assert_string_equal(now, wanted);
        if (cases[k].n > cases[k].taken) {
            (void)snprintf(name, sizeof(name), "%04zu.json", cases[k].n);
            assert_int_equal(is_there(w, name), !cases[k].ok);
            (void)snprintf(name, sizeof(name), "%04zu.toml.aside", cases[k].n);
            assert_int_equal(is_there(w, name), cases[k].ok);
        }
        free(wanted);
        free(now);
        free(run);
        free(grid);
        (void)world_remove(&made);
    }
}

static void test_what_is_missing_is_named(void **state)
{
    struct world *w = *state;
    struct err err = {0};
    char *grid = text_after(1);
    free(scratch_write(w->folder, "grid.toml", grid, 0600));
    write_amendment(w, 1);
    assert_int_equal(amendments_heal(w->folder, "0123456789abcdef0123", &err), ERR_LOCK);
    assert_non_null(strstr(err.msg, "the amendment whose head is 0123456789abcdef is missing"));
    write_file(w, 1, "json", "{\"schema\":1,\"head\":\"0\"}");
    assert_int_equal(amendments_heal(w->folder, w->heads[1], &err), ERR_LOCK);
    assert_non_null(strstr(err.msg, "0001.json"));
    free(grid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_after_a_crash),
        cmocka_unit_test_setup_teardown(test_what_is_missing_is_named, world_make, world_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
