/* Lists of GPUs: what is read and refused, the round trip, names, and what the environment bounds.
 */
#include <stdlib.h>

#include "base/machine/gpu_list.h"
#include "tests/unit/check.h"

#define ONE "\"uuid\":\"GPU-11111111-aaaa-bbbb-cccc-000000000000\",\"model\":\"NVIDIA H100\""

static struct gpu_list read_text(const char *text)
{
    struct gpu_list list;
    struct err err;
    if (gpu_list_read(text, strlen(text), &list, &err) != 0) {
        fail_msg("%s", err.msg);
    }
    return list;
}

static void test_all_members(void **state)
{
    (void)state;
    struct gpu_list list = read_text(
        "[{" ONE ",\"index\":3,\"memory_bytes\":85899345920,\"free_bytes\":1,\"driver\":\"550.54\","
        "\"ecc\":true,\"processes\":[{\"pid\":4711,\"name\":\"python\\n3\",\"user\":\"x\","
        "\"memory_bytes\":5,\"mark\":\"5052ffff00000001\","
        "\"attempt\":\"01234567-89ab-4def-8123-456789abcdef\"},{\"pid\":1}]},"
        "{\"uuid\":\"GPU-2\",\"model\":\"AMD X\",\"vendor\":\"amd\"}]");
    assert_int_equal(list.n, 2);
    const struct gpu *g = &list.items[0];
    assert_int_equal(g->index, 3);
    assert_true(g->memory_bytes == INT64_C(85899345920));
    assert_int_equal(g->free_bytes, 1);
    assert_string_equal(g->driver, "550.54");
    assert_int_equal(g->ecc, 1);
    assert_true(g->processes_known);
    assert_int_equal(g->n_processes, 2);
    assert_string_equal(g->processes[0].name, "python 3"); /* one plain line */
    assert_true(g->processes[0].mark == UINT64_C(0x5052ffff00000001));
    assert_string_equal(g->processes[0].attempt, "01234567-89ab-4def-8123-456789abcdef");
    assert_int_equal(g->processes[1].memory_bytes, -1);
    g = &list.items[1];
    assert_int_equal(g->index, 1);
    assert_int_equal(g->vendor, GPU_AMD);
    assert_int_equal(g->memory_bytes, 0);
    assert_int_equal(g->free_bytes, -1);
    assert_int_equal(g->ecc, -1);
    assert_false(g->processes_known);
    gpu_list_release(&list);
}

static void test_round_trip(void **state)
{
    (void)state;
    struct gpu_list list = read_text("[{" ONE ",\"ecc\":false,\"processes\":[{\"pid\":7,"
                                     "\"mark\":\"a\"}]},{\"uuid\":\"b\",\"model\":\"m\"}]");
    struct strbuf first = STRBUF_INIT;
    struct strbuf second = STRBUF_INIT;
    struct err err;
    assert_int_equal(gpu_list_write(&list, &first, &err), 0);
    gpu_list_release(&list);
    list = read_text(first.buf);
    assert_int_equal(gpu_list_write(&list, &second, &err), 0);
    assert_string_equal(first.buf, second.buf);
    assert_int_equal(list.items[0].processes[0].mark, 10);
    gpu_list_release(&list);
    strbuf_release(&first);
    strbuf_release(&second);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *why;
    } rows[] = {
        {"{}", "expected a list of GPUs"},
        {"[1]", "GPU 1: expected an object"},
        {"[{\"model\":\"m\"}]", "\"uuid\""},
        {"[{\"uuid\":\"a,b\",\"model\":\"m\"}]", "\"uuid\": expected 1 to 40 letters"},
        {"[{\"uuid\":\"\",\"model\":\"m\"}]", "\"uuid\": expected 1 to 40 letters"},
        {"[{\"uuid\":\"a0123456789012345678901234567890123456789\",\"model\":\"m\"}]",
         "GPU 1: \"uuid\": expected 1 to 40 letters"},
        {"[{\"uuid\":\"a\"}]", "\"model\""},
        {"[{\"uuid\":\"a\",\"model\":\"\"}]", "\"model\" is empty"},
        {"[{" ONE "},{" ONE "}]", "GPU 2: \"uuid\": GPU-11111111-aaaa-bbbb-cccc-000000000000 is "
                                  "duplicated"},
        {"[{" ONE ",\"memory_bytes\":-1}]", "memory_bytes"},
        {"[{" ONE ",\"memory_bytes\":1e300}]", "memory_bytes"},
        {"[{" ONE ",\"index\":4096}]", "index"},
        {"[{" ONE ",\"vendor\":\"intel\"}]", "\"vendor\": expected \"nvidia\" or \"amd\""},
        {"[{" ONE ",\"ecc\":1}]", "ecc"},
        {"[{" ONE ",\"processes\":{}}]", "\"processes\": expected a list"},
        {"[{" ONE ",\"processes\":[{}]}]", "GPU 1: process 1: "},
        {"[{" ONE ",\"processes\":[{\"pid\":0}]}]", "pid"},
        {"[{" ONE ",\"processes\":[{\"pid\":1,\"mark\":\"xyz\"}]}]", "16 hexadecimal digits"},
        {"[{" ONE ",\"processes\":[{\"pid\":1,\"attempt\":\"a\"}]}]", "\"attempt\" is not a UUID"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_ROW("%s", rows[i].text);
        struct gpu_list list;
        struct err err = {0};
        assert_int_not_equal(gpu_list_read(rows[i].text, strlen(rows[i].text), &list, &err), 0);
        if (strstr(err.msg, rows[i].why) == NULL) {
            fail_msg("\"%s\" without \"%s\"", err.msg, rows[i].why);
        }
        assert_int_equal(list.n, 0);
    }
}

static void test_too_many(void **state)
{
    (void)state;
    struct strbuf text = STRBUF_INIT;
    struct gpu_list list;
    struct err err;
    for (int i = 0; i <= GPU_LIST_MAX; i++) {
        strbuf_addf(&text, "%s{\"uuid\":\"GPU-%d\",\"model\":\"m\"}", i == 0 ? "[" : ",", i);
    }
    strbuf_addc(&text, ']');
    assert_int_equal(gpu_list_read(text.buf, text.len, &list, &err), ERR_RANGE);
    assert_string_equal(err.msg, "GPU 64: more than 64 GPUs");
    strbuf_release(&text);
}

static void test_names(void **state)
{
    (void)state;
    const char *uuid = "GPU-11111111-aaaa";
    char text[GPU_SHORT_SIZE];
    assert_true(gpu_is_named(uuid, 2, "2"));
    assert_false(gpu_is_named(uuid, 2, "1"));
    assert_true(gpu_is_named(uuid, 2, uuid));
    assert_true(gpu_is_named(uuid, 2, "GPU-1"));
    assert_false(gpu_is_named(uuid, 2, "GPU-"));
    assert_false(gpu_is_named(uuid, 2, "GPU-2"));
    assert_false(gpu_is_named(uuid, 2, ""));
    assert_false(gpu_is_named(uuid, 2, "-1"));
    assert_true(gpu_model_is("NVIDIA H100 80GB HBM3", "NVIDIA H100"));
    assert_true(gpu_model_is("NVIDIA H100", "NVIDIA H100"));
    assert_false(gpu_model_is("NVIDIA H1000", "NVIDIA H100"));
    assert_false(gpu_model_is("NVIDIA H100", "NVIDIA H100 PCIe"));
    gpu_short_name("GPU-4f3a12cd-1111-2222-3333-444455556666", text);
    assert_string_equal(text, "GPU-4f3a12cd\xe2\x80\xa6");
    gpu_short_name("GPU-4f3a12cd1", text);
    assert_string_equal(text, "GPU-4f3a12cd1");
}

static void test_bound(void **state)
{
    (void)state;
    static const struct {
        const char *visible;
        const char *kept; /* last characters of the UUIDs */
        const char *ignored;
    } rows[] = {
        {NULL, "01x", ""},
        {"", "x", ""},
        {"1", "1x", ""},
        {"1,0", "01x", ""},
        {"GPU-b", "1x", ""},
        {" GPU-a0 , 1 ", "01x", ""},
        {"1,7,0", "1x", "7,0"},
        {"-1", "x", "-1"},
        {"GPU-x", "x", "GPU-x"},
        {"0,0", "0x", ""},
        {"NoDevFiles", "x", "NoDevFiles"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK_ROW("%s", rows[i].visible == NULL ? "unset" : rows[i].visible);
        struct strbuf ignored = STRBUF_INIT;
        char kept[8] = "";
        struct gpu_list list =
            read_text("[{\"uuid\":\"GPU-a0\",\"model\":\"m\",\"processes\":[{\"pid\":1}]},"
                      "{\"uuid\":\"GPU-b1\",\"model\":\"m\"},"
                      "{\"uuid\":\"GPU-x\",\"model\":\"m\",\"vendor\":\"amd\"}]");
        gpu_list_bound(&list, GPU_NVIDIA, rows[i].visible, &ignored);
        for (size_t k = 0; k < list.n; k++) {
            kept[k] = list.items[k].uuid[strlen(list.items[k].uuid) - 1];
        }
        assert_string_equal(kept, rows[i].kept);
        assert_string_equal(ignored.buf, rows[i].ignored);
        gpu_list_release(&list);
        strbuf_release(&ignored);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_members), cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_names),       cmocka_unit_test(test_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
