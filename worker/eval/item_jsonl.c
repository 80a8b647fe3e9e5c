/* JSONL items: the form is told by the keys of each line. */
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "worker/eval/item.h"
#include "worker/eval/pytext.h"

/* The key that only this form has. */
static const char *const marks[FORM_NR] = {
    [FORM_CHOICES] = "query",       [FORM_SCHEMA] = "context_options", [FORM_HELLASWAG] = "ctx_a",
    [FORM_WINOGRANDE] = "sentence", [FORM_QUESTION] = "question",
};

/* Strings of obj[key], at least two. */
static int take_options(struct arena *arena, const cJSON *obj, const char *key, struct item *it,
                        struct err *err)
{
    const cJSON *array = NULL;
    int rc = json_get_array(obj, key, &array, err);
    if (rc != 0)
        return rc;
    int n = cJSON_GetArraySize(array);
    if (n < 2 || n > ITEM_OPTIONS_MAX)
        return err_set(err, ERR_INVALID, "%s has %d members, not 2 to %d", key, n,
                       ITEM_OPTIONS_MAX);
    const char **texts = arena_array(arena, (size_t)n, sizeof(*texts));
    const cJSON *member = NULL;
    cJSON_ArrayForEach(member, array)
    {
        if (!cJSON_IsString(member))
            return err_set(err, ERR_INVALID, "%s[%zu] is not a string", key, it->n_options);
        texts[it->n_options++] = arena_strdup(arena, member->valuestring);
    }
    it->options = texts;
    return 0;
}

/* gold or label: a whole number, or one in a string as some files have it. */
static int take_gold(const cJSON *obj, const char *key, struct item *it, struct err *err)
{
    const cJSON *member = json_member(obj, key);
    int64_t gold = -1;
    int rc;
    if (cJSON_IsString(member))
        rc = text_to_int(member->valuestring, INT64_MIN, INT64_MAX, &gold, err);
    else
        rc = json_get_int(obj, key, -JSON_INT_MAX, JSON_INT_MAX, &gold, err);
    if (rc != 0)
        return err_wrap(err, "%s", key);
    if (gold < 0 || gold >= (int64_t)it->n_options)
        return err_set(err, ERR_INVALID, "%s is %lld, but there are %zu choices", key,
                       (long long)gold, it->n_options);
    it->gold = (size_t)gold;
    return 0;
}

static int take_choices(struct item_set *set, const struct task_def *def, const cJSON *obj,
                        struct item *it, struct err *err)
{
    const char *query = NULL;
    int rc = json_get_string(obj, "query", &query, err);
    if (rc != 0 || (rc = take_options(&set->arena, obj, "choices", it, err)) != 0 ||
        (rc = take_gold(obj, "gold", it, err)) != 0)
        return rc;
    if (def->query_end == NULL)
        it->context = arena_strdup(&set->arena, query);
    else
        it->context = arena_printf(&set->arena, "%.*s%s", (int)pytext_rstrip(query, strlen(query)),
                                   query, def->query_end);
    return 0;
}

static int take_schema(struct item_set *set, const cJSON *obj, struct item *it, struct err *err)
{
    const char *continuation = NULL;
    int rc = take_options(&set->arena, obj, "context_options", it, err);
    if (rc != 0 || (rc = json_get_string(obj, "continuation", &continuation, err)) != 0 ||
        (rc = take_gold(obj, "gold", it, err)) != 0)
        return rc;
    it->continuation = arena_strdup(&set->arena, continuation);
    return 0;
}

/* query = clean(activity_label + ": " + ctx_a + " " + capitalize(ctx_b)), choices = clean(ending)
 */
static int take_hellaswag(struct item_set *set, const cJSON *obj, struct item *it, struct err *err)
{
    const char *activity = NULL;
    const char *ctx_a = NULL;
    const char *ctx_b = NULL;
    int rc = json_get_string(obj, "activity_label", &activity, err);
    if (rc != 0 || (rc = json_get_string(obj, "ctx_a", &ctx_a, err)) != 0 ||
        (rc = json_get_string(obj, "ctx_b", &ctx_b, err)) != 0 ||
        (rc = take_options(&set->arena, obj, "endings", it, err)) != 0 ||
        (rc = take_gold(obj, "label", it, err)) != 0)
        return rc;
    struct strbuf raw = STRBUF_INIT;
    struct strbuf clean = STRBUF_INIT;
    strbuf_addf(&raw, "%s: %s ", activity, ctx_a);
    rc = pytext_capitalize(ctx_b, &raw, err);
    pytext_clean_hellaswag(raw.buf, &clean);
    it->context = arena_strndup(&set->arena, clean.buf, clean.len);
    const char **endings = arena_array(&set->arena, it->n_options, sizeof(*endings));
    for (size_t i = 0; i < it->n_options; i++) {
        strbuf_clear(&clean);
        pytext_clean_hellaswag(it->options[i], &clean);
        endings[i] = arena_strndup(&set->arena, clean.buf, clean.len);
    }
    it->options = endings;
    strbuf_release(&raw);
    strbuf_release(&clean);
    return rc;
}

/* contexts = sentence up to the first _ with either option, continuation = strip(what follows) */
static int take_winogrande(struct item_set *set, const cJSON *obj, struct item *it, struct err *err)
{
    const char *sentence = NULL;
    const char *answer = NULL;
    const char *option[2] = {NULL, NULL};
    int rc = json_get_string(obj, "sentence", &sentence, err);
    if (rc != 0 || (rc = json_get_string(obj, "option1", &option[0], err)) != 0 ||
        (rc = json_get_string(obj, "option2", &option[1], err)) != 0 ||
        (rc = json_get_string(obj, "answer", &answer, err)) != 0)
        return rc;
    const char *blank = strchr(sentence, '_');
    if (blank == NULL)
        return err_set(err, ERR_INVALID, "sentence has no _");
    if (strcmp(answer, "1") != 0 && strcmp(answer, "2") != 0)
        return err_set(err, ERR_INVALID, "answer is \"%s\", not \"1\" or \"2\"", answer);
    const char **contexts = arena_array(&set->arena, 2, sizeof(*contexts));
    for (int i = 0; i < 2; i++)
        contexts[i] =
            arena_printf(&set->arena, "%.*s%s", (int)(blank - sentence), sentence, option[i]);
    const char *rest = blank + 1;
    rest += pytext_lstrip(rest, strlen(rest));
    it->options = contexts;
    it->n_options = 2;
    it->continuation = arena_strndup(&set->arena, rest, pytext_rstrip(rest, strlen(rest)));
    it->gold = answer[0] == '2';
    return 0;
}

static int take_question(struct item_set *set, const cJSON *obj, struct item *it, struct err *err)
{
    const char *question = NULL;
    const char *answer = NULL;
    int rc = json_get_string(obj, "question", &question, err);
    if (rc != 0 || (rc = json_get_string(obj, "answer", &answer, err)) != 0)
        return rc;
    it->context = arena_printf(&set->arena, "Question: %s\nAnswer:", question);
    it->continuation = arena_strdup(&set->arena, answer);
    return 0;
}

static int find_form(const struct task_def *def, const cJSON *obj, enum item_form *form,
                     struct err *err)
{
    const char *expected = NULL;
    for (int f = 0; f < FORM_NR; f++) {
        if ((def->forms & 1u << f) == 0 || marks[f] == NULL)
            continue;
        *form = (enum item_form)f;
        expected = item_form_text(*form);
        if (json_member(obj, marks[f]) != NULL)
            return 0;
    }
    return err_set(err, ERR_INVALID, "is no item of %s, which has %s", def->name, expected);
}

static int take_line(struct item_set *set, const struct task_def *def, const char *text, size_t len,
                     unsigned line, struct err *err)
{
    cJSON *obj = NULL;
    int rc = json_parse(text, len, &obj, err);
    if (rc != 0)
        return rc;
    struct item *it = item_set_add(set);
    it->line = line;
    rc = find_form(def, obj, &it->form, err);
    if (rc == 0 && it->form == FORM_CHOICES)
        rc = take_choices(set, def, obj, it, err);
    else if (rc == 0 && it->form == FORM_SCHEMA)
        rc = take_schema(set, obj, it, err);
    else if (rc == 0 && it->form == FORM_HELLASWAG)
        rc = take_hellaswag(set, obj, it, err);
    else if (rc == 0 && it->form == FORM_WINOGRANDE)
        rc = take_winogrande(set, obj, it, err);
    else if (rc == 0)
        rc = take_question(set, obj, it, err);
    cJSON_Delete(obj);
    return rc;
}

int item_set_parse_jsonl(struct item_set *set, const struct task_def *def, const char *text,
                         size_t len, struct err *err)
{
    const size_t before = set->n;
    unsigned line = 0;
    for (size_t at = 0; at < len;) {
        const char *start = text + at;
        const char *feed = memchr(start, '\n', len - at);
        const size_t n = feed == NULL ? len - at : (size_t)(feed - start);
        at += n + 1;
        line++;
        if (pytext_lstrip(start, n) == n)
            continue;
        const size_t item = set->n - before + 1;
        int rc = take_line(set, def, start, n, line, err);
        if (rc != 0) {
            if (rc != ERR_OTHER) /* the data are bad, not the parameters or the machine */
                err->code = ERR_SYNTAX;
            return err_wrap(err, "line %u (item %zu)", line, item);
        }
    }
    if (set->n == before)
        return err_set(err, ERR_SYNTAX, "holds no items");
    item_set_end_group(set, "");
    return 0;
}

int item_set_read_jsonl(struct item_set *set, const struct task_def *def, const char *path,
                        struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    int rc = file_read(path, ITEM_FILE_MAX, &text, err);
    if (rc == 0 && (rc = item_set_parse_jsonl(set, def, text.buf, text.len, err)) != 0)
        err_wrap(err, "%s", path);
    strbuf_release(&text);
    return rc;
}
