/*
 * Words that come back again and again, as small numbers: nodes, pending reasons, states that are
 * not in the table. Number 0 is "". At most INTERN_MAX of them: a later one is 0, too.
 */
#ifndef DAEMON_EXECUTOR_SLURM_INTERN_H
#define DAEMON_EXECUTOR_SLURM_INTERN_H

#include <stddef.h>
#include <stdint.h>

#define INTERN_MAX 60000u

struct intern {
    char **words;
    uint32_t n;
    uint32_t cap;
    uint32_t *cells; /* open addressing, 0: free */
    uint32_t n_cells;
};

void intern_init(struct intern *t);
void intern_release(struct intern *t);
uint16_t intern_add(struct intern *t, const char *word);
const char *intern_word(const struct intern *t, uint16_t number);

#endif
