/* [[input]], [outcome] and [table]: the mapping that was written down first. Whether it is total
 * and free of clashes is proved in truthtable/. */
#include <string.h>

#include "base/xalloc.h"
#include "prereg/load/load.h"
#include "prereg/program/verdict_kind.h"

#define INPUTS_MAX       ((size_t)32)
#define INPUT_LEVELS_MAX ((size_t)64)
#define OUTCOMES_MAX     ((size_t)1024)
#define ROWS_MAX         ((size_t)1 << 18)
#define OUTCOME_NAME_MAX ((size_t)64)

static bool is_printable(const char *s)
{
    for (; *s != '\0'; s++) {
        if ((unsigned char)*s < 0x20 || *s == 0x7F) {
            return false;
        }
    }
    return true;
}

/* ["name", "condition"]; names are unique within the input. */
static void load_input_level(struct load *l, struct plan_input *in, const struct toml_node *n)
{
    if (n->kind != TOML_ARRAY || n->n_items != 2 || n->items[0]->kind != TOML_STRING ||
        n->items[1]->kind != TOML_STRING) {
        load_error(l, n, "a level is [\"name\", \"condition\"]");
        return;
    }
    const struct toml_node *name = n->items[0];
    const struct toml_node *text = n->items[1];
    for (size_t i = 0; i < in->n_levels; i++) {
        if (strcmp(in->levels[i].name, name->string) == 0) {
            load_error(l, name, "level \"%s\" is duplicated", name->string);
        }
    }
    if (name->string[0] == '\0' || !is_printable(name->string)) {
        load_error(l, name, "a level's name must be printable text");
    }
    if (text->string[0] == '\0') {
        load_error(l, text, "level \"%s\" has an empty condition", name->string);
    }
    in->levels[in->n_levels++] = (struct input_level){
        .name = name->string, .condition = {.text = text->string, .place = load_place(text)}};
}

/* Levels are tried in order, so one after "otherwise" could never be chosen. */
static void check_otherwise(struct load *l, const struct plan_input *in,
                            const struct toml_node *array)
{
    for (size_t i = 0; i + 1 < in->n_levels; i++) {
        if (strcmp(in->levels[i].condition.text, "otherwise") == 0) {
            load_error(l, array->items[i + 1], "nothing can follow \"otherwise\"");
        }
    }
}

/* {name, levels}. The input is counted after its name was compared with the others. */
static void load_input(struct load *l, const struct toml_node *t)
{
    static const char *const keys[] = {"name", "levels"};
    struct plan_program *p = l->p;
    struct plan_input *in = &p->inputs[p->n_inputs];
    *in = (struct plan_input){.name = "", .place = load_place(t)};
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    if (load_text(l, t, "name", true, &in->name) &&
        load_name_ok(l, toml_member(t, "name"), in->name) &&
        names_find(names_inputs(p), in->name) != INDEX_NONE) {
        load_error(l, toml_member(t, "name"), "input \"%s\" is duplicated", in->name);
    }
    p->n_inputs++;
    const struct toml_node *array = load_need(l, t, "levels", TOML_ARRAY);
    if (array == NULL) {
        return;
    }
    if (array->n_items == 0 || array->n_items > INPUT_LEVELS_MAX) {
        load_error(l, array, "input %s: expected 1 to %zu levels, found %zu", in->name,
                   INPUT_LEVELS_MAX, array->n_items);
        return;
    }
    in->levels = arena_array(&p->arena, array->n_items, sizeof(*in->levels));
    for (size_t i = 0; i < array->n_items; i++) {
        load_input_level(l, in, array->items[i]);
    }
    if (in->n_levels == array->n_items) {
        check_otherwise(l, in, array);
    }
}

void load_inputs(struct load *l)
{
    const struct toml_node *tables = load_tables(l, "input", INPUTS_MAX);
    if (toml_member(l->root, "input") == NULL) {
        load_missing(l, "no [[input]]: the table has nothing to read");
    }
    if (tables == NULL) {
        return;
    }
    l->p->inputs = arena_array(&l->p->arena, tables->n_items, sizeof(*l->p->inputs));
    for (size_t i = 0; i < tables->n_items; i++) {
        load_input(l, tables->items[i]);
    }
}

/* {prior, title}: a prior strictly between 0 and 1, or its surprisal would be infinite. */
static void load_outcome(struct load *l, const struct toml_node *t)
{
    static const char *const keys[] = {"prior", "title"};
    struct plan_program *p = l->p;
    struct plan_outcome *o = &p->outcomes[p->n_outcomes++];
    *o = (struct plan_outcome){.name = t->key, .title = "", .place = load_key_place(t)};
    if (t->key[0] == '\0' || strlen(t->key) > OUTCOME_NAME_MAX || !is_printable(t->key)) {
        load_error_key(l, t, "a name is 1 to %zu bytes of printable text", OUTCOME_NAME_MAX);
    }
    /* Words of verdict.json for the case that no outcome binds. */
    if (verdict_kind_of(t->key) != VERDICT_BOUND) {
        load_error_key(l, t, "the name of a verdict that no row decides");
    }
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    (void)load_text(l, t, "title", true, &o->title);
    if (load_need(l, t, "prior", TOML_FLOAT) != NULL) {
        (void)load_number(l, t, "prior", &o->prior);
        if (!(o->prior > 0 && o->prior < 1)) {
            load_error(l, toml_member(t, "prior"), "%.15g is not between 0 and 1", o->prior);
        }
    }
}

/* The priors may sum to less than 1: the rest is for what the table does not name. */
void load_outcomes(struct load *l)
{
    struct plan_program *p = l->p;
    const struct toml_node *section = load_member(l, l->root, "outcome", TOML_TABLE);
    if (toml_member(l->root, "outcome") == NULL || (section != NULL && section->n_items == 0)) {
        load_missing(l, "no [outcome]: there is nothing to find");
        return;
    }
    if (section == NULL) {
        return;
    }
    if (section->n_items > OUTCOMES_MAX) {
        load_error_key(l, section, "outcome: %zu entries; the limit is %zu", section->n_items,
                       OUTCOMES_MAX);
        return;
    }
    p->outcomes = arena_array(&p->arena, section->n_items, sizeof(*p->outcomes));
    double sum = 0;
    for (size_t i = 0; i < section->n_items; i++) {
        if (load_is(l, section->items[i], TOML_TABLE)) {
            load_outcome(l, section->items[i]);
            sum += p->outcomes[p->n_outcomes - 1].prior;
        }
    }
    if (sum > 1 + PRIORS_SUM_SLACK) {
        load_error_key(l, section, "the priors sum to %.6g, more than 1", sum);
    }
}

/* The inputs of the table in its order; columns of rows follow it. */
static void load_table_inputs(struct load *l, const struct toml_node *array)
{
    struct plan_program *p = l->p;
    p->table_inputs = arena_array(&p->arena, array->n_items, sizeof(*p->table_inputs));
    for (size_t i = 0; i < array->n_items; i++) {
        const struct toml_node *n = array->items[i];
        size_t in = load_lookup(l, n, names_inputs(l->p));
        for (size_t k = 0; in != INDEX_NONE && k < p->n_table_inputs; k++) {
            if (p->table_inputs[k] == in) {
                load_error(l, n, "\"%s\" is duplicated", n->string);
                in = INDEX_NONE;
            }
        }
        if (in != INDEX_NONE) {
            p->table_inputs[p->n_table_inputs++] = in;
        }
    }
    if (array->n_items == 0) {
        load_error(l, array, "none");
    }
}

/* An input that the table does not list has no effect. */
static void warn_unused_inputs(struct load *l)
{
    const struct plan_program *p = l->p;
    for (size_t i = 0; i < p->n_inputs; i++) {
        bool used = false;
        for (size_t k = 0; k < p->n_table_inputs; k++) {
            used = used || p->table_inputs[k] == i;
        }
        if (!used) {
            diag_add(l->diag, DIAG_WARNING, p->inputs[i].place.line, p->inputs[i].place.column,
                     "input \"%s\" is not in table.inputs and decides nothing", p->inputs[i].name);
        }
    }
}

/* One row: a level of each input, in the order of table.inputs, then the outcome. */
static void load_row(struct load *l, const struct toml_node *n)
{
    struct plan_program *p = l->p;
    if (n->kind != TOML_ARRAY || n->n_items != p->n_table_inputs + 1) {
        load_error(l, n, "expected %zu levels and an outcome, found %zu values", p->n_table_inputs,
                   n->kind == TOML_ARRAY ? n->n_items : 1);
        p->n_rows++;
        return;
    }
    struct plan_row *row = &p->rows[p->n_rows++];
    row->place = load_place(n);
    row->levels = arena_array(&p->arena, p->n_table_inputs, sizeof(*row->levels));
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        const struct plan_input *in = &p->inputs[p->table_inputs[i]];
        row->levels[i] = load_lookup(l, n->items[i], names_input_levels(in));
    }
    row->outcome = load_lookup(l, n->items[p->n_table_inputs], names_outcomes(l->p));
}

void load_table(struct load *l)
{
    static const char *const keys[] = {"inputs", "rows"};
    struct plan_program *p = l->p;
    const struct toml_node *t = toml_member(l->root, "table");
    if (t == NULL) {
        load_missing(l, "no [table]: nothing says what follows from what");
        return;
    }
    if (!load_is(l, t, TOML_TABLE)) {
        return;
    }
    p->table_place = (struct place){.line = t->key_line, .column = t->key_column};
    load_check_keys(l, t, keys, ARRAY_LEN(keys));
    const struct toml_node *inputs = load_need(l, t, "inputs", TOML_ARRAY);
    const struct toml_node *rows = load_need(l, t, "rows", TOML_ARRAY);
    if (inputs == NULL || rows == NULL) {
        return;
    }
    if (rows->n_items > ROWS_MAX || inputs->n_items > INPUTS_MAX) {
        load_error(l, rows, "the limits are %zu rows and %zu inputs", ROWS_MAX, INPUTS_MAX);
        return;
    }
    load_table_inputs(l, inputs);
    warn_unused_inputs(l);
    if (p->n_table_inputs < inputs->n_items) {
        return; /* every row would be reported as too long */
    }
    p->rows = arena_array(&p->arena, rows->n_items, sizeof(*p->rows));
    for (size_t i = 0; i < rows->n_items; i++) {
        load_row(l, rows->items[i]);
    }
}
