/*
 * Reads the records of a suite: the files of its members, as far as they are there. A member
 * missing from the folder may be in the second folder (`more`); one missing from both is left out,
 * unless it was chosen by name. Groups are renamed after their members so that names stay unique in
 * the set.
 */
#include "base/files/file.h"
#include "base/xalloc.h"
#include "worker/eval/items/item_private.h"

/* The member's groups, from the first-th on, get names that no other member's have. */
static void name_groups(struct item_set *set, size_t first, const char *member)
{
    for (size_t g = first; g < set->n_groups; g++) {
        struct item_group *group = &set->groups[g];
        group->parent = arena_strdup(&set->arena, member);
        group->name = group->name[0] == '\0'
                          ? group->parent
                          : arena_printf(&set->arena, "%s/%s", member, group->name);
    }
}

/* From the folder, else from the second one. */
static int take_member(struct item_set *set, const struct task_spec *member,
                       const struct item_source *src, struct err *err)
{
    int rc = item_take_task(set, member, src, err);
    if (rc != ERR_NOT_FOUND || src->more == NULL)
        return rc;
    struct item_source more = *src;
    more.path = src->more;
    more.more = NULL;
    return item_take_task(set, member, &more, err);
}

static int take_suite(struct item_set *set, const struct task_spec *suite,
                      const struct item_source *src, struct err *err)
{
    const size_t n_before = set->n_groups;
    if (file_kind_at(src->path) != FILE_FOLDER)
        return err_set(err, ERR_NOT_FOUND, "%s: not a folder with the files of %s", src->path,
                       suite->name);
    for (size_t i = 0; i < suite->n_members; i++) {
        const size_t first = set->n_groups;
        int rc = take_member(set, suite->members[i], src, err);
        if (rc == ERR_NOT_FOUND && !suite->needs_members)
            continue;
        if (rc != 0)
            return err_wrap(err, "%s", suite->members[i]->name);
        name_groups(set, first, task_spec_member_name(suite, i));
    }
    if (set->n_groups == n_before)
        return err_set(err, ERR_NOT_FOUND, "%s: no file of any member of %s", src->path,
                       suite->name);
    return 0;
}

int item_set_read(struct item_set *set, const struct task_spec *spec, const struct item_source *src,
                  struct err *err)
{
    return spec->n_members > 0 ? take_suite(set, spec, src, err)
                               : item_take_task(set, spec, src, err);
}
