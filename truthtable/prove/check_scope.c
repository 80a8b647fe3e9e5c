/*
 * Holds [scope] against what is held fixed: each column that differs between the arms of a contrast
 * could explain the outcome, so it is either admitted as a confound or reported. A column counts as
 * equal within the same 1 % as in the table. Confounds without a column are words that nothing here
 * can check.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "truthtable/prove/check_parts.h"

/* FIXED_NR when there is no such column. */
static size_t find_column(const char *key)
{
    size_t column = 0;
    while (column < FIXED_NR && strcmp(fixed_column_key((enum fixed_column)column), key) != 0) {
        column++;
    }
    return column;
}

/* Marks the columns that [scope] names. */
static void mark_declared(struct check_report *r, struct diag *diag)
{
    const struct plan_scope *scope = &r->program->scope;
    for (size_t i = 0; i < scope->n_confounds; i++) {
        const struct plan_confound *c = &scope->confounds[i];
        const size_t column = c->column == NULL ? FIXED_NR : find_column(c->column);
        if (column < FIXED_NR) {
            r->confounds[column].declared = true;
            continue;
        }
        if (c->column != NULL) {
            diag_add(diag, DIAG_ERROR, c->place.line, c->place.column,
                     "scope.confounds: \"%.60s\" is not a column of what is held fixed: "
                     "params_total, params_active, active_ffn, tokens, tokens_per_total, "
                     "tokens_per_active, tokens_per_expert, flops_per_token, steps, passes, "
                     "unique_tokens_per_expert; leave `column` out for a confound that none of "
                     "them shows",
                     c->column);
        }
    }
}

/* Says where and how much a column differs that [scope] does not name. */
static void warn_undeclared(const struct check_report *r, size_t column, struct diag *diag)
{
    const struct fixed_difference *d = &r->differences[column];
    const struct place at = r->program->scope.place;
    char size[32] = "";
    if (isfinite(d->ratio)) {
        (void)snprintf(size, sizeof(size), " (x%.3g)", d->ratio);
    }
    diag_add(diag, DIAG_WARNING, at.line, at.column,
             "scope.confounds: %s differs between the arms of %s%s and is not declared: add "
             "{ column = \"%s\", text = \"...\" }",
             fixed_column_name((enum fixed_column)column), r->program->contrasts[d->contrast].name,
             size, fixed_column_key((enum fixed_column)column));
}

/* Where experts have different shares of all tokens, they have different shares of the unique ones:
 * one admission is enough. */
static bool is_implied(const struct check_report *r, size_t column)
{
    return column == FIXED_UNIQUE_TOKENS_PER_EXPERT &&
           r->confounds[FIXED_TOKENS_PER_EXPERT].declared;
}

void check_scope(struct check_report *r, struct diag *diag)
{
    const struct plan_scope *scope = &r->program->scope;
    if (!scope->declared) {
        return;
    }
    mark_declared(r, diag);
    for (size_t column = 0; column < FIXED_NR; column++) {
        struct confound_proof *c = &r->confounds[column];
        const struct fixed_difference *d = &r->differences[column];
        c->undeclared = d->differs && !c->declared && !is_implied(r, column);
        c->idle = c->declared && !d->differs && !d->unknown;
        if (c->undeclared) {
            warn_undeclared(r, column, diag);
        } else if (c->idle) {
            diag_add(diag, DIAG_NOTE, scope->place.line, scope->place.column,
                     "scope.confounds: %s is equal between the arms of every contrast",
                     fixed_column_name((enum fixed_column)column));
        }
    }
}
