/*
 * Comparing trees goes through objects by sorted lists of their members: cJSON's own search is
 * linear, and a hostile file may have millions of members in one object.
 */
#include "ctl/receipt/mismatch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/files.h"

/* Codes that say nothing about the receipt are kept; all others become ERR_LOCK. */
int mismatch_code(struct err *err)
{
    bool unread = err->code == ERR_VERSION || err->code == ERR_IO || err->code == ERR_NO_SPACE ||
                  err->code == ERR_NOT_FOUND || err->code == ERR_TIMEOUT;
    return err->code = unread ? err->code : ERR_LOCK;
}

/* ---- trees ---- */

/* Reports two values; NULL is an absent one. */
static int values_differ(struct err *err, const char *at, const cJSON *expected, const cJSON *found)
{
    struct strbuf a = STRBUF_INIT;
    struct strbuf b = STRBUF_INIT;
    struct err ignored;
    bool shown = (expected == NULL || json_line(expected, &a, &ignored) == 0) &&
                 (found == NULL || json_line(found, &b, &ignored) == 0);
    int rc = err_differs(err, at[0] == '\0' ? "the whole" : at,
                         expected == NULL || !shown ? NULL : a.buf,
                         found == NULL || !shown ? NULL : b.buf);
    strbuf_release(&a);
    strbuf_release(&b);
    return rc;
}

/* The state of a comparison: the path so far, and how far apart numbers may be. */
struct comparing {
    struct err *err;
    struct strbuf at;
    double near;   /* 0: not at all; else of the greater one */
    size_t n_near; /* that were not the same, and near */
};

static int compare(struct comparing *c, const cJSON *expected, const cJSON *found);

/* One member or element; pair is {expected, found}, either of which may be NULL. */
static int compare_member(struct comparing *c, const char *key, size_t index,
                          const cJSON *const pair[2])
{
    const size_t n = c->at.len;
    if (key != NULL) {
        strbuf_addf(&c->at, "%s%s", n == 0 ? "" : ".", key);
    } else {
        strbuf_addf(&c->at, "[%zu]", index);
    }
    int rc = pair[0] == NULL || pair[1] == NULL ? values_differ(c->err, c->at.buf, pair[0], pair[1])
                                                : compare(c, pair[0], pair[1]);
    c->at.len = n;
    c->at.buf[n] = '\0';
    return rc;
}

/* An object's members, sorted by name: an object of a receipt may have any number of them. */
struct members {
    const cJSON **list;
    size_t n;
};

/* Orders members by name, for qsort() and bsearch(). */
static int by_key(const void *a, const void *b)
{
    return strcmp((*(const cJSON *const *)a)->string, (*(const cJSON *const *)b)->string);
}

/* Lists and sorts the members; the caller frees the list. */
static void members_of(struct members *m, const cJSON *o)
{
    m->n = 0;
    m->list = xcalloc((size_t)cJSON_GetArraySize(o) + 1, sizeof(const cJSON *));
    for (const cJSON *child = o->child; child != NULL; child = child->next) {
        m->list[m->n++] = child;
    }
    qsort(m->list, m->n, sizeof(const cJSON *), by_key);
}

/* The member of the same name; NULL when there is none. */
static const cJSON *find_member(const struct members *m, const cJSON *like)
{
    const cJSON **at = bsearch(&like, m->list, m->n, sizeof(const cJSON *), by_key);
    return at == NULL ? NULL : *at;
}

/* First the expected members in their order, then those that were not expected. */
static int compare_objects(struct comparing *c, const cJSON *expected, const cJSON *found)
{
    struct members of[2];
    int rc = 0;
    members_of(&of[0], expected);
    members_of(&of[1], found);
    for (const cJSON *m = expected->child; rc == 0 && m != NULL; m = m->next) {
        const cJSON *pair[2] = {m, find_member(&of[1], m)};
        rc = compare_member(c, m->string, 0, pair);
    }
    for (const cJSON *m = found->child; rc == 0 && m != NULL; m = m->next) {
        if (find_member(&of[0], m) == NULL) {
            const cJSON *pair[2] = {NULL, m};
            rc = compare_member(c, m->string, 0, pair);
        }
    }
    free(of[0].list);
    free(of[1].list);
    return rc;
}

/* Element by element; the shorter array lacks the rest. */
static int compare_arrays(struct comparing *c, const cJSON *expected, const cJSON *found)
{
    const cJSON *pair[2] = {expected->child, found->child};
    int rc = 0;
    for (size_t i = 0; rc == 0 && (pair[0] != NULL || pair[1] != NULL); i++) {
        rc = compare_member(c, NULL, i, pair);
        pair[0] = pair[0] == NULL ? NULL : pair[0]->next;
        pair[1] = pair[1] == NULL ? NULL : pair[1]->next;
    }
    return rc;
}

/* Equal in canonical text, or near enough where that is allowed. */
static bool same_number(struct comparing *c, double a, double b)
{
    char x[JSON_NUMBER_MAX];
    char y[JSON_NUMBER_MAX];
    json_number_text(a, x);
    json_number_text(b, y);
    if (strcmp(x, y) == 0) {
        return true;
    }
    bool near = fabs(a - b) <= c->near * fmax(fabs(a), fabs(b));
    c->n_near += near ? 1 : 0;
    return near;
}

/* Compares two values that both exist. Values of different types differ. */
static int compare(struct comparing *c, const cJSON *expected, const cJSON *found)
{
    if (cJSON_IsObject(expected) && cJSON_IsObject(found)) {
        return compare_objects(c, expected, found);
    }
    if (cJSON_IsArray(expected) && cJSON_IsArray(found)) {
        return compare_arrays(c, expected, found);
    }
    bool same;
    if (cJSON_IsNumber(expected) && cJSON_IsNumber(found)) {
        same = same_number(c, expected->valuedouble, found->valuedouble);
    } else if (cJSON_IsString(expected) && cJSON_IsString(found)) {
        same = strcmp(expected->valuestring, found->valuestring) == 0;
    } else {
        same = (expected->type & 0xff) == (found->type & 0xff) && !cJSON_IsObject(expected) &&
               !cJSON_IsArray(expected) && !cJSON_IsNumber(expected) && !cJSON_IsString(expected);
    }
    return same ? 0 : values_differ(c->err, c->at.buf, expected, found);
}

/* Starts a comparison whose paths begin with `at`. */
static int compare_from(struct comparing *c, const char *at, const cJSON *expected,
                        const cJSON *found)
{
    strbuf_init(&c->at);
    strbuf_adds(&c->at, at);
    strbuf_reserve(&c->at, 64);
    int rc = compare(c, expected, found);
    strbuf_release(&c->at);
    return rc;
}

int mismatch_trees(struct err *err, const char *at, const cJSON *expected, const cJSON *found)
{
    struct comparing c = {.err = err};
    return compare_from(&c, at, expected, found);
}

int mismatch_trees_near(struct err *err, const char *at, const cJSON *expected, const cJSON *found,
                        size_t *n_near)
{
    struct comparing c = {.err = err, .near = MISMATCH_NEAR};
    int rc = compare_from(&c, at, expected, found);
    *n_near += c.n_near;
    return rc;
}

/* ---- texts ---- */

/* The line of the first byte that differs, from 1. */
static size_t line_of_difference(const struct strbuf *a, const struct strbuf *b)
{
    size_t line = 1;
    for (size_t i = 0; i < a->len && i < b->len && a->buf[i] == b->buf[i]; i++) {
        line += a->buf[i] == '\n' ? 1 : 0;
    }
    return line;
}

/* Whether the text is the form in which the daemon writes this tree. */
static bool is_pretty(const cJSON *o, const struct strbuf *text)
{
    struct strbuf again = STRBUF_INIT;
    struct err ignored;
    bool same = json_pretty(o, &again, &ignored) == 0 && again.len + 1 == text->len &&
                memcmp(again.buf, text->buf, again.len) == 0 && text->buf[again.len] == '\n';
    strbuf_release(&again);
    return same;
}

/* Equal bytes are enough. Otherwise the texts are parsed for the member that differs; trees that
 * are equal but written differently are a fault too, unless near numbers are the reason. */
static int compare_texts(struct comparing *c, const struct strbuf *expected,
                         const struct strbuf *found)
{
    struct err *err = c->err;
    cJSON *a = NULL;
    cJSON *b = NULL;
    struct err ignored;
    if (expected->len == found->len && memcmp(expected->buf, found->buf, found->len) == 0) {
        return 0;
    }
    err->line = line_of_difference(expected, found);
    if (nodes_check(found->buf, found->len, err) != 0 ||
        json_parse(found->buf, found->len, &b, err) != 0) {
        return mismatch_code(err);
    }
    int rc = 0;
    if (json_parse(expected->buf, expected->len, &a, &ignored) == 0) {
        rc = compare_from(c, "", a, b);
    }
    if (rc == 0 && (c->n_near == 0 || !is_pretty(b, found))) {
        rc = err_set(err, ERR_LOCK, "says the same in other bytes than those it is made of");
    }
    cJSON_Delete(a);
    cJSON_Delete(b);
    return rc;
}

int mismatch_texts(struct err *err, const struct strbuf *expected, const struct strbuf *found)
{
    struct comparing c = {.err = err};
    return compare_texts(&c, expected, found);
}

int mismatch_texts_near(struct err *err, const struct strbuf *expected, const struct strbuf *found,
                        size_t *n_near)
{
    struct comparing c = {.err = err, .near = MISMATCH_NEAR};
    int rc = compare_texts(&c, expected, found);
    *n_near += c.n_near;
    return rc;
}
