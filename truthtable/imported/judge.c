/*
 * Recomputes the metrics of one samples line from its answers, as lm-evaluation-harness computes
 * them: the choice with the highest log-likelihood, plain or per character; whether a single
 * continuation was greedy; rolling log-likelihoods; exact matches of generated text. Versions
 * differ in how they write requests and targets, so each function accepts the known shapes and
 * gives up on others. Giving up claims nothing; only a definite contradiction is an error.
 */
#include "truthtable/imported/judge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json/json.h"
#include "base/text.h"

#define CHOICES_MAX 1024

/* A number as any version wrote it. */
bool judge_number(const cJSON *v, double *out)
{
    struct err ignored;
    if (cJSON_IsNumber(v)) {
        *out = v->valuedouble;
        return true;
    }
    if (cJSON_IsBool(v)) {
        *out = cJSON_IsTrue(v) ? 1 : 0;
        return true;
    }
    if (cJSON_IsNull(v)) {
        *out = (double)NAN;
        return true;
    }
    if (!cJSON_IsString(v)) {
        return false;
    }
    const char *text = v->valuestring;
    if (strcmp(text, "nan") == 0 || strcmp(text, "inf") == 0 || strcmp(text, "-inf") == 0) {
        *out = text[0] == 'n' ? (double)NAN : text[0] == '-' ? -(double)INFINITY : (double)INFINITY;
        return true;
    }
    return text_to_double(text, out, &ignored) == 0;
}

/* ---- the requests of a line ---- */

/* Argument `arg` of request `i`: arguments.gen_args_I.arg_J, before 0.4.3 arguments[I][J]. */
static const cJSON *argument(const cJSON *line, int i, int arg)
{
    const cJSON *all = json_member(line, "arguments");
    char key[32];
    if (cJSON_IsArray(all)) {
        return cJSON_GetArrayItem(cJSON_GetArrayItem(all, i), arg);
    }
    (void)snprintf(key, sizeof(key), "gen_args_%d", i);
    const cJSON *request = json_member(all, key);
    (void)snprintf(key, sizeof(key), "arg_%d", arg);
    return json_member(request, key);
}

/* The argument, if it is a text. */
static const char *argument_text(const cJSON *line, int i, int arg)
{
    const cJSON *v = argument(line, i, arg);
    return cJSON_IsString(v) ? v->valuestring : NULL;
}

/* For the prompt's hash. */
const char *judge_prompt(const cJSON *line)
{
    return argument_text(line, 0, 0);
}

/* A log-likelihood answer is [ll, greedy]. */
static bool answer_pair(const cJSON *v, double *ll, bool *greedy)
{
    double g = 0;
    if (!cJSON_IsArray(v) || cJSON_GetArraySize(v) != 2 || !judge_number(v->child, ll)) {
        return false;
    }
    const cJSON *second = v->child->next;
    /* Versions that wrote everything as text have "True" and "False". */
    if (cJSON_IsString(second)) {
        *greedy = strcmp(second->valuestring, "True") == 0;
        return *greedy || strcmp(second->valuestring, "False") == 0;
    }
    bool ok = judge_number(second, &g);
    *greedy = g != 0;
    return ok;
}

struct choices {
    double ll[CHOICES_MAX];
    const char *text[CHOICES_MAX]; /* without the delimiter; NULL: not known */
    int n;
    bool many_contexts; /* one continuation after several contexts */
};

/* What upstream puts between context and choice: a space by default. */
static const char *delimiter_of(const cJSON *config)
{
    const cJSON *v = json_member(config, "target_delimiter");
    return cJSON_IsString(v) ? v->valuestring : " ";
}

/* The answers of a multiple-choice line with their texts. False if the line has another shape. */
static bool take_choices(const cJSON *line, const cJSON *config, struct choices *c)
{
    const cJSON *answers = json_member(line, "filtered_resps");
    const char *delimiter = delimiter_of(config);
    const size_t skip = strlen(delimiter);
    bool greedy;
    c->n = 0;
    c->many_contexts = true;
    for (const cJSON *v = cJSON_IsArray(answers) ? answers->child : NULL; v != NULL; v = v->next) {
        if (c->n == CHOICES_MAX || !answer_pair(v, &c->ll[c->n], &greedy)) {
            return false;
        }
        const char *text = argument_text(line, c->n, 1);
        c->text[c->n] = text != NULL && strncmp(text, delimiter, skip) == 0 ? text + skip : NULL;
        /* Equal continuations: the contexts are the choices, as in winogrande. */
        c->many_contexts = c->many_contexts && c->text[c->n] != NULL && c->text[0] != NULL &&
                           strcmp(c->text[0], c->text[c->n]) == 0;
        c->n++;
    }
    return c->n >= 2;
}

/* As numpy's argmax: the first of equals, and NaN before everything. */
static int argmax(const double *xs, int n)
{
    int best = 0;
    for (int i = 0; i < n; i++) {
        if (isnan(xs[i])) {
            return i;
        }
        best = xs[i] > xs[best] ? i : best;
    }
    return best;
}

/* The length that acc_norm divides by: characters, not bytes. A malformed byte counts as one. */
static size_t code_points(const char *s)
{
    size_t n = 0;
    size_t len = strlen(s);
    while (len > 0) {
        size_t step = text_utf8_next(s, len, NULL);
        step = step == 0 ? 1 : step;
        s += step;
        len -= step;
        n++;
    }
    return n;
}

/* -1 when a choice's text is not known or empty. */
static int argmax_normalised(const struct choices *c)
{
    double xs[CHOICES_MAX];
    for (int i = 0; i < c->n; i++) {
        size_t n = c->text[i] == NULL ? 0 : code_points(c->text[i]);
        if (n == 0) {
            return -1;
        }
        xs[i] = c->ll[i] / (double)n;
    }
    return argmax(xs, c->n);
}

/* A text that is an integer and nothing else. */
static bool whole_text(const char *text, int64_t *out)
{
    struct err ignored;
    return text_to_int(text, -1000000, 1000000, out, &ignored) == 0;
}

/* winogrande: the target is the shared ending, the gold context is in the document. */
static bool is_gold_context(const cJSON *line, int pred, bool *decided)
{
    const cJSON *answer = json_member(json_member(line, "doc"), "answer");
    int64_t one_based = 0;
    *decided = json_member(json_member(line, "doc"), "option1") != NULL && cJSON_IsString(answer) &&
               whole_text(answer->valuestring, &one_based);
    return *decided && pred == one_based - 1;
}

/* Whether `pred` is right under a reading of the target: *could_be is the set of answers (bit 0:
 * wrong, bit 1: right). A target that is digits may be an index or the text of a choice. */
static unsigned could_be(const cJSON *line, const struct choices *c, int pred)
{
    const cJSON *target = json_member(line, "target");
    unsigned set = 0;
    int64_t index = 0;
    if (c->many_contexts) {
        bool decided = false;
        bool right = is_gold_context(line, pred, &decided);
        return !decided ? 0 : right ? 2 : 1;
    }
    if (cJSON_IsNumber(target)) {
        return target->valuedouble == pred ? 2 : 1;
    }
    if (cJSON_IsArray(target)) {
        for (const cJSON *v = target->child; v != NULL; v = v->next) {
            /* Several right answers: any of them will do. */
            set = cJSON_IsNumber(v) && v->valuedouble == pred ? 2 : set;
        }
        return set == 0 ? 1 : set;
    }
    if (!cJSON_IsString(target)) {
        return 0;
    }
    /* Both readings are kept: as an index, and as a choice's text. */
    if (whole_text(target->valuestring, &index)) {
        set |= index == pred ? 2 : 1;
    }
    for (int i = 0; i < c->n; i++) {
        if (c->text[i] != NULL && strcmp(c->text[i], target->valuestring) == 0) {
            set |= i == pred ? 2 : 1;
            break; /* list.index: the first */
        }
    }
    return set;
}

/* The error of a line whose answers contradict its own metric. */
static int disagrees(const cJSON *line, const char *metric, const char *of, struct err *err)
{
    const cJSON *id = json_member(line, "doc_id");
    double stored = (double)NAN;
    (void)judge_number(json_member(line, metric), &stored);
    return err_set(err, ERR_CORRUPT, "doc_id %lld: \"%s\" is %g, but %s",
                   cJSON_IsNumber(id) ? (long long)id->valuedouble : -1, metric, stored, of);
}

/* acc or acc_norm of a line with several answers. The stored value is accepted if some reading of
 * the target allows it. */
static int judge_choice(const cJSON *line, const cJSON *config, const char *metric,
                        enum judged *how, struct err *err)
{
    struct choices c;
    const bool norm = strcmp(metric, "acc_norm") == 0;
    double stored = 0;
    if (json_member(line, "acc_mutual_info") != NULL || !take_choices(line, config, &c) ||
        !judge_number(json_member(line, metric), &stored)) {
        return 0;
    }
    int pred = !norm ? argmax(c.ll, c.n) : c.many_contexts ? -1 : argmax_normalised(&c);
    unsigned set = pred < 0 ? 0 : could_be(line, &c, pred);
    if (set == 0) {
        return 0;
    }
    if ((stored == 1 && (set & 2U) != 0) || (stored == 0 && (set & 1U) != 0)) {
        *how = JUDGED_RIGHT;
        return 0;
    }
    char of[96];
    (void)snprintf(of, sizeof(of), "its answers choose option %d%s, which is %s", pred,
                   norm ? " by length" : "", set == 2 ? "right" : "not right");
    return disagrees(line, metric, of, err);
}

/* One request: acc is whether its text is what the model would have said itself. */
static int judge_likelihood(const cJSON *line, const char *metric, enum judged *how,
                            struct err *err)
{
    const cJSON *answers = json_member(line, "filtered_resps");
    double ll = 0;
    double stored = 0;
    bool greedy = false;
    if (!answer_pair(answers->child, &ll, &greedy) ||
        !judge_number(json_member(line, metric), &stored)) {
        return 0;
    }
    const double wanted = strcmp(metric, "acc") == 0 ? (greedy ? 1 : 0) : ll;
    if (stored == wanted || (isnan(stored) && isnan(wanted))) {
        *how = JUDGED_RIGHT;
        return 0;
    }
    return disagrees(line, metric, "its answer gives another value", err);
}

/* [log-likelihood, words or bytes] */
static int judge_rolling(const cJSON *line, const char *metric, enum judged *how, struct err *err)
{
    const cJSON *answers = json_member(line, "filtered_resps");
    const cJSON *pair = json_member(line, metric);
    double ll = 0;
    double stored = 0;
    if (!judge_number(answers->child, &ll) || !cJSON_IsArray(pair) ||
        !judge_number(pair->child, &stored)) {
        return 0;
    }
    if (stored == ll || (isnan(stored) && isnan(ll))) {
        *how = JUDGED_RIGHT;
        return 0;
    }
    return disagrees(line, metric, "its answer has another log-likelihood", err);
}

/* exact_match of a line with one generated text. */
static int judge_generation(const cJSON *line, const cJSON *config, enum judged *how,
                            struct err *err)
{
    const cJSON *answer = json_member(line, "filtered_resps")->child;
    const cJSON *target = json_member(line, "target");
    char digits[32];
    double stored = 0;
    bool right = false;
    if (!cJSON_IsString(answer) || !judge_number(json_member(line, "exact_match"), &stored)) {
        return 0;
    }
    const char *gold = cJSON_IsString(target) ? target->valuestring : NULL;
    if (cJSON_IsNumber(target) && fabs(target->valuedouble) < 1e15 &&
        target->valuedouble == floor(target->valuedouble)) {
        (void)snprintf(digits, sizeof(digits), "%.0f", target->valuedouble);
        gold = digits;
    }
    if (gold == NULL || !exact_match(config, answer->valuestring, gold, &right)) {
        return 0;
    }
    if (stored == (right ? 1 : 0)) {
        *how = JUDGED_RIGHT;
        return 0;
    }
    return disagrees(line, "exact_match",
                     right ? "its answer is the target's" : "its answer is not the target's", err);
}

/* Such a task may compute anything under a metric's name. */
bool judge_has_own_code(const cJSON *config)
{
    const cJSON *code = json_member(config, "process_results");
    return code != NULL && !cJSON_IsNull(code);
}

static bool is_one_of(const char *metric, const char *const *names)
{
    while (*names != NULL && strcmp(*names, metric) != 0) {
        names++;
    }
    return *names != NULL;
}

/* Chooses by the number of answers and the metric's name. */
int judge_metric(const cJSON *line, const cJSON *config, const char *metric, enum judged *how,
                 struct err *err)
{
    static const char *const of_choices[] = {"acc", "acc_norm", NULL};
    static const char *const of_one[] = {"acc", "perplexity", NULL};
    static const char *const of_pages[] = {"word_perplexity", "byte_perplexity", "bits_per_byte",
                                           NULL};
    const cJSON *answers = json_member(line, "filtered_resps");
    const int n = cJSON_IsArray(answers) ? cJSON_GetArraySize(answers) : 0;
    *how = JUDGED_NOT;
    if (n == 1 && is_one_of(metric, of_pages)) {
        return judge_rolling(line, metric, how, err); /* wikitext's own code gives just this */
    }
    if (judge_has_own_code(config)) {
        return 0;
    }
    if (n >= 2 && is_one_of(metric, of_choices)) {
        return judge_choice(line, config, metric, how, err);
    }
    if (n == 1 && is_one_of(metric, of_one)) {
        return judge_likelihood(line, metric, how, err);
    }
    if (n == 1 && strcmp(metric, "exact_match") == 0) {
        return judge_generation(line, config, how, err);
    }
    return 0;
}

/* A filter may pick or change texts, but the "first answer" filter of log-likelihoods may not
 * change a number. */
int judge_filtered(const cJSON *line, struct err *err)
{
    const cJSON *raw = json_member(line, "resps");
    const cJSON *kept = json_member(line, "filtered_resps");
    if (!cJSON_IsArray(raw) || !cJSON_IsArray(kept)) {
        return err_set(err, ERR_SYNTAX, "\"resps\" or \"filtered_resps\" is not a list");
    }
    if (cJSON_GetArraySize(raw) != cJSON_GetArraySize(kept)) {
        return err_set(err, ERR_CORRUPT, "%d answers, %d of them after the filter",
                       cJSON_GetArraySize(raw), cJSON_GetArraySize(kept));
    }
    /* Only log-likelihoods: what a filter makes of a text is the task's. */
    const bool of_page = argument(line, 0, 0) != NULL && argument(line, 0, 1) == NULL;
    for (const cJSON *r = raw->child, *k = kept->child; r != NULL; r = r->next, k = k->next) {
        const bool one = cJSON_IsArray(r) && cJSON_GetArraySize(r) == 1;
        if (one && (of_page || (cJSON_IsArray(k) && cJSON_IsArray(r->child))) &&
            !json_equal(r->child, k)) {
            return err_set(err, ERR_CORRUPT, "\"filtered_resps\" is not what \"resps\" says");
        }
    }
    return 0;
}
