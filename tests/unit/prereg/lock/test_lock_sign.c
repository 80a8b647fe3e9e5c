/* Signed locks: what the signature covers, when a lock is taken, what replaces what. */
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/lock/lock_sign.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/programs.h"
#include "tests/unit/prereg/support.h"

static const char COMMIT[] = "0123456789012345678901234567890123456789";

struct world {
    char *folder;
    struct plan_program *program;
    char *lock_path;
    char *alice;
    char *bob;
    char *allowed; /* alice alone */
};

static int world_make(void **state)
{
    if (!program_is_there("ssh-keygen")) {
        *state = NULL;
        return 0;
    }
    struct world *w = xcalloc(1, sizeof(*w));
    w->folder = scratch_make();
    free(scratch_write(w->folder, "corpus.txt", "once upon a time\n", 0600));
    free(scratch_write(w->folder, "worker.sh", "#!/bin/sh\nexit 0\n", 0700));
    w->program = program_of(SMALL_PROGRAM, w->folder);
    w->lock_path = path_join(w->folder, "grid.toml.lock");
    program_make_key(w->folder, "alice", "");
    program_make_key(w->folder, "bob", "");
    w->alice = path_join(w->folder, "alice");
    w->bob = path_join(w->folder, "bob");
    w->allowed = program_allow(w->folder, "allowed", "alice@lab", "alice");
    *state = w;
    return 0;
}

static int world_remove(void **state)
{
    struct world *w = *state;
    if (w != NULL) {
        program_free(w->program);
        scratch_remove(w->folder);
        free(w->lock_path);
        free(w->alice);
        free(w->bob);
        free(w->allowed);
        free(w);
    }
    return 0;
}

static struct world *world_of(void **state)
{
    if (*state == NULL) {
        skip();
    }
    return *state;
}

/* A lock of the small program in memory, signed unless key is NULL. */
static struct lock *lock_by(const struct world *w, const char *key)
{
    struct lock *lock = NULL;
    struct err err = {0};
    cJSON *git = json_object();
    json_put_string(git, "commit", COMMIT);
    json_put_bool(git, "clean", true);
    assert_int_equal(lock_build(w->program, NULL, NULL, &lock, &err), 0);
    lock_set_git(lock, git);
    if (key != NULL && lock_sign(lock, key, NULL, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    return lock;
}

static int check(const struct world *w, const struct lock *lock, const char *allowed,
                 char principal[32], struct err *err)
{
    struct signature_check found;
    int rc = lock_check_signer(w->program, lock, allowed, &found, err);
    principal[0] = '\0';
    if (found.principal != NULL) {
        assert_true(strlen(found.principal) < 32);
        memcpy(principal, found.principal, strlen(found.principal) + 1);
    }
    signature_check_release(&found);
    return rc;
}

static struct lock *read_back(const struct world *w)
{
    struct lock *lock = NULL;
    struct err err = {0};
    if (lock_read(w->lock_path, &lock, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    return lock;
}

static void test_through_a_file(void **state)
{
    struct world *w = world_of(state);
    struct lock *lock = lock_by(w, w->alice);
    struct err err = {0};
    char principal[32];
    assert_int_equal(lock_write(lock, w->lock_path, true, &err), 0);
    lock_free(lock);
    lock = read_back(w);
    assert_int_equal(check(w, lock, w->allowed, principal, &err), 0);
    assert_string_equal(principal, "alice@lab");
    assert_string_equal(json_member(lock->git, "commit")->valuestring, COMMIT);
    assert_int_equal(check(w, lock, NULL, principal, &err), 0);
    lock_free(lock);
}

/* Everything in the file is covered, not only what the root is of. */
static void test_what_is_covered(void **state)
{
    struct world *w = world_of(state);
    struct lock *lock = lock_by(w, w->alice);
    struct err err = {0};
    char principal[32];
    for (const cJSON *m = lock->json->child; m != NULL; m = m->next) {
        struct lock *other = lock_by(w, NULL);
        if (strcmp(m->string, "signature") == 0) {
            lock_free(other);
            continue;
        }
        cJSON_Delete(other->json);
        other->json = json_copy(lock->json);
        other->signature = json_member(other->json, "signature");
        cJSON_DeleteItemFromObjectCaseSensitive(other->json, m->string);
        json_put_string(other->json, m->string, "changed");
        if (check(w, other, NULL, principal, &err) != ERR_LOCK) {
            fail_msg("%s is not covered", m->string);
        }
        lock_free(other);
    }
    json_put_bool(lock->json, "more", true);
    assert_int_equal(check(w, lock, NULL, principal, &err), ERR_LOCK);
    lock_free(lock);
}

static void test_who_may(void **state)
{
    struct world *w = world_of(state);
    struct lock *unsigned_one = lock_by(w, NULL);
    struct lock *by_alice = lock_by(w, w->alice);
    struct lock *by_bob = lock_by(w, w->bob);
    const struct {
        bool required;
        const struct lock *lock;
        const char *allowed;
        int rc;
    } cases[] = {
        {false, unsigned_one, NULL, 0},
        {false, unsigned_one, w->allowed, 0},
        {true, unsigned_one, NULL, ERR_REFUSED},
        {true, unsigned_one, w->allowed, ERR_REFUSED},
        {true, by_alice, NULL, 0},
        {true, by_alice, w->allowed, 0},
        {true, by_bob, NULL, 0},
        {true, by_bob, w->allowed, ERR_REFUSED},
        {false, by_bob, w->allowed, ERR_REFUSED},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].allowed);
        struct err err = {0};
        char principal[32];
        w->program->sign_required = cases[i].required;
        int rc = check(w, cases[i].lock, cases[i].allowed, principal, &err);
        w->program->sign_required = false;
        if (rc != cases[i].rc) {
            fail_msg("case %zu: %d %s", i, rc, err.msg);
        }
    }
    struct err err = {0};
    assert_int_equal(lock_sign(unsigned_one, w->bob, w->allowed, &err), ERR_REFUSED);
    assert_null(unsigned_one->signature);
    lock_free(unsigned_one);
    lock_free(by_alice);
    lock_free(by_bob);
}

/* Whose lock lies there after a second one was written over it. */
static void test_what_replaces_what(void **state)
{
    struct world *w = world_of(state);
    const struct {
        const char *first; /* key, or NULL for none */
        const char *second;
        bool replace;
        int rc;
        const char *left;
    } cases[] = {
        {NULL, NULL, false, 0, NULL},
        {NULL, w->alice, false, 0, w->alice},
        {w->alice, NULL, false, 0, w->alice},
        {w->alice, w->alice, false, 0, w->alice},
        {w->alice, w->bob, false, ERR_EXISTS, w->alice},
        {w->alice, w->bob, true, 0, w->bob},
        {w->alice, NULL, true, 0, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].first);
        struct lock *first = lock_by(w, cases[i].first);
        struct lock *second = lock_by(w, cases[i].second);
        struct lock *wanted = lock_by(w, cases[i].left);
        struct err err = {0};
        program_run(w->folder, "rm -f grid.toml.lock");
        assert_int_equal(lock_write(first, w->lock_path, false, &err), 0);
        int rc = lock_write(second, w->lock_path, cases[i].replace, &err);
        struct lock *left = read_back(w);
        const char *a =
            left->signature == NULL ? "" : json_member(left->signature, "fingerprint")->valuestring;
        const char *b = wanted->signature == NULL
                            ? ""
                            : json_member(wanted->signature, "fingerprint")->valuestring;
        if (rc != cases[i].rc || strcmp(a, b) != 0) {
            fail_msg("case %zu: %d %s; by %s", i, rc, err.msg, a);
        }
        lock_free(first);
        lock_free(second);
        lock_free(wanted);
        lock_free(left);
    }
}

/* Files whose signature or commit is no such thing; the root holds in all of them. */
static void test_torn_files(void **state)
{
    struct world *w = world_of(state);
    char *absurd = xmalloc(SIGNATURE_BYTES_MAX + 2);
    memset(absurd, 'A', SIGNATURE_BYTES_MAX + 1);
    absurd[SIGNATURE_BYTES_MAX + 1] = '\0';
    const struct {
        const char *member; /* of "signature", or of the lock after a slash */
        const char *value;
    } cases[] = {{"armored", absurd}, {"armored", ""}, {"format", "pgp"},  {"namespace", "git"},
                 {"unknown", "x"},    {"/git", "x"},   {"/signature", "x"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].member);
        struct lock *lock = lock_by(w, w->alice);
        bool outer = cases[i].member[0] == '/';
        const char *member = cases[i].member + (outer ? 1 : 0);
        cJSON *in = outer ? lock->json : cJSON_GetObjectItemCaseSensitive(lock->json, "signature");
        struct lock *got = NULL;
        struct err err = {0};
        cJSON_DeleteItemFromObjectCaseSensitive(in, member);
        json_put_string(in, member, cases[i].value);
        assert_int_equal(json_write_file(w->lock_path, lock->json, 0600, &err), 0);
        if (lock_read(w->lock_path, &got, &err) != ERR_LOCK || got != NULL) {
            fail_msg("%s: %s", cases[i].member, err.msg);
        }
        lock_free(lock);
    }
    program_run(w->folder, "rm grid.toml.lock");
    free(absurd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_through_a_file), cmocka_unit_test(test_what_is_covered),
        cmocka_unit_test(test_who_may),        cmocka_unit_test(test_what_replaces_what),
        cmocka_unit_test(test_torn_files),
    };
    (void)unsetenv("SSH_AUTH_SOCK");
    return cmocka_run_group_tests(tests, world_make, world_remove);
}
