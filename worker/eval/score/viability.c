/*
 * Counts are checked once enough generations are done, or all of them in a shorter run. Repetition
 * is tested on bytes with every period up to a quarter of the text: the second half must equal
 * itself moved by the period. A few examples are kept as evidence, without scores.
 */
#include "worker/eval/score/viability.h"

#include "base/json/json.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "worker/eval/task/pytext.h"

#define EXAMPLE_BYTES 400
/* Under this a repetition proves nothing. */
#define REPEATS_MIN_BYTES 16

void viability_init(struct viability *v, const struct viability_rules *rules)
{
    *v = (struct viability){.rules = *rules, .examples = json_array()};
}

void viability_release(struct viability *v)
{
    cJSON_Delete(v->examples);
    *v = (struct viability){0};
}

bool viability_is_empty(const char *text)
{
    return pytext_lstrip(text, strlen(text)) == strlen(text);
}

/* Without a last character that max_tokens cut in half. */
static size_t whole_length(const char *text)
{
    static const char replacement[] = "\xef\xbf\xbd";
    const size_t n = sizeof(replacement) - 1;
    size_t len = strlen(text);
    if (len >= n && memcmp(text + len - n, replacement, n) == 0)
        len -= n;
    return len;
}

bool viability_repeats(const char *text)
{
    const size_t len = whole_length(text);
    if (len < REPEATS_MIN_BYTES)
        return false;
    for (size_t period = 1; period <= len / 4; period++) {
        size_t i = len;
        while (i > len / 2 && text[i - 1] == text[i - 1 - period])
            i--;
        if (i <= len / 2)
            return true;
    }
    return false;
}

/* Ended, not empty, and at least one filter matched. */
static bool is_answered(const struct item_outcome *o, const struct task_spec *spec)
{
    bool found = spec->n_filters == 0;
    for (size_t m = 0; m < spec->n_metrics; m++)
        found = found || (spec->metrics[m].filter != NULL &&
                          strcmp(o->verdicts[m].answer.buf, JUDGE_NO_MATCH) != 0);
    return o->ended && found && !viability_is_empty(o->text.buf);
}

/* At most VIABILITY_EXAMPLES, each cut at a whole character. */
static void add_example(struct viability *v, size_t index, const char *what, const char *text)
{
    if (cJSON_GetArraySize(v->examples) >= VIABILITY_EXAMPLES)
        return;
    const size_t len = strlen(text) < EXAMPLE_BYTES ? strlen(text) : EXAMPLE_BYTES;
    char *part = xstrndup(text, text_whole_chars(text, len));
    cJSON *example = json_object();
    json_put_int(example, "item", (int64_t)index);
    json_put_string(example, "what", what);
    json_put_string(example, "text", part);
    json_push(v->examples, example);
    free(part);
}

void viability_add(struct viability *v, const struct judge *j, size_t index,
                   const struct item_outcome *o)
{
    if (v->n >= (size_t)v->rules.items || j->set->items[index].kind != TASK_GENERATE ||
        o->fault[0] != '\0')
        return;
    v->n++;
    const bool answered = is_answered(o, item_spec(j->set, index));
    v->n_answered += answered;
    if (viability_is_empty(o->text.buf)) {
        v->n_empty++;
        add_example(v, index, "empty", o->text.buf);
    } else if (!o->ended && viability_repeats(o->text.buf)) {
        v->n_repeating++;
        add_example(v, index, "endless repetition", o->text.buf);
    } else if (!answered) {
        add_example(v, index, o->ended ? "no answer in it" : "no end", o->text.buf);
    }
}

int viability_check(const struct viability *v, size_t n_done, size_t n_items, struct err *err)
{
    const size_t wanted = (size_t)v->rules.items;
    if (v->n == 0 || (v->n < wanted && n_done < n_items))
        return 0;
    if ((double)(v->n_empty + v->n_repeating) > v->rules.degenerate * (double)v->n)
        return err_set(err, ERR_REFUSED,
                       "cannot be measured: of the first %zu generations %zu are empty and %zu "
                       "endless repetition, over the %g allowed; %s has examples",
                       v->n, v->n_empty, v->n_repeating, v->rules.degenerate, VIABILITY_FILE);
    if (v->n_answered >= (size_t)v->rules.least)
        return 0;
    return err_set(err, ERR_REFUSED,
                   "cannot be measured: of the first %zu generations fewer than %d came to an end "
                   "with an answer in them; this model does not generate answers",
                   v->n, v->rules.least);
}

int viability_write(const struct viability *v, struct err *err)
{
    cJSON *json = json_object();
    json_put_int(json, "looked_at", (int64_t)v->n);
    json_put_int(json, "empty", (int64_t)v->n_empty);
    json_put_int(json, "endless_repetition", (int64_t)v->n_repeating);
    json_put_number(json, "allowed_share", v->rules.degenerate);
    json_put_int(json, "answered", (int64_t)v->n_answered);
    json_put_int(json, "least_answered", v->rules.least);
    json_put(json, "examples", json_copy(v->examples));
    int rc = json_write_file(VIABILITY_FILE, json, 0644, err);
    cJSON_Delete(json);
    return rc;
}
