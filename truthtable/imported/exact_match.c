/*
 * Upstream's exact_match metric, recomputed for one answer. The regular expressions of a task's
 * config are not executed: the four that upstream's tasks use are recognized by their text and
 * implemented directly, and any other makes the metric "not recomputed". Steps run in upstream's
 * order: expressions, case, punctuation, numbers. Lower case is ASCII here, so a mismatch beyond
 * ASCII is left undecided.
 */
#include "truthtable/imported/judge.h"

#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/strbuf.h"

typedef void delete_fn(char *s);

/* Removes every character of `which`, in place. All of them are ASCII, so UTF-8 stays whole. */
static void delete_any(char *s, const char *which)
{
    char *to = s;
    for (; *s != '\0'; s++) {
        if (strchr(which, *s) == NULL) {
            *to++ = *s;
        }
    }
    *to = '\0';
}

/* Thousands separators of GSM8K's answers. */
static void delete_commas(char *s)
{
    delete_any(s, ",");
}

/* Currency signs of GSM8K's answers. */
static void delete_dollars(char *s)
{
    delete_any(s, "$");
}

/* (?s).*####␠: everything up to and with the last one */
static void delete_working(char *s)
{
    char *last = NULL;
    for (char *at = strstr(s, "#### "); at != NULL; at = strstr(at + 1, "#### ")) {
        last = at + strlen("#### ");
    }
    if (last != NULL) {
        memmove(s, last, strlen(last) + 1);
    }
}

/* \.$: at the end, or before one line feed there */
static void delete_full_stop(char *s)
{
    size_t len = strlen(s);
    if (len >= 1 && s[len - 1] == '.') {
        s[len - 1] = '\0';
    } else if (len >= 2 && s[len - 1] == '\n' && s[len - 2] == '.') {
        s[len - 2] = '\n';
        s[len - 1] = '\0';
    }
}

static const struct known_rule {
    const char *regex;
    delete_fn *apply;
} known_rules[] = {
    {",", delete_commas},
    {"\\$", delete_dollars},
    {"(?s).*#### ", delete_working},
    {"\\.$", delete_full_stop},
};

/* The implementation of a regular expression; NULL if it is not known. */
static delete_fn *find_rule(const cJSON *regex)
{
    for (size_t i = 0; cJSON_IsString(regex) && i < sizeof(known_rules) / sizeof(known_rules[0]);
         i++) {
        if (strcmp(known_rules[i].regex, regex->valuestring) == 0) {
            return known_rules[i].apply;
        }
    }
    return NULL;
}

/* The metric's entry in "metric_list"; NULL if there is none. */
static const cJSON *rules_of(const cJSON *config)
{
    const cJSON *m = NULL;
    cJSON_ArrayForEach(m, json_member(config, "metric_list"))
    {
        const cJSON *name = json_member(m, "metric");
        if (cJSON_IsString(name) && strcmp(name->valuestring, "exact_match") == 0) {
            return m;
        }
    }
    return NULL;
}

static bool is_ascii(const char *s)
{
    for (; *s != '\0'; s++) {
        if ((unsigned char)*s >= 0x80) {
            return false;
        }
    }
    return true;
}

/* As Python's str.lower() for ASCII. */
static void lower(char *s)
{
    for (; *s != '\0'; s++) {
        *s = (char)(*s >= 'A' && *s <= 'Z' ? *s - 'A' + 'a' : *s);
    }
}

/* Whether an option of the metric is true; absent is false. */
static bool says(const cJSON *rules, const char *key)
{
    return cJSON_IsTrue(json_member(rules, key));
}

/* Applies the rules to an answer or a target. False if one of them is not known. */
static bool prepare(const cJSON *rules, char *s)
{
    const cJSON *regex = NULL;
    cJSON_ArrayForEach(regex, json_member(rules, "regexes_to_ignore"))
    {
        delete_fn *apply = find_rule(regex);
        if (apply == NULL) {
            return false;
        }
        apply(s);
    }
    if (says(rules, "ignore_case")) {
        lower(s);
    }
    if (says(rules, "ignore_punctuation")) {
        delete_any(s, "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~");
    }
    if (says(rules, "ignore_numbers")) {
        delete_any(s, "0123456789");
    }
    return true;
}

/* Both sides are prepared alike and compared byte by byte. */
bool exact_match(const cJSON *config, const char *answer, const char *target, bool *right)
{
    const cJSON *rules = rules_of(config);
    if (rules == NULL) {
        return false;
    }
    struct strbuf a = STRBUF_INIT;
    struct strbuf b = STRBUF_INIT;
    strbuf_adds(&a, answer);
    strbuf_adds(&b, target);
    strbuf_addc(&a, '\0'); /* memory of their own, even when empty */
    strbuf_addc(&b, '\0');
    bool known = prepare(rules, a.buf) && prepare(rules, b.buf);
    *right = known && strcmp(a.buf, b.buf) == 0;
    /* Two letters that differ here may have one lower case beyond ASCII. */
    if (!*right && says(rules, "ignore_case") && !(is_ascii(a.buf) && is_ascii(b.buf))) {
        known = false;
    }
    strbuf_release(&a);
    strbuf_release(&b);
    return known;
}
