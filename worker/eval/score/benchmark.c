/*
 * Turns the parameters into items: reads the set, chooses which of its items are asked, finds the
 * pool of examples and lets prompt.h draw from it. Items are chosen before examples are drawn, but
 * examples are drawn for all of them, so a subset's prompts equal those of the whole.
 *
 * A limit or a count means "of each group" exactly where lm-evaluation-harness or llm-foundry makes
 * a task or data set of each group.
 */
#include "worker/eval/score/benchmark.h"

#include "base/files/file.h"
#include "base/xalloc.h"
#include "worker/eval/prompt/pyrandom.h"

static int compare_sizes(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a;
    const size_t y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* Of the n items from the first-th on, the first so many or, as Python's
 * Random(seed).sample(range(n), count) draws them, in the order of the items. */
static void select_from(struct benchmark *b, const struct eval_options *o, size_t first, size_t n,
                        size_t count)
{
    size_t *selected = b->selected + b->n_selected;
    uint32_t *drawn = xcalloc(count, sizeof(*drawn));
    struct pyrandom random;
    pyrandom_seed(&random, (uint64_t)o->subset_seed);
    if (o->subset_count > 0)
        pyrandom_sample(&random, (uint32_t)n, (uint32_t)count, drawn);
    for (size_t i = 0; i < count; i++)
        selected[i] = first + (o->subset_count > 0 ? drawn[i] : i);
    qsort(selected, count, sizeof(*selected), compare_sizes);
    b->n_selected += count;
    free(drawn);
}

/* Whether the number of items is one of each group's: the first so many, as each of these is a task
 * of its own in the harness; drawn ones only where llm-foundry has a data set each. */
static bool counts_by_group(const struct benchmark *b, const struct eval_options *o)
{
    return b->set.n_groups > 1 && (o->limit > 0 || o->spec->style == STYLE_DCLM);
}

/* The most items that any group has. */
static size_t largest_group(const struct item_set *set)
{
    size_t n = 0;
    for (size_t g = 0; g < set->n_groups; g++)
        n = set->groups[g].n > n ? set->groups[g].n : n;
    return n;
}

static void select_from_groups(struct benchmark *b, const struct eval_options *o, size_t wanted)
{
    for (size_t g = 0; g < b->set.n_groups; g++) {
        const struct item_group *group = &b->set.groups[g];
        select_from(b, o, group->first, group->n,
                    wanted > 0 && wanted < group->n ? wanted : group->n);
    }
}

/* Fills b->selected. Wanting more items than there are is an error, not a smaller run. */
static int select_items(struct benchmark *b, const struct eval_options *o, struct err *err)
{
    const int64_t wanted = o->limit > 0 ? o->limit : o->subset_count;
    const bool by_group = counts_by_group(b, o);
    const size_t there = by_group ? largest_group(&b->set) : b->set.n;
    if (wanted > (int64_t)there || b->set.n > UINT32_MAX)
        return err_set(err, ERR_INVALID, "%s: %lld items wanted, %s %zu",
                       o->limit > 0 ? "limit" : "items", (long long)wanted,
                       by_group ? "the largest group has" : "there are", there);
    b->selected = xcalloc(b->set.n, sizeof(*b->selected));
    if (by_group)
        select_from_groups(b, o, (size_t)wanted);
    else
        select_from(b, o, 0, b->set.n, wanted > 0 ? (size_t)wanted : b->set.n);
    return 0;
}

struct item_source benchmark_source(const struct eval_options *o, const char *path,
                                    const char *split)
{
    return (struct item_source){
        .path = path,
        .more = o->more_data.name == NULL ? NULL : o->more_data.path,
        .split = split,
        .description_newlines = o->description_newlines,
        .drops_last_newline = o->rules->drops_last_newline,
    };
}

/* Examples come from their own data, else from the other split of a folder, else from the items. */
static int load_fewshot(struct benchmark *b, const struct eval_options *o, struct err *err)
{
    const char *path = o->fewshot_data.name != NULL ? o->fewshot_data.path : o->data.path;
    if (o->shots == 0 || o->spec->style == STYLE_DCLM)
        return 0;
    if (o->fewshot_data.name == NULL && file_kind_at(path) != FILE_FOLDER)
        return 0;
    const struct item_source src = benchmark_source(o, path, o->fewshot_split);
    return item_set_read(&b->fewshot, o->spec, &src, err);
}

/* ERR_SYNTAX and others for data that does not fit the task; messages name the data. */
int benchmark_load(struct benchmark *b, const struct eval_options *o, struct err *err)
{
    memset(b, 0, sizeof(*b));
    item_set_init(&b->set);
    item_set_init(&b->fewshot);
    const struct item_source src = benchmark_source(o, o->data.path, o->split);
    const struct prompt_rules rules = {
        .shots = o->shots,
        .drops_equals_only_of_one_more = o->rules->drops_equals_only_of_one_more,
    };
    int rc = item_set_read(&b->set, o->spec, &src, err);
    if (rc == 0 && (rc = select_items(b, o, err)) == 0)
        rc = load_fewshot(b, o, err);
    if (rc == 0)
        rc = prompts_init(&b->prompts, &b->set, b->fewshot.n > 0 ? &b->fewshot : &b->set, &rules,
                          err);
    return rc == 0 ? 0 : err_wrap(err, "data %s", o->data.name);
}

void benchmark_release(struct benchmark *b)
{
    prompts_release(&b->prompts);
    item_set_release(&b->set);
    item_set_release(&b->fewshot);
    free(b->selected);
    memset(b, 0, sizeof(*b));
}

#define COMPARED_BYTES 256
#define SAMPLED_ITEMS  32 /* whose tokens are counted for benchmark_find_most() */
#define RUN_ITEMS      ((size_t)4)

/* The request's whole text, in text->preamble. */
static void join_request(const struct benchmark *b, size_t item, size_t option,
                         struct request_text *text)
{
    prompt_request(&b->prompts, item, option, text);
    strbuf_add(&text->preamble, text->context.buf, text->context.len);
    strbuf_add(&text->preamble, text->continuation.buf, text->continuation.len);
}

int benchmark_find_most(const struct benchmark *b, const struct eval_options *o,
                        const struct tokenizer *tok, size_t context, size_t *most, struct err *err)
{
    const size_t step = (b->n_selected + SAMPLED_ITEMS - 1) / SAMPLED_ITEMS;
    const int answer = o->max_tokens > 0 ? o->max_tokens : o->spec->max_tokens;
    struct request_text text;
    struct token_list tokens = {0};
    double bytes = 0.0;
    int rc = 0;
    *most = SIZE_MAX;
    if (o->spec->kind == TASK_ROLLING)
        return 0;
    if (o->spec->kind == TASK_GENERATE)
        context = context > (size_t)answer ? context - (size_t)answer : 1;
    request_text_init(&text);
    for (size_t i = 0; rc == 0 && i < b->n_selected; i += step) {
        join_request(b, b->selected[i], 0, &text);
        bytes += (double)text.preamble.len;
        rc = tokenizer_encode(tok, text.preamble.buf, text.preamble.len, &tokens, err);
    }
    if (rc == 0 && tokens.n > 0)
        *most = (size_t)((double)context * bytes / (double)tokens.n);
    token_list_release(&tokens);
    request_text_release(&text);
    return rc;
}

/* A text that a model reads. */
struct read_text {
    const char *bytes;
    size_t n;
};

/* Bytes that both begin with: whole blocks first, because prompts share thousands. */
static size_t common_bytes(const struct read_text *a, const struct read_text *b)
{
    const size_t least = a->n < b->n ? a->n : b->n;
    size_t n = 0;
    while (least - n >= COMPARED_BYTES && memcmp(a->bytes + n, b->bytes + n, COMPARED_BYTES) == 0)
        n += COMPARED_BYTES;
    while (n < least && a->bytes[n] == b->bytes[n])
        n++;
    return n;
}

/* Takes the request's text as it is read, and keeps it in *before. */
static void add_request(struct benchmark_size *size, const struct read_text *now,
                        struct strbuf *before)
{
    const struct read_text last = {before->buf, before->len};
    size->requests += 1.0;
    size->bytes += (double)now->n;
    size->distinct_bytes += (double)(now->n - common_bytes(now, &last));
    strbuf_clear(before);
    strbuf_add(before, now->bytes, now->n);
}

/* Makes every request's text as a run would and adds up sizes, in bytes because no
 * tokenizer may be known yet. */
void benchmark_measure(const struct benchmark *b, size_t most, struct benchmark_size *size)
{
    struct request_text text;
    struct strbuf before = STRBUF_INIT;
    request_text_init(&text);
    memset(size, 0, sizeof(*size));
    for (size_t i = 0; i < b->n_selected; i++) {
        const size_t item = b->selected[i];
        for (size_t k = 0; k < prompt_requests(&b->set.items[item]); k++) {
            join_request(b, item, k, &text);
            const size_t len = text.preamble.len;
            const size_t n = len < most ? len : most;
            add_request(size, &(struct read_text){text.preamble.buf + (len - n), n}, &before);
            if (len > size->longest) {
                size->longest = len;
                size->longest_item = item;
                size->longest_option = k;
            }
        }
    }
    strbuf_release(&before);
    request_text_release(&text);
}

void benchmark_thin(struct benchmark *b, size_t n)
{
    const size_t runs = (n + RUN_ITEMS - 1) / RUN_ITEMS;
    size_t kept = 0;
    size_t next = 0; /* not read yet; kept <= next */
    if (n >= b->n_selected)
        return;
    for (size_t r = 0; r < runs; r++) {
        const size_t first = r * b->n_selected / runs;
        next = first > next ? first : next;
        for (size_t i = 0; i < RUN_ITEMS && kept < n; i++)
            b->selected[kept++] = b->selected[next++];
    }
    b->n_selected = kept;
}
