/* Taking a shared state folder over from a daemon whose tenure is in the folder: what a person's
 * answer and an unreadable start time may not prove. */
#include <unistd.h>

#include "base/layout/layout.h"
#include "daemon/tenure/take.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"

static struct tenure holder;
static unsigned n_asked;

static bool answer_yes(const char *question)
{
    struct err err;
    n_asked++;
    assert_non_null(strstr(question, "Take over its state folder?"));
    assert_int_equal(tenure_renew(".", &holder, &err), 0);
    return true;
}

static int take(bool person, struct tenure_taken *out, struct err *err)
{
    const struct take_request q = {
        .state = ".",
        .database = "/nowhere",
        .database_id = "11111111-1111-4111-8111-111111111111",
        .person = person,
        .confirm = answer_yes,
    };
    return tenure_take(&q, out, err);
}

/* The question may wait for hours, and the host that was frozen go on meanwhile. */
static void test_a_person_answers_late(void **state)
{
    struct tenure_taken taken;
    struct err err;
    (void)state;
    tenure_init(&holder);
    holder.number = 7;
    holder.pid_start = 1;
    (void)snprintf(holder.host, sizeof(holder.host), "elsewhere");
    assert_int_equal(tenure_claim(".", &holder, &err), 0);
    assert_int_equal(take(true, &taken, &err), ERR_BUSY);
    assert_non_null(strstr(err.msg, "its heartbeat is still advancing"));
    assert_int_equal(access(LAYOUT_TENURE "/00000008.json", F_OK), -1);
    assert_int_equal(n_asked, 1);
}

/* This very process, whose start time could not be read when it claimed the folder. */
static void test_a_start_that_is_not_known(void **state)
{
    struct tenure_taken taken;
    struct err err;
    (void)state;
    tenure_init(&holder);
    holder.number = 1;
    holder.pid_start = 0;
    assert_int_equal(tenure_claim(".", &holder, &err), 0);
    assert_int_equal(take(false, &taken, &err), ERR_BUSY);
    assert_non_null(strstr(err.msg, "is running on this host"));
}

#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, scratch_enter, scratch_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_a_person_answers_late),
        IN_FOLDER(test_a_start_that_is_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
