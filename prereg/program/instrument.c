/*
 * Tables only: each kind with its fields and their types. truthtable/ compiles forecasts against
 * these lists and gives every field a value or a reason, so a new field is added here first.
 */
#include "prereg/program/instrument.h"

#include <assert.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"

static const struct instrument_field BAYES[] = {
    {"robust", true},      {"all_null", true},    {"any_null", true},
    {"all_against", true}, {"any_against", true}, {"min_bf10", false},
    {"max_bf10", false},   {"n_null", false},     {"n_against", false}};
static const struct instrument_field MIXED[] = {
    {"singular", true},           {"any_singular", true},
    {"rank_deficient", true},     {"boundary", true},
    {"n_singular", false},        {"min_rows", false},
    {"max_theta", false},         {"min_r2_marginal", false},
    {"max_r2_marginal", false},   {"min_r2_conditional", false},
    {"max_r2_conditional", false}};
static const struct instrument_field CONNECTOR[] = {
    {"case_a", true},  {"case_b", true},        {"case_c", true},    {"case_d", true},
    {"shows", true},   {"sources_agree", true}, {"trigger", true},   {"gap", false},
    {"gap_se", false}, {"gap_low", false},      {"gap_high", false}, {"inflation", false}};
static const struct instrument_field ITEMS[] = {
    {"any_excludes_zero", true}, {"all_exclude_zero", true}, {"min_mean", false},
    {"max_mean", false},         {"max_abs", false},         {"max_se", false}};
static const struct instrument_field ROUTER[] = {
    {"all_pinned", true}, {"any_pinned", true},         {"n_pinned", false},
    {"n_varying", false}, {"effective_experts", false}, {"entropy_share", false}};
static const struct instrument_field ANCHORS[] = {
    {"min_difference", false}, {"max_difference", false}, {"max_abs", false}};

static const struct instrument_field COURSE[] = {
    {"widens", true},     {"narrows", true},       {"crosses", true},       {"slope", false},
    {"slope_low", false}, {"slope_high", false},   {"first", false},        {"last", false},
    {"crossing", false},  {"crossing_low", false}, {"crossing_high", false}};

static const struct {
    const char *name;
    const struct instrument_field *fields;
    size_t n;
} KINDS[INSTRUMENT_KIND_NR] = {
    [INSTRUMENT_BAYES] = {"bayes", BAYES, ARRAY_LEN(BAYES)},
    [INSTRUMENT_MIXED] = {"mixed", MIXED, ARRAY_LEN(MIXED)},
    [INSTRUMENT_CONNECTOR] = {"connector", CONNECTOR, ARRAY_LEN(CONNECTOR)},
    [INSTRUMENT_ITEMS] = {"items", ITEMS, ARRAY_LEN(ITEMS)},
    [INSTRUMENT_ROUTER] = {"router", ROUTER, ARRAY_LEN(ROUTER)},
    [INSTRUMENT_ANCHORS] = {"anchors", ANCHORS, ARRAY_LEN(ANCHORS)},
    [INSTRUMENT_COURSE] = {"course", COURSE, ARRAY_LEN(COURSE)},
};

const char *const INSTRUMENT_ROUTER_FACTS[] = {
    "router_load", "router_occupancy", "router_entropy", "router_effective", "router_dead",
    "router_z",    "router_same",      "router_kills",   "router_anneal",    "router_dropped"};

size_t instrument_n_router_facts(void)
{
    return ARRAY_LEN(INSTRUMENT_ROUTER_FACTS);
}

bool instrument_name_is_taken(const char *name)
{
    static const char *const taken[] = {"margins", "dispersion", "detectable", "apparatus"};
    for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
        if (strcmp(name, taken[i]) == 0) {
            return true;
        }
    }
    return false;
}

const char *instrument_kind_name(enum instrument_kind k)
{
    return k < INSTRUMENT_KIND_NR ? KINDS[k].name : "?";
}

enum instrument_kind instrument_kind_find(const char *name)
{
    size_t k = 0;
    while (k < INSTRUMENT_KIND_NR && strcmp(KINDS[k].name, name) != 0) {
        k++;
    }
    return (enum instrument_kind)k;
}

const struct instrument_field *instrument_fields(enum instrument_kind k, size_t *n)
{
    assert(k < INSTRUMENT_KIND_NR);
    *n = KINDS[k].n;
    return KINDS[k].fields;
}

bool instrument_discussion_only(const struct plan_instrument *in)
{
    const cJSON *said = json_member(in->spec, "discussion_only");
    return said != NULL ? cJSON_IsTrue(said) : strcmp(in->name, "supplementary") == 0;
}

size_t instrument_main_contrast(const struct plan_program *p)
{
    if (p->binding_counter != INDEX_NONE) {
        return p->counters[p->binding_counter].contrast;
    }
    size_t found = INDEX_NONE;
    for (size_t k = 0; k < p->n_contrasts; k++) {
        if (p->contrasts[k].is_difference) {
            continue;
        }
        if (found != INDEX_NONE) {
            return INDEX_NONE;
        }
        found = k;
    }
    return found;
}
