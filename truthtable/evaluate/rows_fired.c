/*
 * The last step of an evaluation: which level each input has, which rows fire, and which outcome
 * they agree on. Missing records leave several levels possible; every combination of possible
 * levels fires its row, and an outcome binds only if all fired rows lead to it. This is what makes
 * the verdict independent of records that are still missing.
 */
#include <assert.h>

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

/* The rows of which each level is possible. */
static void find_fired(struct table_evaluation *ev)
{
    assert(ev->inputs != NULL || ev->rules->program->n_inputs == 0); /* rows are read off inputs */
    const struct rules *rules = ev->rules;
    const struct plan_program *p = rules->program;
    uint64_t *words = arena_array(ev->arena, rules->n_row_words, sizeof(*words));
    for (size_t w = 0; w < rules->n_row_words; w++) {
        words[w] = ~UINT64_C(0);
        for (size_t i = 0; i < p->n_table_inputs && words[w] != 0; i++) {
            const struct plan_input *in = &p->inputs[p->table_inputs[i]];
            uint64_t any = 0;
            for (size_t l = 0; l < in->n_levels; l++) {
                bool possible = ev->inputs[p->table_inputs[i]].possible[l];
                any |= possible ? rules->row_masks[i][l][w] : 0;
            }
            /* A row survives if each of its levels is possible: one word operation serves 64
             * rows. */
            words[w] &= any;
        }
        ev->n_fired += (size_t)__builtin_popcountll(words[w]);
    }
    size_t *fired = arena_array(ev->arena, ev->n_fired, sizeof(*fired));
    size_t n = 0;
    for (size_t w = 0; w < rules->n_row_words; w++) {
        for (uint64_t left = words[w]; left != 0; left &= left - 1) {
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
