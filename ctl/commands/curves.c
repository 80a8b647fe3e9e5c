/* curves [CELL...]: the losses of trainings so far, a panel for each arm. Reads the attempts'
 * events in the state folder, without a daemon; stages that the plan seals are not drawn before
 * the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/layout/layout.h"
#include "base/xalloc.h"
#include "ctl/ctl.h"
#include "ctl/load.h"
#include "ctl/local_answers.h"
#include "ctl/text/curves_text.h"
#include "ctl/text/out.h"
#include "prereg/program/cell_name.h"

#define CURVE_NAME "loss"
#define ROWS       8
#define LABEL      14 /* columns of the axis and the edge */
#define COLUMNS    60

struct curve_drawing {
    const struct ctl_options *o;
    const struct plan_program *program;
    const char *folder;          /* of the program */
    struct curve_points *curves; /* of each cell */
    struct strbuf out;
    size_t n_drawn;
};

/* Whether this cell is to be drawn: arguments name a cell or some of its levels; without any all
 * are. */
static bool is_asked(const struct curve_drawing *d, size_t cell)
{
    const char *name = d->program->cells[cell].name;
    for (int i = 0; i < d->o->n_args; i++) {
        if (cell_name_has(name, d->o->args[i])) {
            return true;
        }
    }
    return d->o->n_args == 0;
}

/* Whether an argument names any cell or level of the program. */
static bool is_known(const struct plan_program *p, const char *asked)
{
    for (size_t c = 0; c < p->n_cells; c++) {
        if (cell_name_has(p->cells[c].name, asked)) {
            return true;
        }
    }
    return false;
}

/* Reads the curves of all requested cells of a stage, and widens the frame to hold them: panels
 * of one stage share their axes. */
static void read_stage(struct curve_drawing *d, const struct plan_stage *stage,
                       struct curve_frame *frame)
{
    const struct plan_program *p = d->program;
    for (size_t c = 0; c < p->n_cells; c++) {
        curve_points_release(&d->curves[c]);
        if (is_asked(d, c)) {
            char *path = layout_task(d->folder, p->cells[c].folder, stage->name);
            curve_points_read(&d->curves[c], path, CURVE_NAME);
            curve_frame_add(frame, &d->curves[c]);
            free(path);
        }
    }
}

/* One panel: the cells of a condition that have points, and the last value of each. */
static void draw_condition(struct curve_drawing *d, const char *stage, size_t condition,
                           const struct curve_frame *frame)
{
    const struct plan_program *p = d->program;
    struct curve_points *members = xcalloc(p->n_cells, sizeof(*members));
    size_t n = 0;
    for (size_t c = 0; c < p->n_cells; c++) {
        if (p->cells[c].condition == condition && d->curves[c].n > 0) {
            members[n++] = d->curves[c];
        }
    }
    if (n > 0) {
        out_line(&d->out, p->conditions[condition].name);
        strbuf_addf(&d->out, "  %s of %s, %zu %s", CURVE_NAME, stage, n, n == 1 ? "cell" : "cells");
        for (size_t i = 0; i < n; i++) {
            strbuf_addf(&d->out, "%s%.4g", i == 0 ? "; last " : ", ",
                        members[i].ys[members[i].n - 1]);
        }
        strbuf_addc(&d->out, '\n');
        curves_draw(&d->out, frame, members, n);
        d->n_drawn++;
    }
    free(members);
}

/* Every stage that is open: its curves are read once, then a panel for each condition. */
static void draw(struct curve_drawing *d, bool open)
{
    const struct plan_program *p = d->program;
    const struct term t = term_of_stdout();
    /* a narrow terminal still gets ten columns */
    const size_t wide = t.columns < LABEL + 10 ? LABEL + 10 : t.columns;
    size_t n_read = 0;
    for (size_t s = 0; s < p->n_stages; s++) {
        struct curve_frame frame = CURVE_FRAME_INIT;
        frame.columns = wide > LABEL + COLUMNS ? COLUMNS : wide - LABEL;
        frame.rows = ROWS;
        frame.utf8 = t.utf8;
        if (!open && program_stage_is_sealed(p, s)) {
            strbuf_addf(&d->out, "%s: sealed until the end\n", p->stages[s].name);
            continue;
        }
        read_stage(d, &p->stages[s], &frame);
        n_read++;
        for (size_t k = 0; k < p->n_conditions; k++) {
            draw_condition(d, p->stages[s].name, k, &frame);
        }
    }
    if (d->n_drawn == 0 && n_read > 0) {
        strbuf_adds(&d->out, "no points of a curve \"" CURVE_NAME "\" yet\n");
    }
}

/* Reads the program's copy in the state folder, checks the arguments against its cells, and
 * draws. */
static int draw_program(const struct ctl_options *o, const struct local_program *found,
                        struct err *err)
{
    struct plan_program *program = NULL;
    char *path = path_join(found->folder, LAYOUT_GRID);
    int rc = load_program(path, &program, err);
    free(path);
    for (int i = 0; i < o->n_args && rc == 0; i++) {
        if (!is_known(program, o->args[i])) {
            rc = err_set(err, ERR_NOT_FOUND, "%.100s: no such cell or arm; `preregctl cells`",
                         o->args[i]);
        }
    }
    if (rc == 0) {
        struct curve_drawing d = {
            .o = o, .program = program, .folder = found->folder, .out = STRBUF_INIT};
        d.curves = xcalloc(program->n_cells, sizeof(*d.curves));
        /* after the end, or after an unblinding, sealed stages are drawn as well */
        draw(&d, found->status.unsealed || found->status.unblinded);
        out_text(&d.out);
        for (size_t c = 0; c < program->n_cells; c++) {
            curve_points_release(&d.curves[c]);
        }
        free(d.curves);
        strbuf_release(&d.out);
    }
    program_free(program);
    return rc;
}

int cmd_curves(const struct ctl_options *o, enum exit_code *code, struct err *err)
{
    struct local_program found = {0};
    *code = EXIT_OK;
    int rc = local_program_find(o, o->program, &found, err);
    if (rc == 0) {
        rc = local_check_cells(found.folder, "there are no curves", err);
    }
    if (rc == 0) {
        rc = draw_program(o, &found, err);
    }
    local_program_release(&found);
    return rc;
}
