/* Signatures by the real ssh-keygen, with keys of the test's own. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/lock/signature.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/programs.h"
#include "tests/unit/prereg/support.h"

static const char MESSAGE[] = "{\"root\":\"00ff\"}";

struct world {
    char *folder;
    char *key;
    char *other;
    char *armored; /* of MESSAGE by key */
};

static int world_make(void **state)
{
    if (!program_is_there("ssh-keygen")) {
        *state = NULL;
        return 0;
    }
    struct world *w = xcalloc(1, sizeof(*w));
    struct strbuf armored = STRBUF_INIT;
    struct err err = {0};
    w->folder = scratch_make();
    program_make_key(w->folder, "alice", "");
    program_make_key(w->folder, "bob", "");
    w->key = path_join(w->folder, "alice");
    w->other = path_join(w->folder, "bob");
    if (signature_make(w->key, MESSAGE, strlen(MESSAGE), &armored, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    w->armored = strbuf_detach(&armored);
    *state = w;
    return 0;
}

static int world_remove(void **state)
{
    struct world *w = *state;
    if (w != NULL) {
        scratch_remove(w->folder);
        free(w->key);
        free(w->other);
        free(w->armored);
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

static void test_good(void **state)
{
    struct world *w = world_of(state);
    char *allowed = program_allow(w->folder, "good", "alice@lab,second@lab", "alice");
    struct signature_check c;
    struct err err = {0};
    assert_int_equal(signature_check(w->armored, MESSAGE, strlen(MESSAGE), allowed, &c, &err), 0);
    assert_true(c.valid && c.allowed);
    assert_string_equal(c.principal, "alice@lab");
    assert_memory_equal(c.fingerprint, "SHA256:", 7);
    signature_check_release(&c);
    assert_int_equal(signature_check(w->armored, MESSAGE, strlen(MESSAGE), NULL, &c, &err), 0);
    assert_true(c.valid && !c.allowed);
    assert_null(c.principal);
    signature_check_release(&c);
    free(allowed);
}

/* Same-length texts that differ from the real one in one way each. */
static void test_not_a_signature(void **state)
{
    struct world *w = world_of(state);
    char *middle = xstrdup(w->armored);
    middle[strlen(middle) / 2] = middle[strlen(middle) / 2] == 'A' ? 'B' : 'A';
    char *torn = xstrndup(w->armored, strlen(w->armored) / 2);
    char *more = xasprintf("%sand more\n", w->armored);
    char *huge = xmalloc(SIGNATURE_BYTES_MAX + 200);
    memset(huge, 'A', SIGNATURE_BYTES_MAX + 200);
    memcpy(huge, w->armored, 30);
    memcpy(huge + SIGNATURE_BYTES_MAX + 100, "\n-----END SSH SIGNATURE-----\n",
           sizeof("\n-----END SSH SIGNATURE-----\n"));
    const struct {
        const char *armored;
        const char *message;
    } cases[] = {
        {w->armored, "{\"root\":\"00fe\"}"},
        {w->armored, ""},
        {middle, MESSAGE},
        {torn, MESSAGE},
        {more, MESSAGE},
        {huge, MESSAGE},
        {"", MESSAGE},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct signature_check c;
        struct err err = {0};
        int rc = signature_check(cases[i].armored, cases[i].message, strlen(cases[i].message), NULL,
                                 &c, &err);
        if (rc != ERR_LOCK || c.valid) {
            fail_msg("case %zu: %d %s", i, rc, err.msg);
        }
        signature_check_release(&c);
    }
    free(middle);
    free(torn);
    free(more);
    free(huge);
}

static void test_other_namespace(void **state)
{
    struct world *w = world_of(state);
    char *path = scratch_write(w->folder, "message", MESSAGE, 0600);
    struct signature_check c;
    struct err err = {0};
    program_run(w->folder, "ssh-keygen -q -Y sign -n file -f alice message");
    char *sig = path_join(w->folder, "message.sig");
    char *armored = scratch_read(sig);
    assert_int_equal(signature_check(armored, MESSAGE, strlen(MESSAGE), NULL, &c, &err), ERR_LOCK);
    assert_false(c.valid);
    signature_check_release(&c);
    free(armored);
    free(sig);
    free(path);
}

static void test_not_allowed(void **state)
{
    struct world *w = world_of(state);
    char *empty = scratch_write(w->folder, "empty", "", 0600);
    char *torn = scratch_write(w->folder, "torn", "alice@lab ssh-ed25519\nnonsense\n", 0600);
    char *bob = program_allow(w->folder, "only_bob", "bob@lab", "bob");
    char *file = program_allow(w->folder, "only_file", "alice@lab namespaces=\"file\"", "alice");
    char *past = program_allow(w->folder, "past", "alice@lab valid-before=\"20200101\"", "alice");
    const char *const lists[] = {empty, torn, bob, file, past};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        CHECK_ROW("%s", lists[i]);
        struct signature_check c;
        struct err err = {0};
        int rc = signature_check(w->armored, MESSAGE, strlen(MESSAGE), lists[i], &c, &err);
        if (rc != ERR_REFUSED || !c.valid || c.allowed || c.principal != NULL) {
            fail_msg("%s: %d %s", lists[i], rc, err.msg);
        }
        assert_non_null(strstr(err.msg, "SHA256:"));
        signature_check_release(&c);
        free((char *)(uintptr_t)lists[i]);
    }
}

static void test_keys_that_do_not_sign(void **state)
{
    struct world *w = world_of(state);
    program_make_key(w->folder, "secret", "open sesame");
    char *none = path_join(w->folder, "nobody");
    char *text = scratch_write(w->folder, "text", "no key\n", 0600);
    char *secret = path_join(w->folder, "secret");
    const struct {
        const char *path;
        int rc;
    } cases[] = {{none, ERR_NOT_FOUND},
                 {w->folder, ERR_NOT_FOUND},
                 {text, ERR_REFUSED},
                 {secret, ERR_REFUSED}};
    struct mono_time start = clock_mono();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct strbuf armored = STRBUF_INIT;
        struct err err = {0};
        int rc = signature_make(cases[i].path, MESSAGE, strlen(MESSAGE), &armored, &err);
        if (rc != cases[i].rc || armored.len != 0) {
            fail_msg("%s: %d %s", cases[i].path, rc, err.msg);
        }
        strbuf_release(&armored);
    }
    assert_true(clock_mono().ms - start.ms < 20000); /* nobody was waited for */
    free(none);
    free(text);
    free(secret);
}

/* A key with a passphrase, by way of an agent that holds it; only the public half is at hand. */
static void test_agent(void **state)
{
    struct world *w = world_of(state);
    if (!program_is_there("ssh-agent")) {
        skip();
    }
    program_make_key(w->folder, "held", "open sesame");
    program_run(w->folder, "printf '#!/bin/sh\\necho open sesame\\n' > ask; chmod 700 ask;"
                           "ssh-agent -a agent.sock > agent.sh;"
                           "SSH_AUTH_SOCK=$PWD/agent.sock SSH_ASKPASS=$PWD/ask"
                           " SSH_ASKPASS_REQUIRE=force ssh-add -q held; mv held gone");
    char *sock = path_join(w->folder, "agent.sock");
    char *public_half = path_join(w->folder, "held.pub");
    struct strbuf armored = STRBUF_INIT;
    struct err err = {0};
    assert_int_equal(setenv("SSH_AUTH_SOCK", sock, 1), 0);
    int rc = signature_make(public_half, MESSAGE, strlen(MESSAGE), &armored, &err);
    assert_int_equal(unsetenv("SSH_AUTH_SOCK"), 0);
    program_run(w->folder, ". ./agent.sh >/dev/null; kill $SSH_AGENT_PID");
    if (rc != 0) {
        fail_msg("%s", err.msg);
    }
    struct signature_check c;
    assert_int_equal(signature_check(armored.buf, MESSAGE, strlen(MESSAGE), NULL, &c, &err), 0);
    signature_check_release(&c);
    strbuf_release(&armored);
    free(sock);
    free(public_half);
}

static void test_no_program(void **state)
{
    struct world *w = world_of(state);
    char *path = xstrdup(getenv("PATH"));
    struct signature_check c;
    struct err err = {0};
    assert_int_equal(setenv("PATH", w->folder, 1), 0);
    int rc = signature_check(w->armored, MESSAGE, strlen(MESSAGE), NULL, &c, &err);
    assert_int_equal(setenv("PATH", path, 1), 0);
    assert_int_equal(rc, ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, "openssh-client"));
    signature_check_release(&c);
    free(path);
}

static void test_json(void **state)
{
    struct world *w = world_of(state);
    cJSON *made = NULL;
    struct signature_check c;
    struct err err = {0};
    size_t len = strlen(MESSAGE);
    assert_int_equal(signature_json_make(w->key, MESSAGE, len, &made, &err), 0);
    assert_int_equal(signature_json_check(made, MESSAGE, len, NULL, &c, &err), 0);
    assert_string_equal(json_member(made, "fingerprint")->valuestring, c.fingerprint);
    signature_check_release(&c);
    static const struct {
        const char *key;
        const char *value;
    } changes[] = {{"format", "pgp"},
                   {"namespace", "file"},
                   {"fingerprint", "SHA256:other"},
                   {"armored", "none"}};
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        CHECK_ROW("%s", changes[i].key);
        cJSON *other = json_copy(made);
        cJSON_DeleteItemFromObjectCaseSensitive(other, changes[i].key);
        assert_int_equal(signature_json_shape(other, &err), ERR_LOCK);
        json_put_string(other, changes[i].key, changes[i].value);
        assert_int_equal(signature_json_check(other, MESSAGE, len, NULL, &c, &err), ERR_LOCK);
        assert_false(c.valid);
        signature_check_release(&c);
        cJSON_Delete(other);
    }
    json_put_string(made, "note", "not covered by anything");
    assert_int_equal(signature_json_shape(made, &err), ERR_LOCK);
    cJSON_Delete(made);
}

/* Option, variable, the user's configuration, nothing: in this order. */
static void test_which_allowed_signers(void **state)
{
    struct world *w = world_of(state);
    char *config = path_join(w->folder, "config");
    char *usual = path_join(config, "preregd/allowed_signers");
    char *path = NULL;
    struct err err = {0};
    program_run(w->folder, "mkdir -p config/preregd && touch one two config/preregd/other");
    char *one = path_join(w->folder, "one");
    char *two = path_join(w->folder, "two");
    char *none = path_join(w->folder, "none");
    assert_int_equal(setenv("XDG_CONFIG_HOME", config, 1), 0);
    assert_int_equal(unsetenv("PREREGD_ALLOWED_SIGNERS"), 0);
    assert_int_equal(signature_allowed_signers(NULL, &path, &err), 0);
    assert_null(path);
    program_run(w->folder, "touch config/preregd/allowed_signers");
    assert_int_equal(signature_allowed_signers(NULL, &path, &err), 0);
    assert_string_equal(path, usual);
    free(path);
    assert_int_equal(setenv("PREREGD_ALLOWED_SIGNERS", two, 1), 0);
    assert_int_equal(signature_allowed_signers(NULL, &path, &err), 0);
    assert_string_equal(path, two);
    free(path);
    assert_int_equal(signature_allowed_signers(one, &path, &err), 0);
    assert_string_equal(path, one);
    free(path);
    assert_int_equal(signature_allowed_signers(none, &path, &err), ERR_NOT_FOUND);
    assert_int_equal(setenv("PREREGD_ALLOWED_SIGNERS", none, 1), 0);
    assert_int_equal(signature_allowed_signers(NULL, &path, &err), ERR_NOT_FOUND);
    assert_int_equal(unsetenv("PREREGD_ALLOWED_SIGNERS"), 0);
    assert_int_equal(unsetenv("XDG_CONFIG_HOME"), 0);
    free(none);
    free(two);
    free(one);
    free(usual);
    free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_not_a_signature),
        cmocka_unit_test(test_other_namespace),
        cmocka_unit_test(test_not_allowed),
        cmocka_unit_test(test_keys_that_do_not_sign),
        cmocka_unit_test(test_agent),
        cmocka_unit_test(test_no_program),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_which_allowed_signers),
    };
    (void)unsetenv("SSH_AUTH_SOCK");
    return cmocka_run_group_tests(tests, world_make, world_remove);
}
