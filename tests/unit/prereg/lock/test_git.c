/* What git says of a folder, with the real git; and that a repository's own configuration is never
 * executed. */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/lock/git.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/programs.h"
#include "tests/unit/prereg/support.h"

#define GIT "git -c user.name=t -c user.email=t@t -c init.defaultBranch=m "

static int world_make(void **state)
{
    *state = NULL;
    if (program_is_there("git")) {
        char *folder = scratch_make();
        /* nothing of the user's own, and no repository above the scratch folder */
        assert_int_equal(setenv("HOME", folder, 1), 0);
        assert_int_equal(unsetenv("XDG_CONFIG_HOME"), 0);
        *state = folder;
    }
    return 0;
}

static int world_remove(void **state)
{
    if (*state != NULL) {
        scratch_remove(*state);
    }
    return 0;
}

static char *folder_of(void **state)
{
    if (*state == NULL) {
        skip();
    }
    return *state;
}

/* What the caller wrote itself; a name is no pattern. */
static const char *const own[] = {"g[1].lock", "g[1].lock.tsq", NULL};

/* "clean", "not clean" or "null"; the commit must be git's own HEAD. */
static const char *state_of(const char *folder, struct strbuf *note)
{
    cJSON *state = git_state(folder, own, note);
    const char *text = "null";
    if (cJSON_IsObject(state)) {
        text = cJSON_IsTrue(json_member(state, "clean")) ? "clean" : "not clean";
        char *line = xasprintf("test \"$(git rev-parse HEAD)\" = %s",
                               json_member(state, "commit")->valuestring);
        program_run(folder, line);
        free(line);
    }
    cJSON_Delete(state);
    return text;
}

static void assert_state(const char *folder, const char *line, const char *wanted)
{
    struct strbuf note = STRBUF_INIT;
    program_run(folder, line);
    const char *found = state_of(folder, &note);
    if (strcmp(found, wanted) != 0 || note.len != 0) {
        fail_msg("after `%s`: %s, wanted %s; %s", line, found, wanted, note.buf);
    }
    strbuf_release(&note);
}

static void test_states(void **state)
{
    char *folder = path_join(folder_of(state), "plain");
    struct err err;
    assert_int_equal(dir_make(folder, 0700, &err), 0);
    assert_state(folder, "echo a > a", "null");
    assert_state(folder, GIT "init -q", "null");
    assert_state(folder, "git add a; " GIT "commit -q -m a", "clean");
    assert_state(folder, "echo b > b", "not clean");
    assert_state(folder, "echo b > .gitignore; git add .gitignore; " GIT "commit -q -m i", "clean");
    assert_state(folder, "echo more >> a", "not clean");
    assert_state(folder, "git add a", "not clean");
    assert_state(folder, GIT "commit -q -m more", "clean");
    assert_state(folder, "rm a", "not clean");
    assert_state(folder,
                 "git checkout -q a; mkdir d; echo c > d/c; git add d; " GIT "commit -q -m d",
                 "clean");
    char *inner = path_join(folder, "d");
    assert_state(inner, "true", "clean");
    free(inner);
    free(folder);
}

static void test_own_files(void **state)
{
    char *folder = path_join(folder_of(state), "own");
    struct err err;
    assert_int_equal(dir_make(folder, 0700, &err), 0);
    program_run(folder,
                GIT "init -q; mkdir d; echo a > a; echo b > d/b; git add .;" GIT "commit -q -m a");
    assert_state(folder, "echo x > 'g[1].lock'; echo x > 'g[1].lock.tsq'", "clean");
    assert_state(folder, "echo x > g1.lock", "not clean");
    assert_state(folder, "rm g1.lock; git add .; " GIT "commit -q -m lock", "clean");
    assert_state(folder, "echo y > 'g[1].lock'", "clean");
    assert_state(folder, "echo y >> a", "not clean");
    assert_state(folder, "git checkout -q .", "clean");
    char *inner = path_join(folder, "d");
    assert_state(inner, "echo x > 'g[1].lock'", "clean");
    assert_state(inner, "echo y > '../g[1].lock'", "not clean"); /* of another folder */
    free(inner);
    free(folder);
}

/* Each way in which a repository can name a program that a plain `git status` would run. */
static void test_hostile_repository(void **state)
{
    char *folder = path_join(folder_of(state), "hostile");
    struct err err;
    assert_int_equal(dir_make(folder, 0700, &err), 0);
    free(scratch_write(folder, "evil.sh", "#!/bin/sh\ntouch \"$0.ran\"\ncat\n", 0700));
    program_run(folder, GIT
                "init -q; echo a > a; echo b > b; git add a b evil.sh; " GIT "commit -q -m a;"
                "echo 'a filter=x=y.z' > .gitattributes; echo 'b filter=p' >> .gitattributes;"
                "git add .gitattributes; " GIT "commit -q -m attributes;"
                "git config core.fsmonitor $PWD/evil.sh; git config core.hooksPath $PWD/hooks;"
                "mkdir hooks; cp evil.sh hooks/post-index-change; echo hooks > .git/info/exclude;"
                "echo '*.ran' >> .git/info/exclude;"
                "git config 'filter.x=y.z.clean' $PWD/evil.sh;"
                "git config 'filter.x=y.z.required' true;"
                "git config filter.p.process $PWD/evil.sh; git config filter.p.required true;"
                "git config core.pager $PWD/evil.sh; git config diff.external $PWD/evil.sh;"
                "sleep 0.01; touch a b");
    assert_state(folder, "true", "clean");
    program_run(folder, "test -z \"$(find . -name '*.ran')\"");
    assert_state(folder, "echo c >> a", "not clean");
    program_run(folder, "test -z \"$(find . -name '*.ran')\"");
    /* the trap is a real one: git by itself does run it */
    program_run(folder,
                "git status --porcelain >/dev/null 2>&1; test -n \"$(find . -name '*.ran')\"");
    free(folder);
}

static void test_no_answer(void **state)
{
    char *folder = path_join(folder_of(state), "torn");
    struct strbuf note = STRBUF_INIT;
    struct err err;
    assert_int_equal(dir_make(folder, 0700, &err), 0);
    program_run(folder, GIT "init -q; echo '[core' > .git/config");
    assert_string_equal(state_of(folder, &note), "null");
    assert_non_null(strstr(note.buf, "git commit"));
    strbuf_clear(&note);
    char *path = xstrdup(getenv("PATH"));
    assert_int_equal(setenv("PATH", folder, 1), 0);
    cJSON *got = git_state(folder, own, &note);
    assert_int_equal(setenv("PATH", path, 1), 0);
    assert_true(cJSON_IsNull(got));
    assert_true(note.len > 0);
    cJSON_Delete(got);
    free(path);
    strbuf_release(&note);
    free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_own_files),
        cmocka_unit_test(test_hostile_repository),
        cmocka_unit_test(test_no_answer),
    };
    return cmocka_run_group_tests(tests, world_make, world_remove);
}
