/* prereg/lock/environment: the list of an environment, and what cannot be listed. */
#include "prereg/lock/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json/json.h"
#include "base/strbuf.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

#define SITE "env/lib/python3.11/site-packages/"
/* SHA-256 of "x\n" as a RECORD has it. */
#define HASH_X "c8s4WKaHqElMozIwUwFigvPa051Cz2LKTnndoqrH2aw"

/* An environment of one package with one file and this RECORD. */
static void make(const char *record)
{
    scratch_put(scratch_folder, "env/bin/python3", "interpreter\n");
    scratch_put(scratch_folder, "env/pyvenv.cfg",
                "home = /usr\ninclude-system-site-packages = false\nversion = 3.11.7\n");
    scratch_put(scratch_folder, SITE "tool/x.py", "x\n");
    scratch_put(scratch_folder, SITE "tool-1.2.dist-info/RECORD", record);
}

static int list(cJSON **out, struct err *err)
{
    char *path = xasprintf("%s/env", scratch_folder);
    int rc = environment_list(NULL, path, out, err);
    free(path);
    return rc;
}

/* Each RECORD, the code of the list, and a part of its message. */
static void test_records(void **state)
{
    static const struct {
        const char *record;
        int code;
        const char *said;
    } rows[] = {
        {"tool/x.py,sha256=" HASH_X ",2\ntool-1.2.dist-info/RECORD,,\n", 0, ""},
        {"\"tool/x.py\",sha256=" HASH_X ",2\r\ntool-1.2.dist-info/RECORD,,", 0, ""},
        {"tool/x.py,sha256=A" HASH_X ",2\n", ERR_INVALID, "line 1: expected PATH"},
        {"tool/x.py,md5=" HASH_X ",2\n", ERR_INVALID, "line 1: expected PATH"},
        {"tool/x.py\n", ERR_INVALID, "line 1: expected PATH"},
        {"tool-1.2.dist-info/RECORD,,\ntool/"
         "x.py,sha256=!8s4WKaHqElMozIwUwFigvPa051Cz2LKTnndoqrH2aw,2\n",
         ERR_INVALID, "line 2: expected PATH"},
        {"tool/x.py,sha256=A8s4WKaHqElMozIwUwFigvPa051Cz2LKTnndoqrH2aw,2\n", ERR_LOCK,
         "tool: tool/x.py differs from its RECORD: install it again (docs/locks.md)"},
        {"tool/y.py,sha256=" HASH_X ",2\n", ERR_LOCK,
         "its RECORD names it: install it again (docs/locks.md)"},
        {"../../../bin/python3,sha256=" HASH_X ",2\n", ERR_LOCK, "bin/python3 differs"},
        {"../../../../x.py,sha256=" HASH_X ",2\n", ERR_INVALID, "not a file of this environment"},
        {"/etc/passwd,sha256=" HASH_X ",2\n", ERR_INVALID, "not a file of this environment"},
        {"tool,sha256=" HASH_X ",2\n", ERR_INVALID, "not a file of this environment"},
        {"../../../bin/tool,,\n", ERR_INVALID, "has no digest of ../../../bin/tool"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%s", rows[i].record);
        cJSON *found = NULL;
        struct err err = {0};
        make(rows[i].record);
        assert_int_equal(list(&found, &err), rows[i].code);
        assert_true(rows[i].code == 0 || strstr(err.msg, rows[i].said) != NULL);
        assert_true((found != NULL) == (rows[i].code == 0));
        cJSON_Delete(found);
    }
}

/* A conda prefix has no pyvenv.cfg, and a list of its own. */
static void test_conda(void **state)
{
    (void)state;
    cJSON *found = NULL;
    struct err err = {0};
    make("tool/x.py,sha256=" HASH_X ",2\n,,\ntool-1.2.dist-info/RECORD,,\ntool/bare.py,,\n");
    scratch_put(scratch_folder, SITE "loose.py", "x\n");
    scratch_put(scratch_folder, SITE "tool/bare.py", "its RECORD has no digest\n");
    scratch_put(scratch_folder, SITE "alone.pyc", "a module without a source\n");
    scratch_put(scratch_folder, SITE "tool/__pycache__/x.pyc", "rewritten by Python\n");
    scratch_put(scratch_folder, "env/conda-meta/zlib-1.3-h4a8_0.json", "{}");
    scratch_put(scratch_folder, "env/conda-meta/history", "not one of the list");
    char *cfg = xasprintf("%s/env/pyvenv.cfg", scratch_folder);
    assert_int_equal(remove(cfg), 0);
    free(cfg);
    assert_int_equal(list(&found, &err), 0);
    assert_int_equal(cJSON_GetArraySize(json_member(found, "conda")), 1);
    assert_int_equal(cJSON_GetArraySize(json_member(found, "loose")), 3);
    assert_non_null(json_member(json_member(found, "loose"), "loose.py"));
    assert_non_null(json_member(json_member(found, "loose"), "tool/bare.py"));
    assert_non_null(json_member(json_member(found, "loose"), "alone.pyc"));
    assert_string_equal(json_member(json_member(found, "python"), "version")->valuestring, "3.11");
    assert_string_equal(
        json_member(json_member(json_member(found, "packages"), "tool"), "version")->valuestring,
        "1.2");
    cJSON_Delete(found);
}

static char *in_scratch(const char *name)
{
    return xasprintf("%s/%s", scratch_folder, name);
}

static void put_link(const char *target, const char *name)
{
    char *path = in_scratch(name);
    assert_int_equal(symlink(target, path), 0);
    free(path);
}

/* A tree of folders that is deeper than any package. */
static void put_deep(void)
{
    struct strbuf name = STRBUF_INIT;
    strbuf_adds(&name, SITE);
    for (int i = 0; i < 70; i++) {
        strbuf_adds(&name, "d/");
    }
    strbuf_adds(&name, "x.py");
    scratch_put(scratch_folder, name.buf, "x\n");
    strbuf_release(&name);
}

/* Each harm, done to an environment that is good, and a part of the message; NULL: it is still
 * good. A file is written with this text, or a link is made to `target`. */
static void test_harms(void **state)
{
    static const struct {
        const char *name;
        const char *text;
        const char *target;
        const char *said;
    } rows[] = {
        {"env/pyvenv.cfg", "include-system-site-packages = true\n", NULL, "uses the system's"},
        {"env/pyvenv.cfg", "Include-System-Site-Packages=TRUE", NULL, "uses the system's"},
        {"env/pyvenv.cfg",
         "include-system-site-packages = false\ninclude-system-site-packages = true\n", NULL,
         "uses the system's"},
        {"env/pyvenv.cfg",
         "include-system-site-packages = true\ninclude-system-site-packages = false\n", NULL, NULL},
        {"env/pyvenv.cfg", "not a setting\n= \n", NULL, NULL},
        {SITE "a.pth", "# a comment\n\n \t\nimport x\n", NULL, NULL},
        {SITE "a.pth", "import x\r/elsewhere\n", NULL, "a.pth leads to /elsewhere"},
        {SITE "a.pth", "imports\n", NULL, "a.pth leads to imports"},
        {SITE "a.pth", "..", NULL, "a.pth leads to .."},
        {SITE "tool/a.pth", "/elsewhere", NULL, NULL}, /* Python reads those of site-packages */
        {SITE "tool-1.3.dist-info/RECORD", "", NULL, "tool is installed twice"},
        {SITE "bare-1.0.dist-info/METADATA", "", NULL, "bare has no RECORD"},
        {SITE "tool-1.2.dist-info/direct_url.json", "{\"dir_info\":{\"editable\":true}}", NULL,
         "a link to its sources"},
        {SITE "tool-1.2.dist-info/direct_url.json", "{\"dir_info\":{}}", NULL, NULL},
        {SITE "gone.py", NULL, "nowhere", "a link that leads nowhere"},
        {SITE "loop", NULL, "loop", ""},
        {SITE "around", NULL, ".", ""},
        {SITE "tool/more.py", NULL, "x.py", NULL},
        {"env/lib/python3.12/site-packages/y.py", "y\n", NULL, "found 2"},
        {SITE "deep", "", NULL, "folders too deep"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%s: %s", rows[i].name, rows[i].text == NULL ? rows[i].target : rows[i].text);
        cJSON *found = NULL;
        struct err err = {0};
        scratch_leave(state);
        scratch_enter(state);
        make("tool/x.py,sha256=" HASH_X ",2\ntool-1.2.dist-info/RECORD,,\n");
        if (strcmp(rows[i].name, SITE "deep") == 0) {
            put_deep();
        } else if (rows[i].target != NULL) {
            put_link(rows[i].target, rows[i].name);
        } else {
            scratch_put(scratch_folder, rows[i].name, rows[i].text);
        }
        const int rc = list(&found, &err);
        assert_true((rc == 0) == (rows[i].said == NULL));
        assert_true(rc == 0 || strstr(err.msg, rows[i].said) != NULL);
        cJSON_Delete(found);
    }
}

/* Two lists, and what is said of their difference; NULL: nothing. */
static void test_compare(void **state)
{
    static const char same[] = "{\"python\":{\"version\":\"3\"},\"packages\":{\"a\":{\"version\":"
                               "\"1\",\"record\":\"00\"}},\"loose\":{},\"conda\":{}}";
    static const struct {
        const char *locked;
        const char *said;
    } rows[] = {
        {same, NULL},
        {"{\"python\":{\"version\":\"2\"},\"packages\":{},\"loose\":{},\"conda\":{}}",
         "Python 2 was locked, 3 is installed"},
        {"{\"python\":{\"version\":\"3\"},\"packages\":{},\"loose\":{},\"conda\":{}}",
         "a 1 is installed, and was not locked"},
        {"{\"python\":{\"version\":\"3\"},\"packages\":{\"a\":{\"version\":\"1\",\"record\":\"01\"}"
         "},"
         "\"loose\":{},\"conda\":{}}",
         "a 1 is installed with other files"},
        {"{\"python\":{\"version\":\"3\"},\"packages\":{\"a\":{\"version\":\"1\",\"record\":\"00\"}"
         "},"
         "\"loose\":{\"b.py\":\"00\"},\"conda\":{}}",
         "b.py was locked, and is gone"},
        {"{\"python\":{\"version\":\"3\"},\"packages\":[],\"loose\":{},\"conda\":{}}",
         "has no \"packages\""},
        {"{\"image\":\"00\"}", "image 00 was locked, ? has its name now"},
        {"7", "not in the lock"},
        {"{}", "was not locked"},
    };
    (void)state;
    cJSON *now = NULL;
    struct err err = {0};
    assert_int_equal(json_parse(same, strlen(same), &now, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%s", rows[i].locked);
        cJSON *locked = NULL;
        assert_int_equal(json_parse(rows[i].locked, strlen(rows[i].locked), &locked, &err), 0);
        assert_int_equal(environment_compare(locked, now, &err),
                         rows[i].said == NULL ? 0 : ERR_LOCK);
        assert_true(rows[i].said == NULL || strstr(err.msg, rows[i].said) != NULL);
        cJSON_Delete(locked);
    }
    cJSON_Delete(now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_records, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(test_conda, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(test_harms, scratch_enter, scratch_leave),
        cmocka_unit_test(test_compare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
