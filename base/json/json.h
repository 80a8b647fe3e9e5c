/*
 * JSON: strict reading, canonical (RFC 8785) and pretty writing over cJSON values.
 *
 * Reading refuses what cJSON lets through: trailing text, duplicate keys, bad UTF-8, lone
 * surrogates, \u0000, nesting over 64, numbers outside the JSON grammar or the double range. Order
 * of members is kept. Writing refuses NaN and infinity. A measured value may well be whole and
 * beyond 2^53 - 1 (a loss that ran away); that a program holds no such number is prereg's to see
 * to.
 */
#ifndef BASE_JSON_JSON_H
#define BASE_JSON_JSON_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/strbuf.h"

#define JSON_DEPTH_MAX       64
#define JSON_INT_MAX         9007199254740991LL /* 2^53 - 1 */
#define JSON_NUMBER_MAX      32                 /* bytes that json_number_text may need */
#define JSON_NUMBER_READ_MAX 63                 /* characters of a number that is read */

/* The caller frees *out with cJSON_Delete. Messages hold line and column. */
int json_parse(const char *text, size_t len, cJSON **out, struct err *err) MUST_CHECK;
int json_read_file(const char *path, size_t max_bytes, cJSON **out, struct err *err) MUST_CHECK;

/* The same for what a worker wrote: NaN, Infinity and -Infinity where a value may be, which
 * Python's json module writes although JSON has no such thing, are read as null. */
int json_parse_lax(const char *text, size_t len, cJSON **out, struct err *err) MUST_CHECK;
int json_read_file_lax(const char *path, size_t max_bytes, cJSON **out, struct err *err) MUST_CHECK;

/* Only checks the text against the rules above, without building anything. */
int json_scan(const char *text, size_t len, struct err *err) MUST_CHECK;

/* Appends the RFC 8785 form. */
int json_canonical(const cJSON *v, struct strbuf *out, struct err *err) MUST_CHECK;
/* Appends members in their order, two spaces a level, numbers as in the canonical form, no final
 * newline. */
int json_pretty(const cJSON *v, struct strbuf *out, struct err *err) MUST_CHECK;
/* Appends members in their order on one line, numbers as in the canonical form. */
int json_line(const cJSON *v, struct strbuf *out, struct err *err) MUST_CHECK;
/* Writes json_pretty plus a newline, atomically. */
int json_write_file(const char *path, const cJSON *v, mode_t mode, struct err *err) MUST_CHECK;

/* The shortest text that reads back as the same double, in ECMAScript's form; "null" for what is
 * not finite. */
void json_number_text(double v, char text[JSON_NUMBER_MAX]);
/* The double nearest to a number of the JSON grammar, of 1..JSON_NUMBER_READ_MAX characters;
 * infinity beyond the range. */
double json_number_read(const char *text, size_t len);
/* Appends a JSON string literal of valid UTF-8 text (RFC 8785 escapes), quotes included. */
void json_add_string(struct strbuf *out, const char *s);

/* Typed members of an object. The *_get forms demand presence; the *_opt forms leave *out alone
 * when the member is absent or null. Integers must be whole and within min..max. Messages name the
 * key. */
int json_get_string(const cJSON *obj, const char *key, const char **out,
                    struct err *err) MUST_CHECK;
int json_get_number(const cJSON *obj, const char *key, double *out, struct err *err) MUST_CHECK;
int json_get_int(const cJSON *obj, const char *key, int64_t min, int64_t max, int64_t *out,
                 struct err *err) MUST_CHECK;
int json_get_object(const cJSON *obj, const char *key, const cJSON **out,
                    struct err *err) MUST_CHECK;
int json_get_array(const cJSON *obj, const char *key, const cJSON **out,
                   struct err *err) MUST_CHECK;
int json_opt_string(const cJSON *obj, const char *key, const char **out,
                    struct err *err) MUST_CHECK;
int json_opt_number(const cJSON *obj, const char *key, double *out, struct err *err) MUST_CHECK;
int json_opt_int(const cJSON *obj, const char *key, int64_t min, int64_t max, int64_t *out,
                 struct err *err) MUST_CHECK;
int json_opt_bool(const cJSON *obj, const char *key, bool *out, struct err *err) MUST_CHECK;

/* NULL when absent; case-sensitive. */
const cJSON *json_member(const cJSON *obj, const char *key);

/* Whether two values are the same: numbers exactly, members of objects in any order. False where
 * either is NULL. cJSON_Compare() takes numbers for equal that differ in their last digit, two
 * seeds beyond 2^52 for example, and is not used. */
bool json_equal(const cJSON *a, const cJSON *b);

/* Building; each aborts without memory, and for no value: a number that is not finite becomes null,
 * an integer beyond JSON_INT_MAX becomes that bound. */
cJSON *json_object(void);
cJSON *json_array(void);
void json_put(cJSON *obj, const char *key, cJSON *value);             /* takes value over */
void json_put_string(cJSON *obj, const char *key, const char *value); /* NULL becomes null */
void json_put_number(cJSON *obj, const char *key, double value);
void json_put_int(cJSON *obj, const char *key, int64_t value);
void json_put_bool(cJSON *obj, const char *key, bool value);
void json_put_null(cJSON *obj, const char *key);
void json_push(cJSON *array, cJSON *value); /* takes value over */
void json_push_string(cJSON *array, const char *value);
void json_push_number(cJSON *array, double value);
/* Copies v without its own key, which belongs to its parent; v may be in an arena. */
cJSON *json_copy(const cJSON *v);

#endif
