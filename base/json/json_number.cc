// Numbers of base/json/json.h: the shortest text of a double, and a double of its text. The
// standard library of C++ knows both; what remains is ECMAScript's layout of the digits.
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>

extern "C" {
#include "base/json/json.h"
}

namespace
{

// Digits without a point, of which the first has the exponent e.
struct number_digits {
    char digits[JSON_NUMBER_MAX];
    int n;
    int e;
};

// Takes "d.ddde-xx" apart: the shortest digits that read back as v, the nearest to v among those.
number_digits shortest(double v)
{
    char text[JSON_NUMBER_MAX];
    number_digits d = {};
    const std::to_chars_result r =
        std::to_chars(text, text + sizeof(text), v, std::chars_format::scientific);
    const char *p = text;
    for (; *p != 'e'; p++) {
        if (*p != '.') {
            d.digits[d.n++] = *p;
        }
    }
    (void)std::from_chars(p + (p[1] == '+' ? 2 : 1), r.ptr, d.e);
    return d;
}

char *put(char *to, const char *from, int n)
{
    std::memcpy(to, from, static_cast<size_t>(n));
    return to + n;
}

// ECMA-262, Number::toString; returns the end.
char *put_digits(char *to, const number_digits &d)
{
    if (d.e >= 0 && d.e < 21 && d.n <= d.e + 1) {
        to = put(to, d.digits, d.n);
        std::memset(to, '0', static_cast<size_t>(d.e + 1 - d.n));
        return to + (d.e + 1 - d.n);
    }
    if (d.e >= 0 && d.e < 21) {
        to = put(to, d.digits, d.e + 1);
        *to++ = '.';
        return put(to, d.digits + d.e + 1, d.n - d.e - 1);
    }
    if (d.e < 0 && d.e >= -6) {
        to = put(to, "0.00000", 1 - d.e);
        return put(to, d.digits, d.n);
    }
    *to++ = d.digits[0];
    if (d.n > 1) {
        *to++ = '.';
        to = put(to, d.digits + 1, d.n - 1);
    }
    to = put(to, d.e < 0 ? "e-" : "e+", 2);
    return std::to_chars(to, to + 3, d.e < 0 ? -d.e : d.e).ptr;
}

} // namespace

extern "C" void json_number_text(double v, char text[JSON_NUMBER_MAX])
{
    char *to = text;
    if (!std::isfinite(v)) {
        to = put(to, "null", 4);
    } else if (std::floor(v) == v && std::fabs(v) < 1e15) {
        to = std::to_chars(to, to + JSON_NUMBER_MAX - 1, static_cast<int64_t>(v)).ptr;
    } else {
        if (v < 0) {
            *to++ = '-';
        }
        to = put_digits(to, shortest(std::fabs(v)));
    }
    *to = '\0';
}

extern "C" double json_number_read(const char *text, size_t len)
{
    double v = 0;
    assert(len > 0 && len <= JSON_NUMBER_READ_MAX);
    if (std::from_chars(text, text + len, v).ec == std::errc::result_out_of_range) {
        char copy[JSON_NUMBER_READ_MAX + 1] = {}; // infinity or zero: strtod() knows which
        std::memcpy(copy, text, len);
        return std::strtod(copy, nullptr);
    }
    return v;
}
