/* Whether a receipt has the reviewers' signatures that [release] of its plan requires. A role is
 * filled by an allowed signer in the role's own namespace, and each role by another reviewer: by
 * another key, and by another principal, since one person may have several keys. A release that is
 * not complete is not a fault of the receipt, which has to be verified before anyone can sign it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "ctl/receipt/verify/verify_parts.h"

/* One who may fill a role. Both borrowed from the answer's signatures. */
struct reviewer {
    const char *key;
    const char *principal; /* "" where the file of allowed signers names none */
};

/* Those who may fill a role, each key once. */
struct role_reviewers {
    struct reviewer *items;
    size_t n;
    size_t cap;
};

/* The allowed signers of each role, out of the signatures that were checked; a key is listed once
 * in a role. */
static void collect(const struct verifying *v, struct role_reviewers roles[ROLE_NR])
{
    const cJSON *s = NULL;
    cJSON_ArrayForEach(s, v->signatures)
    {
        const cJSON *role = json_member(s, "role");
        const cJSON *principal = json_member(s, "principal");
        if (cJSON_IsString(role) && cJSON_IsTrue(json_member(s, "allowed"))) {
            struct role_reviewers *r = &roles[release_role_find(role->valuestring)];
            ARRAY_GROW(r->items, r->n, r->cap);
            r->items[r->n++] = (struct reviewer){
                .key = json_member(s, "key")->valuestring,
                .principal = cJSON_IsString(principal) ? principal->valuestring : ""};
        }
    }
}

static bool is_same(const struct reviewer *a, const struct reviewer *b)
{
    return strcmp(a->key, b->key) == 0 || strcmp(a->principal, b->principal) == 0;
}

/* Whether the required roles from `role` on can have a reviewer each who is in none before. There
 * are at most ROLE_NR levels, and RECEIPT_SIGNATURES_MAX signatures in all. */
static bool fill(const struct plan_release *plan, const struct role_reviewers *roles, size_t role,
                 const struct reviewer *taken[ROLE_NR])
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
            is_free = is_free && (taken[k] == NULL || !is_same(taken[k], &roles[role].items[i]));
        }
        taken[role] = &roles[role].items[i];
        if (is_free && fill(plan, roles, role + 1, taken)) {
            return true;
        }
    }
    return false;
}

/* Why it is not released, in words; NULL: it is. */
static char *why_not(const struct verifying *v, const struct role_reviewers *roles, cJSON *missing)
{
    const struct reviewer *taken[ROLE_NR];
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
                   : xstrdup("one reviewer signed in more than one role; expected for each role "
                             "another key and another principal of the file of allowed signers");
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
    struct role_reviewers roles[ROLE_NR] = {0};
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
    for (size_t i = 0; i < ROLE_NR; i++) {
        free(roles[i].items);
    }
    free(why);
    return o;
}
