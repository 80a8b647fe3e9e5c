/*
 * The table of the kinds of verdict, and the only places where a text becomes a kind or a kind
 * becomes a text or an exit code.
 */
#include "prereg/program/verdict_kind.h"

#include <string.h>

static const struct {
    const char *word; /* in the outcome's place; NULL: the outcome's name */
    const char *name;
    enum exit_code exit;
} KINDS[] = {
    [VERDICT_BOUND] = {NULL, "bound", EXIT_OK},
    [VERDICT_INDETERMINATE] = {"INDETERMINATE", "indeterminate", EXIT_INDETERMINATE},
    [VERDICT_VOID] = {"VOID", "void", EXIT_VOID},
};

enum verdict_kind verdict_kind_of(const char *outcome)
{
    for (enum verdict_kind kind = VERDICT_INDETERMINATE; kind <= VERDICT_VOID; kind++) {
        if (strcmp(outcome, KINDS[kind].word) == 0) {
            return kind;
        }
    }
    return VERDICT_BOUND;
}

const char *verdict_kind_word(enum verdict_kind kind)
{
    return KINDS[kind].word;
}

const char *verdict_kind_name(enum verdict_kind kind)
{
    return KINDS[kind].name;
}

const char *verdict_kind_word_of_name(const char *name)
{
    for (enum verdict_kind kind = VERDICT_INDETERMINATE; kind <= VERDICT_VOID; kind++) {
        if (strcmp(name, KINDS[kind].name) == 0) {
            return KINDS[kind].word;
        }
    }
    return "?";
}

enum exit_code verdict_kind_exit(enum verdict_kind kind)
{
    return KINDS[kind].exit;
}

void verdict_kind_put(cJSON *answer, const char *outcome)
{
    const enum verdict_kind kind = verdict_kind_of(outcome);
    json_put_string(answer, "kind", KINDS[kind].name);
    json_put_string(answer, "outcome", kind == VERDICT_BOUND ? outcome : NULL);
    json_put_int(answer, "exit_code", (int64_t)KINDS[kind].exit);
}
