/* Whether STATE's copies are what was locked, asked again and again: what was found good once is
 * known by its digests, and whatever is changed or taken away after that is seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/xalloc.h"
#include "daemon/prepare.h"
#include "prereg/amendment.h"
#include "tests/unit/prereg/amending.h"
#include "tests/unit/prereg/support.h"

static void write_program(const struct amending_world *w, const char *metric)
{
    char *text = text_replace(amending_program, "score.acc_norm", metric);
    free(scratch_write(w->folder, HOSTED_PROGRAM_FILE, text, 0600));
    free(text);
}

static void amend(const struct amending_world *w)
{
    static const char *const values[2] = {"score.acc_norm", "score.acc"};
    cJSON *a = amending_amendment_of(w, 1, w->lock->root, values);
    amending_write_amendment(w, 1, a);
    cJSON_Delete(a);
    write_program(w, "score.acc");
}

static struct hosted *hosted_of(const struct amending_world *w)
{
    struct err err = {0};
    struct hosted *h = hosted_new(1, "/nowhere", "p-00000000");
    free(h->folder);
    h->folder = xstrdup(w->folder);
    char *origin = path_join(w->folder, HOSTED_PROGRAM_FILE);
    if (bundle_load_own(h->folder, origin, &h->bundle, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    free(origin);
    return h;
}

static void expect(struct hosted *h, int wanted)
{
    enum core_start_failure why = START_FAILED_HOST;
    struct err err = {0};
    if (prepare_check_lock(h, h->bundle, &why, &err) != wanted) {
        fail_msg("%d, not %d: %s", err.code, wanted, err.msg);
    }
    if (wanted != 0) {
        assert_int_equal(why, START_FAILED_LOCK);
    }
}

static void change_program(const struct amending_world *w)
{
    write_program(w, "score.other");
}

static void change_lock(const struct amending_world *w)
{
    free(scratch_write(w->folder, HOSTED_LOCK_FILE, "{}\n", 0600));
}

static void take_amendments(const struct amending_world *w)
{
    struct err err = {0};
    assert_int_equal(dir_remove(w->amendments, &err), 0);
}

static void change_amendment(const struct amending_world *w)
{
    char *path = amendment_file(w->amendments, 1, "json");
    struct err err = {0};
    assert_int_equal(file_write_atomic(path, "{}\n", 3, 0600, &err), 0);
    free(path);
}

static void test_copies(void **state)
{
    static void (*const changes[])(const struct amending_world *w) = {
        change_program, change_lock, take_amendments, change_amendment};
    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_LEN(changes); i++) {
        void *made = NULL;
        (void)amending_world_make(&made);
        const struct amending_world *w = made;
        amend(w);
        struct hosted *h = hosted_of(w);
        expect(h, 0);
        if (i % 2 == 1) {
            expect(h, 0); /* known by now */
        }
        changes[i / 2](w);
        expect(h, ERR_LOCK);
        hosted_free(h);
        (void)amending_world_remove(&made);
    }
}

/* Once is enough: the second look reads nothing but the digests. */
static void test_known(void **state)
{
    (void)state;
    for (int amended = 0; amended < 2; amended++) {
        static const struct digest none;
        void *made = NULL;
        (void)amending_world_make(&made);
        write_program(made, "score.acc_norm");
        if (amended) {
            amend(made);
        }
        struct hosted *h = hosted_of(made);
        expect(h, 0);
        assert_false(digest_equal(&h->good_copies[COPY_PROGRAM], &none));
        assert_false(digest_equal(&h->good_copies[COPY_LOCK], &none));
        assert_int_equal(!digest_equal(&h->good_copies[COPY_AMENDMENTS], &none), amended);
        hosted_free(h);
        (void)amending_world_remove(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies), cmocka_unit_test(test_known)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
