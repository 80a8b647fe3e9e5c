/* Single decisions of the book, each with the events that lead to it; tests/sim/slurm has them in
 * every order. */
#include "tests/unit/daemon/executor/slurm/bench.h"

static void test_array_of_two(void **state)
{
    struct bench p;
    (void)state;
    begin(&p);
    start(&p, 0, A, true);
    start(&p, 1, B, true);
    tested(&p, SLURM_SUBMIT_DONE);
    const struct slurm_act *a = wait_for(&p, SLURM_ACT_SUBMIT);
    assert_string_equal(a->array, "0-1");
    assert_int_equal(a->n_entries, 2);
    assert_int_equal(a->entries[1].key.task, 1);
    assert_int_equal(a->entries[1].index, 1);
    assert_string_not_equal(a->name, A);
    assert_false(a->again);
    finish(&p);
}

/* Rule 23: what never fits is refused at once, with Slurm's words. */
static void test_never_fits(void **state)
{
    struct bench p;
    (void)state;
    begin(&p);
    start(&p, 0, A, false);
    tested(&p, SLURM_SUBMIT_NEVER);
    assert_int_equal(reason(&p), END_NEVER_LAUNCHED);
    assert_string_equal(detail(&p), "Slurm refuses the job: too big");
    assert_true(must(&p, SLURM_ACT_ENDED).fence);
    finish(&p);
}

/* Rule 1: unknown is asked for by name, and submitted again only when it is absent over a grace. */
static void test_unknown_answer(void **state)
{
    struct bench p;
    (void)state;
    begin(&p);
    start(&p, 0, A, false);
    tested(&p, SLURM_SUBMIT_DONE);
    submitted(&p, SLURM_SUBMIT_UNKNOWN);
    assert_non_null(strstr(must(&p, SLURM_ACT_NOTE).text, "sbatch failed")); /* with its words */
    assert_non_null(strstr(must(&p, SLURM_ACT_NOTE).text, ": why"));
    const int64_t since_ms = p.now_ms;
    assert_non_null(act(&p, SLURM_ACT_QUEUE) != NULL ? act(&p, SLURM_ACT_QUEUE)
                                                     : act(&p, SLURM_ACT_NAMES));
    int n = 0;
    while (act(&p, SLURM_ACT_SUBMIT) == NULL && n++ < 200) {
        queue(&p, "");
        if (act(&p, SLURM_ACT_SUBMIT) == NULL) {
            files(&p, 0, false);
        }
    }
    assert_true(must(&p, SLURM_ACT_SUBMIT).again);
    assert_string_equal(must(&p, SLURM_ACT_SUBMIT).name, A);
    assert_true(p.now_ms - since_ms >= 180000);
    finish(&p);
}

/* Rule 15: "cannot ask" neither ends nor submits, however long it lasts. */
static void test_cannot_ask(void **state)
{
    struct bench p;
    (void)state;
    hold_one(&p);
    queue(&p, row(&p, "RUNNING", "n1"));
    assert_non_null(act(&p, SLURM_ACT_BEGAN));
    for (int i = 0; i < 300; i++) {
        queue(&p, NULL);
        assert_null(act(&p, SLURM_ACT_ENDED));
        if (act(&p, SLURM_ACT_LOOK) != NULL) {
            files(&p, 0, true);
        }
        assert_null(act(&p, SLURM_ACT_ENDED));
    }
    step(&p, (struct slurm_event){.kind = SLURM_EVENT_PROBE, .key = key(0)});
    assert_int_equal(must(&p, SLURM_ACT_PROBED).health, SLURM_UNSURE);
    finish(&p);
}

/* Rule 13: as often as [run.slurm] poll says. */
static void test_round(void **state)
{
    struct bench p;
    (void)state;
    hold_one(&p);
    slurm_book_set_round(p.book, 1000);
    queue(&p, row(&p, "RUNNING", "n1"));
    for (int i = 0; i < 5; i++) {
        const int64_t since_ms = p.now_ms;
        queue(&p, row(&p, "RUNNING", "n1"));
        assert_in_range(p.now_ms - since_ms, 900, 1100);
        step(&p, (struct slurm_event){.kind = SLURM_EVENT_TIMER});
    }
    finish(&p);
}

/* Nor when the last answer before it had shown the job absent. */
static void test_absent_once(void **state)
{
    struct bench p;
    (void)state;
    hold_one(&p);
    queue(&p, row(&p, "RUNNING", "n1"));
    files(&p, 0, true);
    queue(&p, "");
    for (int i = 0; i < 200; i++) {
        if (act(&p, SLURM_ACT_LOOK) != NULL) {
            files(&p, 0, true);
        }
        assert_null(act(&p, SLURM_ACT_ENDED));
        queue(&p, NULL);
    }
    finish(&p);
}

/* What was refused is ended: only a new start can find out, and room is reported once. */
static void test_full_and_ended(void **state)
{
    struct bench p;
    (void)state;
    begin(&p);
    start(&p, 0, A, false);
    tested(&p, SLURM_SUBMIT_DONE);
    submitted(&p, SLURM_SUBMIT_FULL);
    step(&p, (struct slurm_event){.kind = SLURM_EVENT_KILL, .key = key(0)});
    assert_int_equal(reason(&p), END_PREEMPTED);
    (void)wait_for(&p, SLURM_ACT_ROOM);
    step(&p, (struct slurm_event){.kind = SLURM_EVENT_TIMER});
    assert_null(act(&p, SLURM_ACT_ROOM));
    finish(&p);
}

/* Rules 17 and 19: NODE_FAIL alone ends nothing for a grace; then the host is lost. */
static void test_node_fail(void **state)
{
    struct bench p;
    (void)state;
    hold_one(&p);
    queue(&p, row(&p, "RUNNING", "n1"));
    files(&p, 0, true);
    queue(&p, row(&p, "NODE_FAIL", "n1"));
    const int64_t since_ms = p.now_ms;
    while (act(&p, SLURM_ACT_ENDED) == NULL && p.now_ms - since_ms < 1000000) {
        if (act(&p, SLURM_ACT_LOOK) != NULL) {
            files(&p, 0, true);
        }
        if (act(&p, SLURM_ACT_ENDED) == NULL) {
            queue(&p, row(&p, "NODE_FAIL", "n1"));
        }
    }
    assert_int_equal(reason(&p), END_HOST_LOST);
    assert_string_equal(detail(&p), "Slurm: NODE_FAIL on n1");
    assert_true(p.now_ms - since_ms >= 180000 && p.now_ms - since_ms < 200000);
    finish(&p);
}

/* Rule 16: where there is no accounting it is asked for once, and says nothing. */
static void test_no_accounting(void **state)
{
    struct bench p;
    unsigned n_asked = 0;
    (void)state;
    begin(&p);
    start(&p, 0, A, true);
    start(&p, 1, B, true);
    tested(&p, SLURM_SUBMIT_DONE);
    submitted(&p, SLURM_SUBMIT_DONE);
    const char *second = arena_printf(&p.texts, "5_1|6|RUNNING|None|%s|1|n1|1|1\n", p.name);
    for (int i = 0; i < 100; i++) {
        /* The second one vanishes after the first. */
        queue(&p, i < 40 ? second : "");
        if (act(&p, SLURM_ACT_ACCOUNTING) != NULL) {
            n_asked++;
            step(&p, (struct slurm_event){.kind = SLURM_EVENT_ACCOUNTED, .queue.off = true});
            assert_int_equal(p.out.n, 0);
        }
    }
    assert_int_equal(n_asked, 1);
    finish(&p);
}

/* Rule 2: an id is cancelled out of an answer that has just shown it, under its name. */
static void test_kill(void **state)
{
    struct bench p;
    (void)state;
    hold_one(&p);
    queue(&p, row(&p, "PENDING", ""));
    assert_int_equal(slurm_book_count_ending(p.book), 0);
    step(&p, (struct slurm_event){.kind = SLURM_EVENT_KILL, .key = key(0)});
    assert_null(act(&p, SLURM_ACT_CANCEL));
    assert_int_equal(slurm_book_count_ending(p.book), 1);
    assert_string_equal(must(&p, SLURM_ACT_NAMES).name, A);
    queue(&p, row(&p, "PENDING", ""));
    assert_int_equal(slurm_book_count_ending(p.book), 1); /* scancel has not answered */
    const struct slurm_act a = must(&p, SLURM_ACT_CANCEL);
    assert_string_equal(a.name, A);
    assert_string_equal(a.ids, "5");
    assert_false(a.soft);
    step(&p, (struct slurm_event){.kind = SLURM_EVENT_CANCELLED});
    assert_int_equal(slurm_book_count_ending(p.book), 0);
    queue(&p, row(&p, "CANCELLED", ""));
    files(&p, 0, false);
    assert_int_equal(reason(&p), END_PREEMPTED);
    finish(&p);
}

/* An array that is cancelled while all of it waits is shown as one job: its attempts end at once,
 * and those of its tasks that have rows of their own do not. */
static void test_array_cancelled_whole(void **state)
{
    struct bench p;
    char text[400];
    (void)state;
    begin(&p);
    start(&p, 0, A, true);
    start(&p, 1, B, true);
    tested(&p, SLURM_SUBMIT_DONE);
    submitted(&p, SLURM_SUBMIT_DONE);
    (void)snprintf(text, sizeof(text), "5|5|CANCELLED|None|%s|1000||N/A|N/A\n5_1|6|RUN", p.name);
    queue(&p, text); /* cut off: the other rows are not known */
    assert_null(act(&p, SLURM_ACT_LOOK));
    (void)snprintf(text, sizeof(text),
                   "5|5|CANCELLED|None|%s|1000||N/A|N/A\n5_1|6|RUNNING|None|%s|1000|n1|N/A|N/A\n",
                   p.name, p.name);
    queue(&p, text);
    assert_int_equal(must(&p, SLURM_ACT_LOOK).key.task, 0);
    files(&p, 0, false);
    assert_int_equal(reason(&p), END_PREEMPTED);
    assert_int_equal(slurm_book_count(p.book), 1);
    finish(&p);
}

/* Rule 25: a cancel goes where its batch went, however many clusters there are. */
static void test_kill_in_its_cluster(void **state)
{
    struct bench p;
    struct slurm_event ev = {.kind = SLURM_EVENT_START, .key = key(0)};
    (void)state;
    begin(&p);
    ev.start.id = A;
    ev.start.shape = 3;
    step(&p, ev);
    (void)wait_for(&p, SLURM_ACT_TEST);
    step(&p,
         (struct slurm_event){.kind = SLURM_EVENT_TESTED, .shape = 3, .submit = SLURM_SUBMIT_DONE});
    submitted(&p, SLURM_SUBMIT_DONE);
    queue(&p, row(&p, "PENDING", ""));
    step(&p, (struct slurm_event){.kind = SLURM_EVENT_KILL, .key = key(0)});
    queue(&p, row(&p, "PENDING", ""));
    assert_int_equal(must(&p, SLURM_ACT_CANCEL).shape, 3);
    finish(&p);
}

/* The script and the list of a batch are removed with its last attempt, and not before. */
static void test_forgets(void **state)
{
    struct bench p;
    struct slurm_event ev = {.kind = SLURM_EVENT_FILES};
    const struct attempt_end done = {.reason = END_EXITED};
    (void)state;
    begin(&p);
    start(&p, 0, A, true);
    start(&p, 1, B, true);
    tested(&p, SLURM_SUBMIT_DONE);
    submitted(&p, SLURM_SUBMIT_DONE);
    queue(&p, NULL);
    queue(&p, "");
    ev.files.listed = true;
    ev.files.end = &done;
    for (uint32_t task = 0; task < 2; task++) {
        ev.key = key(task);
        p.now_ms++;
        step(&p, ev);
        assert_int_equal(reason(&p), END_EXITED);
        assert_int_equal(act(&p, SLURM_ACT_FORGET) != NULL, task == 1);
    }
    assert_string_equal(must(&p, SLURM_ACT_FORGET).name, p.name);
    finish(&p);
}

/* One that was refused and is ended while it waits leaves a script. */
static void test_forgets_refused(void **state)
{
    struct bench p;
    (void)state;
    begin(&p);
    start(&p, 0, A, false);
    tested(&p, SLURM_SUBMIT_DONE);
    submitted(&p, SLURM_SUBMIT_FULL);
    start(&p, 1, B, false);
    step(&p, (struct slurm_event){.kind = SLURM_EVENT_KILL, .key = key(1)});
    assert_null(act(&p, SLURM_ACT_FORGET));
    step(&p, (struct slurm_event){.kind = SLURM_EVENT_KILL, .key = key(0)});
    assert_string_equal(must(&p, SLURM_ACT_FORGET).name, A);
    finish(&p);
}

/* A full disk is not the task's fault: the program pauses, at once, and tasks lose nothing. */
static void test_no_space(void **state)
{
    struct bench p;
    (void)state;
    hold_one(&p);
    start(&p, 1, B, false);
    (void)wait_for(&p, SLURM_ACT_SUBMIT);
    step(&p, (struct slurm_event){.kind = SLURM_EVENT_SUBMITTED,
                                  .name = B,
                                  .submit = SLURM_SUBMIT_NOT_MADE,
                                  .no_space = true,
                                  .text = "write spec: No space left on device"});
    assert_int_equal(reason(&p), END_DISK);
    assert_string_equal(detail(&p), "write spec: No space left on device");
    finish(&p);
}

/* Rule 11: back-pressure is reported, waited for, and over when something is accepted. */
static void test_full(void **state)
{
    struct bench p;
    (void)state;
    begin(&p);
    start(&p, 0, A, false);
    tested(&p, SLURM_SUBMIT_DONE);
    submitted(&p, SLURM_SUBMIT_FULL);
    assert_non_null(act(&p, SLURM_ACT_FULL));
    assert_null(act(&p, SLURM_ACT_ENDED));
    const int64_t since_ms = p.now_ms;
    submitted(&p, SLURM_SUBMIT_DONE);
    assert_true(p.now_ms - since_ms >= 5000);
    assert_non_null(act(&p, SLURM_ACT_ROOM));
    finish(&p);
}

/* A question that was on its way when sbatch answered proves nothing absent. */
static void test_early_question(void **state)
{
    struct bench p;
    (void)state;
    hold_one(&p);
    (void)wait_for(&p, SLURM_ACT_QUEUE);
    start(&p, 1, B, false);
    submitted(&p, SLURM_SUBMIT_DONE);
    answer(&p, "5|5|PENDING|Priority|" A "|1||N/A|N/A\n");
    assert_null(act(&p, SLURM_ACT_LOOK));
    finish(&p);
}

/* A job that appears after its attempt was given up must not run. */
static void test_stray(void **state)
{
    struct bench p;
    (void)state;
    hold_one(&p);
    queue(&p, row(&p, "CANCELLED", ""));
    files(&p, 0, false);
    assert_int_equal(reason(&p), END_PREEMPTED);
    queue(&p, row(&p, "PENDING", ""));
    assert_string_equal(must(&p, SLURM_ACT_CANCEL).ids, "5");
    finish(&p);
}

static void test_hints(void **state)
{
    struct bench p;
    struct slurm_event ev = {.kind = SLURM_EVENT_PROBE, .key = key(0)};
    (void)state;
    begin(&p);
    ev.start.id = A;
    ev.start.hint = SLURM_HINT_UNCLEAR;
    step(&p, ev);
    assert_int_equal(must(&p, SLURM_ACT_PROBED).health, SLURM_UNSURE);
    assert_int_equal(slurm_book_count(p.book), 0);
    ev.start.hint = SLURM_HINT_JOB;
    ev.start.name = B;
    ev.start.index = 3;
    step(&p, ev);
    assert_int_equal(slurm_book_count(p.book), 1);
    queue(&p, "9_3|9|PENDING|Priority|" B "|1||N/A|N/A\n");
    assert_int_equal(must(&p, SLURM_ACT_PROBED).health, SLURM_QUEUED);
    ev.key = key(1);
    ev.start.hint = SLURM_HINT_NEVER;
    step(&p, ev);
    assert_int_equal(reason(&p), END_NEVER_LAUNCHED);
    /* Two attempts cannot be one job. */
    ev.key = key(2);
    ev.start.hint = SLURM_HINT_JOB;
    step(&p, ev);
    assert_int_equal(must(&p, SLURM_ACT_PROBED).health, SLURM_UNSURE);
    assert_int_equal(slurm_book_count(p.book), 1);
    /* No batch is that large. */
    ev.key = key(3);
    ev.start.name = A;
    ev.start.index = 100000;
    step(&p, ev);
    assert_int_equal(must(&p, SLURM_ACT_PROBED).health, SLURM_UNSURE);
    assert_int_equal(slurm_book_count(p.book), 1);
    ev.start.hint = SLURM_HINT_FENCED;
    step(&p, ev);
    assert_int_equal(reason(&p), END_HOST_LOST);
    finish(&p);
}

/* Attempt 0, index 3 of the array B, of an earlier daemon. */
static void adopt(struct bench *p)
{
    struct slurm_event ev = {.kind = SLURM_EVENT_PROBE, .key = key(0)};
    begin(p);
    ev.start.id = A;
    ev.start.array = true;
    ev.start.hint = SLURM_HINT_JOB;
    ev.start.name = B;
    ev.start.index = 3;
    step(p, ev);
}

/* Answers with these rows until something is submitted; false: nothing was over 200 questions. */
static bool is_submitted(struct bench *p, const char *rows)
{
    for (int n = 0; act(p, SLURM_ACT_SUBMIT) == NULL && n < 200; n++) {
        if (act(p, SLURM_ACT_LOOK) != NULL) {
            files(p, 0, false);
        }
        if (act(p, SLURM_ACT_ENDED) != NULL) {
            return false;
        }
        if (act(p, SLURM_ACT_SUBMIT) == NULL) {
            queue(p, rows);
        }
    }
    return act(p, SLURM_ACT_SUBMIT) != NULL;
}

/* What of an adopted batch is refused ends: nothing else of its shape was ever started. */
static void test_adopted_is_refused(void **state)
{
    struct bench p;
    (void)state;
    adopt(&p);
    assert_true(is_submitted(&p, ""));
    step(&p, (struct slurm_event){.kind = SLURM_EVENT_SUBMITTED,
                                  .name = B,
                                  .submit = SLURM_SUBMIT_NEVER,
                                  .text = "Invalid account"});
    assert_int_equal(reason(&p), END_NEVER_LAUNCHED);
    assert_non_null(strstr(detail(&p), "Invalid account"));
    finish(&p);
}

/* What is to end is not submitted once more when Slurm is full. */
static void test_adopted_is_not_wanted(void **state)
{
    struct bench p;
    (void)state;
    adopt(&p);
    assert_true(is_submitted(&p, ""));
    step(&p, (struct slurm_event){.kind = SLURM_EVENT_TERMINATE, .key = key(0)});
    step(&p, (struct slurm_event){
                 .kind = SLURM_EVENT_SUBMITTED, .name = B, .submit = SLURM_SUBMIT_FULL});
    assert_int_equal(reason(&p), END_PREEMPTED);
    finish(&p);
}

/* A later index of the array in the queue proves that sbatch took the batch, though its attempt is
 * not adopted yet: a second sbatch would write the list again without it. */
static void test_adopted_beside_another(void **state)
{
    struct bench p;
    (void)state;
    adopt(&p);
    assert_false(is_submitted(&p, "9_5|9|PENDING|None|" B "|1||1|1\n"));
    finish(&p);
}

/* Rule 1 after a restart: what no good answer shows over a grace is submitted again under its name,
 * and its files are written again, since the daemon before may have died between them. */
static void test_adopted_is_submitted_again(void **state)
{
    struct bench p;
    (void)state;
    adopt(&p);
    queue(&p, NULL); /* proves nothing */
    const int64_t since_ms = p.now_ms;
    assert_true(is_submitted(&p, ""));
    assert_true(p.now_ms - since_ms >= 180000);
    for (int i = 0; i < 2; i++) {
        const struct slurm_act *a = wait_for(&p, SLURM_ACT_SUBMIT);
        assert_string_equal(a->name, B);
        assert_string_equal(a->array, "3");
        assert_false(a->again);
        /* Also where it could not be done: the earlier one may be accepted yet. */
        step(&p,
             (struct slurm_event){.kind = SLURM_EVENT_SUBMITTED,
                                  .name = B,
                                  .submit = i == 0 ? SLURM_SUBMIT_NOT_MADE : SLURM_SUBMIT_DONE});
        assert_null(act(&p, SLURM_ACT_ENDED));
    }
    answer(&p, "9_3|9|RUNNING|None|" B "|1|n1|1|1\n");
    assert_non_null(act(&p, SLURM_ACT_BEGAN));
    finish(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_accounting),
        cmocka_unit_test(test_adopted_is_submitted_again),
        cmocka_unit_test(test_adopted_is_refused),
        cmocka_unit_test(test_adopted_is_not_wanted),
        cmocka_unit_test(test_adopted_beside_another),
        cmocka_unit_test(test_array_of_two),
        cmocka_unit_test(test_never_fits),
        cmocka_unit_test(test_unknown_answer),
        cmocka_unit_test(test_cannot_ask),
        cmocka_unit_test(test_round),
        cmocka_unit_test(test_absent_once),
        cmocka_unit_test(test_full_and_ended),
        cmocka_unit_test(test_node_fail),
        cmocka_unit_test(test_kill),
        cmocka_unit_test(test_array_cancelled_whole),
        cmocka_unit_test(test_kill_in_its_cluster),
        cmocka_unit_test(test_forgets),
        cmocka_unit_test(test_forgets_refused),
        cmocka_unit_test(test_no_space),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_hints),
        cmocka_unit_test(test_early_question),
        cmocka_unit_test(test_stray),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
