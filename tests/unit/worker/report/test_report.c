/* The worker's side of the protocol: task.json, events, result.json, exit codes. */
#include <math.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "worker/report/events.h"
#include "worker/report/result.h"
#include "worker/report/task.h"

static void write_text(const char *name, const char *text)
{
    struct err err = {0};

    assert_int_equal(file_write_atomic(name, text, strlen(text), 0644, &err), 0);
}

static void test_task(void **state)
{
    (void)state;
    struct worker_task t;
    struct task_data data;
    struct digest found;
    struct err err = {0};
    const char *folder = NULL;

    write_text("d.txt", "abc");
    write_text(
        "task.json",
        "{\"protocol\":1,\"program\":\"p\",\"cell\":{\"name\":\"arch=moe\"},\"stage\":\"train\","
        "\"attempt\":\"u\",\"attempt_no\":3,\"params\":{\"x\":1},\"inputs\":{\"train\":\"/f\"},"
        "\"data\":{\"d\":{\"path\":\"d.txt\",\"sha256\":"
        "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"}},"
        "\"resume\":[\"/b\",\"/a\"],\"threads\":2,\"checkpoint\":\"90s\",\"later\":true}");
    if (task_read("task.json", &t, &err) < 0)
        fail_msg("%s", err.msg);
    assert_string_equal(t.cell_name, "arch=moe");
    assert_int_equal(t.attempt_no, 3);
    assert_int_equal(t.threads, 2);
    assert_int_equal(t.n_resume, 2);
    assert_string_equal(t.resume[0], "/b");
    assert_true(t.checkpoint_seconds == 90.0);
    assert_int_equal(task_find_input(&t, "train", &folder, &err), 0);
    assert_string_equal(folder, "/f");
    assert_int_equal(task_find_input(&t, "other", &folder, &err), ERR_USAGE);
    assert_int_equal(task_find_data(&t, "e", &data, &err), ERR_USAGE);
    assert_int_equal(task_find_data(&t, "d", &data, &err), 0);
    assert_int_equal(task_verify_data(&data, &found, &err), 0);
    write_text("d.txt", "abd");
    assert_int_equal(task_verify_data(&data, &found, &err), ERR_CORRUPT);
    task_release(&t);
}

static void test_bad_tasks(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "{}",
        "[]",
        "{\"protocol\":2,\"params\":{}}",
        "{\"protocol\":1}",
        "{\"protocol\":1,\"params\":[]}",
        "{\"protocol\":1,\"params\":{},\"threads\":0}",
        "{\"protocol\":1,\"params\":{},\"resume\":\"x\"}",
        "{\"protocol\":1,\"params\":{},\"resume\":[1]}",
        "{\"protocol\":1,\"params\":{},\"data\":3}",
        "{\"protocol\":1,\"params\":{},\"checkpoint\":\"often\"}",
        "{\"protocol\":1,\"params\":{},\"checkpoint\":-1}",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        CHECK_ROW("%s", texts[i]);
        struct worker_task t;
        struct err err = {0};
        write_text("task.json", texts[i]);
        if (task_read("task.json", &t, &err) >= 0)
            fail_msg("accepted: %s", texts[i]);
        assert_non_null(strstr(err.msg, "task.json"));
        task_release(&t);
    }
}

static void test_events(void **state)
{
    (void)state;
    static const char expected[] =
        "{\"type\":\"environment\",\"threads\":2,\"blas\":\"Some \\\"BLAS\\\"\","
        "\"arithmetic\":2,\"instructions\":\"avx2\"}\n"
        "{\"type\":\"environment\",\"threads\":1,\"blas\":\"B\",\"instructions\":\"neon\"}\n"
        "{\"type\":\"section\",\"name\":\"setup\"}\n"
        "{\"type\":\"section\",\"name\":\"step\"}\n"
        "{\"type\":\"progress\",\"done\":1,\"total\":9,\"unit\":\"step\"}\n"
        "{\"type\":\"progress\",\"done\":9,\"total\":9,\"unit\":\"step\"}\n"
        "{\"type\":\"point\",\"step\":4,\"name\":\"loss\",\"value\":3.25}\n"
        "{\"type\":\"point\",\"step\":5,\"name\":\"loss\",\"value\":null}\n"
        "{\"type\":\"checkpoint\",\"step\":4,\"path\":\"checkpoint/step-000004\",\"seconds\":0.5,"
        "\"stall\":0.125}\n"
        "{\"type\":\"resumed\",\"step\":4}\n"
        "{\"type\":\"note\",\"text\":\"say \\\"so\\\"\"}\n";
    struct events ev;
    struct err err = {0};
    struct strbuf text = STRBUF_INIT;

    assert_int_equal(setenv("PREREG_EVENTS", "events.jsonl", 1), 0);
    assert_int_equal(events_open(&ev, &err), 0);
    events_environment(&ev, &(struct worker_environment){2, "Some \"BLAS\"", 2, "avx2"});
    events_environment(&ev, &(struct worker_environment){1, "B", 0, "neon"});
    events_section(&ev, SECTION_SETUP);
    events_section(&ev, SECTION_STEP);
    events_section(&ev, SECTION_STEP);
    events_progress(&ev, 1, 9, "step");
    events_progress(&ev, 2, 9, "step"); /* too soon after the one before */
    events_progress(&ev, 9, 9, "step");
    events_point(&ev, 4, "loss", 3.25);
    events_point(&ev, 5, "loss", (double)NAN);
    events_checkpoint(&ev, 4, "checkpoint/step-000004", 0.5, 0.125);
    events_resumed(&ev, 4);
    events_note(&ev, "say \"%s\"", "so");
    assert_int_equal(events_result(&ev, &err), 0);
    events_close(&ev);
    assert_int_equal(file_read("events.jsonl", 1 << 16, &text, &err), 0);
    assert_string_equal(text.buf, expected);
    strbuf_release(&text);
}

static void test_events_failure_is_kept(void **state)
{
    (void)state;
    struct events ev;
    struct err err = {0};

    assert_int_equal(setenv("PREREG_EVENTS", "/dev/full", 1), 0);
    assert_int_equal(events_open(&ev, &err), 0);
    events_resumed(&ev, 1);
    assert_int_equal(events_result(&ev, &err), ERR_NO_SPACE);
    events_close(&ev);
    assert_int_equal(setenv("PREREG_EVENTS", "", 1), 0);
    assert_int_equal(events_open(&ev, &err), 0);
    events_resumed(&ev, 1); /* nobody listens */
    assert_int_equal(events_result(&ev, &err), 0);
}

static void test_result(void **state)
{
    (void)state;
    static const char expected[] =
        "{\"protocol\":1,\"attempt\":\"u\",\"metrics\":{\"a\":{\"value\":0.5,\"n\":10,\"se\":0.25},"
        "\"b\":{\"value\":null,\"why\":\"not_finite\"},"
        "\"c\":{\"value\":null,\"why\":\"not_reached\",\"bound\":\">9\"}},"
        "\"facts\":{\"x\":3,\"y\":\"z\",\"w\":{\"value\":null,\"why\":\"dense\"}},"
        "\"read\":{},\"artifacts\":[{\"path\":\"m.bin\",\"sha256\":"
        "\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\",\"bytes\":3}],"
        "\"items\":\"items.jsonl\"}";
    struct worker_task task = {.attempt = "u"};
    struct worker_result r;
    struct err err = {0};
    cJSON *back = NULL;
    struct strbuf text = STRBUF_INIT;

    result_init(&r, &task);
    result_metric(&r, "a", 0.5, 10, 0.25);
    result_metric(&r, "b", (double)INFINITY, -1, (double)NAN);
    result_metric_null(&r, "c", "not_reached", ">9");
    result_fact(&r, "x", 3.0);
    result_fact_text(&r, "y", "z");
    result_fact_null(&r, "w", "dense");
    write_text("m.bin", "abc");
    assert_int_equal(result_artifact(&r, "m.bin", &err), 0);
    assert_true(result_artifact(&r, "absent", &err) < 0);
    result_items(&r, "items.jsonl");
    assert_int_equal(result_write(&r, &err), 0);
    result_release(&r);
    assert_int_equal(json_read_file("result.json", 1 << 16, &back, &err), 0);
    assert_int_equal(json_line(back, &text, &err), 0);
    assert_string_equal(text.buf, expected);
    cJSON_Delete(back);
    strbuf_release(&text);
}

static void test_exit_codes(void **state)
{
    (void)state;
    static const struct {
        int err;
        enum worker_exit code;
    } cases[] = {
        {0, WORKER_DONE},          {ERR_USAGE, WORKER_USAGE},    {ERR_INVALID, WORKER_USAGE},
        {ERR_SYNTAX, WORKER_DATA}, {ERR_CORRUPT, WORKER_DATA},   {ERR_NOT_FOUND, WORKER_DATA},
        {ERR_IO, WORKER_CRASH},    {ERR_NO_SPACE, WORKER_CRASH}, {ERR_REFUSED, WORKER_UNMEASURABLE},
        {ERR_BUSY, WORKER_AGAIN},  {ERR_OTHER, WORKER_CRASH},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("cases[%zu]", i);
        assert_int_equal(worker_exit_code(cases[i].err), cases[i].code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_task, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(test_bad_tasks, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(test_events, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(test_events_failure_is_kept, scratch_enter, scratch_leave),
        cmocka_unit_test_setup_teardown(test_result, scratch_enter, scratch_leave),
        cmocka_unit_test(test_exit_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
