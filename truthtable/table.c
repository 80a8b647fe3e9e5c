/* Inputs, rows and the outcome. */
#include "truthtable/evaluation.h"

/* Level i is possible unless its condition is false or an earlier one is true; when all are false,
 * every level is. */
static void find_possible(const struct input *in, struct input_state *st, bool *possible)
{
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
    if (n_false == in->n_levels) {
        st->no_level = true;
        st->n_possible = in->n_levels;
        for (size_t l = 0; l < in->n_levels; l++) {
            possible[l] = true;
        }
    }
    st->possible = possible;
}

static void evaluate_input(struct evaluation *ev, size_t index)
{
    const struct input *in = &ev->rules->program->inputs[index];
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
    find_possible(in, st, arena_array(ev->arena, in->n_levels, sizeof(bool)));
    if (st->level == INDEX_NONE) {
        st->why = st->no_level ? "no level" : first_why;
    }
}

void evaluate_table(struct evaluation *ev)
{
    const struct program *p = ev->rules->program;
    ev->inputs = arena_array(ev->arena, p->n_inputs, sizeof(*ev->inputs));
    ev->fired = arena_array(ev->arena, p->n_rows, sizeof(*ev->fired));
    ev->n_fired = 0;
    for (size_t i = 0; i < p->n_inputs; i++) {
        evaluate_input(ev, i);
    }
    for (size_t r = 0; r < p->n_rows; r++) {
        bool fires = true;
        for (size_t i = 0; i < p->n_table_inputs && fires; i++) {
            fires = ev->inputs[p->table_inputs[i]].possible[p->rows[r].levels[i]];
        }
        ev->fired[r] = fires;
        ev->n_fired += fires ? 1 : 0;
    }
}

size_t evaluation_outcome(const struct evaluation *ev)
{
    const struct program *p = ev->rules->program;
    size_t outcome = INDEX_NONE;
    for (size_t r = 0; r < p->n_rows; r++) {
        if (!ev->fired[r]) {
            continue;
        }
        if (outcome != INDEX_NONE && outcome != p->rows[r].outcome) {
            return INDEX_NONE;
        }
        outcome = p->rows[r].outcome;
    }
    return outcome;
}

void evaluation_run(struct evaluation *ev, const struct rules *rules, const struct reading *reading,
                    struct arena *arena)
{
    *ev = (struct evaluation){.rules = rules, .reading = reading, .arena = arena};
    evaluate_gates(ev);
    evaluate_contrasts(ev);
    evaluate_table(ev);
}
