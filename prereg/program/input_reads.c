/* Splits conditions into words and signs and searches for short sequences of them: "[" NAME,
 * "measure" "." NAME, "fact" "." STAGE. No other form of a condition can name a measure or a
 * fact. */
#include "prereg/program/input_reads.h"

#include <string.h>

static bool is_of_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* The next word or sign at or behind *at, of *n bytes; a text in quotes is one sign. NULL: none. */
static const char *next_word(const char **at, size_t *n)
{
    *at += strspn(*at, " \t\r\n");
    const char *word = *at;
    if (*word == '\0') {
        return NULL;
    }
    *n = 1;
    if (*word == '\'') {
        const char *end = strchr(word + 1, '\'');
        *n = end == NULL ? strlen(word) : (size_t)(end + 1 - word);
    } else {
        while (is_of_name(word[0]) && is_of_name(word[*n])) {
            (*n)++;
        }
    }
    *at += *n;
    return word;
}

static bool is_word(const char *word, size_t n, const char *name)
{
    return strlen(name) == n && memcmp(word, name, n) == 0;
}

/* Finds the words `first` `second` NAME in a row, at *at or later, and moves *at behind them;
 * second may be NULL. */
static bool find_sequence(const char **at, const char *first, const char *second, const char *name)
{
    const char *const want[] = {first, second == NULL ? name : second, name};
    const size_t n_want = second == NULL ? 2 : 3;
    size_t met = 0;
    size_t n = 0;
    for (const char *word; (word = next_word(at, &n)) != NULL;) {
        if (!is_word(word, n, want[met])) {
            met = 0;
        }
        if (is_word(word, n, want[met]) && ++met == n_want) {
            return true;
        }
    }
    return false;
}

bool condition_reads_measure(const char *text, const char *measure)
{
    const char *pooled = text;
    const char *own = text;
    return find_sequence(&pooled, "[", NULL, measure) ||
           find_sequence(&own, "measure", ".", measure);
}

bool condition_reads_fact_of(const char *text, const char *stage)
{
    return find_sequence(&text, "fact", ".", stage);
}

const char *condition_next_fact_of(const char **at, const char *stage, size_t *n)
{
    if (!find_sequence(at, "fact", ".", stage)) {
        return NULL;
    }
    const char *point = next_word(at, n);
    return point != NULL && is_word(point, *n, ".") ? next_word(at, n) : NULL;
}

/* Marks the stages of all measures and facts that one condition reads. */
static void mark_read(struct plan_program *p, const char *text)
{
    for (size_t m = 0; m < p->n_measures; m++) {
        struct plan_stage *s = &p->stages[p->measures[m].stage];
        s->budgeted = s->budgeted || condition_reads_measure(text, p->measures[m].name);
    }
    for (size_t i = 0; i < p->n_stages; i++) {
        struct plan_stage *s = &p->stages[i];
        s->budgeted = s->budgeted || condition_reads_fact_of(text, s->name);
    }
}

void mark_budgeted(struct plan_program *p)
{
    for (size_t i = 0; i < p->n_stages; i++) {
        p->stages[i].budgeted = p->stages[i].sealed;
    }
    for (size_t i = 0; i < p->n_table_inputs; i++) {
        const struct plan_input *in = &p->inputs[p->table_inputs[i]];
        for (size_t l = 0; l < in->n_levels; l++) {
            mark_read(p, in->levels[l].condition.text);
        }
    }
    /* Stages are in topological order: going backwards, a stage is final before those it waits
     * for. */
    for (size_t i = p->n_stages; i-- > 0;) {
        struct plan_stage *s = &p->stages[i];
        s->excludable = s->excludable || s->budgeted;
        for (size_t k = 0; s->excludable && k < s->n_after; k++) {
            p->stages[s->after[k]].excludable = true;
        }
    }
}
