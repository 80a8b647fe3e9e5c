/* SHA-256 vectors (FIPS 180-4), files, folders; the arena, strings and random generator beside
 * them. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/files/digest.h"
#include "base/files/file.h"
#include "base/uuid.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

#define OF_EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define OF_ABC   "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static char *put(const char *name, const char *text)
{
    struct err err = {0};
    char *path = path_join(scratch_folder, name);
    char *parent = path_folder(path);
    assert_int_equal(dir_make(parent, 0700, &err), 0);
    assert_int_equal(file_write_atomic(path, text, strlen(text), 0600, &err), 0);
    free(parent);
    return path;
}

static void assert_hex(const struct digest *d, const char *expected)
{
    char hex[DIGEST_HEX_SIZE];
    digest_hex(d, hex);
    assert_string_equal(hex, expected);
}

/* Pieces of any length give what the whole gives: every cut of what fills one to four blocks. */
static void test_pieces(void **state)
{
    (void)state;
    unsigned char bytes[200];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char)(i * 7);
    }
    struct digest_stream s;
    digest_start(&s);
    digest_add(&s, "a", 1);
    digest_add(&s, "", 0);
    digest_add(&s, "bc", 2);
    struct digest d = digest_finish(&s);
    assert_hex(&d, OF_ABC);
    for (size_t len = 0; len <= sizeof(bytes); len += 1 + len % 5) {
        struct digest whole = digest_bytes(bytes, len);
        for (size_t cut = 0; cut <= len; cut++) {
            digest_start(&s);
            digest_add(&s, bytes, cut);
            digest_add(&s, bytes + cut, len - cut);
            d = digest_finish(&s);
            assert_true(digest_equal(&whole, &d));
        }
    }
}

/* A folder that is large enough for several threads has the digest that one would give it, its
 * bytes are counted, and a file that is no file is named. */
static void test_large_folder(void **state)
{
    (void)state;
    struct err err = {0};
    struct digest found;
    struct digest_stream lines;
    _Atomic int64_t bytes = 0;
    char *large = path_join(scratch_folder, "large");
    digest_start(&lines);
    for (int i = 0; i < 9; i++) {
        struct digest one;
        char hex[DIGEST_HEX_SIZE];
        char *name = xasprintf("large/part-%d", i);
        char *path = put(name, "x");
        assert_int_equal(truncate(path, (off_t)(8 + i) << 20), 0);
        assert_int_equal(digest_file(path, &one, NULL, &err), 0);
        digest_hex(&one, hex);
        char *line = xasprintf("%s  part-%d\n", hex, i);
        digest_add(&lines, line, strlen(line));
        free(line);
        free(path);
        free(name);
    }
    const struct digest expected = digest_finish(&lines);
    digest_meter(&bytes);
    assert_int_equal(digest_folder(large, &found, &err), 0);
    digest_meter(NULL);
    assert_true(digest_equal(&found, &expected));
    assert_int_equal(bytes, INT64_C(108) << 20);
    assert_int_equal(digest_bytes_at(large), INT64_C(108) << 20);
    assert_int_equal(dir_remove(large, &err), 0);
    free(large);
}

static void test_vectors(void **state)
{
    (void)state;
    struct digest d = digest_bytes("", 0);
    assert_hex(&d, OF_EMPTY);
    d = digest_bytes("abc", 3);
    assert_hex(&d, OF_ABC);
    d = digest_bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56);
    assert_hex(&d, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    struct digest_stream s;
    digest_start(&s);
    for (int i = 0; i < 1000000; i++) {
        digest_add(&s, "a", 1);
    }
    d = digest_finish(&s);
    assert_hex(&d, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void test_hex(void **state)
{
    (void)state;
    struct digest d;
    struct err err = {0};
    assert_int_equal(digest_from_hex(OF_ABC, &d, &err), 0);
    assert_hex(&d, OF_ABC);
    assert_int_equal(digest_from_hex("BA", &d, &err), ERR_SYNTAX);
    char bad[DIGEST_HEX_SIZE] = OF_ABC;
    bad[10] = 'A';
    assert_int_equal(digest_from_hex(bad, &d, &err), ERR_SYNTAX);
    assert_non_null(strstr(err.msg, "character 11"));
}

static void test_files(void **state)
{
    (void)state;
    struct digest d;
    struct err err = {0};
    int64_t n = 0;
    char *path = put("file", "abc");
    assert_int_equal(digest_file(path, &d, &n, &err), 0);
    assert_hex(&d, OF_ABC);
    assert_int_equal(n, 3);
    assert_int_equal(digest_file(scratch_folder, &d, NULL, &err), ERR_INVALID);
    assert_int_equal(digest_file("/no/such", &d, NULL, &err), ERR_NOT_FOUND);
    assert_int_equal(digest_path("/no/such", &d, &err), ERR_NOT_FOUND);
    free(path);
}

/* The digest of a folder is that of `sha256sum` lines sorted by path bytes. */
static void test_folder(void **state)
{
    (void)state;
    struct digest d;
    struct digest again;
    struct err err = {0};
    free(put("b/x", "abc"));
    free(put("b.txt", "")); /* '.' sorts before '/' */
    free(put("B", "abc"));
    assert_int_equal(digest_folder(scratch_folder, &d, &err), 0);
    static const char lines[] = OF_ABC "  B\n" OF_EMPTY "  b.txt\n" OF_ABC "  b/x\n";
    struct digest expected = digest_bytes(lines, sizeof(lines) - 1);
    assert_true(digest_equal(&d, &expected));
    char *empty = path_join(scratch_folder, "nothing");
    assert_int_equal(mkdir(empty, 0700), 0); /* an empty folder holds no file */
    assert_int_equal(digest_path(scratch_folder, &again, &err), 0);
    assert_true(digest_equal(&d, &again));
    char *target = path_join(scratch_folder, "link");
    assert_int_equal(symlink("B", target), 0);
    assert_int_equal(digest_folder(scratch_folder, &again, &err), ERR_INVALID);
    assert_int_equal(unlink(target), 0);
    assert_int_equal(mkfifo(target, 0600), 0);
    assert_int_equal(digest_folder(scratch_folder, &again, &err), ERR_INVALID);
    free(target);
    free(empty);
}

static void test_arena(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a);
    for (size_t i = 1; i < 3000; i += 7) {
        unsigned char *p = arena_alloc(&a, i * 11);
        assert_int_equal((uintptr_t)p % 16, 0);
        assert_int_equal(p[0] + p[i * 11 - 1], 0);
        memset(p, 0xFF, i * 11);
    }
    assert_string_equal(arena_printf(&a, "%d-%s", 7, "x"), "7-x");
    assert_string_equal(arena_strndup(&a, "abcdef", 3), "abc");
    for (int round = 0; round < 3; round++) { /* again what was asked for before, zeroed again */
        arena_clear(&a);
        for (size_t i = 1; i < 3000; i += 7) {
            unsigned char *p = arena_alloc(&a, i * 11);
            assert_int_equal((uintptr_t)p % 16, 0);
            assert_int_equal(p[0] + p[i * 11 / 2] + p[i * 11 - 1], 0);
            memset(p, 0xFF, i * 11);
        }
    }
    arena_release(&a);
    arena_clear(&a);
    arena_release(&a);
}

static void test_uuid(void **state)
{
    (void)state;
    char a[UUID_TEXT_SIZE];
    char b[UUID_TEXT_SIZE];
    uuid_make(a);
    uuid_make(b);
    assert_true(uuid_is_valid(a));
    assert_int_equal(a[14], '4');
    assert_string_not_equal(a, b);
    a[3] = 'X';
    assert_false(uuid_is_valid(a));
    assert_false(uuid_is_valid(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test_setup_teardown(test_large_folder, scratch_enter, scratch_leave),
        cmocka_unit_test(test_hex),
        cmocka_unit_test_setup_teardown(test_files, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(test_folder, scratch_enter, scratch_leave),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_uuid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
