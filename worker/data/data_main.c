/* prereg-data: prepares what the other workers read. `prereg-data --help` lists the commands. */
#include <stdbool.h>

#include "base/text.h"
#include "base/xalloc.h"
#include "worker/data/demo.h"

static const char usage_text[] =
    "usage: prereg-data demo --seed N --out FOLDER [--bytes N]\n"
    "\n"
    "  demo   writes the demo corpus (corpus.txt) and its four benchmarks (grammar, recall, "
    "giving,\n"
    "         sums: *.jsonl); the same seed gives the same bytes everywhere\n";

/* One `--name value` option of a command. */
struct option {
    const char *name;
    const char *value; /* NULL while not given */
};

static int take_options(char **args, struct option *options, size_t n_options, struct err *err)
{
    for (; *args != NULL; args += 2) {
        struct option *found = NULL;
        for (size_t i = 0; i < n_options; i++)
            if (strcmp(*args, options[i].name) == 0)
                found = &options[i];
        if (found == NULL)
            return err_set(err, ERR_USAGE, "unknown argument '%s'", *args);
        if (args[1] == NULL)
            return err_set(err, ERR_USAGE, "%s needs a value", *args);
        if (found->value != NULL)
            return err_set(err, ERR_USAGE, "%s is given twice", *args);
        found->value = args[1];
    }
    return 0;
}

static int option_int(const struct option *option, int64_t min, int64_t max, int64_t *out,
                      struct err *err)
{
    if (option->value == NULL || text_to_int(option->value, min, max, out, err) == 0)
        return 0;
    err->code = ERR_USAGE;
    return err_wrap(err, "%s", option->name);
}

static int command_demo(char **args, struct err *err)
{
    struct option options[] = {{"--seed", NULL}, {"--out", NULL}, {"--bytes", NULL}};
    int rc = take_options(args, options, ARRAY_LEN(options), err);
    if (rc != 0)
        return rc;
    if (options[0].value == NULL || options[1].value == NULL)
        return err_set(err, ERR_USAGE, "demo needs --seed and --out");
    int64_t seed = 0;
    int64_t bytes = DEMO_SIZE_DEFAULT;
    if ((rc = option_int(&options[0], 0, INT64_MAX, &seed, err)) != 0 ||
        (rc = option_int(&options[2], DEMO_SIZE_MIN, DEMO_SIZE_MAX, &bytes, err)) != 0)
        return rc;
    return demo_write((uint64_t)seed, (size_t)bytes, options[1].value, err);
}

static int run(int argc, char **argv, struct err *err)
{
    static const struct {
        const char *name;
        int (*run)(char **args, struct err *err);
    } commands[] = {{"demo", command_demo}};

    if (argc < 2)
        return err_set(err, ERR_USAGE, "no command given");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            return commands[i].run(argv + 2, err);
    return err_set(err, ERR_USAGE, "unknown command '%s'", argv[1]);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage_text, stdout);
        return EXIT_OK;
    }
    struct err err = {0};
    if (run(argc, argv, &err) == 0)
        return EXIT_OK;
    fprintf(stderr, "prereg-data: %s\n", err.msg);
    if (err.code == ERR_USAGE)
        fprintf(stderr, "%s", usage_text);
    return (int)err_exit_code(err.code);
}
