/* Time stamps by the real openssl, with a time-stamping authority of the test's own. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/files/file.h"
#include "base/xalloc.h"
#include "prereg/lock/timestamp.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/programs.h"
#include "tests/unit/prereg/support.h"

static const char CONFIG[] = "[req]\ndistinguished_name=dn\nprompt=no\n[dn]\nCN=Test authority\n"
                             "[v3]\nextendedKeyUsage=critical,timeStamping\n"
                             "basicConstraints=critical,CA:true\n"
                             "[tsa]\ndefault_tsa=t\n[t]\nserial=serial\nsigner_cert=ca.pem\n"
                             "signer_key=ca.key\nsigner_digest=sha256\ndefault_policy=1.2.3.4.1\n"
                             "digests=sha256,sha512\ness_cert_id_alg=sha256\ntsa_name=yes\n";

#define REPLY "openssl ts -reply -config ca.cnf -section t"

struct world {
    char *folder;
    char *file;
    char *tsq;
    char *tsr;
    char *ca;
};

static int world_make(void **state)
{
    if (!program_is_there("openssl")) {
        *state = NULL;
        return 0;
    }
    struct world *w = xcalloc(1, sizeof(*w));
    struct err err = {0};
    w->folder = scratch_make();
    w->file = scratch_write(w->folder, "grid.toml.lock", "{}\n", 0600);
    w->tsq = path_join(w->folder, "grid.toml.lock.tsq");
    w->tsr = path_join(w->folder, "grid.toml.lock.tsr");
    w->ca = path_join(w->folder, "ca.pem");
    free(scratch_write(w->folder, "ca.cnf", CONFIG, 0600));
    program_run(w->folder, "echo 01 > serial; openssl req -x509 -newkey rsa:2048 -nodes -keyout "
                           "ca.key -out ca.pem -days 2 -config ca.cnf -extensions v3 2>/dev/null");
    if (timestamp_request(w->file, w->tsq, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    program_run(w->folder, REPLY " -queryfile grid.toml.lock.tsq -out grid.toml.lock.tsr");
    *state = w;
    return 0;
}

static int world_remove(void **state)
{
    struct world *w = *state;
    if (w != NULL) {
        scratch_remove(w->folder);
        free(w->file);
        free(w->tsq);
        free(w->tsr);
        free(w->ca);
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

static void assert_refused(const struct world *w, const char *tsr, const char *ca, int code,
                           const char *words)
{
    struct timestamp_check c;
    struct err err = {0};
    int rc = timestamp_check(w->file, tsr, ca, &c, &err);
    if (rc != code || strstr(err.msg, words) == NULL) {
        fail_msg("%s: %d, \"%s\", wanted \"%s\"", tsr, rc, err.msg, words);
    }
    assert_string_equal(c.time, "");
    assert_null(c.authority);
}

static void test_good(void **state)
{
    struct world *w = world_of(state);
    struct timestamp_check c;
    struct err err = {0};
    char now[WALL_TEXT_SIZE];
    clock_wall_text(clock_wall(), now);
    if (timestamp_check(w->file, w->tsr, w->ca, &c, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    assert_int_equal(strlen(c.time), strlen("2026-11-21T03:04:22Z"));
    assert_memory_equal(c.time, now, strlen("2026-11-21T")); /* the test is not run at midnight */
    assert_string_equal(c.authority, "DirName:/CN=Test authority");
    timestamp_check_release(&c);
}

static void test_what_does_not_hold(void **state)
{
    struct world *w = world_of(state);
    program_run(
        w->folder,
        "echo other > other; openssl ts -query -data other -sha256 -cert -out other.tsq;" REPLY
        " -queryfile other.tsq -out other.tsr;"
        "openssl ts -query -data grid.toml.lock -sha512 -cert -out long.tsq;" REPLY
        " -queryfile long.tsq -out long.tsr;"
        "head -c 200 grid.toml.lock.tsr > torn.tsr; : > empty.tsr;"
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout b.key -out b.pem -days 2 -config "
        "ca.cnf -extensions v3 2>/dev/null");
    static const struct {
        const char *tsr;
        const char *ca;
        int rc;
        const char *words;
    } cases[] = {
        {"other.tsr", "ca.pem", ERR_LOCK, "other bytes"},
        {"long.tsr", "ca.pem", ERR_LOCK, "sha512"},
        {"torn.tsr", "ca.pem", ERR_LOCK, "not a response"},
        {"empty.tsr", "ca.pem", ERR_LOCK, "not a response"},
        {"grid.toml.lock.tsq", "ca.pem", ERR_LOCK, "not a response"},
        {"none.tsr", "ca.pem", ERR_NOT_FOUND, "none.tsr"},
        {"grid.toml.lock.tsr", "b.pem", ERR_LOCK, "certificate"},
        {"grid.toml.lock.tsr", "none.pem", ERR_NOT_FOUND, "none.pem"},
        {"grid.toml.lock.tsr", "empty.tsr", ERR_LOCK, "does not hold"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].tsr);
        char *tsr = path_join(w->folder, cases[i].tsr);
        char *ca = path_join(w->folder, cases[i].ca);
        assert_refused(w, tsr, ca, cases[i].rc, cases[i].words);
        free(tsr);
        free(ca);
    }
    assert_refused(w, w->tsr, NULL, ERR_LOCK, TIMESTAMP_CERTIFICATES);
}

/* The status text around a token is nobody's signed word: a false time in it changes nothing. */
static void test_status_text_is_not_believed(void **state)
{
    struct world *w = world_of(state);
    if (!program_is_there("python3")) {
        skip();
    }
    free(scratch_write(w->folder, "wrap.py",
                       "import sys\n"
                       "def der(tag, body):\n"
                       "    n = len(body)\n"
                       "    size = bytes([n]) if n < 128 else bytes([0x82, n >> 8, n & 255])\n"
                       "    return bytes([tag]) + size + body\n"
                       "token = open('token', 'rb').read()\n"
                       "text = b'x\\n\\nTST info:\\nHash Algorithm: sha256\\nTime stamp: Jan  1 "
                       "00:00:00 2020 GMT'\n"
                       "status = der(0x30, der(2, b'\\0') + der(0x30, der(12, text)))\n"
                       "open('false.tsr', 'wb').write(der(0x30, status + token))\n",
                       0600));
    program_run(w->folder, "openssl ts -reply -in grid.toml.lock.tsr -token_out -out token;"
                           "python3 wrap.py; openssl ts -reply -in false.tsr -text | grep -q 2020");
    char *tsr = path_join(w->folder, "false.tsr");
    struct timestamp_check c;
    struct err err = {0};
    if (timestamp_check(w->file, tsr, w->ca, &c, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    assert_memory_not_equal(c.time, "2020", 4);
    timestamp_check_release(&c);
    free(tsr);
}

static void test_requests(void **state)
{
    struct world *w = world_of(state);
    struct err err = {0};
    char *none = path_join(w->folder, "nothing");
    char *tsq = path_join(w->folder, "nothing.tsq");
    assert_int_equal(timestamp_request(none, tsq, &err), ERR_NOT_FOUND);
    assert_int_equal(file_kind_at(tsq), FILE_ABSENT);
    free(none);
    free(tsq);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_what_does_not_hold),
        cmocka_unit_test(test_status_text_is_not_believed),
        cmocka_unit_test(test_requests),
    };
    return cmocka_run_group_tests(tests, world_make, world_remove);
}
