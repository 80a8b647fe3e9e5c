/*
 * Builds the rows in three levels at most: the whole, parents, groups. Rows are appended depth
 * first, so parents precede their members and a row's members are found by comparing `parent`.
 * Names and aliases are composed from the labels as the harness composes them; counts of asked
 * items add up from the leaves.
 */
#include "worker/eval/harness/harness_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"

/* Appends a row; the root takes the task's name, others the task's name and their label. */
static struct harness_row *add_row(struct harness_tree *tree, size_t parent, const char *task,
                                   const char *label)
{
    struct harness_row *row = &tree->rows[tree->n++];
    *row = (struct harness_row){.label = label, .group = HARNESS_NONE, .parent = parent};
    if (label == NULL) {
        row->name = row->alias = task;
        return row;
    }
    row->name = arena_printf(&tree->arena, "%s_%s", task, label);
    row->alias = arena_printf(&tree->arena, "%s- %s",
                              tree->rows[parent].parent == HARNESS_NONE ? " " : "  ", label);
    return row;
}

/* How many items of each group are asked. */
static size_t *count_asked(struct arena *arena, const struct benchmark *bench)
{
    size_t *asked = arena_array(arena, bench->set.n_groups, sizeof(*asked));
    for (size_t i = 0; i < bench->n_selected; i++)
        asked[bench->set.items[bench->selected[i]].group]++;
    return asked;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int by_row_name(const void *a, const void *b)
{
    return strcmp((*(const struct harness_row *const *)a)->name,
                  (*(const struct harness_row *const *)b)->name);
}

/* The rows directly under the whole: parents with an asked group, and asked groups without parent,
 * each once, by name. */
static size_t list_children(const struct benchmark *bench, const size_t *asked, const char **names)
{
    size_t n = 0;
    for (size_t g = 0; g < bench->set.n_groups; g++) {
        const struct item_group *group = &bench->set.groups[g];
        if (asked[g] > 0)
            names[n++] = group->parent == NULL ? group->name : group->parent;
    }
    qsort(names, n, sizeof(*names), by_text);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || strcmp(names[i], names[i - 1]) != 0)
            names[kept++] = names[i];
    }
    return kept;
}

/* Makes the row a task and adds its items to every row above it. */
static void add_leaf(struct harness_tree *tree, struct harness_row *row,
                     const struct benchmark *bench, size_t group, size_t asked)
{
    row->group = group;
    row->spec = bench->set.groups[group].spec;
    for (size_t at = (size_t)(row - tree->rows); at != HARNESS_NONE; at = tree->rows[at].parent)
        tree->rows[at].asked += asked;
}

/* The asked groups that hang on the parent called `name`, or the one of that name without parent.
 */
static void add_child(struct harness_tree *tree, const struct benchmark *bench, const size_t *asked,
                      const char *name)
{
    const char *task = tree->rows[0].name;
    size_t under = 0;
    for (size_t g = 0; g < bench->set.n_groups; g++) {
        const struct item_group *group = &bench->set.groups[g];
        const char *where = group->parent == NULL ? group->name : group->parent;
        if (asked[g] == 0 || strcmp(where, name) != 0)
            continue;
        if (group->parent != NULL && under == 0) {
            under = tree->n;
            add_row(tree, 0, task, name)->spec = group->spec;
        }
        add_leaf(tree, add_row(tree, under, task, group->name), bench, g, asked[g]);
    }
}

void harness_tree_init(struct harness_tree *tree, const struct benchmark *bench, const char *task)
{
    *tree = (struct harness_tree){0};
    arena_init(&tree->arena);
    const size_t n_groups = bench->set.n_groups;
    const size_t *asked = count_asked(&tree->arena, bench);
    tree->rows = arena_array(&tree->arena, 2 * n_groups + 1, sizeof(*tree->rows));
    struct harness_row *whole = add_row(tree, HARNESS_NONE, task, NULL);
    if (n_groups == 1 && bench->set.groups[0].name[0] == '\0') {
        add_leaf(tree, whole, bench, 0, asked[0]);
        return;
    }
    whole->spec = bench->set.groups[0].spec;
    const char **names = arena_array(&tree->arena, n_groups, sizeof(*names));
    const size_t n = list_children(bench, asked, names);
    for (size_t i = 0; i < n; i++)
        add_child(tree, bench, asked, names[i]);
}

void harness_tree_release(struct harness_tree *tree)
{
    arena_release(&tree->arena);
    *tree = (struct harness_tree){0};
}

const struct harness_row **harness_tree_sorted(const struct harness_tree *tree)
{
    const struct harness_row **sorted = xcalloc(tree->n, sizeof(*sorted));
    for (size_t i = 0; i < tree->n; i++)
        sorted[i] = &tree->rows[i];
    qsort(sorted, tree->n, sizeof(*sorted), by_row_name);
    return sorted;
}
