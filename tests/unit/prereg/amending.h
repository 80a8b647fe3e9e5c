/* A program that is amended, what is judged of it, and amendments that were made by hand. */
#ifndef TESTS_UNIT_PREREG_AMENDING_H
#define TESTS_UNIT_PREREG_AMENDING_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "prereg/amend/access_level.h"
#include "prereg/lock/lock.h"
#include "prereg/program/program.h"

extern const char amending_program[]; /* stages train, score and other, in this order */

struct amending_world {
    char *folder;
    char *amendments;
    struct plan_program *program;
    struct lock *lock;
};

/* A folder with the program's lock, of a test; setup and teardown. */
int amending_world_make(void **state);
int amending_world_remove(void **state);

struct amending_judged {
    cJSON *changes;
    cJSON *refused;
};

/* The text instead of the world's program, at that level; a bit per stage that has begun. */
struct amending_judged amending_judge(const struct amending_world *w, const char *text,
                                      enum access_level level, uint64_t started);
void amending_judged_release(struct amending_judged *j);

/* The number-th amendment, of acc's metric from one value to another; the caller deletes it. */
cJSON *amending_amendment_of(const struct amending_world *w, int number, const char *previous,
                             const char *const values[2]);
/* The first, with these changes. */
cJSON *amending_amendment_with(const struct amending_world *w, const cJSON *changes,
                               enum access_level level);
void amending_put_head(cJSON *a); /* as its text has it now */
void amending_set_text(cJSON *a, const char *key, const char *value);
const char *amending_text_of(const cJSON *o, const char *key);
void amending_write_amendment(const struct amending_world *w, size_t number, const cJSON *a);

/* The amended lock is not read, and the message has the word. */
void amending_expect_refused(const struct amending_world *w, int code, const char *word);

#endif
