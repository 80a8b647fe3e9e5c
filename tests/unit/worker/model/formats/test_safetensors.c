/* safetensors: what is written comes back; a header that does not account for every byte is
 * refused. */
#include <math.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "tests/unit/worker/model/formats/place.h"
#include "worker/model/formats/safetensors.h"

#define FILE_NAME "t.safetensors"

static void test_round_trip(void **state)
{
    static const float a[6] = {1.0f, -2.5f, 3e-39f, -0.0f, 1e30f, 0.1f}, b[2] = {7.0f, 8.0f};
    const struct safetensors_item items[] = {{"z.weight", 2, 3, a}, {"a.weight", 2, 0, b}};
    struct safetensors st;
    struct err err = {0};
    float out[6];

    (void)state;
    assert_int_equal(safetensors_write(FILE_NAME, items, 2, &err), 0);
    assert_int_equal(safetensors_open(FILE_NAME, &st, &err), 0);
    assert_int_equal(st.n, 2);
    assert_int_equal(st.data_at % 8, 0);
    const struct safetensors_entry *z = safetensors_find(&st, "z.weight");
    const struct safetensors_entry *flat = safetensors_find(&st, "a.weight");
    assert_non_null(z);
    assert_non_null(flat);
    assert_null(safetensors_find(&st, "b.weight"));
    assert_int_equal(z->n_dims, 2);
    assert_int_equal(z->shape[1], 3);
    assert_int_equal(flat->n_dims, 1);
    assert_int_equal(safetensors_read(&st, z, out, &err), 0);
    assert_memory_equal(out, a, sizeof(a));
    assert_int_equal(safetensors_read(&st, flat, out, &err), 0);
    assert_memory_equal(out, b, sizeof(b));
    safetensors_close(&st);
    /* A file that is there is not written over. */
    assert_int_equal(safetensors_write(FILE_NAME, items, 2, &err), ERR_EXISTS);
    assert_int_equal(unlink(FILE_NAME), 0);
}

static void test_types(void **state)
{
    static const uint16_t half[8] = {0x3C00, 0xC000, 0x0001, 0x83FF,
                                     0x7BFF, 0x7C00, 0x8000, 0x3555};
    static const float half_want[8] = {1.0f,     -2.0f,           0x1p-24f, -1023.0f * 0x1p-24f,
                                       65504.0f, (float)INFINITY, -0.0f,    0x1.554p-2f};
    static const uint16_t brain[4] = {0x3F80, 0xC000, 0x0001, 0x7F7F};
    static const float brain_want[4] = {1.0f, -2.0f, 0x1p-133f, 0x1.FEp+127f};
    static const double wide[2] = {0.1, -1e300};
    struct strbuf data = STRBUF_INIT;
    struct safetensors st;
    struct err err = {0};
    float out[8];

    (void)state;
    strbuf_add(&data, half, sizeof(half));
    strbuf_add(&data, brain, sizeof(brain));
    strbuf_add(&data, wide, sizeof(wide));
    strbuf_add(&data, "12345678", 8);
    place_write_safetensors(FILE_NAME,
                            "{\"h\":{\"dtype\":\"F16\",\"shape\":[2,4],\"data_offsets\":[0,16]},"
                            "\"b\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[16,24]},"
                            "\"w\":{\"dtype\":\"F64\",\"shape\":[2],\"data_offsets\":[24,40]},"
                            "\"i\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[40,48]}}",
                            data.buf, data.len);
    assert_int_equal(safetensors_open(FILE_NAME, &st, &err), 0);
    assert_int_equal(safetensors_read(&st, safetensors_find(&st, "h"), out, &err), 0);
    assert_memory_equal(out, half_want, sizeof(half_want));
    assert_int_equal(safetensors_read(&st, safetensors_find(&st, "b"), out, &err), 0);
    assert_memory_equal(out, brain_want, sizeof(brain_want));
    assert_int_equal(safetensors_read(&st, safetensors_find(&st, "w"), out, &err), 0);
    assert_true(out[0] == 0.1f && isinf(out[1]) && out[1] < 0.0f);
    assert_int_equal(safetensors_read(&st, safetensors_find(&st, "i"), out, &err), ERR_REFUSED);
    assert_non_null(strstr(err.msg, "tensor i: dtype I64"));
    safetensors_close(&st);
    strbuf_release(&data);
    assert_int_equal(unlink(FILE_NAME), 0);
}

#define T(name, dtype, shape, from, to)                                                            \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" from "," to "]" \
    "}"

static void test_refusals(void **state)
{
    static const struct {
        const char *header;
        const char *says;
    } rows[] = {
        {"{" T("a", "F32", "[2]", "0", "8") "," T("b", "F32", "[1]", "4", "8") "}",
         "overlapping 8"},
        {"{" T("a", "F32", "[1]", "0", "4") "," T("b", "F32", "[1]", "8", "12") "}",
         "a hole from 4"},
        {"{" T("a", "F32", "[2]", "0", "8") "}", "names 8 bytes of data, the file has 12"},
        {"{" T("a", "F32", "[4]", "0", "16") "}", "names 16 bytes of data, the file has 12"},
        {"{" T("a", "F32", "[4]", "0", "12") "}", "12 bytes of data for 4 numbers"},
        {"{" T("a", "F16", "[3]", "0", "12") "}", "12 bytes of data for 3 numbers"},
        {"{" T("a", "F32", "[3]", "12", "0") "}", "bad data_offsets"},
        {"{" T("a", "F32", "[3]", "-4", "8") "}", "bad data_offsets"},
        {"{" T("a", "F32", "[3]", "0.5", "12.5") "}", "bad data_offsets"},
        {"{" T("a", "F32", "[3]", "0", "1e300") "}", "bad data_offsets"},
        {"{" T("a", "F32", "[-3]", "0", "12") "}", "bad shape"},
        {"{" T("a", "F32", "[1,1,1,1,1,1,1,1,3]", "0", "12") "}", "bad shape"},
        {"{" T("a", "F32", "[4503599627370496,4096]", "0", "12") "}", "shape overflows"},
        {"{" T("a", "F32", "[4503599627370496,2]", "0", "12") "}", "shape overflows"},
        {"{" T("a", "F31", "[3]", "0", "12") "}", "dtype \"F31\" is not known"},
        {"{" T("a", "F32", "[3]", "0", "12") "," T("a", "F32", "[3]", "0", "12") "}",
         "key \"a\" is duplicated"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12,12]}}", "expected two"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3]}}", "data_offsets"},
        {"{\"a\":3}", "expected an object"},
        {"[1]", "not an object"},
        {"{\"a\":", "line 1"},
        {"", "line 1"},
    };
    struct safetensors st;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct err err = {0};
        place_write_safetensors(FILE_NAME, rows[i].header, "0123456789ab", 12);
        if (safetensors_open(FILE_NAME, &st, &err) != ERR_CORRUPT ||
            strstr(err.msg, rows[i].says) == NULL || strstr(err.msg, FILE_NAME) == NULL)
            fail_msg("%s: \"%s\", expected \"%s\"", rows[i].header, err.msg, rows[i].says);
    }
}

static void test_torn(void **state)
{
    static const unsigned char huge[16] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
    struct safetensors st;
    struct err err = {0};

    (void)state;
    place_write(FILE_NAME, "1234567", 7);
    assert_int_equal(safetensors_open(FILE_NAME, &st, &err), ERR_CORRUPT);
    place_write(FILE_NAME, huge, sizeof(huge));
    assert_int_equal(safetensors_open(FILE_NAME, &st, &err), ERR_CORRUPT);
    assert_int_equal(safetensors_open("/", &st, &err), ERR_CORRUPT);
    assert_int_equal(safetensors_open("no such file", &st, &err), ERR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_torn),
    };
    return cmocka_run_group_tests(tests, scratch_enter, scratch_leave);
}
