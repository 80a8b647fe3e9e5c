/* Whether STATE's copies are what was locked, asked again and again: what was found good once is
 * known by its digests, and whatever is changed or taken away after that is seen. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/program/prepare.h"
#include "prereg/amend/amendment.h"
#include "prereg/lock/object.h"
#include "tests/unit/check.h"
#include "tests/unit/prereg/amending.h"
#include "tests/unit/prereg/support.h"

static void write_program(const struct amending_world *w, const char *metric)
{
    char *text = text_replace(amending_program, "score.acc_norm", metric);
    free(scratch_write(w->folder, LAYOUT_GRID, text, 0600));
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
    char *origin = path_join(w->folder, LAYOUT_GRID);
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
    free(scratch_write(w->folder, LAYOUT_LOCK, "{}\n", 0600));
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

/* ---- the copies that commands are run from ---- */

#define WORKER "#!/bin/sh\nexit 0\n"

/* Its pages are dirty from the start: what is written to them later moves no time of the file. */
struct mapped {
    char *path;
    char *bytes;
};

static struct mapped map_object(const char *folder, const struct lock *lock)
{
    struct mapped m = {.path = object_path(folder, lock_file_digest(lock, "./worker.sh"))};
    int fd = open(m.path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    m.bytes = mmap(NULL, strlen(WORKER), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(m.bytes != MAP_FAILED);
    *(volatile char *)m.bytes = WORKER[0];
    assert_int_equal(close(fd), 0);
    return m;
}

static void unmap(struct mapped *m)
{
    assert_int_equal(munmap(m->bytes, strlen(WORKER)), 0);
    free(m->path);
}

/* Until the cache takes the file for one at rest; then it is changed, and the cache does not see
 * that, or this test would show nothing. */
static void change_unseen(struct hosted *h, const struct mapped *m)
{
    const struct digest good = digest_bytes(WORKER, strlen(WORKER));
    struct digest found = good;
    struct err err = {0};
    for (;;) {
        m->bytes[15] = '0';
        assert_int_equal(pin_digest_own(h->pins, m->path, &found, &err), 0);
        assert_true(digest_equal(&found, &good));
        m->bytes[15] = '7';
        assert_int_equal(pin_digest_own(h->pins, m->path, &found, &err), 0);
        if (digest_equal(&found, &good)) {
            return;
        }
        (void)usleep(10000);
    }
}

static struct hosted *run_world(struct amending_world *w)
{
    struct err err = {0};
    char *text = text_replace(amending_program, "[pin]\nworkers = \"record\"\n", "");
    w->folder = xstrdup("/dev/shm/preregd-prepare-XXXXXX"); /* where pages stay dirty */
    assert_non_null(mkdtemp(w->folder));
    free(scratch_write(w->folder, LAYOUT_GRID, text, 0600));
    free(scratch_write(w->folder, "corpus.txt", "once upon a time\n", 0600));
    free(scratch_write(w->folder, "worker.sh", WORKER, 0700));
    w->program = program_of(text, w->folder);
    assert_int_equal(lock_build(w->program, NULL, NULL, &w->lock, &err), 0);
    char *path = path_join(w->folder, LAYOUT_LOCK);
    assert_int_equal(lock_write(w->lock, path, false, &err), 0);
    assert_int_equal(object_store_all(w->program, w->lock, w->folder, NULL, &err), 0);
    free(path);
    free(text);
    return hosted_of(w);
}

static void test_objects(void **state)
{
    struct amending_world w = {0};
    struct hosted *h = run_world(&w);
    struct err err = {0};
    enum core_start_failure why = START_FAILED_HOST;
    (void)state;
    assert_int_equal(prepare_check_bytes(h, h->bundle, w.folder, &why, &err), 0);
    for (int changed = 0; changed < 2; changed++) { /* the source, too */
        struct mapped m = map_object(w.folder, w.lock);
        if (changed) {
            free(scratch_write(w.folder, "worker.sh", "#!/bin/sh\nexit 9\n", 0700));
        }
        change_unseen(h, &m);
        int rc = prepare_check_bytes(h, h->bundle, w.folder, &why, &err);
        char *text = scratch_read(m.path);
        if (changed) {
            assert_int_equal(rc, ERR_LOCK);
            assert_int_equal(why, START_FAILED_LOCK);
            assert_non_null(strstr(err.msg, "is not what was locked"));
        } else {
            assert_int_equal(rc, 0);
            assert_string_equal(text, WORKER);
        }
        free(text);
        unmap(&m);
    }
    assert_true(h->hashing.done >= (int64_t)(strlen("once upon a time\n") + strlen(WORKER)));
    hosted_free(h);
    lock_free(w.lock);
    program_free(w.program);
    scratch_remove(w.folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies), cmocka_unit_test(test_known),
                                       cmocka_unit_test(test_objects)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
