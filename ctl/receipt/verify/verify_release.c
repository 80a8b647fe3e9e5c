/* Whether a receipt has the reviewers' signatures that [release] of its plan requires. A role is
 * filled by an allowed signer in the role's own namespace, and each role by another key: one
 * reviewer is not three. A release that is not complete is not a fault of the receipt, which has to
 * be verified before anyone can sign it. */
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/verify/verify_parts.h"

/* The keys that fill a role. More of them than there are roles make no difference. */
struct role_keys {
    const char *keys[ROLE_NR];
    size_t n;
};

/* Adds a key that the role does not have yet. */
static void add_key(struct role_keys *r, const char *key)
{
    for (size_t i = 0; i < r->n; i++) {
        if (strcmp(r->keys[i], key) == 0) {
            return;
        }
    }
    if (r->n < ROLE_NR) {
        r->keys[r->n++] = key;
    }
}

/* The allowed keys of each role, out of the signatures that were checked. */
static void collect(const struct verifying *v, struct role_keys roles[ROLE_NR])
{
    const cJSON *s = NULL;
    memset(roles, 0, ROLE_NR * sizeof(*roles));
    cJSON_ArrayForEach(s, v->signatures)
    {
        const cJSON *role = json_member(s, "role");
        if (cJSON_IsString(role) && cJSON_IsTrue(json_member(s, "allowed"))) {
            add_key(&roles[release_role_find(role->valuestring)],
                    json_member(s, "key")->valuestring);
        }
    }
}

/* Whether the required roles from `role` on can have a key each that is in none before. */
static bool fill(const struct plan_release *plan, const struct role_keys *roles, size_t role,
                 const char *taken[ROLE_NR])
{
    if (role == ROLE_NR) {
        return true;
    }
    taken[role] = NULL;
    if (!plan->required[role]) {
        return fill(plan, roles, role + 1, taken);
    }
    for (size_t i = 0; i < roles[role].n; i++) {
        bool is_free = true;
        for (size_t k = 0; k < role; k++) {
            is_free = is_free && (taken[k] == NULL || strcmp(taken[k], roles[role].keys[i]) != 0);
        }
        taken[role] = roles[role].keys[i];
        if (is_free && fill(plan, roles, role + 1, taken)) {
            return true;
        }
    }
    return false;
}

/* Why it is not released, in words; NULL: it is. */
static char *why_not(const struct verifying *v, const struct role_keys *roles, cJSON *missing)
{
    const char *taken[ROLE_NR];
    struct strbuf text = STRBUF_INIT;
    const struct plan_release *plan = &v->program->release;
    for (size_t i = 0; i < ROLE_NR; i++) {
        if (plan->required[i] && roles[i].n == 0) {
            strbuf_addf(&text, "%s%s", text.len == 0 ? "" : ", ", release_roles[i]);
            json_push_string(missing, release_roles[i]);
        }
    }
    if (text.len == 0) {
        return fill(plan, roles, 0, taken)
                   ? NULL
                   : xstrdup("one key signed in more than one role; expected a key for each");
    }
    char *why = xasprintf("no allowed signer signed it as: %s%s", text.buf,
                          v->spec->allowed_signers != NULL ? ""
                                                           : " (--allowed-signers FILE names whom "
                                                             "you trust)");
    strbuf_release(&text);
    return why;
}

cJSON *verify_release(struct verifying *v)
{
    struct role_keys roles[ROLE_NR];
    if (v->program == NULL || !release_requires_some(&v->program->release)) {
        return cJSON_CreateNull();
    }
    cJSON *o = json_object();
    cJSON *requires = json_array();
    cJSON *missing = json_array();
    for (size_t i = 0; i < ROLE_NR; i++) {
        if (v->program->release.required[i]) {
            json_push_string(requires, release_roles[i]);
        }
    }
    collect(v, roles);
    char *why = why_not(v, roles, missing);
    json_put(o, "requires", requires);
    json_put(o, "missing", missing);
    json_put_bool(o, "released", why == NULL);
    json_put_string(o, "why", why);
    v->out->is_unreleased = why != NULL;
    free(why);
    return o;
}
