/* The order of requests and what they share, against a trie made the plain way; and the dry run's
 * count of both. */
#include <stdlib.h>
#include <string.h>

#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "worker/model/config.h"
#include "worker/model/score.h"
#include "worker/model/walk.h"

#define CONTEXT 100
#define SHORT   12
#define INPUTS  40
#define ROUNDS  300
#define IDS     3

static uint64_t state_of_draw = 7;

static uint32_t draw(uint32_t below)
{
    state_of_draw = state_of_draw * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state_of_draw >> 33) % below;
}

/* --- the plain way: a tree of nodes, walked depth first --- */

struct node {
    struct node *child[IDS];
    size_t inputs[INPUTS]; /* that end here */
    size_t n_inputs;
};

static void grow(struct node *root, const struct prefix_input *in, size_t index)
{
    for (size_t i = 0; i < in->n; i++) {
        struct node **next = &root->child[in->tokens[i]];
        if (*next == NULL)
            *next = xcalloc(1, sizeof(**next));
        root = *next;
    }
    root->inputs[root->n_inputs++] = index;
}

static size_t count_nodes(const struct node *node)
{
    size_t n = 1;

    for (size_t i = 0; i < IDS; i++)
        n += node->child[i] == NULL ? 0 : count_nodes(node->child[i]);
    return n;
}

static void visit(const struct node *node, const struct prefix_path *path, size_t depth,
                  bool on_path, size_t *order, size_t *n)
{
    uint32_t first = IDS;

    for (size_t i = 0; i < node->n_inputs; i++)
        order[(*n)++] = node->inputs[i];
    if (on_path && depth < path->n)
        first = path->tokens[depth];
    if (first < IDS && node->child[first] != NULL)
        visit(node->child[first], path, depth + 1, true, order, n);
    for (uint32_t i = 0; i < IDS; i++)
        if (i != first && node->child[i] != NULL)
            visit(node->child[i], path, depth + 1, false, order, n);
}

static void fell(struct node *node)
{
    for (size_t i = 0; i < IDS; i++)
        if (node->child[i] != NULL)
            fell(node->child[i]);
    free(node);
}

static struct node *plant(const struct prefix_input *in, size_t n)
{
    struct node *root = xcalloc(1, sizeof(*root));

    for (size_t i = 0; i < n; i++)
        grow(root, &in[i], i);
    return root;
}

/* --- */

static void draw_inputs(struct prefix_input *in, uint32_t tokens[INPUTS][CONTEXT + 1], size_t n,
                        uint32_t most)
{
    for (size_t i = 0; i < n; i++) {
        size_t kept = 0, len = 1 + draw(most);
        if (i > 0 && draw(2) == 0) {
            kept = draw((uint32_t)in[i - 1].n + 1);
            memcpy(tokens[i], in[i - 1].tokens, kept * sizeof(uint32_t));
        }
        len = len < kept ? kept : len;
        for (size_t t = kept; t < len; t++)
            tokens[i][t] = draw(IDS);
        tokens[i][len] = 0;
        in[i] = (struct prefix_input){.tokens = tokens[i], .n = len};
    }
}

static size_t shared(const struct prefix_input *a, const uint32_t *tokens, size_t n)
{
    size_t i = 0;

    while (i < a->n && i < n && a->tokens[i] == tokens[i])
        i++;
    return i;
}

static void test_order(void **state)
{
    (void)state;
    static uint32_t tokens[INPUTS][CONTEXT + 1];
    struct prefix_input in[INPUTS];
    struct prefix_path path;

    prefix_path_init(&path, CONTEXT);
    for (int round = 0; round < ROUNDS; round++) {
        size_t n = 1 + draw(INPUTS), n_want = 0, order[INPUTS], want[INPUTS];
        draw_inputs(in, tokens, n, SHORT);
        struct node *root = plant(in, n);
        visit(root, &path, 0, true, want, &n_want);
        assert_int_equal(n_want, n);
        prefix_order(in, n, &path, order);
        assert_memory_equal(order, want, n * sizeof(*order));
        fell(root);
        for (size_t i = 0; i < n; i++) {
            size_t lies = shared(&in[order[i]], path.tokens, path.n), was = path.n;
            assert_int_equal(prefix_take(&path, &in[order[i]]), lies);
            assert_int_equal(path.n, lies == in[order[i]].n ? was : in[order[i]].n);
            assert_int_equal(shared(&in[order[i]], path.tokens, path.n), in[order[i]].n);
        }
    }
    prefix_path_release(&path);
}

/* A chunk holds what it may, no token is computed twice, none is left out, and what is shared is
 * there. */
static void test_walk(void **state)
{
    (void)state;
    static uint32_t tokens[INPUTS][CONTEXT + 1];
    struct prefix_path path;

    size_t n_split = 0;
    prefix_path_init(&path, CONTEXT);
    for (int round = 0; round < ROUNDS; round++) {
        struct walk w;
        size_t n = 1 + draw(INPUTS), limit = 1 + draw(INPUTS), computed = 0, ended = 0;
        uint32_t held[CONTEXT]; /* what a cache would hold */
        walk_init(&w, n);
        draw_inputs(w.inputs, tokens, n, CONTEXT);
        struct node *root = plant(w.inputs, n);
        path.n = 0;
        walk_start(&w, &path);
        while (walk_next(&w, &path, limit)) {
            size_t rows = 0, whole = 0;
            for (size_t i = 0; i < w.n_steps; i++) {
                const struct walk_step *s = &w.steps[i];
                const struct prefix_input *in = &w.inputs[s->request];
                assert_int_equal(s->row, rows);
                assert_memory_equal(held, in->tokens, s->first * sizeof(*held));
                memcpy(held + s->first, in->tokens + s->first, s->n * sizeof(*held));
                assert_int_equal(s->whole, s->first + s->n == in->n);
                n_split += !s->whole;
                rows += s->n;
                whole += s->whole;
            }
            assert_int_equal(rows, w.rows);
            assert_true(rows <= WALK_CHUNK && whole <= limit);
            computed += rows;
            ended += whole;
        }
        assert_int_equal(ended, n);
        assert_int_equal(computed, count_nodes(root) - 1);
        assert_false(walk_next(&w, &path, limit));
        fell(root);
        walk_release(&w);
    }
    assert_true(n_split > 20); /* requests cut by a chunk's end */
    prefix_path_release(&path);
}

/* A position takes a sixteenth of what slots may take. */
#define SHAPE_OF(positions)                                                                        \
    .context = (positions), .layers = 1 << 21, .width = 1, .heads = 1, .kv_heads = 1

/* Requests whose wanted rows are the nodes of the tree that some request scores after. */
static void test_count(void **state)
{
    (void)state;
    static uint32_t tokens[INPUTS][CONTEXT + 1];

    for (int round = 0; round < ROUNDS; round++) {
        struct prefix_input in[INPUTS];
        struct score_request r[INPUTS];
        struct score_cost cost = {0}, again;
        size_t n = 1 + draw(INPUTS), rows = 0, total = 0;
        draw_inputs(in, tokens, n, SHORT);
        struct node *root = plant(in, n);
        for (size_t i = 0; i < n; i++) {
            r[i] = (struct score_request){
                .tokens = in[i].tokens, .n = in[i].n + 1, .first = 1 + draw((uint32_t)in[i].n)};
            total += in[i].n;
            /* Rows that an earlier request wants after the same tokens are shared. */
            for (size_t t = r[i].first; t < r[i].n; t++) {
                bool known = false;
                for (size_t k = 0; k < i; k++)
                    known =
                        known || (t >= r[k].first && t < r[k].n &&
                                  memcmp(in[i].tokens, in[k].tokens, t * sizeof(uint32_t)) == 0);
                rows += !known;
            }
        }
        struct score_counter *c = score_counter_create(&(struct model_config){SHAPE_OF(CONTEXT)});
        score_counter_score(c, r, n, &cost);
        assert_int_equal((size_t)cost.distinct_tokens, count_nodes(root) - 1);
        assert_int_equal((size_t)cost.tokens, total);
        assert_int_equal((size_t)cost.requests, n);
        assert_int_equal((size_t)cost.head_rows, rows);
        /* The last request of a call lies on the path of the next one. */
        again = cost;
        size_t order[INPUTS];
        struct prefix_path path;
        prefix_path_init(&path, CONTEXT);
        prefix_order(in, n, &path, order);
        prefix_path_release(&path);
        score_counter_score(c, &r[order[n - 1]], 1, &again);
        assert_true(again.distinct_tokens == cost.distinct_tokens);
        assert_true(again.keys == cost.keys && again.head_rows > cost.head_rows);
        score_counter_free(c);
        fell(root);
    }
}

static void test_count_by_hand(void **state)
{
    (void)state;
    const uint32_t a[] = {5, 6, 7, 8}, b[] = {5, 6, 9, 9, 9};
    const struct score_request r[] = {{.tokens = a, .n = 4, .first = 3},
                                      {.tokens = b, .n = 5, .first = 2}};
    const struct score_generation g = {.prompt = b, .n = 3, .max_tokens = 4};
    struct score_counter *c = score_counter_create(&(struct model_config){SHAPE_OF(16)});
    struct score_cost cost = {0};

    (void)state;
    score_counter_score(c, r, 2, &cost);
    /* 5 6 7, then 9 9 at positions 2 and 3; rows after 5 6 7, 5 6, 5 6 9 and 5 6 9 9 */
    assert_true(cost.tokens == 7 && cost.distinct_tokens == 5 && cost.keys == 1 + 2 + 3 + 3 + 4);
    assert_true(cost.head_rows == 4 && cost.generated == 0);
    /* 5 is read by none, and attends to itself. */
    assert_true(cost.unread == 1 && cost.unread_keys == 1 && cost.steps == 0);
    score_counter_generate(c, &g, 1, &cost);
    assert_true(cost.distinct_tokens == 5 && cost.generated == 4 &&
                cost.generated_keys == 4 + 5 + 6 && cost.steps == 4);
    assert_true(score_seconds(&cost, &(struct score_rates){.distinct_token = 1,
                                                           .key = 10,
                                                           .head_row = 100,
                                                           .generated = 1000,
                                                           .generated_key = 10000,
                                                           .unread = 0.5,
                                                           .unread_key = 0.25,
                                                           .step = 1000000}) ==
                5 + 130 + 400 + 4000 + 150000 - 0.5 - 0.25 + 4000000);
    /* Slots of 6 positions: two at a time. */
    const struct score_generation many[] = {g, g, g, g, g};
    score_counter_generate(c, many, 5, &cost);
    assert_true(cost.steps == 4 + 3 * 4);
    score_counter_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_count),
        cmocka_unit_test(test_count_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
