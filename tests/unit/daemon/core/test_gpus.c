/* GPUs: which ones an attempt is given, that none is given twice, what waits and why, and that
 * what was held before a restart is still held after it. */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/daemon/core/driver.h"

#define GIB (INT64_C(1) << 30)

static struct core_gpu gpus[5];

/* Two of 80 GiB, two of 40 GiB of another model, and a part of 10 GiB. */
static void make_gpus(void)
{
    static const struct core_gpu template[] = {
        {.uuid = "GPU-a", .index = 0, .model = "NVIDIA H100 80GB", .memory_bytes = 80 * GIB},
        {.uuid = "GPU-b", .index = 1, .model = "NVIDIA H100 80GB", .memory_bytes = 80 * GIB},
        {.uuid = "GPU-c", .index = 2, .model = "NVIDIA L40", .memory_bytes = 40 * GIB},
        {.uuid = "GPU-d", .index = 3, .model = "NVIDIA L40", .memory_bytes = 40 * GIB},
        {.uuid = "MIG-e", .index = 4, .model = "NVIDIA H100 MIG", .memory_bytes = 10 * GIB},
    };
    memcpy(gpus, template, sizeof(gpus));
}

static void tell(struct driver *d, size_t n)
{
    struct core_event ev = {.kind = CORE_GPUS};
    ev.gpus.known = true;
    ev.gpus.list = gpus;
    ev.gpus.n = n;
    driver_step(d, ev);
}

/* A program of one stage. */
struct wish {
    uint32_t n_cells;
    int64_t thousandths;
    int64_t memory_bytes;
    const char *model;
    const char *only; /* the GPU that it may use; NULL: all */
    uint32_t threads;
};

static void add_wish(struct driver *d, uint32_t program, const struct wish *w)
{
    const struct core_plan_stage stage = {.counted = true,
                                          .threads = w->threads > 0 ? w->threads : 1,
                                          .gpu_thousandths = w->thousandths,
                                          .gpu_memory_bytes = w->memory_bytes,
                                          .crashes = 2,
                                          .attempts = 5};
    const struct core_plan plan = {.n_cells = w->n_cells,
                                   .n_stages = 1,
                                   .stages = &stage,
                                   .gpus_listed = w->only != NULL,
                                   .gpus = &w->only,
                                   .n_gpus = w->only != NULL,
                                   .gpu_model = w->model};
    driver_add(d, program, &plan);
}

/* The GPUs of the starts of the last step, "GPU-a GPU-b,GPU-c". */
static const char *given(const struct driver *d)
{
    static char text[1024];
    text[0] = '\0';
    for (size_t i = 0; i < d->out.n_rows; i++) {
        if (d->out.rows[i].kind == ROW_ATTEMPT_STARTED) {
            const size_t n = strlen(text);
            (void)snprintf(text + n, sizeof(text) - n, "%s%.100s", n == 0 ? "" : " ",
                           d->out.rows[i].attempt.placement.gpus);
        }
    }
    return text;
}

static void end_in(struct driver *d, uint32_t program, uint32_t task)
{
    struct core_event ev = {
        .kind = CORE_ATTEMPT_ENDED, .program = program, .task = task, .attempt_no = 1};
    ev.ended.reason = END_EXITED;
    ev.ended.code = 3; /* a user's error: it is not tried again */
    driver_step(d, ev);
}

static const char *why(const struct driver *d, uint32_t program, uint32_t task)
{
    static char text[512];
    struct core_explanation e;
    struct strbuf sb = STRBUF_INIT;
    assert_true(core_explain(d->core, program, task, &e));
    core_explanation_text(d->core, &e, (struct mono_time){d->now_ms}, &sb);
    (void)snprintf(text, sizeof(text), "%s", sb.buf);
    strbuf_release(&sb);
    return text;
}

static void test_choice(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct wish wish;
        const char *gets;
    } rows[] = {
        {"the smallest", {.n_cells = 1, .thousandths = 1000}, "MIG-e"},
        {"with enough memory",
         {.n_cells = 1, .thousandths = 1000, .memory_bytes = 11 * GIB},
         "GPU-c"},
        {"all of it", {.n_cells = 1, .thousandths = 1000, .memory_bytes = 80 * GIB}, "GPU-a"},
        {"of one model, no parts", {.n_cells = 1, .thousandths = 2000}, "GPU-c,GPU-d"},
        {"too many of one model", {.n_cells = 1, .thousandths = 3000}, ""},
        {"more memory than any", {.n_cells = 1, .thousandths = 1000, .memory_bytes = 81 * GIB}, ""},
        {"of the pinned model",
         {.n_cells = 1, .thousandths = 1000, .model = "NVIDIA H100"},
         "MIG-e"},
        {"of a longer name",
         {.n_cells = 1, .thousandths = 1000, .model = "NVIDIA H100 80GB"},
         "GPU-a"},
        {"of no model here", {.n_cells = 1, .thousandths = 1000, .model = "NVIDIA A100"}, ""},
        {"by index", {.n_cells = 1, .thousandths = 1000, .only = "3"}, "GPU-d"},
        {"by UUID", {.n_cells = 2, .thousandths = 1000, .only = "GPU-b"}, "GPU-b"},
        {"shares of one",
         {.n_cells = 3, .thousandths = 500, .memory_bytes = 11 * GIB},
         "GPU-c GPU-c GPU-d"},
        {"shares by memory",
         {.n_cells = 3, .thousandths = 100, .memory_bytes = 30 * GIB},
         "GPU-c GPU-d GPU-a"},
        {"none", {.n_cells = 1}, ""},
    };
    make_gpus();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_ROW("%s", rows[i].name);
        struct driver d;
        driver_init(&d, 8);
        tell(&d, 5);
        add_wish(&d, 1, &rows[i].wish);
        assert_string_equal(given(&d), rows[i].gets);
        driver_release(&d);
    }
}

/* Whole ones and shares side by side; what ends is given to the next. */
static void test_no_gpu_twice(void **state)
{
    (void)state;
    struct driver d;
    make_gpus();
    driver_init(&d, 8);
    tell(&d, 2);
    add_wish(&d, 1, &(struct wish){.n_cells = 1, .thousandths = 600, .memory_bytes = 50 * GIB});
    assert_string_equal(given(&d), "GPU-a");
    add_wish(&d, 2, &(struct wish){.n_cells = 2, .thousandths = 1000});
    assert_string_equal(given(&d), "GPU-b");
    assert_string_equal(why(&d, 2, 1), "waits for GPUs: needs 1 GPU, 0 of 2 free; 2 are given to "
                                       "attempts of this daemon");
    add_wish(&d, 3, &(struct wish){.n_cells = 1, .thousandths = 400, .memory_bytes = 31 * GIB});
    assert_string_equal(given(&d), "");
    assert_string_equal(why(&d, 3, 0),
                        "waits for GPUs: needs 0.4 of a GPU with 31 GiB, 0 of 2 free; GPU-a has 80 "
                        "GiB, of which attempts of this daemon hold 50 GiB; GPU-b is given to "
                        "attempts of this daemon");
    add_wish(&d, 4, &(struct wish){.n_cells = 1, .thousandths = 400, .memory_bytes = 30 * GIB});
    assert_string_equal(given(&d), "GPU-a");
    driver_at(&d, CORE_ATTEMPT_UP, 0, 1);
    end_in(&d, 1, 0);
    assert_string_equal(given(&d), "GPU-a"); /* program 3: 0.4 and 0.4, 31 and 30 GiB */
    driver_release(&d);
}

static void test_not_known_yet(void **state)
{
    (void)state;
    struct driver d;
    make_gpus();
    driver_init(&d, 8);
    add_wish(&d, 1, &(struct wish){.n_cells = 1, .thousandths = 1000});
    assert_string_equal(why(&d, 1, 0), "waits until the GPUs of this machine are known");
    tell(&d, 0);
    assert_string_equal(why(&d, 1, 0),
                        "cannot run on this machine: needs 1 GPU, and 0 of its 0 GPUs would do");
    tell(&d, 1);
    assert_string_equal(given(&d), "GPU-a");
    driver_step(&d, (struct core_event){.kind = CORE_GPUS}); /* not known any more */
    add_wish(&d, 2, &(struct wish){.n_cells = 1, .thousandths = 1000});
    assert_string_equal(why(&d, 2, 0), "waits until the GPUs of this machine are known");
    tell(&d, 2);
    assert_string_equal(given(&d), "GPU-b");
    driver_release(&d);
}

static void test_foreign(void **state)
{
    (void)state;
    struct driver d;
    make_gpus();
    driver_init(&d, 8);
    (void)snprintf(gpus[0].used_by, sizeof(gpus[0].used_by), "pid 4711 (python) of user x");
    tell(&d, 1);
    add_wish(&d, 1, &(struct wish){.n_cells = 2, .thousandths = 1000});
    assert_string_equal(given(&d), "");
    assert_string_equal(why(&d, 1, 0), "waits for GPUs: needs 1 GPU, 0 of 1 free; GPU-a is used by "
                                       "pid 4711 (python) of user x");
    gpus[0].used_by[0] = '\0';
    tell(&d, 1);
    assert_string_equal(given(&d), "GPU-a");
    (void)snprintf(gpus[0].used_by, sizeof(gpus[0].used_by), "pid 1");
    tell(&d, 1); /* what runs goes on, and keeps it */
    assert_int_equal(core_n_live(d.core), 1);
    gpus[0].used_by[0] = '\0';
    tell(&d, 1);
    assert_string_equal(given(&d), "");
    driver_release(&d);
}

/* Memory that is not ours and has no process that can be seen: what declares memory waits. */
static void test_memory_of_others(void **state)
{
    (void)state;
    struct driver d;
    make_gpus();
    driver_init(&d, 8);
    gpus[0].others_bytes = 30 * GIB;
    tell(&d, 1);
    add_wish(&d, 1, &(struct wish){.n_cells = 1, .thousandths = 1000, .memory_bytes = 60 * GIB});
    assert_string_equal(given(&d), "");
    assert_string_equal(why(&d, 1, 0),
                        "waits for GPUs: needs 1 GPU with 60 GiB, 0 of 1 free; GPU-a has 80 GiB, "
                        "of which other processes use 30 GiB");
    add_wish(&d, 2, &(struct wish){.n_cells = 2, .thousandths = 500, .memory_bytes = 30 * GIB});
    assert_string_equal(given(&d), "GPU-a"); /* 50 GiB: one of them fits */
    assert_string_equal(why(&d, 2, 1),
                        "waits for GPUs: needs 0.5 of a GPU with 30 GiB, 0 of 1 free; GPU-a has 80 "
                        "GiB, of which attempts of this daemon hold 30 GiB and other processes use "
                        "30 GiB");
    gpus[0].others_bytes = 1 * GIB; /* what the driver keeps: no reason to wait */
    tell(&d, 1);
    assert_string_equal(given(&d), "GPU-a");
    assert_string_equal(why(&d, 1, 0), "waits for GPUs: needs 1 GPU with 60 GiB, 0 of 1 free; 1 is "
                                       "given to attempts of this daemon");
    gpus[0].others_bytes = 20 * GIB;
    tell(&d, 1);
    assert_string_equal(given(&d), "");
    end_in(&d, 2, 0);
    end_in(&d, 2, 1);
    assert_string_equal(given(&d), "GPU-a");
    assert_int_equal(core_n_live(d.core), 1);
    end_in(&d, 1, 0);
    gpus[0].others_bytes = 70 * GIB;
    tell(&d, 1);
    add_wish(&d, 3, &(struct wish){.n_cells = 1, .thousandths = 1000});
    assert_string_equal(given(&d), "GPU-a"); /* it declares none */
    driver_release(&d);
}

/* A GPU that disappears is still held, and is not given when it comes back. */
static void test_gone_and_back(void **state)
{
    (void)state;
    struct driver d;
    make_gpus();
    driver_init(&d, 8);
    tell(&d, 1);
    add_wish(&d, 1, &(struct wish){.n_cells = 2, .thousandths = 1000});
    tell(&d, 0);
    assert_string_equal(why(&d, 1, 1),
                        "cannot run on this machine: needs 1 GPU, and 0 of its 0 GPUs would do");
    tell(&d, 1);
    assert_string_equal(given(&d), "");
    driver_at(&d, CORE_ATTEMPT_UP, 0, 1);
    end_in(&d, 1, 0);
    assert_string_equal(given(&d), "GPU-a");
    tell(&d, 0);
    end_in(&d, 1, 1); /* its last holder ends while it is gone */
    tell(&d, 1);
    add_wish(&d, 2, &(struct wish){.n_cells = 1, .thousandths = 1000});
    assert_string_equal(given(&d), "GPU-a");
    driver_release(&d);
}

/* Two attempts were alive when the last daemon ended: one whole GPU, and a share. */
static void test_restart(void **state)
{
    (void)state;
    const struct core_plan_stage stage = {.counted = true,
                                          .threads = 1,
                                          .gpu_thousandths = 500,
                                          .gpu_memory_bytes = GIB,
                                          .crashes = 2,
                                          .attempts = 5};
    struct core_event ev = {.kind = CORE_PROGRAM_ADDED, .program = 1};
    struct core_live live[2] = {{.task = 0}, {.task = 1}};
    struct task_row rows[4];
    struct driver d;
    make_gpus();
    for (uint32_t i = 0; i < 4; i++) {
        task_row_init(&rows[i], i < 2 ? TASK_RUNNING : TASK_READY);
        rows[i].n_attempts = i < 2;
    }
    for (size_t i = 0; i < 2; i++) {
        attempt_row_init(&live[i].attempt);
        live[i].attempt.no = 1;
        live[i].attempt.placement = (struct placement){
            .threads = 1, .gpu_thousandths = i == 0 ? 1000 : 500, .gpu_memory_bytes = GIB};
        (void)snprintf(live[i].attempt.placement.gpus, sizeof(live[i].attempt.placement.gpus),
                       "GPU-%c", i == 0 ? 'b' : 'a');
    }
    driver_init(&d, 8);
    ev.added.plan = (struct core_plan){.n_cells = 4, .n_stages = 1, .stages = &stage};
    ev.added.tasks = rows;
    ev.added.live = live;
    ev.added.n_live = 2;
    driver_step(&d, ev);
    driver_step(&d, (struct core_event){.kind = CORE_ALL_ADDED});
    tell(&d, 2);
    assert_string_equal(given(&d), "GPU-a"); /* half of it was held */
    assert_string_equal(why(&d, 1, 3),
                        "waits for GPUs: needs 0.5 of a GPU with 1 GiB, 0 of 2 free; GPU-a is "
                        "given to attempts of this daemon; GPU-b is given to attempts of this "
                        "daemon");
    end_in(&d, 1, 0); /* the whole one is free again */
    assert_string_equal(given(&d), "GPU-b");
    driver_release(&d);
}

static void test_damaged_rows(void **state)
{
    (void)state;
    static const char *const texts[] = {"GPU a", ",GPU-a", "GPU-a,,GPU-b",
                                        "GPU-0123456789012345678901234567890123456789"};
    const struct core_plan_stage stage = {.counted = true, .threads = 1, .attempts = 5};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        CHECK_ROW("%s", texts[i]);
        struct core_event ev = {.kind = CORE_PROGRAM_ADDED, .program = 1};
        struct core_live live = {.task = 0};
        struct task_row row;
        struct driver d;
        task_row_init(&row, TASK_RUNNING);
        row.n_attempts = 1;
        attempt_row_init(&live.attempt);
        live.attempt.no = 1;
        (void)snprintf(live.attempt.placement.gpus, sizeof(live.attempt.placement.gpus), "%s",
                       texts[i]);
        driver_init(&d, 8);
        ev.added.plan = (struct core_plan){.n_cells = 1, .n_stages = 1, .stages = &stage};
        ev.added.tasks = &row;
        ev.added.live = &live;
        ev.added.n_live = 1;
        driver_step(&d, ev);
        assert_string_equal(d.out.refusal, "the attempt of task 0 is damaged");
        driver_release(&d);
    }
}

/* What waits for a GPU does not hold up what needs none; what only lacks cores does. */
static void test_lanes(void **state)
{
    (void)state;
    const struct core_plan_stage two[] = {
        {.counted = true, .threads = 2, .gpu_thousandths = 1000, .crashes = 2, .attempts = 5},
        {.counted = true, .threads = 1, .attempts = 5}};
    const struct core_plan plan = {.n_cells = 3, .n_stages = 2, .stages = two};
    struct driver d;
    make_gpus();
    driver_init(&d, 3);
    tell(&d, 1);
    driver_add(&d, 1, &plan);
    assert_string_equal(given(&d), "GPU-a "); /* 2 cores, then 1 beside it */
    assert_int_equal(driver_row(&d, 3).state, TASK_READY);
    driver_at(&d, CORE_ATTEMPT_UP, 1, 1);
    end_in(&d, 1, 1);
    assert_int_equal(driver_row(&d, 3).state, TASK_STARTING); /* the GPU is busy, a core is not */
    end_in(&d, 1, 0);
    assert_string_equal(given(&d), "GPU-a");
    driver_release(&d);
}

/* Its GPU is free and its cores are not: no smaller task of its program gets in between. */
static void test_cores_are_kept(void **state)
{
    (void)state;
    const struct core_plan_stage two[] = {
        {.counted = true, .threads = 2, .gpu_thousandths = 1000, .crashes = 2, .attempts = 5},
        {.counted = true, .threads = 1, .attempts = 5}};
    const struct core_plan plan = {.n_cells = 3, .n_stages = 2, .stages = two};
    struct driver d;
    make_gpus();
    driver_init(&d, 2);
    tell(&d, 0);
    driver_add(&d, 1, &plan);
    assert_int_equal(driver_row(&d, 1).state, TASK_STARTING);
    assert_int_equal(driver_row(&d, 3).state, TASK_STARTING);
    tell(&d, 1);
    driver_at(&d, CORE_ATTEMPT_UP, 1, 1);
    end_in(&d, 1, 1);
    assert_int_equal(driver_row(&d, 5).state, TASK_READY);
    assert_string_equal(why(&d, 1, 0),
                        "waits for cores: needs 2, attempts of this daemon hold 1 of 2");
    end_in(&d, 1, 3);
    assert_string_equal(given(&d), "GPU-a");
    driver_release(&d);
}

/* A program that needs all GPUs gets them, though others ask for one again and again; not while a
 * stranger holds one of them. */
static void test_starved(void **state)
{
    (void)state;
    for (int foreign = 0; foreign <= 1; foreign++) {
        CHECK_ROW("foreign %d", foreign);
        struct driver d;
        make_gpus();
        driver_init(&d, 8);
        if (foreign == 1) {
            (void)snprintf(gpus[1].used_by, sizeof(gpus[1].used_by), "pid 1");
        }
        tell(&d, 2);
        add_wish(&d, 1, &(struct wish){.n_cells = 9, .thousandths = 1000});
        add_wish(&d, 2, &(struct wish){.n_cells = 1, .thousandths = 2000});
        const uint32_t more = foreign == 1 ? 1 : 2; /* the next task of program 1 */
        d.now_ms += 6 * 60 * 1000;
        driver_at(&d, CORE_ATTEMPT_UP, 0, 1);
        end_in(&d, 1, 0);
        assert_int_equal(driver_row(&d, more).state, foreign == 1 ? TASK_STARTING : TASK_READY);
        if (foreign == 0) {
            end_in(&d, 1, 1);
            assert_string_equal(given(&d), "GPU-a,GPU-b");
        }
        driver_release(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_no_gpu_twice),
        cmocka_unit_test(test_not_known_yet),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_memory_of_others),
        cmocka_unit_test(test_gone_and_back),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_damaged_rows),
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_cores_are_kept),
        cmocka_unit_test(test_starved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
