#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "ctl/proof.h"
#include "ctl/templates.h"
#include "ctl/text/check_text.h"
#include "prereg/load/program_load.h"
#include "tests/unit/check.h"
#include "truthtable/prove/check_explain.h"

static const struct term plain = {.columns = 80};

struct checked {
    struct proof proof;
    struct strbuf text;
};

/* The starter program, proved without running a worker. */
static void check_starter(struct checked *c, bool whole)
{
    struct err err = {0};
    c->proof = (struct proof){0};
    diag_init(&c->proof.diag, "starter.toml");
    strbuf_init(&c->text);
    int rc = program_parse((const char *)template_files[0].text, template_files[0].len,
                           "starter.toml", &c->proof.program, &c->proof.diag, &err);
    rc = rc == 0 ? check_run(c->proof.program, NULL, &c->proof.report, &c->proof.diag, &err) : rc;
    if (rc != 0) {
        fail_msg("%s", err.msg);
    }
    c->proof.has_report = true;
    cJSON *json = check_json(&c->proof.report);
    cJSON *explained = whole ? check_explain(&c->proof.report, 16) : NULL;
    check_text(&c->text, &plain, c->proof.program, json, explained);
    cJSON_Delete(explained);
    cJSON_Delete(json);
}

static void release(struct checked *c)
{
    strbuf_release(&c->text);
    proof_release(&c->proof);
}

static void has(const struct checked *c, const char *words)
{
    if (strstr(c->text.buf, words) == NULL) {
        fail_msg("no \"%s\" in:\n%s", words, c->text.buf);
    }
}

static void test_short(void **state)
{
    (void)state;
    struct checked c;
    check_starter(&c, false);
    has(&c, "starter  6 cells, 12 tasks\n");
    has(&c, "table: 6 combinations of levels, 6 rows, 0 holes, 0 clashes\n");
    has(&c, "unmeasured    0.2  witnessed, binds");
    has(&c, "grammar    288    0.25   0.35  3.92 s.e.");
    has(&c, "held fixed: no worker states P_total, ");
    assert_null(strstr(c.text.buf, "unknown: "));
    assert_null(strstr(c.text.buf, "scores that fire"));
    assert_null(strstr(c.text.buf, "equal (the contract)"));
    release(&c);
}

static void test_whole(void **state)
{
    (void)state;
    struct checked c;
    check_starter(&c, true);
    has(&c, "scores that fire an outcome");
    has(&c, "rows: 3 witnessed alone, 3 with others, 0 impossible, 0 not shown\n");
    has(&c, "  row 1  yes, moe -> mixture\n    witnessed alone: grammar: 0.");
    has(&c, "open alone, each of these leaves INDETERMINATE: ");
    has(&c, "partial states\n");
    release(&c);
}

/* The answer of --json says the same, and that it is well. */
static void test_json(void **state)
{
    (void)state;
    struct checked c;
    check_starter(&c, false);
    cJSON *answer = proof_json(&c.proof);
    assert_true(cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "ok")));
    assert_string_equal(cJSON_GetObjectItemCaseSensitive(answer, "program")->valuestring,
                        "starter");
    assert_true(cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(answer, "proof")));
    cJSON_Delete(answer);
    release(&c);
}

/* One file with a fault in every part: each is reported, and nothing that follows from another. */
static const char faults[] =
    "[program]\nname = \"faults\"\nschema = 1\nquestion = \"Which?\"\n"
    "[[factor]]\nname = \"arm\"\nlevels = [\"a\", \"b\"]\n"
    "[[factor]]\nname = \"seed\"\nlevels = [1, 2]\nreplicate = true\n"
    "[stage.score]\ncommand = [\"./absent.py\"]\nparams = { arm = \"$arm\", seed = \"$seed\" }\n"
    "[measure]\nacc = { metric = \"score.acc\", items = 100, chance = 0.25, floor = 0.5 }\n"
    "[contrast]\narm = { between = { arm = [\"a\", \"b\"] } }\n"
    "[counter]\nk = { contrast = \"arm\", clears = \"every_cell\", binds = true }\n"
    "[[input]]\nname = \"cleared\"\n"
    "levels = [[\"yes\", \"counter.kk == 1\"], [\"no\", \"counter.k == 0\"]]\n"
    "[table]\ninputs = [\"cleared\"]\nrows = [[\"yes\", \"up\"]]\n"
    "[outcome]\nup = { prior = 0.5, title = \"Up\" }\ndown = { prior = 0.4, title = \"Down\" }\n"
    "[exclusion]\nbudgett = 0.1\n";

static size_t count_of(const struct diag *diag, const char *words)
{
    size_t n = 0;
    for (size_t i = 0; i < diag->n_items; i++) {
        n += diag->items[i].level == DIAG_ERROR && strstr(diag->items[i].msg, words) != NULL;
    }
    return n;
}

static void test_all_faults_at_once(void **state)
{
    static const struct {
        const char *more; /* appended to the file */
        size_t n_errors;
        const char *words;
    } cases[] = {
        {"", 4, "unknown key \"budgett\""},
        {"", 4, "absent.py"},
        {"", 4, "there is no counter \"kk\""},
        {"", 4, "the table has no row for cleared no"},
        {"[run]\nslots = \"many\"\n", 5, "run.slots"},
        /* what conditions name is not sound: they are not judged */
        {"[counter.l]\ncontrast = \"arm\"\nclears = \"every_cell\"\nbindz = true\n", 4,
         "unknown key \"bindz\""},
        {"[validity]\nv = { condition = \"counter.none == 1\", on_fail = \"flag\" }\n", 5,
         "there is no counter \"none\""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].more);
        char path[] = "/tmp/preregd-faults-XXXXXX";
        struct proof proof;
        struct err err = {0};
        char *text = xasprintf("%s%s", faults, cases[i].more);
        const int fd = mkstemp(path);
        assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
        assert_int_equal(close(fd), 0);
        assert_int_equal(proof_run(path, NULL, &proof, &err), ERR_INVALID);
        assert_null(proof.program);
        if (proof.diag.n_errors != cases[i].n_errors ||
            count_of(&proof.diag, cases[i].words) != 1) {
            diag_print(&proof.diag, stderr);
            fail_msg("case %zu: %zu errors", i, proof.diag.n_errors);
        }
        proof_release(&proof);
        assert_int_equal(unlink(path), 0);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short),
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_all_faults_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
