/* start.json and exit.json of an attempt: one file, written, read, torn, joined by its task. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/attempt_name.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "daemon/shim/files.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

struct fixture {
    char *folder;
    char attempt[UUID_TEXT_SIZE];
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    f->folder = scratch_make();
    uuid_make(f->attempt);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    scratch_remove(f->folder);
    free(f);
    return 0;
}

static void test_torn_files_are_corrupt_not_trusted(void **state)
{
    const struct fixture *f = *state;
    struct err err;
    struct shim_exit x;
    struct shim_start s;
    static const char *const torn[] = {"",   "{",    "{\"protocol\":1}",
                                       "[]", "null", "{\"protocol\":2,\"attempt\":\"x\"}"};
    char *exit_path = path_join(f->folder, LAYOUT_EXIT);
    char *start_path = path_join(f->folder, LAYOUT_START);
    for (size_t i = 0; i < ARRAY_LEN(torn); i++) {
        CHECK_ROW("%s", torn[i]);
        assert_int_equal(file_write_atomic(exit_path, torn[i], strlen(torn[i]), 0600, &err), 0);
        assert_int_equal(file_write_atomic(start_path, torn[i], strlen(torn[i]), 0600, &err), 0);
        assert_int_equal(shim_exit_read(f->folder, f->attempt, &x, &err), ERR_CORRUPT);
        assert_int_equal(shim_start_read(f->folder, f->attempt, &s, &err), ERR_CORRUPT);
        assert_int_equal(unlink(start_path), 0);
        assert_int_equal(shim_start_read(f->folder, f->attempt, &s, &err), ERR_CORRUPT);
    }
    char other[UUID_TEXT_SIZE];
    uuid_make(other);
    struct shim_exit good = {.reason = SHIM_EXITED};
    memcpy(good.attempt, other, sizeof(other));
    int fd = open(start_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(shim_exit_write(f->folder, fd, &(struct shim_start){0}, &good, &err), 0);
    assert_int_equal(shim_exit_read(f->folder, other, &x, &err), 0);
    assert_int_equal(shim_exit_read(f->folder, f->attempt, &x, &err), ERR_CORRUPT);
    assert_int_equal(shim_start_read(f->folder, other, &s, &err), ERR_NOT_FOUND);
    (void)close(fd);
    free(exit_path);
    free(start_path);
}

/* One file an attempt: what start.json says stays in exit.json, room for which was there before. */
static void test_start_stays_in_exit(void **state)
{
    static const bool reserved[] = {true, false}; /* or the file system cannot */
    struct fixture *f = *state;
    char *path = path_join(f->folder, LAYOUT_START);
    for (size_t i = 0; i < ARRAY_LEN(reserved); i++) {
        CHECK_ROW("reserved[%zu]", i);
        struct err err;
        struct shim_start read;
        struct shim_start start = {.shim_pid = 7, .worker_pid = 8, .threads = 2};
        struct shim_exit end = {.reason = SHIM_SIGNALLED, .signal = 9};
        struct shim_exit x;
        struct stat st;
        memcpy(start.attempt, f->attempt, sizeof(start.attempt));
        memcpy(end.attempt, f->attempt, sizeof(end.attempt));
        (void)snprintf(start.host, sizeof(start.host), "here");
        (void)snprintf(start.time, sizeof(start.time), "2025-11-21T03:03:22.100Z");
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(shim_start_read(f->folder, f->attempt, &read, &err), ERR_NOT_FOUND);
        struct strbuf text = STRBUF_INIT;
        const struct pid_stat worker = {.pid = 8, .start = JSON_INT_MAX};
        assert_int_equal(shim_start_prepare(&start, reserved[i], &text, &err), 0);
        assert_int_equal(shim_start_finish(fd, &text, reserved[i], &worker), 0);
        strbuf_release(&text);
        assert_int_equal(shim_start_read(f->folder, f->attempt, &read, &err), 0);
        assert_int_equal(read.worker_pid, 8);
        assert_int_equal(read.worker_start, JSON_INT_MAX);
        assert_int_equal(fstat(fd, &st), 0);
        assert_true(reserved[i] || st.st_size >= 4096);
        assert_int_equal(shim_exit_write(f->folder, fd, &start, &end, &err), 0);
        assert_int_equal(fstat(fd, &st), 0);
        assert_true(st.st_size < 1024);
        assert_int_equal(file_kind_at(path), FILE_ABSENT);
        assert_int_equal(shim_start_read(f->folder, f->attempt, &read, &err), 0);
        assert_int_equal(read.worker_pid, 8);
        assert_string_equal(read.host, "here");
        assert_string_equal(read.time, start.time);
        assert_int_equal(shim_exit_read(f->folder, f->attempt, &x, &err), 0);
        assert_int_equal(x.signal, 9);
        assert_string_not_equal(x.time, start.time);
        (void)close(fd);
        char *exit_path = path_join(f->folder, LAYOUT_EXIT);
        assert_int_equal(unlink(exit_path), 0);
        free(exit_path);
    }
    free(path);
}

/* A padded task: `n` bytes of a valid object. */
static void put_task(const char *folder, size_t n)
{
    struct strbuf text = STRBUF_INIT;
    strbuf_addf(&text, "{\"head\":\"ab\",\"x\":0.1,\"pad\":\"");
    while (text.len + 3 < n) {
        strbuf_addc(&text, 'p');
    }
    strbuf_addf(&text, "\"}\n");
    scratch_put(folder, LAYOUT_TASK, text.buf);
    strbuf_release(&text);
}

/* The task of an attempt that ended well is in exit.json, and its file is gone; else it stays where
 * it is. Either way it is read as the attempt's. */
static void test_task_moves(void **state)
{
    static const struct {
        const char *what;
        struct shim_exit end;
        size_t n; /* of task.json; 0: "{", which is not valid */
        bool moves;
        bool is_read;
    } CASES[] = {
        {"well", {.reason = SHIM_EXITED}, 100, true, true},
        {"just fits", {.reason = SHIM_EXITED}, 3500, true, true},
        {"both do not fit", {.reason = SHIM_EXITED}, 4000, false, true},
        {"large", {.reason = SHIM_EXITED}, 9000, false, true},
        {"exit code 1", {.reason = SHIM_EXITED, .code = 1}, 100, false, true},
        {"signalled", {.reason = SHIM_SIGNALLED, .signal = 9}, 100, false, true},
        {"not JSON", {.reason = SHIM_EXITED}, 0, false, false},
    };
    struct fixture *f = *state;
    char *start_path = path_join(f->folder, LAYOUT_START);
    char *task_path = path_join(f->folder, LAYOUT_TASK);
    char *exit_path = path_join(f->folder, LAYOUT_EXIT);
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        CHECK_ROW("%s", CASES[i].what);
        struct err err;
        struct stat st;
        struct shim_exit end = CASES[i].end;
        struct shim_exit back;
        cJSON *task = NULL;
        memcpy(end.attempt, f->attempt, sizeof(end.attempt));
        if (CASES[i].n > 0) {
            put_task(f->folder, CASES[i].n);
        } else {
            scratch_put(f->folder, LAYOUT_TASK, "{");
        }
        int fd = open(start_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(shim_exit_write(f->folder, fd, &(struct shim_start){0}, &end, &err), 0);
        assert_int_equal(fstat(fd, &st), 0);
        assert_true(st.st_size <= 4096);
        assert_int_equal(file_kind_at(task_path), CASES[i].moves ? FILE_ABSENT : FILE_REGULAR);
        assert_int_equal(shim_exit_read(f->folder, f->attempt, &back, &err), 0);
        assert_int_equal(back.signal, end.signal);
        assert_true((attempt_task_read(f->folder, &task, &err) == 0) == CASES[i].is_read);
        if (CASES[i].is_read) {
            assert_string_equal(json_member(task, "head")->valuestring, "ab");
            assert_true(json_member(task, "x")->valuedouble == 0.1);
        }
        cJSON_Delete(task);
        (void)close(fd);
        assert_int_equal(unlink(exit_path), 0);
        (void)unlink(task_path);
    }
    free(exit_path);
    free(task_path);
    free(start_path);
}

/* A link is not followed, and without either file there is no task. */
static void test_task_elsewhere(void **state)
{
    struct fixture *f = *state;
    struct err err;
    cJSON *task = NULL;
    struct shim_exit end = {.reason = SHIM_EXITED};
    char *start_path = path_join(f->folder, LAYOUT_START);
    char *task_path = path_join(f->folder, LAYOUT_TASK);
    memcpy(end.attempt, f->attempt, sizeof(end.attempt));
    scratch_put(f->folder, "other", "{\"head\":\"cd\"}");
    assert_int_equal(symlink("other", task_path), 0);
    int fd = open(start_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(shim_exit_write(f->folder, fd, &(struct shim_start){0}, &end, &err), 0);
    (void)close(fd);
    assert_int_equal(unlink(task_path), 0); /* it is still there */
    assert_int_equal(attempt_task_read(f->folder, &task, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, LAYOUT_TASK));
    free(task_path);
    free(start_path);
}

/* GPUs go from the spec into start.json and from there into exit.json; a file without them, or with
 * damaged ones, names none. */
static void test_gpus(void **state)
{
    const struct fixture *f = *state;
    static const char text[] = "[{\"uuid\":\"GPU-a\",\"model\":\"NVIDIA H100\",\"driver\":\"550\","
                               "\"memory_bytes\":7,\"ecc\":true}]";
    struct shim_spec spec = {.exec = xstrdup("/bin/true")};
    struct shim_spec back;
    struct strbuf line = STRBUF_INIT;
    struct gpu_list found;
    struct err err;
    int fd = -1;
    memcpy(spec.attempt, f->attempt, sizeof(spec.attempt));
    shim_spec_add_arg(&spec, "true");
    assert_int_equal(gpu_list_read(text, strlen(text), &spec.gpus, &err), 0);
    assert_int_equal(shim_spec_text(&spec, &line, &err), 0);
    assert_int_equal(file_in_memory("spec", line.buf, line.len, &fd, &err), 0);
    assert_int_equal(shim_spec_read(fd, &back, &err), 0);
    (void)close(fd);
    assert_int_equal(back.gpus.n, 1);

    struct shim_start start = {.shim_pid = 1, .gpus = &back.gpus};
    struct shim_exit end = {.reason = SHIM_EXITED};
    memcpy(start.attempt, f->attempt, sizeof(start.attempt));
    memcpy(end.attempt, f->attempt, sizeof(end.attempt));
    const struct pid_stat worker = {.pid = 2, .start = 3};
    char *path = path_join(f->folder, LAYOUT_START);
    strbuf_clear(&line);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(shim_start_prepare(&start, true, &line, &err), 0);
    assert_int_equal(shim_start_finish(fd, &line, true, &worker), 0);
    shim_start_gpus(f->folder, f->attempt, &found);
    assert_int_equal(found.n, 1);
    assert_string_equal(found.items[0].model, "NVIDIA H100");
    assert_int_equal(found.items[0].ecc, 1);
    gpu_list_release(&found);
    assert_int_equal(shim_exit_write(f->folder, fd, &start, &end, &err), 0);
    shim_start_gpus(f->folder, f->attempt, &found);
    assert_int_equal(found.n, 1);
    gpu_list_release(&found);
    (void)close(fd);

    free(path);
    path = path_join(f->folder, LAYOUT_EXIT);
    strbuf_clear(&line);
    strbuf_addf(&line, "{\"protocol\":1,\"attempt\":\"%s\",\"shim_pid\":1,\"gpus\":[{\"uuid\":3}]}",
                f->attempt);
    assert_int_equal(file_write_atomic(path, line.buf, line.len, 0600, &err), 0);
    shim_start_gpus(f->folder, f->attempt, &found);
    assert_int_equal(found.n, 0);
    free(path);
    strbuf_release(&line);
    shim_spec_release(&back);
    shim_spec_release(&spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_torn_files_are_corrupt_not_trusted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_gpus, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_start_stays_in_exit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_task_moves, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_task_elsewhere, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
