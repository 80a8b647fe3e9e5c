/* Lines of samples files judged again: choices, one continuation under several contexts, single
 * texts, pages, generations; and the hashes. */
#include <stdlib.h>
#include <string.h>

#include "base/json/json.h"
#include "base/xalloc.h"
#include "tests/unit/check.h"
#include "truthtable/imported/judge.h"

static cJSON *json(const char *text)
{
    cJSON *v = NULL;
    struct err err;
    if (json_parse_lax(text, strlen(text), &v, &err) != 0) {
        fail_msg("%s: %s", text, err.msg);
    }
    return v;
}

enum wanted { RIGHT, NOT, REFUSED };

/* Two options " bb" and " é", or what `arguments` gives instead. */
#define TWO                                                                                        \
    "{\"gen_args_0\":{\"arg_0\":\"q\",\"arg_1\":\" bb\"},\"gen_args_1\":{\"arg_0\":\"q\","         \
    "\"arg_1\":\" \xC3\xA9\"}}"

static void test_choices(void **state)
{
    (void)state;
    static const struct {
        const char *answers;
        const char *target;
        const char *metric;
        const char *stored;
        enum wanted wanted;
    } cases[] = {
        {"[[\"-1.5\",\"True\"],[\"-2.5\",\"False\"]]", "0", "acc", "1.0", RIGHT},
        {"[[\"-1.5\",\"True\"],[\"-2.5\",\"False\"]]", "0", "acc", "0.0", REFUSED},
        {"[[\"-1.5\",\"True\"],[\"-2.5\",\"False\"]]", "1", "acc", "0.0", RIGHT},
        {"[[-1.5,true],[-2.5,false]]", "0", "acc", "1", RIGHT},
        /* ties: the first; NaN before everything; -inf last */
        {"[[\"-2\",\"True\"],[\"-2\",\"False\"]]", "0", "acc", "1.0", RIGHT},
        {"[[\"-2\",\"True\"],[\"nan\",\"False\"]]", "1", "acc", "1.0", RIGHT},
        {"[[\"-inf\",\"True\"],[\"-900\",\"False\"]]", "1", "acc", "1.0", RIGHT},
        {"[[NaN,true],[1,false]]", "0", "acc", "1.0", RIGHT},
        /* by length: two characters against one, not against two bytes */
        {"[[\"-3\",\"True\"],[\"-2.0\",\"False\"]]", "0", "acc_norm", "1.0", RIGHT},
        {"[[\"-3\",\"True\"],[\"-1.4\",\"False\"]]", "1", "acc_norm", "1.0", RIGHT},
        {"[[\"-3\",\"True\"],[\"-1.4\",\"False\"]]", "0", "acc_norm", "1.0", REFUSED},
        /* from 0.4.4 on the target is text; a choice's own text; a list */
        {"[[\"-1\",\"True\"],[\"-2\",\"False\"]]", "\"0\"", "acc", "1.0", RIGHT},
        {"[[\"-1\",\"True\"],[\"-2\",\"False\"]]", "\"bb\"", "acc", "1.0", RIGHT},
        {"[[\"-1\",\"True\"],[\"-2\",\"False\"]]", "\"\xC3\xA9\"", "acc", "1.0", REFUSED},
        {"[[\"-1\",\"True\"],[\"-2\",\"False\"]]", "[1,0]", "acc", "1.0", RIGHT},
        {"[[\"-1\",\"True\"],[\"-2\",\"False\"]]", "[1]", "acc", "1.0", REFUSED},
        /* what the line alone does not decide */
        {"[[\"-1\",\"True\"],[\"-2\",\"False\"]]", "\"neither\"", "acc", "1.0", NOT},
        {"[[\"-1\",\"True\"],[\"-2\",\"False\"]]", "0", "f1", "0.3", NOT},
        {"[[\"-1\",\"perhaps\"],[\"-2\",\"False\"]]", "0", "acc", "0.0", NOT},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].answers);
        char *text = xasprintf("{\"doc_id\":3,\"target\":%s,\"arguments\":" TWO
                               ",\"filtered_resps\":%s,\"%s\":%s}",
                               cases[i].target, cases[i].answers, cases[i].metric, cases[i].stored);
        cJSON *line = json(text);
        struct err err = {0};
        enum judged how = JUDGED_NOT;
        int rc = judge_metric(line, NULL, cases[i].metric, &how, &err);
        enum wanted got = rc == ERR_CORRUPT ? REFUSED : how == JUDGED_RIGHT ? RIGHT : NOT;
        if (got != cases[i].wanted || (rc != 0 && strstr(err.msg, "doc_id 3") == NULL)) {
            fail_msg("case %zu: code %d, %d, \"%s\"", i, rc, how, err.msg);
        }
        cJSON_Delete(line);
        free(text);
    }
}

static void expect_judged(const char *text, const char *metric, const char *config,
                          enum wanted wanted)
{
    cJSON *line = json(text);
    cJSON *of = config == NULL ? NULL : json(config);
    struct err err = {0};
    enum judged how = JUDGED_NOT;
    int rc = judge_metric(line, of, metric, &how, &err);
    enum wanted got = rc == ERR_CORRUPT ? REFUSED : how == JUDGED_RIGHT ? RIGHT : NOT;
    if (got != wanted) {
        fail_msg("%s of %s: code %d, %d, \"%s\"", metric, text, rc, how, err.msg);
    }
    cJSON_Delete(line);
    cJSON_Delete(of);
}

static void test_contexts(void **state)
{
    (void)state;
#define WINO(answer, acc)                                                                          \
    "{\"doc\":{\"option1\":\"a\",\"answer\":\"" answer "\"},\"target\":\"is.\",\"arguments\":"     \
    "[[\"The a\",\" is.\"],[\"The b\",\" is.\"]],\"filtered_resps\":[[\"-3\",\"False\"],[\"-1\","  \
    "\"False\"]],\"acc\":" acc "}"
    expect_judged(WINO("2", "1.0"), "acc", NULL, RIGHT);
    expect_judged(WINO("1", "0.0"), "acc", NULL, RIGHT);
    expect_judged(WINO("1", "1.0"), "acc", NULL, REFUSED);
    expect_judged(WINO("?", "1.0"), "acc", NULL, NOT);
}

static void test_others(void **state)
{
    (void)state;
    expect_judged("{\"filtered_resps\":[[\"-3.5\",\"True\"]],\"acc\":1}", "acc", NULL, RIGHT);
    expect_judged("{\"filtered_resps\":[[\"-3.5\",\"False\"]],\"acc\":1}", "acc", NULL, REFUSED);
    expect_judged("{\"filtered_resps\":[[\"-3.5\",\"True\"]],\"perplexity\":-3.5}", "perplexity",
                  NULL, RIGHT);
    expect_judged("{\"filtered_resps\":[[\"-3.5\",\"True\"]],\"perplexity\":-3.25}", "perplexity",
                  NULL, REFUSED);
    expect_judged("{\"filtered_resps\":[\"-31.5\"],\"word_perplexity\":[-31.5,20]}",
                  "word_perplexity", NULL, RIGHT);
    expect_judged("{\"filtered_resps\":[\"-31.5\"],\"bits_per_byte\":[-30,92]}", "bits_per_byte",
                  NULL, REFUSED);
    expect_judged("{\"filtered_resps\":[\"-31.5\"],\"byte_perplexity\":3}", "byte_perplexity", NULL,
                  NOT);
    expect_judged("{\"filtered_resps\":[],\"acc\":1}", "acc", NULL, NOT);
    expect_judged("{\"acc\":1}", "acc", NULL, NOT);
    /* another delimiter, an empty choice */
    expect_judged("{\"target\":0,\"arguments\":[[\"q\",\"aa\"],[\"q\",\"b\"]],\"filtered_resps\":"
                  "[[-3,true],[-2,true]],\"acc_norm\":1}",
                  "acc_norm", "{\"target_delimiter\":\"\"}", RIGHT);
    expect_judged("{\"target\":0,\"arguments\":[[\"q\",\" \"],[\"q\",\" b\"]],\"filtered_resps\":"
                  "[[-3,true],[-2,true]],\"acc_norm\":1}",
                  "acc_norm", NULL, NOT);
}

/* A task with code of its own may call anything acc: truthfulqa_mc2's is a share. Pages are judged
 * all the same. */
static void test_own_code(void **state)
{
    (void)state;
    static const char own[] = "{\"process_results\":\"def f(doc, results): ...\",\"metric_list\":"
                              "[{\"metric\":\"exact_match\"}]}";
    static const char choice[] =
        "{\"target\":0,\"arguments\":" TWO ",\"filtered_resps\":[[-1,true],"
        "[-2,true]],\"acc\":0.37}";
    static const char text[] = "{\"target\":\"2\",\"filtered_resps\":[\"so 2\"],\"exact_match\":1}";
    expect_judged(choice, "acc", own, NOT);
    expect_judged(choice, "acc", "{\"process_results\":null}", REFUSED);
    expect_judged(text, "exact_match", own, NOT);
    expect_judged(text, "exact_match", "{\"metric_list\":[{\"metric\":\"exact_match\"}]}", REFUSED);
    expect_judged("{\"filtered_resps\":[[-3.5,false]],\"acc\":1}", "acc", own, NOT);
    expect_judged("{\"filtered_resps\":[\"-31.5\"],\"bits_per_byte\":[-30,92]}", "bits_per_byte",
                  own, REFUSED);
}

#define GSM                                                                                        \
    "{\"metric_list\":[{\"metric\":\"exact_match\",\"ignore_case\":true,\"ignore_punctuation\":"   \
    "false,\"regexes_to_ignore\":[\",\",\"\\\\$\",\"(?s).*#### \",\"\\\\.$\"]}]}"

/* gsm8k's rules: the vectors of upstream's behaviour. */
static void test_exact_match(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        const char *target;
        bool right;
    } cases[] = {
        {"1072", "a\n#### 1,072", true},
        {"1,072", "a\n#### 1,072", true},
        {"$1072", "#### 1,072", true},
        {"1072.", "#### 1,072", true},
        {"1072.0", "#### 1,072", false},
        {"1072 ", "#### 1,072", false},
        {"1072.\n", "#### 1072\n", true},
        {"[invalid]", "#### 5", false},
        {"#### 1 #### 5", "#### 5", true},
        {"FIVE", "#### five", true},
        {"", "#### ", true},
        {".", "#### ", true},
        {"5..", "#### 5.", false},
        {"5..", "#### 5", false},
    };
    cJSON *config = json(GSM);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].answer);
        bool right = !cases[i].right;
        assert_true(exact_match(config, cases[i].answer, cases[i].target, &right));
        if (right != cases[i].right) {
            fail_msg("\"%s\" against \"%s\" is %d", cases[i].answer, cases[i].target, right);
        }
    }
    bool right = false;
    assert_false(exact_match(config, "\xC3\x89", "\xC3\xA9", &right)); /* É, é: not known here */
    assert_true(exact_match(config, "\xC3\xA9", "\xC3\xA9", &right) && right);
    assert_false(exact_match(NULL, "1", "1", &right));
    cJSON_Delete(config);
    config =
        json("{\"metric_list\":[{\"metric\":\"exact_match\",\"regexes_to_ignore\":[\"a+\"]}]}");
    assert_false(exact_match(config, "1", "1", &right));
    cJSON_Delete(config);
    config = json("{\"metric_list\":[{\"metric\":\"exact_match\",\"ignore_punctuation\":true,"
                  "\"ignore_numbers\":true}]}");
    assert_true(exact_match(config, "(A)1", "A", &right) && right);
    assert_true(exact_match(config, "a", "A", &right) && !right);
    cJSON_Delete(config);
}

/* The document is upstream's own vector: its layout is what the digest is over. */
#define LINE(doc, prompt, target, dh, ph, th)                                                      \
    "{\"doc_id\": 0, \"doc\": " doc ", \"target\": " target                                        \
    ", \"arguments\": {\"gen_args_0\": {\"arg_0\": \"" prompt "\"}}, \"doc_hash\": \"" dh          \
    "\", \"prompt_hash\": \"" ph "\", \"target_hash\": \"" th "\"}"
#define DOC         "{\"q\":\"\\u00e9\", \"choices\":[\"a\",\"b\"],\"answer\": 1}"
#define DOC_HASH    "95395bbc21e6d6c62668472b4f76376760e80a8e90d2adc8c5830168245da758"
#define PROMPT_HASH "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" /* "abc" */
#define ONE_HASH    "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"

static void test_hashes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code;
        const char *said;
    } cases[] = {
        {LINE(DOC, "abc", "1", DOC_HASH, PROMPT_HASH, ONE_HASH), 0, ""},
        {LINE(DOC, "abc", "\"1\"", DOC_HASH, PROMPT_HASH, ONE_HASH), 0, ""},
        {LINE("{\"q\":\"e\"}", "abc", "1", DOC_HASH, PROMPT_HASH, ONE_HASH), ERR_CORRUPT,
         "doc_hash"},
        {LINE(DOC, "abcd", "1", DOC_HASH, PROMPT_HASH, ONE_HASH), ERR_CORRUPT, "prompt_hash"},
        {LINE(DOC, "abc", "2", DOC_HASH, PROMPT_HASH, ONE_HASH), ERR_CORRUPT, "target_hash"},
        {LINE(DOC, "abc", "1", "95", PROMPT_HASH, ONE_HASH), ERR_SYNTAX, "doc_hash"},
        /* what cannot be laid out or said again is not checked */
        {LINE("{\"x\": NaN}", "abc", "[1]", DOC_HASH, PROMPT_HASH, ONE_HASH), 0, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        cJSON *line = json(cases[i].text);
        struct err err = {0};
        struct digest_stream all;
        bool has = false;
        digest_start(&all);
        int rc = judge_hashes(line, cases[i].text, strlen(cases[i].text), &all, &has, &err);
        if (rc != cases[i].code || strstr(err.msg, cases[i].said) == NULL || (rc == 0 && !has)) {
            fail_msg("case %zu: code %d, \"%s\"", i, rc, err.msg);
        }
        cJSON_Delete(line);
    }
}

static void test_filtered(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code;
    } cases[] = {
        {"{\"resps\":[[[\"-1\",\"True\"]]],\"filtered_resps\":[[\"-1\",\"True\"]]}", 0},
        {"{\"resps\":[[[\"-1\",\"True\"]]],\"filtered_resps\":[[\"-2\",\"True\"]]}", ERR_CORRUPT},
        {"{\"resps\":[[\"text\"]],\"filtered_resps\":[\"else\"]}", 0},
        {"{\"resps\":[[\"text\"]],\"filtered_resps\":[]}", ERR_CORRUPT},
        {"{\"arguments\":{\"gen_args_0\":{\"arg_0\":\"p\"}},\"resps\":[[\"-1\"]],"
         "\"filtered_resps\":[\"-1\"]}",
         0},
        {"{\"arguments\":{\"gen_args_0\":{\"arg_0\":\"p\"}},\"resps\":[[\"-1\"]],"
         "\"filtered_resps\":[\"-2\"]}",
         ERR_CORRUPT},
        {"{\"resps\":[[\"text\"]]}", ERR_SYNTAX},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_ROW("%s", cases[i].text);
        cJSON *line = json(cases[i].text);
        struct err err = {0};
        assert_int_equal(judge_filtered(line, &err), cases[i].code);
        cJSON_Delete(line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choices),  cmocka_unit_test(test_contexts),
        cmocka_unit_test(test_others),   cmocka_unit_test(test_exact_match),
        cmocka_unit_test(test_hashes),   cmocka_unit_test(test_filtered),
        cmocka_unit_test(test_own_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
