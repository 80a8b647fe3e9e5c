/* Reads what Slurm's commands print, line by line. A line is split at '|' into as many fields as
 * the format has; one that has another number of them, or a number out of its range, is odd and
 * counted. */
#include "daemon/executor/slurm/parse.h"

#include <string.h>

#include "base/text.h"

#define LINE_MAX_BYTES 4096
#define FIELDS_MAX     9
#define INDEX_MAX      INT64_C(100000000)

/* One line after the other, without its end; false: no more. */
static bool next_line(const char **text, size_t *left, const char **line, size_t *len)
{
    if (*left == 0) {
        return false;
    }
    const char *end = memchr(*text, '\n', *left);
    size_t whole = end != NULL ? (size_t)(end - *text) : *left;
    *line = *text;
    *len = whole;
    size_t used = end != NULL ? whole + 1 : whole;
    *text += used;
    *left -= used;
    while (*len > 0 && ((*line)[*len - 1] == '\r' || (*line)[*len - 1] == ' ')) {
        (*len)--;
    }
    return true;
}

/* Digits alone, at most 18 of them; -1 otherwise. */
static int64_t read_digits(const char *s, size_t len)
{
    int64_t n = 0;
    if (len == 0 || len > 18) {
        return -1;
    }
    for (size_t i = 0; i < len; i++) {
        if (s[i] < '0' || s[i] > '9') {
            return -1;
        }
        n = n * 10 + (s[i] - '0');
    }
    return n;
}

static bool is_cluster_name(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bool plain = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
                     (s[i] >= '0' && s[i] <= '9') || s[i] == '_' || s[i] == '-' || s[i] == '.';
        if (!plain) {
            return false;
        }
    }
    return len > 0;
}

bool slurm_parse_submitted(const char *text, size_t len, int64_t *id)
{
    const char *line = NULL;
    size_t n = 0;
    unsigned found = 0;
    /* Rule 5: ^[0-9]+(;cluster)?$, once. */
    while (next_line(&text, &len, &line, &n)) {
        const char *semicolon = memchr(line, ';', n);
        size_t digits = semicolon != NULL ? (size_t)(semicolon - line) : n;
        int64_t value = read_digits(line, digits);
        if (value > 0 && (semicolon == NULL || is_cluster_name(semicolon + 1, n - digits - 1))) {
            *id = value;
            found++;
        }
    }
    return found == 1;
}

struct field {
    const char *s;
    size_t len;
};

static bool split(const char *line, size_t len, size_t n_fields, struct field *f)
{
    for (size_t i = 0; i < n_fields; i++) {
        const char *bar = memchr(line, '|', len);
        if ((bar == NULL) != (i + 1 == n_fields)) {
            return false;
        }
        f[i].s = line;
        f[i].len = bar != NULL ? (size_t)(bar - line) : len;
        line += f[i].len + 1;
        len -= bar != NULL ? f[i].len + 1 : len;
    }
    return true;
}

static const char *keep(struct arena *a, struct field f)
{
    char *s = arena_strndup(a, f.s, f.len);
    text_make_line(s);
    return s;
}

/* "123", "123_4"; false: something else, as "123_[4-7]". */
static bool read_id(struct field f, uint32_t *index)
{
    const char *bar = memchr(f.s, '_', f.len);
    size_t head = bar != NULL ? (size_t)(bar - f.s) : f.len;
    *index = SLURM_INDEX_NONE;
    if (read_digits(f.s, head) <= 0) {
        return false;
    }
    if (bar == NULL) {
        return true;
    }
    int64_t i = read_digits(bar + 1, f.len - head - 1);
    *index = (uint32_t)i;
    return i >= 0 && i <= INDEX_MAX;
}

/* The first node of "n1", "n[1-4,7]", "n1,n2": what one-node jobs have, whole. */
static const char *first_node(struct arena *a, struct field f)
{
    static const char *const NO_NODE[] = {"", "N/A", "None assigned", "(null)", "n/a"};
    for (size_t i = 0; i < sizeof(NO_NODE) / sizeof(NO_NODE[0]); i++) {
        if (f.len == strlen(NO_NODE[i]) && memcmp(f.s, NO_NODE[i], f.len) == 0) {
            return "";
        }
    }
    const char *comma = memchr(f.s, ',', f.len);
    if (comma != NULL && memchr(f.s, '[', f.len) == NULL) {
        f.len = (size_t)(comma - f.s);
    }
    return keep(a, f);
}

/* Rule 2: a job whose name is not a UUID is not ours, whatever its id. */
static bool read_name(struct field f, char name[UUID_TEXT_SIZE])
{
    if (f.len != UUID_TEXT_SIZE - 1) {
        return false;
    }
    memcpy(name, f.s, f.len);
    name[f.len] = '\0';
    return uuid_is_valid(name);
}

/* Whether a line may be about a job of ours: one of its fields is a UUID. Other people's names may
 * hold anything, '|' and ends of lines too. */
static bool has_name(const char *line, size_t len)
{
    char name[UUID_TEXT_SIZE];
    for (;;) {
        const char *bar = memchr(line, '|', len);
        struct field f = {line, bar != NULL ? (size_t)(bar - line) : len};
        if (read_name(f, name)) {
            return true;
        }
        if (bar == NULL) {
            return false;
        }
        line += f.len + 1;
        len -= f.len + 1;
    }
}

static void add_row(struct slurm_rows *out, size_t *cap, struct arena *a,
                    const struct slurm_row *row)
{
    if (out->n == *cap) {
        size_t grown = *cap == 0 ? 64 : *cap * 2;
        struct slurm_row *rows = arena_array(a, grown, sizeof(*rows));
        if (out->n > 0) {
            memcpy(rows, out->rows, out->n * sizeof(*rows));
        }
        out->rows = rows;
        *cap = grown;
    }
    out->rows[out->n++] = *row;
}

/* Where the fields of a row are in a line. */
struct columns {
    size_t n;
    size_t id;
    size_t state;
    size_t reason; /* n: there is none */
    size_t name;
    size_t submit;
    size_t node;
};

static void parse_rows(const char *text, size_t len, const struct columns *c, struct arena *arena,
                       struct slurm_rows *out)
{
    const char *line = NULL;
    size_t n = 0;
    size_t cap = 0;
    const bool whole = len > 0 && text[len - 1] == '\n';
    *out = (struct slurm_rows){0};
    while (next_line(&text, &len, &line, &n)) {
        struct field f[FIELDS_MAX];
        struct slurm_row row = {.reason = ""};
        if (!whole && len == 0) {
            out->n_odd++; /* cut off: it may have been ours */
            break;
        }
        if (n == 0 || (n > 8 && memcmp(line, "CLUSTER:", 8) == 0)) {
            continue; /* rule 25: one such line for each cluster */
        }
        if (!has_name(line, n)) {
            out->n_foreign++;
            continue;
        }
        if (n > LINE_MAX_BYTES || !split(line, n, c->n, f) || !read_name(f[c->name], row.name) ||
            !read_id(f[c->id], &row.index) || f[c->state].len == 0) {
            out->n_odd++;
            continue;
        }
        row.state = slurm_state_from_word(f[c->state].s, f[c->state].len);
        row.submit_s = read_digits(f[c->submit].s, f[c->submit].len);
        row.id = keep(arena, f[c->id]);
        row.word = keep(arena, f[c->state]);
        row.reason = c->reason < c->n ? keep(arena, f[c->reason]) : "";
        row.node = first_node(arena, f[c->node]);
        add_row(out, &cap, arena, &row);
    }
}

void slurm_parse_queue(const char *text, size_t len, struct arena *arena, struct slurm_rows *out)
{
    static const struct columns SQUEUE = {
        .n = 9, .id = 0, .state = 2, .reason = 3, .name = 4, .submit = 5, .node = 6};
    parse_rows(text, len, &SQUEUE, arena, out);
}

void slurm_parse_accounting(const char *text, size_t len, struct arena *arena,
                            struct slurm_rows *out)
{
    static const struct columns SACCT = {
        .n = 6, .id = 0, .state = 1, .reason = 6, .name = 2, .submit = 3, .node = 4};
    parse_rows(text, len, &SACCT, arena, out);
}

/* Rule 11. Longest lists of users' reports first: what means "later", then what means "never". */
static const struct {
    const char *words;
    enum slurm_refusal kind;
} REFUSALS[] = {
    {"Job violates accounting/QOS policy", SLURM_REFUSED_FULL},
    {"SubmitJobLimit", SLURM_REFUSED_FULL}, /* AssocMaxSubmitJobLimit, QOSGrpSubmitJobsLimit, ... */
    {"MaxSubmitJob", SLURM_REFUSED_FULL},
    {"Slurm temporarily unable to accept job", SLURM_REFUSED_FULL},
    {"maximum job count", SLURM_REFUSED_FULL},
    {"Resource temporarily unavailable", SLURM_REFUSED_FULL},
    {"rate limit", SLURM_REFUSED_FULL},
    {"Required partition not available", SLURM_REFUSED_FULL}, /* inactive, or being drained */
    {"Socket timed out", SLURM_REFUSED_UNKNOWN},
    {"Unable to contact slurm controller", SLURM_REFUSED_UNKNOWN},
    {"Zero Bytes were transmitted", SLURM_REFUSED_UNKNOWN},
    {"Transport endpoint", SLURM_REFUSED_UNKNOWN},
    {"Connection refused", SLURM_REFUSED_UNKNOWN},
    {"Unexpected message received", SLURM_REFUSED_UNKNOWN},
    {"Invalid job id specified", SLURM_REFUSED_ABSENT},
    {"accounting storage is disabled", SLURM_REFUSED_NO_ACCOUNTING},
    {"Invalid partition name", SLURM_REFUSED_NEVER},
    {"invalid partition specified", SLURM_REFUSED_NEVER},
    {"Invalid account", SLURM_REFUSED_NEVER},
    {"Invalid qos specification", SLURM_REFUSED_NEVER},
    {"Invalid feature specification", SLURM_REFUSED_NEVER},
    {"Invalid generic resource", SLURM_REFUSED_NEVER},
    {"Invalid Trackable RESource", SLURM_REFUSED_NEVER},
    {"Invalid job array specification", SLURM_REFUSED_NEVER},
    {"Invalid wckey", SLURM_REFUSED_NEVER},
    {"Invalid license", SLURM_REFUSED_NEVER},
    {"Invalid node name", SLURM_REFUSED_NEVER},
    {"Requested time limit is invalid", SLURM_REFUSED_NEVER},
    {"Requested partition configuration not available", SLURM_REFUSED_NEVER},
    {"Memory specification can not be satisfied", SLURM_REFUSED_NEVER},
    {"More processors requested than permitted", SLURM_REFUSED_NEVER},
    {"CPU count per node can not be satisfied", SLURM_REFUSED_NEVER},
    {"Node count specification invalid", SLURM_REFUSED_NEVER},
    {"not permitted to use this partition", SLURM_REFUSED_NEVER},
    {"Access/permission denied", SLURM_REFUSED_NEVER},
    {"unrecognized option", SLURM_REFUSED_NEVER},
    {"invalid option", SLURM_REFUSED_NEVER},
    /* last: where another line says more, that counts */
    {"Requested node configuration is not available", SLURM_REFUSED_NODES},
};

enum slurm_refusal slurm_parse_refusal(const char *text, size_t len)
{
    for (size_t i = 0; i < sizeof(REFUSALS) / sizeof(REFUSALS[0]); i++) {
        if (memmem(text, len, REFUSALS[i].words, strlen(REFUSALS[i].words)) != NULL) {
            return REFUSALS[i].kind;
        }
    }
    return SLURM_REFUSED_UNKNOWN;
}

/* "sbatch: error: x" -> "x" */
static const char *without_prefix(const char *line)
{
    static const char ERROR[] = "error: ";
    const char *at = strstr(line, ERROR);
    return at != NULL && at - line < 32 ? at + sizeof(ERROR) - 1 : line;
}

/* "Try "sbatch --help" for more information" is below what is wrong. */
static bool is_hint(const char *line)
{
    return strncmp(line, "Try ", 4) == 0;
}

void slurm_parse_why(const char *text, size_t len, char *why, size_t size)
{
    char line[512];
    char error[512] = ""; /* the last one before this line */
    const char *s = NULL;
    size_t n = 0;
    why[0] = '\0';
    /* The last line says what failed, and the error before it what about it: "Memory specification
     * can not be satisfied", then "Requested node configuration is not available". Others warn. */
    while (next_line(&text, &len, &s, &n)) {
        size_t cut = n < sizeof(line) - 1 ? n : sizeof(line) - 1;
        memcpy(line, s, cut);
        line[cut] = '\0';
        if (n == 0 || is_hint(line)) {
            continue;
        }
        const char *words = without_prefix(line);
        const bool more = error[0] != '\0' && strcmp(error, words) != 0;
        char both[sizeof(line) + sizeof(error) + 2];
        text_copy_line(both, sizeof(error), more ? error : "");
        text_copy_line(both + strlen(both), 3, more ? "; " : "");
        text_copy_line(both + strlen(both), sizeof(line), words);
        text_copy_line(why, size, both);
        text_copy_line(error, sizeof(error), words != line ? words : "");
    }
}

int64_t slurm_parse_max_array(const char *text, size_t len)
{
    static const char NAME[] = "MaxArraySize";
    const char *line = NULL;
    size_t n = 0;
    while (next_line(&text, &len, &line, &n)) {
        const char *equals = memchr(line, '=', n);
        if (n < sizeof(NAME) || memcmp(line, NAME, sizeof(NAME) - 1) != 0 || equals == NULL) {
            continue;
        }
        const char *value = equals + 1;
        while (value < line + n && *value == ' ') {
            value++;
        }
        int64_t size = read_digits(value, (size_t)(line + n - value));
        return size > 0 && size <= INDEX_MAX ? size : -1;
    }
    return -1;
}
