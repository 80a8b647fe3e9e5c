/* serve.toml: what is read of it, and everything that keeps a daemon from starting. */
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/strbuf.h"
#include "base/xalloc.h"
#include "daemon/shell/settings.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

static void test_taken(void **state)
{
    (void)state;
    char *root = scratch_make();
    char *own = path_join(root, "state");
    const struct group *g = getgrgid(0);
    assert_non_null(g);
    char *text =
        xasprintf("[serve]\nreaders = [\"%s\"]\nfolder = \"%s/readers\"\n", g->gr_name, root);
    scratch_put(root, "state/serve.toml", text);
    struct settings s;
    struct err err = {0};
    assert_int_equal(settings_read(own, &s, &err), 0);
    assert_int_equal(s.readers.n_groups, 1);
    assert_int_equal(s.readers.groups[0], 0);
    assert_string_equal(path_name(s.readers.folder), "readers");
    settings_release(&s);
    free(text);
    free(own);
    scratch_remove(root);
}

/* Nothing is offered without the file, and by one that names no group. */
static void test_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {NULL, "", "[serve]\n", "[serve]\nreaders = []\n",
                                        "[serve]\nfolder = \"/tmp/x\"\n"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CHECK_ROW("%zu", i);
        char *root = scratch_make();
        if (texts[i] != NULL) {
            scratch_put(root, "serve.toml", texts[i]);
        }
        struct settings s;
        struct err err = {0};
        assert_int_equal(settings_read(root, &s, &err), 0);
        assert_null(s.readers.folder);
        assert_int_equal(s.readers.n_groups, 0);
        settings_release(&s);
        scratch_remove(root);
    }
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text; /* STATE stands for the folder */
        const char *message;
    } rows[] = {
        {"[serve", "serve.toml:1:"},
        {"[serve]\nreader = []\n", "serve.toml:2:1: reader: unknown; expected readers or folder"},
        {"[other]\n", "other: unknown; expected [serve]"},
        {"serve = 1\n", "serve: expected a table"},
        {"[serve]\nreaders = \"lab\"\n", "expected an array of names of groups"},
        {"[serve]\nreaders = [1]\n", "expected names of groups"},
        {"[serve]\nreaders = [\"no such group\"]\nfolder = \"/tmp/x\"\n",
         "no group \"no such group\""},
        {"[serve]\nreaders = [\"root\"]\n", "serve.folder is missing"},
        {"[serve]\nreaders = [\"root\"]\nfolder = \"x\"\n", "expected the absolute path"},
        {"[serve]\nreaders = [\"root\"]\nfolder = \"/\"\n", "expected the absolute path"},
        {"[serve]\nreaders = [\"root\"]\nfolder = 1\n", "expected the absolute path"},
        {"[serve]\nreaders = [\"root\"]\nfolder = \"/nowhere/at/all\"\n",
         "/nowhere/at: no such folder"},
        {"[serve]\nreaders = [\"root\"]\nfolder = \"STATE/readers\"\n",
         "outside of the state folder"},
        {"[serve]\nreaders = [\"root\"]\nfolder = \"STATE/programs/../readers\"\n",
         "outside of the state folder"},
        {"[serve]\nreaders = [\"\xff\"]\n", "not UTF-8"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%s", rows[i].message);
        char *root = scratch_make();
        char *programs = path_join(root, "programs");
        struct strbuf text = STRBUF_INIT;
        const char *at = strstr(rows[i].text, "STATE");
        strbuf_add(&text, rows[i].text,
                   at == NULL ? strlen(rows[i].text) : (size_t)(at - rows[i].text));
        if (at != NULL) {
            strbuf_addf(&text, "%s%s", root, at + 5);
        }
        assert_int_equal(mkdir(programs, 0700), 0);
        scratch_put(root, "serve.toml", text.buf);
        struct settings s;
        struct err err = {0};
        assert_int_equal(settings_read(root, &s, &err), ERR_INVALID);
        if (strstr(err.msg, rows[i].message) == NULL) {
            fail_msg("\"%s\" does not hold \"%s\"", err.msg, rows[i].message);
        }
        settings_release(&s);
        strbuf_release(&text);
        free(programs);
        scratch_remove(root);
    }
}

/* More than the owner could have written it. */
static void test_modes(void **state)
{
    (void)state;
    static const unsigned modes[] = {0644, 0640, 0620, 0602, 0666};
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        CHECK_ROW("%o", modes[i]);
        char *root = scratch_make();
        char *path = scratch_write(root, "serve.toml", "", 0600);
        assert_int_equal(chmod(path, modes[i]), 0);
        struct settings s;
        struct err err = {0};
        assert_int_equal(settings_read(root, &s, &err), ERR_REFUSED);
        assert_non_null(strstr(err.msg, "chmod 600"));
        settings_release(&s);
        free(path);
        scratch_remove(root);
    }
    char *root = scratch_make();
    char *path = path_join(root, "serve.toml");
    scratch_put(root, "other", "");
    assert_int_equal(symlink("other", path), 0);
    struct settings s;
    struct err err = {0};
    assert_int_equal(settings_read(root, &s, &err), ERR_REFUSED);
    settings_release(&s);
    free(path);
    scratch_remove(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_modes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
