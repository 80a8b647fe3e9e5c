#include "worker/eval/benchmark.h"

#include "base/file.h"
#include "base/xalloc.h"
#include "worker/eval/pyrandom.h"

static int compare_sizes(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a;
    const size_t y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* Python's Random(seed).sample(range(n), count), in the order of the items. */
static void select_drawn(struct benchmark *b, uint64_t seed)
{
    uint32_t *drawn = xcalloc(b->n_selected, sizeof(*drawn));
    struct pyrandom random;
    pyrandom_seed(&random, seed);
    pyrandom_sample(&random, (uint32_t)b->set.n, (uint32_t)b->n_selected, drawn);
    for (size_t i = 0; i < b->n_selected; i++)
        b->selected[i] = drawn[i];
    qsort(b->selected, b->n_selected, sizeof(*b->selected), compare_sizes);
    free(drawn);
}

static int select_items(struct benchmark *b, const struct eval_options *o, struct err *err)
{
    const int64_t wanted = o->limit > 0 ? o->limit : o->subset_count;
    if (wanted > (int64_t)b->set.n || b->set.n > UINT32_MAX)
        return err_set(err, ERR_INVALID, "%s: %lld items wanted, there are %zu",
                       o->limit > 0 ? "limit" : "items", (long long)wanted, b->set.n);
    b->n_selected = wanted > 0 ? (size_t)wanted : b->set.n;
    b->selected = xcalloc(b->n_selected, sizeof(*b->selected));
    for (size_t i = 0; i < b->n_selected; i++)
        b->selected[i] = i;
    if (o->subset_count > 0)
        select_drawn(b, (uint64_t)o->subset_seed);
    return 0;
}

/* Examples come from their own data, else from the other split of a folder, else from the items. */
static int load_fewshot(struct benchmark *b, const struct eval_options *o, struct err *err)
{
    const char *path = o->fewshot_data.name != NULL ? o->fewshot_data.path : o->data.path;
    if (o->shots == 0)
        return 0;
    if (o->fewshot_data.name == NULL && file_kind_at(path) != FILE_FOLDER)
        return 0;
    return item_set_read(&b->fewshot, o->def, path, o->fewshot_split, o->description_newlines, err);
}

int benchmark_load(struct benchmark *b, const struct eval_options *o, struct err *err)
{
    memset(b, 0, sizeof(*b));
    item_set_init(&b->set);
    item_set_init(&b->fewshot);
    int rc = item_set_read(&b->set, o->def, o->data.path, o->split, o->description_newlines, err);
    if (rc == 0)
        rc = select_items(b, o, err);
    if (rc == 0)
        rc = load_fewshot(b, o, err);
    if (rc == 0)
        rc = prompts_init(&b->prompts, o->def, &b->set, b->fewshot.n > 0 ? &b->fewshot : &b->set,
                          (size_t)o->shots, err);
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

static void add_request(struct benchmark_size *size, size_t bytes)
{
    size->requests += 1.0;
    size->bytes += (double)bytes;
    if ((double)bytes > size->longest)
        size->longest = (double)bytes;
}

void benchmark_measure(const struct benchmark *b, struct benchmark_size *size)
{
    struct strbuf prefix = STRBUF_INIT;
    memset(size, 0, sizeof(*size));
    for (size_t i = 0; i < b->n_selected; i++) {
        const struct item *it = &b->set.items[b->selected[i]];
        strbuf_clear(&prefix);
        prompts_add_prefix(&b->prompts, b->selected[i], &prefix);
        size_t common = prefix.len;
        if (item_is_schema(it))
            common += strlen(it->continuation);
        else
            common += strlen(it->context);
        if (it->form == FORM_QUESTION)
            add_request(size, common);
        for (size_t k = 0; k < it->n_options; k++)
            add_request(size, common + 1 + strlen(it->options[k]));
    }
    strbuf_release(&prefix);
}
