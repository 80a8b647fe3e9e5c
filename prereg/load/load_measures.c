/* [measure]: which metrics count, and their floors. A floor is kept as a double and as the
 * shortest decimal of it: whether a count of items clears it is decided in exact rationals from
 * the decimal. */
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "prereg/load/load.h"

#define MEASURES_MAX ((size_t)4096)

/* A number within 0..1; false, after an error if it is there, when it is not. */
static bool load_share(struct load *l, const struct toml_node *t, const char *key, double *out)
{
    if (!load_number(l, t, key, out)) {
        return false;
    }
    if (!(*out >= 0 && *out <= 1)) {
        load_error(l, toml_member(t, key), "%.15g is outside 0..1: a share, as 0.90", *out);
        return false;
    }
    return true;
}

/* The shortest decimal that reads back as the value. */
static const char *decimal_text(struct load *l, const struct toml_node *t, const char *key)
{
    char text[JSON_NUMBER_MAX];
    json_number_text(toml_member(t, key)->json->valuedouble, text);
    return arena_strdup(&l->p->arena, text);
}

/* Refuses floors that could not mean what they say: below chance, best_arm without a floor, or a
 * floor where lower is better. */
static void load_floors(struct load *l, struct plan_measure *m, const struct toml_node *t)
{
    m->has_chance = load_share(l, t, "chance", &m->chance);
    m->has_floor = load_share(l, t, "floor", &m->floor);
    m->has_best_arm = load_share(l, t, "best_arm", &m->best_arm);
    if (m->has_floor) {
        m->floor_text = decimal_text(l, t, "floor");
    }
    if (m->has_best_arm) {
        m->best_arm_text = decimal_text(l, t, "best_arm");
    }
    if (m->has_floor && m->has_chance && m->floor < m->chance) {
        load_error(l, toml_member(t, "floor"), "%s is below chance, %.15g: guessing would clear it",
                   m->floor_text, m->chance);
    }
    if (m->has_best_arm && toml_member(t, "floor") == NULL) {
        load_error(l, toml_member(t, "best_arm"), "needs a floor to add to");
    } else if (m->has_best_arm && m->has_floor && m->best_arm < m->floor) {
        load_warn(l, toml_member(t, "best_arm"), "%s is below the floor and never decides anything",
                  m->best_arm_text);
    }
    if (m->has_floor && m->lower_better) {
        load_error(l, toml_member(t, "floor"),
                   "a floor is reached from below, and here lower is better");
    }
}

/* ORG/NAME of letters, digits, "_", "-" and "." inside: what a name of the Hub is made of. */
static bool is_hub_dataset(const char *text)
{
    const char *slash = strchr(text, '/');
    for (const char *c = text; *c != '\0'; c++) {
        const bool edge = c == text || c[-1] == '/' || c[1] == '/' || c[1] == '\0';
        const bool word = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                          (*c >= '0' && *c <= '9') || *c == '_';
        if (!word && c != slash && (edge || (*c != '-' && *c != '.'))) {
            return false;
        }
    }
    return slash != NULL && slash != text && slash[1] != '\0' && strlen(text) <= 200;
}

/* hub = { dataset = "ORG/NAME", task = "ID", revision = "<git SHA>" }: stated for exports. */
static void load_hub(struct load *l, struct plan_hub *hub, const struct toml_node *t)
{
    static const char *const keys[] = {"dataset", "task", "revision"};
    const struct toml_node *h = load_member(l, t, "hub", TOML_TABLE);
    if (h == NULL) {
        return;
    }
    load_check_keys(l, h, keys, ARRAY_LEN(keys));
    if (load_text(l, h, "dataset", true, &hub->dataset) && !is_hub_dataset(hub->dataset)) {
        load_error(l, toml_member(h, "dataset"), "\"%.80s\" is not a dataset of the Hub (ORG/NAME)",
                   hub->dataset);
    }
    (void)load_text(l, h, "task", true, &hub->task);
    if (load_text(l, h, "revision", false, &hub->revision) &&
        (strlen(hub->revision) != 40 || strspn(hub->revision, "0123456789abcdef") != 40)) {
        load_error(l, toml_member(h, "revision"), "\"%.80s\" is not a commit (40 hex digits)",
                   hub->revision);
    }
}

/* The defaults hold for keys that are absent or wrong, so later checks need not know about
 * errors. */
static void load_measure(struct load *l, const struct toml_node *t)
{
    static const char *const keys[] = {"metric",   "items",   "chance", "floor",
                                       "best_arm", "counted", "better", "hub"};
    static const char *const better[] = {"higher", "lower", NULL};
    struct plan_program *p = l->p;
    struct plan_measure *m = &p->measures[p->n_measures++];
    *m = (struct plan_measure){.name = t->key,
                               .counted = true,
                               .stage = INDEX_NONE,
                               .metric = "",
                               .metric_text = "",
                               .place = load_key_place(t)};
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    if (load_text(l, t, "metric", true, &m->metric_text)) {
        const struct toml_node *at = toml_member(t, "metric");
        const char *metric = load_metric(l, at, m->metric_text, &m->stage);
        m->metric_place = load_place(at);
        m->metric = metric == NULL ? "" : metric;
    }
    m->has_items = load_int(l, t, "items", (int64_t[]){1, JSON_INT_MAX}, &m->items);
    if (m->has_items) {
        m->items_place = load_place(toml_member(t, "items"));
    }
    (void)load_bool(l, t, "counted", &m->counted);
    size_t word = 0;
    (void)load_word(l, t, "better", better, &word);
    m->lower_better = word == 1;
    load_floors(l, m, t);
    load_hub(l, &m->hub, t);
}

/* Quadratic, so only for up to 256 measures; it is a warning. */
static void warn_same_metric(struct load *l, const struct toml_node *section)
{
    const struct plan_program *p = l->p;
    for (size_t i = 1; i < p->n_measures && p->n_measures <= 256; i++) {
        for (size_t k = 0; k < i; k++) {
            if (p->measures[i].metric_text[0] != '\0' &&
                strcmp(p->measures[i].metric_text, p->measures[k].metric_text) == 0) {
                load_warn(l, section->items[i], "reads the same metric as measure.%s",
                          p->measures[k].name);
                break;
            }
        }
    }
}

void load_measures(struct load *l)
{
    struct plan_program *p = l->p;
    const struct toml_node *section = load_section(l, "measure", TOML_TABLE, MEASURES_MAX);
    if (toml_member(l->root, "measure") == NULL || (section != NULL && section->n_items == 0)) {
        load_missing(l, "no [measure]: nothing is measured");
        return;
    }
    if (section == NULL) {
        return;
    }
    p->measures = arena_array(&p->arena, section->n_items, sizeof(*p->measures));
    for (size_t i = 0; i < section->n_items; i++) {
        load_measure(l, section->items[i]);
    }
    warn_same_metric(l, section);
}
