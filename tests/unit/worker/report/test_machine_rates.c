/* What is kept is found under its own name and machine; what is broken counts as not there. */
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/machine/machine.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/scratch.h"
#include "worker/report/machine_rates.h"

static bool finds(const struct worker_task *t, const char *what, double a, double b)
{
    double values[2] = {-1.0, -1.0};
    bool found = machine_rates_find(t, what, values, 2);

    assert_true(found || (values[0] == -1.0 && values[1] == -1.0));
    return found && values[0] == a && values[1] == b;
}

static void test_kept(void **state)
{
    (void)state;
    const struct worker_task t = {.rates = "rates.json"}, none = {.rates = NULL};

    assert_false(finds(&t, "a", 1, 2));
    machine_rates_keep(&t, "a", (double[]){1e-9, 2}, 2);
    machine_rates_keep(&t, "b", (double[]){3, 0}, 2);
    assert_true(finds(&t, "a", 1e-9, 2));
    assert_true(finds(&t, "b", 3, 0));
    machine_rates_keep(&t, "a", (double[]){5, 6}, 2);
    assert_true(finds(&t, "a", 5, 6));
    double one = 0;
    assert_false(machine_rates_find(&t, "a", &one, 1));
    assert_false(finds(&t, "c", 5, 6));
    machine_rates_keep(&none, "a", (double[]){1, 2}, 2);
    assert_false(finds(&none, "a", 1, 2));
}

/* The same file as another machine, and as another version, would see it. */
static void test_another_machine(void **state)
{
    (void)state;
    static const char *const parts[] = {", version ", ", contract "};
    const struct worker_task t = {.rates = "other.json"};

    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        CHECK_ROW("%s", parts[i]);
        struct strbuf text = STRBUF_INIT;
        struct err err = {0};
        machine_rates_keep(&t, "a", (double[]){1, 2}, 2);
        assert_true(finds(&t, "a", 1, 2));
        assert_int_equal(file_read("other.json", 4096, &text, &err), 0);
        char *part = strstr(text.buf, parts[i]);
        assert_non_null(part);
        part[strlen(parts[i])]++;
        assert_int_equal(file_write_atomic("other.json", text.buf, text.len, 0600, &err), 0);
        assert_false(finds(&t, "a", 1, 2));
        assert_int_equal(remove("other.json"), 0);
        strbuf_release(&text);
    }
}

static void test_broken(void **state)
{
    (void)state;
    static const char *const broken[] = {"",
                                         "{",
                                         "[]",
                                         "{\"%s\":1}",
                                         "{\"%s\":[1]}",
                                         "{\"%s\":[1,-2]}",
                                         "{\"%s\":[1,1e300]}",
                                         "{\"%s\":[1,\"x\"]}",
                                         "{\"%s\":[1,2,3]}"};
    const struct worker_task t = {.rates = "broken.json"};
    struct err err = {0};
    cJSON *whole = NULL;

    machine_rates_keep(&t, "a", (double[]){1, 2}, 2);
    assert_int_equal(json_read_file("broken.json", 4096, &whole, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        CHECK_ROW("%s", broken[i]);
        const char *at = strstr(broken[i], "%s");
        char *text = at == NULL ? xstrdup(broken[i])
                                : xasprintf("%.*s%s%s", (int)(at - broken[i]), broken[i],
                                            whole->child->string, at + 2);
        assert_int_equal(file_write_atomic("broken.json", text, strlen(text), 0600, &err), 0);
        assert_false(finds(&t, "a", 1, 2));
        free(text);
    }
    machine_rates_keep(&t, "a", (double[]){7, 8}, 2);
    assert_true(finds(&t, "a", 7, 8));
    cJSON_Delete(whole);
}

/* Neither memory nor time may be more than there is. */
static void test_bounds(void **state)
{
    (void)state;
    static const struct {
        double bytes, flops;
        const char *why;
    } cases[] = {
        {0x1p20, 1e9, ""},
        {0x1p31, 1e9, "measuring it takes 2048 MiB"},
        {0x1p20, 1e12, "measuring it takes 1.0e+12 operations, and may take 5e+11"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%zu", i);
        struct strbuf why = STRBUF_INIT;
        const bool allowed = machine_rates_allowed(cases[i].bytes, cases[i].flops, &why);
        assert_int_equal(allowed, cases[i].why[0] == '\0');
        assert_int_equal(allowed, why.len == 0);
        assert_true(allowed || strstr(why.buf, cases[i].why) != NULL);
        strbuf_release(&why);
    }
    assert_true(machine_memory_free_bytes() > 0);
    assert_true(machine_memory_free_bytes() <= machine_memory_bytes());
    assert_true(machine_rates_room() <= (double)machine_memory_bytes() / 2.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_another_machine),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
