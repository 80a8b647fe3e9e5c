/*
 * The last step of an evaluation: which level each input has, which rows fire, and which outcome
 * they agree on. Missing records leave several levels possible; every combination of possible
 * levels fires its row, and an outcome binds only if all fired rows lead to it. This is what makes
 * the verdict independent of records that are still missing.
 */
#include <assert.h>
#include <string.h>

#include "truthtable/evaluate/evaluation.h"

/* Level i is possible unless its condition is false or an earlier one is true. If none is true, and
 * all are false or may turn out false, every level is possible. */
static void find_possible(const struct table_evaluation *ev, size_t index, struct input_state *st,
                          bool *possible)
{
    assert(index < ev->rules->program->n_inputs);
    const struct plan_input *in = &ev->rules->program->inputs[index];
    bool earlier_true = false;
    size_t n_false = 0;
    size_t last = INDEX_NONE;
    for (size_t l = 0; l < in->n_levels; l++) {
        possible[l] = !earlier_true && st->holds[l] != TRUTH_FALSE;
        earlier_true = earlier_true || st->holds[l] == TRUTH_TRUE;
        n_false += st->holds[l] == TRUTH_FALSE ? 1 : 0;
        st->n_possible += possible[l] ? 1 : 0;
        last = possible[l] ? l : last;
    }
    if (st->n_possible == 1 && st->holds[last] == TRUTH_TRUE) {
        st->level = last;
    }
    st->no_level = n_false == in->n_levels;
    st->may_be_none = st->no_level || (!earlier_true && !input_is_covered(ev, index));
    if (st->may_be_none) {
        st->n_possible = in->n_levels;
        for (size_t l = 0; l < in->n_levels; l++) {
            possible[l] = true;
        }
    }
    st->possible = possible;
}

/* Levels are tried in order. "otherwise" is true if all levels before it are false, and unknown as
 * long as one of them is. */
static void evaluate_input(struct table_evaluation *ev, size_t index)
{
    assert(index < ev->rules->program->n_inputs);
    const struct plan_input *in = &ev->rules->program->inputs[index];
    struct input_state *st = &ev->inputs[index];
    enum truth *holds = arena_array(ev->arena, in->n_levels, sizeof(*holds));
    enum truth none_earlier = TRUTH_TRUE;
    const char *first_why = NULL;
    st->level = INDEX_NONE;
    for (size_t l = 0; l < in->n_levels; l++) {
        const char *why = NULL;
        holds[l] = evaluation_truth(ev, ev->rules->inputs[index][l], none_earlier, &why);
        none_earlier = truth_and(none_earlier, truth_not(holds[l]));
        first_why = first_why == NULL ? why : first_why;
    }
    st->holds = holds;
    find_possible(ev, index, st, arena_array(ev->arena, in->n_levels, sizeof(bool)));
    if (st->level == INDEX_NONE) {
        st->why = st->no_level ? "no level" : first_why;
    }
}

/* Every row has one level of each input: it is dropped with a level that is not possible. One word
 * operation serves 64 rows. */
static void drop_rows(uint64_t *restrict rows, const uint64_t *restrict having, size_t n_words)
{
    for (size_t w = 0; w < n_words; w++) {
        rows[w] &= ~having[w];
    }
}

/* All rows of the table, as bits. */
static uint64_t *all_rows(const struct table_evaluation *ev)
{
    const size_t n_words = ev->rules->n_row_words;
    const size_t n_rows = ev->rules->program->n_rows;
    uint64_t *rows = arena_array(ev->arena, n_words, sizeof(*rows));
    memset(rows, 0xFF, n_words * sizeof(*rows));
    if (n_rows % 64 != 0) {
        rows[n_words - 1] = (UINT64_C(1) << (n_rows % 64)) - 1;
    }
    return rows;
}

/* The rows of which each level is possible. */
static void find_fired(struct table_evaluation *ev)
{
    assert(ev->inputs != NULL || ev->rules->program->n_inputs == 0); /* rows are read off inputs */
    const struct rules *rules = ev->rules;
    const struct plan_program *p = rules->program;
    uint64_t *rows = all_rows(ev);
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        const size_t input = p->table_inputs[i];
        for (size_t l = 0; l < p->inputs[input].n_levels; l++) {
            if (!ev->inputs[input].possible[l]) {
                drop_rows(rows, rules->row_masks[i][l], rules->n_row_words);
            }
        }
    }
    for (size_t w = 0; w < rules->n_row_words; w++) {
        ev->n_fired += rows[w] == 0 ? 0 : (size_t)__builtin_popcountll(rows[w]);
    }
    size_t *fired = arena_array(ev->arena, ev->n_fired, sizeof(*fired));
    size_t n = 0;
    for (size_t w = 0; w < rules->n_row_words; w++) {
        for (uint64_t left = rows[w]; left != 0; left &= left - 1) {
            fired[n++] = 64 * w + (size_t)__builtin_ctzll(left);
        }
    }
    ev->fired = fired;
}

/* Inputs that the table does not read are evaluated, too: verdict.json lists them all. */
void evaluate_table(struct table_evaluation *ev)
{
    assert(ev->fired == NULL && ev->n_fired == 0); /* the last step */
    const struct plan_program *p = ev->rules->program;
    ev->inputs = arena_array(ev->arena, p->n_inputs, sizeof(*ev->inputs));
    ev->n_fired = 0;
    for (size_t i = 0; i < p->n_inputs; i++) {
        evaluate_input(ev, i);
    }
    find_fired(ev);
}

/* The rule of the verdict: fired rows must agree, whatever the missing records turn out to be. */
size_t evaluation_outcome(const struct table_evaluation *ev)
{
    assert(ev->n_fired <= ev->rules->program->n_rows);
    const struct plan_program *p = ev->rules->program;
    size_t outcome = INDEX_NONE;
    for (size_t i = 0; i < ev->n_fired; i++) {
        size_t of_row = p->rows[ev->fired[i]].outcome;
        if (outcome != INDEX_NONE && outcome != of_row) {
            return INDEX_NONE;
        }
        outcome = of_row;
    }
    return outcome;
}

/* The order is part of the contract: pooled figures need to know which measures cleared, and inputs
 * need all figures. */
void evaluation_run(struct table_evaluation *ev, const struct rules *rules,
                    const struct table_reading *reading, struct arena *arena)
{
    assert(rules != NULL && reading != NULL && arena != NULL);
    *ev = (struct table_evaluation){.rules = rules, .reading = reading, .arena = arena};
    evaluate_gates(ev);
    evaluate_contrasts(ev);
    evaluate_table(ev);
}
