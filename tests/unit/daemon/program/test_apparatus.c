/* What a check's worker says last: the last line of its stderr.log, whatever lies in its place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "daemon/program/apparatus.h"
#include "daemon/shim/files.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

static void expect_words(const char *folder, const char *wanted)
{
    char text[32] = "as it was";
    (void)alarm(20); /* one that waits for a writer waits for ever */
    apparatus_last_words(folder, text, sizeof(text));
    (void)alarm(0);
    assert_string_equal(text, wanted);
}

static void test_last_words(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"\n\n", ""},
        {"no such model", "no such model"},
        {"first\nlast\n\n", "last"},
        {"bad \xFF\n", "bad ?"},
        {"0123456789012345678901234567890123456789", "0123456789012345678901234567890"},
        {"012345678901234567890123456789\xC3\xA9", "012345678901234567890123456789?"},
    };
    char *folder = scratch_make();
    struct err err = {0};
    (void)state;
    char *path = path_join(folder, LAYOUT_STDERR);
    expect_words(folder, ""); /* none */
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i][0]);
        assert_int_equal(file_write_atomic(path, cases[i][0], strlen(cases[i][0]), 0600, &err), 0);
        expect_words(folder, cases[i][1]);
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_words(folder, "");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/hostname", path), 0);
    expect_words(folder, "");
    free(path);
    scratch_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_last_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
