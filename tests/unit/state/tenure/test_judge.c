/* Who counts as gone: one row for each rule, and for each thing that is no proof. */
#include "base/xalloc.h"
#include "state/tenure/judge.h"
#include "tests/unit/check.h"

#define STILL TENURE_WATCH_MS

static struct tenure make(const char *host, const char *boot, const char *space, const char *job)
{
    struct tenure t = {.number = 3, .sequence = 9, .pid = 12, .pid_start = 34};
    (void)snprintf(t.host, sizeof(t.host), "%s", host);
    (void)snprintf(t.machine, sizeof(t.machine), "m-%s", host);
    (void)snprintf(t.boot_id, sizeof(t.boot_id), "%s", boot);
    (void)snprintf(t.pid_space, sizeof(t.pid_space), "%s", space);
    (void)snprintf(t.job, sizeof(t.job), "%s", job);
    return t;
}

static const struct {
    const char *what;
    const char *host, *boot, *space, *job; /* of the holder; ours: a, 1, p, "" */
    bool released;
    struct tenure_evidence e;
    enum tenure_proof proof;
    const char *why; /* in the message, without a proof */
} rows[] = {
    {"released", "b", "2", "q", "", true, {0}, TENURE_RELEASED, NULL},
    {"its process lives",
     "a",
     "1",
     "p",
     "",
     false,
     {.process_alive = true},
     TENURE_NOT_PROVEN,
     "process is running"},
    {"its process lives, a person wants it",
     "a",
     "1",
     "p",
     "",
     false,
     {.process_alive = true, .person = true, .watched_ms = STILL},
     TENURE_NOT_PROVEN,
     "process is running"},
    {"its process is gone", "a", "1", "p", "", false, {0}, TENURE_PROCESS_GONE, NULL},
    {"another space of processes",
     "a",
     "1",
     "q",
     "",
     false,
     {.watched_ms = STILL},
     TENURE_NOT_PROVEN,
     "not advanced"},
    {"another host, still",
     "b",
     "2",
     "q",
     "",
     false,
     {.watched_ms = STILL},
     TENURE_NOT_PROVEN,
     "not advanced for 15 s"},
    {"another host of the same boot",
     "b",
     "1",
     "p",
     "",
     false,
     {.watched_ms = STILL},
     TENURE_NOT_PROVEN,
     "not advanced"},
    {"another host, moves",
     "b",
     "2",
     "q",
     "",
     false,
     {.watched_ms = 900, .moved = true},
     TENURE_NOT_PROVEN,
     "still advancing"},
    {"rebooted", "a", "2", "q", "", false, {.watched_ms = STILL}, TENURE_REBOOTED, NULL},
    {"rebooted, and moves",
     "a",
     "2",
     "q",
     "",
     false,
     {.watched_ms = STILL, .moved = true},
     TENURE_NOT_PROVEN,
     "still advancing"},
    {"rebooted, not watched",
     "a",
     "2",
     "q",
     "",
     false,
     {.watched_ms = STILL - 1},
     TENURE_NOT_PROVEN,
     "long enough"},
    {"a boot that is not known",
     "a",
     "unknown",
     "q",
     "",
     false,
     {.watched_ms = STILL},
     TENURE_NOT_PROVEN,
     "not advanced"},
    {"its job has ended",
     "b",
     "2",
     "q",
     "7",
     false,
     {.watched_ms = STILL, .job = TENURE_JOB_IS_OVER, .job_state = "FAILED"},
     TENURE_JOB_ENDED,
     NULL},
    {"its job has ended, and it moves",
     "b",
     "2",
     "q",
     "7",
     false,
     {.watched_ms = STILL, .moved = true, .job = TENURE_JOB_IS_OVER},
     TENURE_NOT_PROVEN,
     "still advancing"},
    {"its job lives",
     "b",
     "2",
     "q",
     "7",
     false,
     {.watched_ms = STILL, .job = TENURE_JOB_LIVES, .job_state = "RUNNING"},
     TENURE_NOT_PROVEN,
     "its job is RUNNING"},
    {"a job ended, it has none",
     "b",
     "2",
     "q",
     "",
     false,
     {.watched_ms = STILL, .job = TENURE_JOB_IS_OVER},
     TENURE_NOT_PROVEN,
     "not advanced"},
    {"Slurm cannot be asked",
     "b",
     "2",
     "q",
     "7",
     false,
     {.watched_ms = STILL},
     TENURE_NOT_PROVEN,
     "--take-over"},
    {"a person",
     "b",
     "2",
     "q",
     "7",
     false,
     {.watched_ms = STILL, .person = true},
     TENURE_BY_PERSON,
     NULL},
    {"a person, and it moves",
     "b",
     "2",
     "q",
     "",
     false,
     {.watched_ms = STILL, .moved = true, .person = true},
     TENURE_NOT_PROVEN,
     "still advancing"},
    {"a person, not watched",
     "b",
     "2",
     "q",
     "",
     false,
     {.watched_ms = 1000, .person = true},
     TENURE_NOT_PROVEN,
     "long enough"},
};

static void test_rules(void **state)
{
    const struct tenure own = make("a", "1", "p", "");
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CHECK_ROW("%s", rows[i].what);
        struct tenure holder = make(rows[i].host, rows[i].boot, rows[i].space, rows[i].job);
        struct err why;
        holder.released = rows[i].released;
        assert_int_equal(tenure_judge(&holder, &own, &rows[i].e, &why), rows[i].proof);
        assert_int_equal(why.code, rows[i].why == NULL ? 0 : ERR_BUSY);
        assert_true(rows[i].why == NULL || strstr(why.msg, rows[i].why) != NULL);
        char *text = tenure_proof_text(rows[i].proof, &rows[i].e);
        assert_true(text[0] != '\0');
        free(text);
    }
}

/* Where no machine has an id, two machines of one name cannot be distinguished: a frozen one would
 * count as started again. */
static void test_a_machine_without_id_is_not_rebooted(void **state)
{
    struct tenure own = make("a", "1", "p", "");
    struct tenure holder = make("a", "2", "q", "");
    const struct tenure_evidence e = {.watched_ms = STILL};
    struct err why;
    (void)state;
    assert_int_equal(tenure_judge(&holder, &own, &e, &why), TENURE_REBOOTED);
    own.machine[0] = holder.machine[0] = '\0';
    assert_int_equal(tenure_judge(&holder, &own, &e, &why), TENURE_NOT_PROVEN);
    assert_non_null(strstr(why.msg, "not advanced"));
}

/* Two machines of one name are two hosts. */
static void test_a_name_is_not_a_host(void **state)
{
    struct tenure a = make("a", "1", "p", "");
    struct tenure b = make("a", "2", "p", "");
    (void)state;
    assert_true(tenure_is_same_host(&a, &b));
    b.machine[0] = 'x';
    assert_false(tenure_is_same_host(&a, &b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules),
                                       cmocka_unit_test(test_a_machine_without_id_is_not_rebooted),
                                       cmocka_unit_test(test_a_name_is_not_a_host)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
