/*
 * prereg-data: prepares the data that the other workers read. Each command parses its own options
 * with worker/report/flags.h and calls one function of this folder. Results go to standard output,
 * progress and errors to standard error.
 */
#include <errno.h>
#include <stdbool.h>

#include "base/files/file.h"
#include "base/text.h"
#include "base/xalloc.h"
#include "worker/data/demo.h"
#include "worker/data/pack.h"
#include "worker/data/sample.h"
#include "worker/data/tokenizer/bpe_train.h"
#include "worker/data/vocabulary.h"
#include "worker/report/flags.h"

#define SAMPLE_LENGTH_MAX 1000000

static const char usage_text[] =
    "usage: prereg-data demo --seed N --out FOLDER [--bytes N]\n"
    "       prereg-data pack --out FOLDER [--tokenizer T] FILE|FOLDER...\n"
    "       prereg-data tokenizer --vocab N --out FILE [--min-count N] FILE|FOLDER...\n"
    "       prereg-data inspect [--tokenizer T] [FILE|FOLDER...]\n"
    "       prereg-data sample [--tokenizer T] [--seed N] [--from N] [--n N] [--length N]\n"
    "                          [--holdout X] [--as text|ids] FILE|FOLDER\n"
    "\n"
    "  demo       writes the demo corpus (corpus.txt) and its four benchmarks (grammar, recall,\n"
    "             giving, sums: *.jsonl); the same seed gives the same bytes everywhere\n"
    "  pack       makes a shard of each source: text with <|endoftext|> lines between documents,\n"
    "             or JSON lines with the document in \"text\"\n"
    "  tokenizer  trains a byte-level BPE vocabulary on the text and writes a tokenizer.json;\n"
    "             pairs that come less often than --min-count (2) are left apart\n"
    "  inspect    reads a shard or source whole, checks it, and says what it and the tokenizer "
    "hold\n"
    "  sample     prints --n (5) documents in an order of --seed (0) from position --from (0); "
    "with\n"
    "             --length, the training sequences of so many tokens that a run of that seed "
    "sees,\n"
    "             --holdout (0.05) of the documents kept back\n"
    "\n"
    "T is \"bytes\" (the default), a tokenizer.json, a folder with one or with vocab.json and\n"
    "merges.txt, or llama2.c's tokenizer.bin. Long work shows how far it is on standard error.\n";

/* demo --seed N --out FOLDER [--bytes N] */
static int command_demo(char **args, struct err *err)
{
    struct flag options[] = {{.name = "--seed"}, {.name = "--out"}, {.name = "--bytes"}};
    int rc = flags_take(args, options, ARRAY_LEN(options), err);
    if (rc != 0)
        return rc;
    if (options[0].value == NULL || options[1].value == NULL || args[0] != NULL)
        return err_set(err, ERR_USAGE, "demo takes --seed and --out and no files");
    int64_t seed = 0;
    int64_t bytes = DEMO_SIZE_DEFAULT;
    if ((rc = flag_int(&options[0], 0, INT64_MAX, &seed, err)) != 0 ||
        (rc = flag_int(&options[2], DEMO_SIZE_MIN, DEMO_SIZE_MAX, &bytes, err)) != 0)
        return rc;
    return demo_write((uint64_t)seed, (size_t)bytes, options[1].value, err);
}

/* pack --out FOLDER [--tokenizer T] SOURCE... */
static int command_pack(char **args, struct err *err)
{
    struct flag options[] = {{.name = "--out"}, {.name = "--tokenizer"}};
    struct tokenizer *tok = NULL;
    int rc = flags_take(args, options, ARRAY_LEN(options), err);
    if (rc != 0)
        return rc;
    const char *folder = options[0].value;
    if (folder == NULL || args[0] == NULL)
        return err_set(err, ERR_USAGE, "pack needs --out and something to pack");
    rc = tokenizer_open(options[1].value == NULL ? TOKENIZER_BYTES : options[1].value, &tok, err);
    if (rc == 0)
        rc = dir_make(folder, 0777, err);
    for (; rc == 0 && *args != NULL; args++)
        rc = pack_source(*args, folder, tok, stdout, err);
    tokenizer_free(tok);
    return rc;
}

/* inspect [--tokenizer T] [SOURCE...] */
static int command_inspect(char **args, struct err *err)
{
    struct flag options[] = {{.name = "--tokenizer"}};
    struct tokenizer *tok = NULL;
    int rc = flags_take(args, options, ARRAY_LEN(options), err);
    if (rc != 0)
        return rc;
    if (args[0] == NULL && options[0].value == NULL)
        return err_set(err, ERR_USAGE, "inspect needs a file, a folder or --tokenizer");
    rc = tokenizer_open(options[0].value == NULL ? TOKENIZER_BYTES : options[0].value, &tok, err);
    if (rc == 0)
        pack_inspect_tokenizer(tok, stdout);
    for (; rc == 0 && *args != NULL; args++)
        rc = pack_inspect(*args, tok, stdout, err);
    tokenizer_free(tok);
    return rc;
}

/* The options of `sample` after --tokenizer, in this order. */
enum { SAMPLE_SEED = 1, SAMPLE_FROM, SAMPLE_N, SAMPLE_LENGTH, SAMPLE_HOLDOUT, SAMPLE_AS };

static int read_sample_options(const struct flag *options, struct sample_options *out,
                               struct err *err)
{
    int64_t seed = 0, from = 0, n = 5, length = 0;
    const char *as = options[SAMPLE_AS].value;
    int rc;

    out->holdout = 0.05;
    if ((rc = flag_int(&options[SAMPLE_SEED], 0, INT64_MAX, &seed, err)) != 0 ||
        (rc = flag_int(&options[SAMPLE_FROM], 0, INT64_MAX / 2, &from, err)) != 0 ||
        (rc = flag_int(&options[SAMPLE_N], 1, INT32_MAX, &n, err)) != 0 ||
        (rc = flag_int(&options[SAMPLE_LENGTH], 1, SAMPLE_LENGTH_MAX, &length, err)) != 0)
        return rc;
    if (options[SAMPLE_HOLDOUT].value != NULL &&
        (text_to_double(options[SAMPLE_HOLDOUT].value, &out->holdout, err) != 0 ||
         out->holdout < 0.0 || out->holdout >= 1.0))
        return err_set(err, ERR_USAGE, "--holdout: expected a share from 0 to under 1");
    if (as != NULL && strcmp(as, "text") != 0 && strcmp(as, "ids") != 0)
        return err_set(err, ERR_USAGE, "--as: expected text or ids");
    out->seed = (uint64_t)seed;
    out->from = (uint64_t)from;
    out->n = (uint64_t)n;
    out->length = (uint64_t)length;
    out->ids = as != NULL && strcmp(as, "ids") == 0;
    return 0;
}

static int command_sample(char **args, struct err *err)
{
    struct flag options[] = {{.name = "--tokenizer"}, {.name = "--seed"},   {.name = "--from"},
                             {.name = "--n"},         {.name = "--length"}, {.name = "--holdout"},
                             {.name = "--as"}};
    struct sample_options sample = {0};
    struct tokenizer *tok = NULL;
    int rc = flags_take(args, options, ARRAY_LEN(options), err);
    if (rc == 0)
        rc = read_sample_options(options, &sample, err);
    if (rc != 0)
        return rc;
    if (args[0] == NULL || args[1] != NULL)
        return err_set(err, ERR_USAGE, "sample needs one file or folder");
    rc = tokenizer_open(options[0].value == NULL ? TOKENIZER_BYTES : options[0].value, &tok, err);
    if (rc == 0)
        rc = sample_print(args[0], tok, &sample, stdout, err);
    tokenizer_free(tok);
    return rc;
}

/* tokenizer --vocab N --out FILE [--min-count N] SOURCE... */
static int command_tokenizer(char **args, struct err *err)
{
    struct flag options[] = {{.name = "--vocab"}, {.name = "--out"}, {.name = "--min-count"}};
    int rc = flags_take(args, options, ARRAY_LEN(options), err);
    if (rc != 0)
        return rc;
    if (options[0].value == NULL || options[1].value == NULL || args[0] == NULL)
        return err_set(err, ERR_USAGE, "tokenizer needs --vocab, --out and text to learn from");
    int64_t vocab = 0, min_count = BPE_TRAIN_MIN_COUNT;
    if ((rc = flag_int(&options[0], BPE_TRAIN_VOCAB_MIN, BPE_TRAIN_VOCAB_MAX, &vocab, err)) != 0 ||
        (rc = flag_int(&options[2], 1, INT32_MAX, &min_count, err)) != 0)
        return rc;
    return vocabulary_train(args, (uint32_t)vocab, (uint32_t)min_count, options[1].value, stdout,
                            err);
}

static int run(int argc, char **argv, struct err *err)
{
    static const struct {
        const char *name;
        int (*run)(char **args, struct err *err);
    } commands[] = {{"demo", command_demo},
                    {"pack", command_pack},
                    {"inspect", command_inspect},
                    {"tokenizer", command_tokenizer},
                    {"sample", command_sample}};

    if (argc < 2)
        return err_set(err, ERR_USAGE, "no command given");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argv + 2, err);
    return err_set(err, ERR_USAGE, "unknown command '%s'", argv[1]);
}

/* What was printed may still have no room where it goes. */
static int flush_output(struct err *err)
{
    if (fflush(stdout) != 0)
        return err_set_errno(err, errno, "standard output");
    return ferror(stdout) == 0 ? 0 : err_set(err, ERR_IO, "standard output: cannot be written");
}

int main(int argc, char **argv)
{
    if ((argc >= 2 && strcmp(argv[1], "--help") == 0) ||
        (argc >= 3 && strcmp(argv[2], "--help") == 0)) {
        fputs(usage_text, stdout);
        return EXIT_OK;
    }
    struct err err = {0};
    if (run(argc, argv, &err) == 0 && flush_output(&err) == 0)
        return EXIT_OK;
    fprintf(stderr, "prereg-data: %s\n", err.msg);
    if (err.code == ERR_USAGE)
        fprintf(stderr, "%s", usage_text);
    return (int)err_exit_code(err.code);
}
