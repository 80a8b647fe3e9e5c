/*
 * Finds a task's records: in a file, in a folder with a file for the split, or in one with a file
 * for each group. Names are patterns of the task description with <split> and <group>; the first
 * pattern that matches anything is used. A folder is pinned as one entry of data, so nothing
 * outside it may be read, neither by a name with ".." nor by a link.
 */
#include "base/files/file.h"
#include "base/xalloc.h"
#include "worker/eval/items/item_private.h"
#include "worker/eval/task/spec_private.h"

#define MISSING_SHOWN 3

/* Closes a group that has the items up to the end-th. */
static void end_group(struct item_reader *r, const char *description, size_t end)
{
    struct item_set *set = r->set;
    const size_t parent = task_spec_parent_of(r->spec, r->group);
    set->groups = xreallocarray(set->groups, set->n_groups + 1, sizeof(*set->groups));
    struct item_group *group = &set->groups[set->n_groups];
    const struct item_group *last = set->n_groups == 0 ? NULL : group - 1;
    const size_t first = last == NULL ? 0 : last->first + last->n;
    *group = (struct item_group){
        .spec = r->spec,
        .name = arena_strdup(&set->arena, r->group),
        .description = description,
        .parent = parent == SIZE_MAX ? NULL : r->spec->parents[parent].name,
        .first = first,
        .n = end - first,
    };
    for (size_t i = first; i < end; i++)
        set->items[i].group = set->n_groups;
    set->n_groups++;
}

static const char *category_of(const struct item *it)
{
    return it->category == NULL ? "" : it->category;
}

static int compare_categories(const void *a, const void *b)
{
    const struct item *x = a;
    const struct item *y = b;
    const int order = strcmp(category_of(x), category_of(y));
    return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

/* llm-foundry makes each category of records a data set of its own, by name; without categories
 * there is one. */
static void end_categories(struct item_reader *r, const char *description, size_t first)
{
    struct item_set *set = r->set;
    qsort(set->items + first, set->n - first, sizeof(*set->items), compare_categories);
    for (size_t i = first; i < set->n; i++) {
        r->group = category_of(&set->items[i]);
        if (i + 1 == set->n || strcmp(category_of(&set->items[i + 1]), r->group) != 0)
            end_group(r, description, i + 1);
    }
}

/* Closes the file's items as one group, or as one per category. */
static void end_groups(struct item_reader *r, const char *description, size_t first)
{
    if (r->spec->style == STYLE_DCLM)
        end_categories(r, description, first);
    else
        end_group(r, description, r->set->n);
}

/* The description filled in, with the line feeds at its end that the rules ask for. */
static int describe(struct item_reader *r, const struct item_source *src, const char **out,
                    struct err *err)
{
    const struct template_input in = {NULL, r->group, &r->set->arena};
    struct strbuf text = STRBUF_INIT;
    const char *filled = "";
    int rc = 0;
    if (r->spec->description != NULL)
        rc = template_fill_text(r->spec->description, &in, &filled, err);
    strbuf_adds(&text, filled);
    if (src->drops_last_newline && src->description_newlines == 0 && text.len > 0 &&
        text.buf[text.len - 1] == '\n')
        text.buf[--text.len] = '\0';
    if (src->description_newlines > 0 && text.len > 0) {
        while (text.len > 0 && text.buf[text.len - 1] == '\n')
            text.buf[--text.len] = '\0';
        for (int i = 0; i < src->description_newlines; i++)
            strbuf_addc(&text, '\n');
    }
    *out = arena_strndup(&r->set->arena, text.buf, text.len);
    strbuf_release(&text);
    return rc == 0 ? 0 : err_wrap(err, "description");
}

static bool ends_in(const char *name, const char *end)
{
    const size_t n = strlen(name);
    const size_t n_end = strlen(end);
    return n >= n_end && strcmp(name + n - n_end, end) == 0;
}

/* Strips a byte order mark and reads by the ending of the name. */
static int take_text(struct item_reader *r, const char *name, const char *text, size_t len,
                     struct err *err)
{
    static const char mark[] = "\xef\xbb\xbf"; /* what some editors put before UTF-8 */
    const size_t n_mark = len >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0;
    const size_t before = r->set->n;
    text += n_mark;
    len -= n_mark;
    int rc = ends_in(name, ".csv") ? item_take_csv(r, text, len, err)
                                   : item_take_jsonl(r, text, len, err);
    if (rc == 0 && r->set->n == before)
        rc = err_set(err, ERR_SYNTAX, "holds no items");
    return rc;
}

/* One file as one group, or as its categories. */
static int take_file(struct item_reader *r, const char *path, const struct item_source *src,
                     struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    const char *description = NULL;
    const size_t first = r->set->n;
    int rc = file_read(path, ITEM_FILE_MAX, &text, err);
    if (rc == 0 && (rc = take_text(r, path, text.buf, text.len, err)) != 0)
        err_wrap(err, "%s", path);
    strbuf_release(&text);
    if (rc == 0)
        rc = describe(r, src, &description, err);
    if (rc == 0)
        end_groups(r, description, first);
    return rc;
}

/* "<split>/<group>_<split>.csv" with the split in its places. */
static char *with_split(const char *pattern, const char *split)
{
    struct strbuf out = STRBUF_INIT;
    const size_t n = strlen(SPEC_MARK_SPLIT);
    while (*pattern != '\0') {
        if (strncmp(pattern, SPEC_MARK_SPLIT, n) == 0) {
            strbuf_adds(&out, split);
            pattern += n;
        } else {
            strbuf_addc(&out, *pattern++);
        }
    }
    return strbuf_detach(&out);
}

/* Data are pinned as one entry, so nothing beside it is read: neither by name nor by a link.
 * `pattern` is a file of the folder, the split filled in; what is not there is not refused. */
static int hold_inside(const struct item_source *src, const char *pattern, struct err *err)
{
    if (!path_stays_inside(pattern))
        return err_set(err, ERR_SYNTAX, "split '%.60s': '%.80s' leaves the folder %s", src->split,
                       pattern, src->path);
    char *path = path_join(src->path, pattern);
    char *root = realpath(src->path, NULL);
    char *real = realpath(path, NULL);
    const size_t n = root == NULL ? 0 : strlen(root);
    int rc = 0;
    if (root != NULL && real != NULL && n > 1 && (strncmp(real, root, n) != 0 || real[n] != '/'))
        rc = err_set(err, ERR_SYNTAX, "%s: a link that leads out of %s; copy the file into it",
                     path, src->path);
    free(path);
    free(root);
    free(real);
    return rc;
}

/* Matches a file name against the pattern and extracts the text in place of <group>. */
static bool match_group(const char *name, const char *pattern, struct strbuf *group)
{
    const char *mark = strstr(pattern, SPEC_MARK_GROUP);
    const size_t n_head = (size_t)(mark - pattern);
    const char *tail = mark + strlen(SPEC_MARK_GROUP);
    const size_t n = strlen(name);
    if (n <= n_head + strlen(tail) || strncmp(name, pattern, n_head) != 0 || !ends_in(name, tail))
        return false;
    strbuf_clear(group);
    strbuf_add(group, name + n_head, n - n_head - strlen(tail));
    return true;
}

/* The groups that should be there and are not. */
struct missing {
    size_t n_wanted;
    size_t n;
    struct strbuf first; /* a few of their names */
};

/* Adds to m the wanted groups that are not among the set's groups from the first-th on. */
static void look_for(const struct item_set *set, size_t first, const char *const *wanted, size_t n,
                     struct missing *m)
{
    m->n_wanted += n;
    for (size_t i = 0; i < n; i++) {
        size_t g = first;
        while (g < set->n_groups && strcmp(set->groups[g].name, wanted[i]) != 0)
            g++;
        if (g < set->n_groups)
            continue;
        if (m->n < MISSING_SHOWN)
            strbuf_addf(&m->first, "%s%s", m->n == 0 ? "" : ", ", wanted[i]);
        m->n++;
    }
}

/* A task that lists its groups is not scored over a part of them unless the part was chosen, and
 * then all of the part is there. */
static int check_whole(const struct item_reader *r, size_t first, struct err *err)
{
    const struct task_spec *spec = r->spec;
    struct missing m = {.first = STRBUF_INIT};
    int rc = 0;
    if (spec->n_chosen > 0)
        look_for(r->set, first, spec->chosen, spec->n_chosen, &m);
    for (size_t i = 0; i < spec->n_parents && spec->n_chosen == 0; i++)
        look_for(r->set, first, spec->parents[i].members, spec->parents[i].n_members, &m);
    if (m.n > 0)
        rc = err_set(err, ERR_SYNTAX, "%zu of %zu groups of %s are missing: %s%s%s", m.n,
                     m.n_wanted, spec->name, m.first.buf, m.n > MISSING_SHOWN ? ", ..." : "",
                     spec->n_chosen > 0 ? "" : "; the parameter groups chooses some");
    strbuf_release(&m.first);
    return rc;
}

/* Reads the file of one group, unless only others were chosen. */
static int take_group(struct item_reader *r, const char *path, const struct item_source *src,
                      struct err *err)
{
    int rc = task_spec_check_group(r->spec, r->group, err);
    if (rc != 0)
        return err_wrap(err, "%s", path);
    return task_spec_takes_group(r->spec, r->group) ? take_file(r, path, src, err) : 0;
}

/* Every file of the folder that the pattern fits, by name; *found says whether any did. */
static int take_groups(struct item_reader *r, const char *pattern, const struct item_source *src,
                       bool *found, struct err *err)
{
    char *folder_pattern = path_folder(pattern);
    char *folder = path_join(src->path, folder_pattern);
    const size_t first = r->set->n_groups;
    struct name_list names = {0};
    struct strbuf group = STRBUF_INIT;
    int rc = 0;
    if (file_kind_at(folder) == FILE_FOLDER)
        rc = dir_list(folder, &names, err);
    for (size_t i = 0; rc == 0 && i < names.n; i++) {
        if (!match_group(names.names[i], path_name(pattern), &group))
            continue;
        char *name = path_join(folder_pattern, names.names[i]);
        char *file = path_join(folder, names.names[i]);
        *found = true;
        r->group = group.buf;
        rc = hold_inside(src, name, err);
        if (rc == 0)
            rc = take_group(r, file, src, err);
        free(file);
        free(name);
    }
    if (rc == 0 && *found && !src->may_lack_groups && (rc = check_whole(r, first, err)) != 0)
        err_wrap(err, "%s", folder);
    name_list_release(&names);
    strbuf_release(&group);
    free(folder);
    free(folder_pattern);
    return rc;
}

/* Tries the task's patterns in order; the first one with a file wins. */
static int take_folder(struct item_reader *r, const struct item_source *src, struct err *err)
{
    const bool groups = task_spec_has_groups(r->spec);
    struct strbuf tried = STRBUF_INIT;
    bool found = false;
    int rc = 0;
    for (size_t i = 0; rc == 0 && !found && i < r->spec->n_files; i++) {
        char *pattern = with_split(r->spec->files[i], src->split);
        char *file = path_join(src->path, pattern);
        strbuf_addf(&tried, "%s%s", i == 0 ? "" : ", ", pattern);
        rc = hold_inside(src, pattern, err);
        if (rc != 0) {
            found = true;
        } else if (groups) {
            rc = take_groups(r, pattern, src, &found, err);
        } else if (file_kind_at(file) == FILE_REGULAR) {
            found = true;
            rc = take_file(r, file, src, err);
        }
        free(file);
        free(pattern);
    }
    if (rc == 0 && !found)
        rc = err_set(err, ERR_NOT_FOUND, "%s: no %s in it", src->path, tried.buf);
    strbuf_release(&tried);
    return rc;
}

int item_take_task(struct item_set *set, const struct task_spec *spec,
                   const struct item_source *src, struct err *err)
{
    struct item_reader r = {set, spec, ""};
    if (file_kind_at(src->path) == FILE_FOLDER)
        return take_folder(&r, src, err);
    if (task_spec_has_groups(spec))
        return err_set(err, ERR_NOT_FOUND, "%s: not a folder with %s", src->path, spec->files[0]);
    return take_file(&r, src->path, src, err);
}

int item_set_parse_jsonl(struct item_set *set, const struct task_spec *spec, const char *text,
                         size_t len, struct err *err)
{
    const struct item_source src = {.path = ""};
    struct item_reader r = {set, spec, ""};
    const char *description = NULL;
    const size_t first = set->n;
    int rc = take_text(&r, ".jsonl", text, len, err);
    if (rc == 0)
        rc = describe(&r, &src, &description, err);
    if (rc == 0)
        end_groups(&r, description, first);
    return rc;
}
