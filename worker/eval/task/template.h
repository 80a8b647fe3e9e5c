/*
 * The templates of a task description (docs/tasks.md): text with columns of a record in it.
 *
 *   Question: {question|strip}\nA. {choices[0]}     text and columns
 *   {choices.text}                                  a template that is one column alone keeps its
 *                                                   kind: text, whole number or list of texts
 *   {answerKey|index(choices.label)}                filters follow by |, with arguments
 *   {{ and }}                                       braces
 *
 * A path goes through objects by name and through lists by [number]; a name after a list is taken
 * of every member. {@group} is the name of the item's group. Filters of text apply to every member
 * of a list. A template is immutable and lives in the arena it was compiled in.
 */
#ifndef WORKER_EVAL_TASK_TEMPLATE_H
#define WORKER_EVAL_TASK_TEMPLATE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

#define TEMPLATE_LIST_MAX 256
#define TEMPLATE_GROUP    "@group"

struct template;

enum value_kind { VALUE_TEXT, VALUE_NUMBER, VALUE_LIST };

struct value {
    enum value_kind kind;
    const char *text;
    int64_t number;
    const char *const *list;
    size_t n;
};

/* What a template is filled from; what it makes lives in the arena or in the record. */
struct template_input {
    const cJSON *record;
    const char *group;
    struct arena *arena;
};

/* ERR_SYNTAX names the column of the fault in the source. */
int template_compile(struct arena *arena, const char *source, const struct template **out,
                     struct err *err) MUST_CHECK;
/* Whether it reads no column at all. */
bool template_is_constant(const struct template *t);
/* For messages: the source of a template that is one column alone with another filter appended;
 * NULL for any other template. */
const char *template_with_filter(struct arena *arena, const struct template *t, const char *filter);
/* For messages: the column of a template that is one column alone, without its filters; else NULL.
 */
const char *template_path(struct arena *arena, const struct template *t);
/* Calls `column` for each column the template reads, without {@group}. */
void template_each_column(const struct template *t, void (*column)(void *self, const char *name),
                          void *self);

/* ERR_SYNTAX: the record does not hold what the template asks for. */
int template_fill(const struct template *t, const struct template_input *in, struct value *out,
                  struct err *err) MUST_CHECK;
/* The same as text; numbers in decimal, a list is an error. */
int template_fill_text(const struct template *t, const struct template_input *in, const char **out,
                       struct err *err) MUST_CHECK;

#endif
