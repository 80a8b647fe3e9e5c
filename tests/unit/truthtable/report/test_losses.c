/* Work that was lost with attempts, out of provenance.json and the ends of their events. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/layout/attempt_name.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "prereg/load/program_load.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "tests/unit/truthtable/instruments/sample.h"
#include "truthtable/report/report_model.h"

#define ID        "00000000-0000-4000-8000-00000000000"
#define AT(m, s)  "2026-11-21T03:" m ":" s ".000Z"
#define SOME_LESS "{\"type\":\"point\",\"step\":1,\"name\":\"loss\",\"value\":1}\n"

/* An attempt of a minute; `rest` has its cause and the step that it went on from. */
#define ATTEMPT(no, rest)                                                                          \
    "{\"no\":" no ",\"id\":\"" ID no                                                               \
    "\",\"started\":\"" AT("00", "00") "\",\"ended\":\"" AT("01", "00") "\"," rest "}"
#define TASK(seed, end, attempts)                                                                  \
    "{\"cell\":\"arch=dense,seed=" seed "\",\"stage\":\"train\",\"end\":\"" end                    \
    "\",\"attempts\":[" attempts "]}"

static const char PROVENANCE[] = "{\"tasks\":[" TASK(
    "1", "done",
    ATTEMPT("1", "\"cause\":\"crash\",\"resumed_from\":null") "," ATTEMPT(
        "2",
        "\"cause\":\"hang\","
        "\"resumed_from\":"
        "40") "," ATTEMPT("3",
                          "\"cause\":null,\"resumed_from\":60")) "," TASK("2", "done",
                                                                          ATTEMPT(
                                                                              "1",
                                                                              "\"cause\":\"oom\","
                                                                              "\"resumed_"
                                                                              "from\":null") "," ATTEMPT("2",
                                                                                                         "\"cause\":\"crash\",\"resumed_from\":10") "," ATTEMPT("3",
                                                                                                                                                                "\"cause\":null,\"resumed_from\":"
                                                                                                                                                                "null")) "," TASK("3",
                                                                                                                                                                                  "blocked",
                                                                                                                                                                                  ATTEMPT(
                                                                                                                                                                                      "1",
                                                                                                                                                                                      "\"cause\":"
                                                                                                                                                                                      "\"crash\","
                                                                                                                                                                                      "\"resumed_"
                                                                                                                                                                                      "from\":"
                                                                                                                                                                                      "null")) "]"
                                                                                                                                                                                               "}";

/* Events that come to this step of 100, behind more than is read of a file. */
static void put_events(const char *folder, const char *seed, uint32_t no, int done)
{
    struct strbuf text = STRBUF_INIT;
    char cell[40];
    char id[40];
    (void)snprintf(cell, sizeof(cell), "arch=dense,seed=%s", seed);
    (void)snprintf(id, sizeof(id), ID "%u", no);
    char *task = layout_task(folder, cell, "train");
    char *attempt = attempt_path(task, no, id);
    struct err err = {0};
    strbuf_adds(&text, "{\"type\":\"progress\",\"done\":1,\"total\":100,\"unit\":\"step\"}\n");
    while (text.len < 300000) {
        strbuf_adds(&text, SOME_LESS);
    }
    strbuf_addf(&text, "{\"type\":\"progress\",\"done\":%d,\"total\":100,\"unit\":\"step\"}\n",
                done);
    strbuf_adds(&text, SOME_LESS "{\"type\":\"progress\",\"done\":99,\"to");
    assert_int_equal(dir_make(attempt, 0700, &err), 0);
    char *path = path_join(attempt, LAYOUT_EVENTS);
    assert_int_equal(file_write_atomic(path, text.buf, text.len, 0600, &err), 0);
    strbuf_release(&text);
    free(path);
    free(attempt);
    free(task);
}

static void expect_loss(const struct report_loss *loss, double ms, double tokens)
{
    assert_true(isnan(ms) ? isnan(loss->ms) : fabs(loss->ms - ms) < 1e-6);
    assert_true(isnan(tokens) ? isnan(loss->tokens) : fabs(loss->tokens - tokens) < 1e-9);
}

static void test_losses(void **state)
{
    static const char result[] = "{\"facts\":{\"tokens\":1000}}";
    struct report_model m = {0};
    struct diag diag;
    struct err err = {0};
    (void)state;
    char *folder = scratch_make();
    diag_init(&diag, "grid.toml");
    arena_init(&m.arena);
    assert_int_equal(
        program_parse(TOLD_PROGRAM, strlen(TOLD_PROGRAM), "/p/grid.toml", &m.program, &diag, &err),
        0);
    assert_int_equal(json_parse(PROVENANCE, strlen(PROVENANCE), &m.provenance, &err), 0);
    m.results = xcalloc(program_n_tasks(m.program), sizeof(*m.results));
    for (size_t cell = 0; cell < 2; cell++) {
        assert_int_equal(
            json_parse(result, strlen(result), &m.results[cell * m.program->n_stages], &err), 0);
    }
    put_events(folder, "1", 1, 50);
    put_events(folder, "1", 2, 70);
    put_events(folder, "2", 2, 30);
    put_events(folder, "3", 1, 80);
    report_losses_read(&m.losses, &m, folder, &m.arena);
    assert_int_equal(m.losses.n, 5);
    expect_loss(&m.losses.items[0], 60000 * 10 / 50.0, 100);   /* came to 50, went on from 40 */
    expect_loss(&m.losses.items[1], 60000 * 10 / 30.0, 100);   /* from 40 to 70, went on from 60 */
    expect_loss(&m.losses.items[2], (double)NAN, (double)NAN); /* no events */
    expect_loss(&m.losses.items[3], 60000 * 30 / 20.0, 300); /* begun again: what was before, too */
    expect_loss(&m.losses.items[4], 60000, (double)NAN);     /* never done: all of it */
    report_model_release(&m);
    diag_release(&diag);
    scratch_remove(folder);
}

static void test_wall_time(void **state)
{
    static const struct {
        const char *attempt;
        double ms;
    } cases[] = {
        {"{\"started\":\"" AT("00", "00") "\",\"ended\":\"" AT("00", "01") "\"}", 1000},
        {"{\"started\":\"" AT("00", "01") "\",\"ended\":\"" AT("00", "00") "\"}", (double)NAN},
        {"{\"started\":\"" AT("00", "01") "\",\"ended\":null}", (double)NAN},
        {"{}", (double)NAN},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].attempt);
        cJSON *attempt = NULL;
        struct err err = {0};
        assert_int_equal(json_parse(cases[i].attempt, strlen(cases[i].attempt), &attempt, &err), 0);
        const double ms = attempt_wall_ms(attempt);
        assert_true(isnan(cases[i].ms) ? isnan(ms) : ms == cases[i].ms);
        cJSON_Delete(attempt);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses),
        cmocka_unit_test(test_wall_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
