/* Converts the whole file to JSON, which is what the lock covers, and refuses at its place every
 * value that JSON or RFC 8785 cannot represent exactly; then reads [program] and the names of
 * the sections. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/files/digest.h"
#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "prereg/load/load.h"

static const char *const SECTIONS[] = {"program",    "factor",    "data",     "stage", "measure",
                                       "contrast",   "counter",   "input",    "table", "outcome",
                                       "exclusion",  "validity",  "pin",      "lock",  "run",
                                       "instrument", "apparatus", "forecast", "scope", "release",
                                       "same_work",  "reuse"};

/* Integers beyond 2^53 - 1 would change when read back as doubles. */
static void check_number(struct load *l, const struct toml_node *n)
{
    double v = n->real;
    if (!isfinite(v)) {
        load_error(l, n, "%s is not a number that can be locked", isnan(v) ? "nan" : "inf");
    } else if (n->kind == TOML_INTEGER) {
        if (n->integer > JSON_INT_MAX || n->integer < -JSON_INT_MAX) {
            load_error(l, n, "%lld is beyond 2^53 - 1: it cannot be kept exactly",
                       (long long)n->integer);
        }
    } else if (floor(v) == v && fabs(v) > (double)JSON_INT_MAX && fabs(v) < 1e21) {
        load_error(l, n, "%.17g is a whole number beyond 2^53 - 1: it cannot be kept exactly", v);
    }
}

static cJSON *to_json(struct load *l, struct toml_node *n);

static cJSON *members_to_json(struct load *l, struct toml_node *n)
{
    cJSON *out = n->kind == TOML_TABLE ? json_object() : json_array();
    for (size_t i = 0; i < n->n_items; i++) {
        struct toml_node *m = n->items[i];
        if (n->kind == TOML_TABLE) {
            json_put(out, m->key, to_json(l, m));
        } else {
            json_push(out, to_json(l, m));
        }
    }
    return out;
}

/* Converts one node and remembers the JSON in it; refused values become 0 or null, to go on. */
static cJSON *to_json(struct load *l, struct toml_node *n)
{
    cJSON *out = NULL;
    switch (n->kind) {
    case TOML_TABLE:
    case TOML_ARRAY: out = members_to_json(l, n); break;
    case TOML_STRING:
        /* The program owns both trees; its arena outlives the JSON. */
        out = cJSON_CreateStringReference(n->string);
        break;
    case TOML_INTEGER:
    case TOML_FLOAT:
        check_number(l, n);
        out = cJSON_CreateNumber(isfinite(n->real) ? n->real : 0);
        break;
    case TOML_BOOLEAN: out = cJSON_CreateBool(n->boolean); break;
    case TOML_DATE:
        load_error(l, n, "a date cannot be locked: write it as a string");
        out = cJSON_CreateNull();
        break;
    }
    assert(out != NULL);
    n->json = out;
    return out;
}

void load_tree(struct load *l)
{
    struct toml_node root = *l->root;
    l->p->tree = to_json(l, &root);
}

/* `supersedes` must be a root. A root covers this line too, so no program can name its own; a
 * name would not identify one program. */
static void load_supersedes(struct load *l, const struct toml_node *t)
{
    struct digest ignored;
    struct err err;
    struct plan_program *p = l->p;
    if (!load_text(l, t, "supersedes", false, &p->supersedes) || p->supersedes == NULL ||
        digest_from_hex(p->supersedes, &ignored, &err) == 0) {
        return;
    }
    load_error(
        l, toml_member(t, "supersedes"),
        "%s is not the root of another program: 64 lower-case hex digits, as `preregctl diff` "
        "shows them",
        strcmp(p->supersedes, p->name) == 0 ? "its own name" : "it");
    p->supersedes = NULL;
}

/* Unknown sections are reported here, because no section reader would see them. */
void load_head(struct load *l)
{
    static const char *const keys[] = {"name", "schema", "question", "supersedes"};
    struct plan_program *p = l->p;
    p->name = "";
    p->schema = 1;
    p->question = "";
    load_check_keys(l, l->root, SECTIONS, ARRAY_LEN(SECTIONS));
    const struct toml_node *t = toml_member(l->root, "program");
    if (t == NULL) {
        load_missing(l, "the section [program] is missing");
        return;
    }
    if (!load_is(l, t, TOML_TABLE)) {
        return;
    }
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    if (load_text(l, t, "name", true, &p->name)) {
        (void)load_name_ok(l, toml_member(t, "name"), p->name);
    }
    const struct toml_node *schema = load_need(l, t, "schema", TOML_INTEGER);
    if (schema != NULL && schema->integer != 1) {
        load_error(l, schema, "%lld is not a schema this version reads; known: 1",
                   (long long)schema->integer);
    }
    (void)load_text(l, t, "question", false, &p->question);
    load_supersedes(l, t);
}
