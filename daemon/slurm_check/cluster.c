/* Reads "Key=value" fields. scontrol -o prints one object a line; a value ends at a blank, so that
 * of a value that holds blanks (OS, Reason) only the beginning is seen, and none of these is read.
 */
#include "daemon/slurm_check/cluster.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/xalloc.h"

#define ROWS_MAX   ((size_t)100000)
#define DIGITS_MAX 15

struct cluster_text {
    const char *s;
    size_t len;
};

void cluster_init(struct cluster *c)
{
    *c = (struct cluster){
        .name = "", .version = "", .accounting = "", .max_array = -1, .max_jobs = -1};
    arena_init(&c->arena);
}

void cluster_release(struct cluster *c)
{
    arena_release(&c->arena);
}

/* The next line without its end; false at the end of the text. */
static bool next_line(struct cluster_text *text, struct cluster_text *line)
{
    if (text->len == 0) {
        return false;
    }
    const char *end = memchr(text->s, '\n', text->len);
    line->s = text->s;
    line->len = end != NULL ? (size_t)(end - text->s) : text->len;
    const size_t step = line->len + (end != NULL);
    text->s += step;
    text->len -= step;
    return true;
}

static bool begins(struct cluster_text s, const char *with)
{
    const size_t n = strlen(with);
    return s.len >= n && memcmp(s.s, with, n) == 0;
}

static bool is(struct cluster_text s, const char *word)
{
    return s.len == strlen(word) && begins(s, word);
}

/* The value of `key` in "A=1 B=2"; empty when it is not there. */
static struct cluster_text field(struct cluster_text line, const char *key)
{
    const size_t n = strlen(key);
    for (size_t i = 0; i + n < line.len; i++) {
        if ((i == 0 || line.s[i - 1] == ' ') && memcmp(line.s + i, key, n) == 0 &&
            line.s[i + n] == '=') {
            const char *value = line.s + i + n + 1;
            size_t len = 0;
            while (value + len < line.s + line.len && value[len] != ' ') {
                len++;
            }
            return (struct cluster_text){value, len};
        }
    }
    return (struct cluster_text){"", 0};
}

/* Digits up to the first character that is none; -1 without any, or with too many. */
static int64_t number(struct cluster_text s)
{
    int64_t value = 0;
    size_t n = 0;
    while (n < s.len && s.s[n] >= '0' && s.s[n] <= '9') {
        value = value * 10 + (s.s[n] - '0');
        if (++n > DIGITS_MAX) {
            return -1;
        }
    }
    return n > 0 ? value : -1;
}

static const char *keep(struct cluster *c, struct cluster_text s)
{
    char *text = arena_strndup(&c->arena, s.s, s.len);
    text_make_line(text);
    return text;
}

int64_t cluster_time_ms(const char *text, size_t len)
{
    int64_t parts[4] = {0};
    size_t n = 0;
    int64_t days = 0;
    struct cluster_text rest = {text, len};
    const char *dash = memchr(text, '-', len);
    if (dash != NULL) {
        days = number(rest);
        rest = (struct cluster_text){dash + 1, (size_t)(text + len - dash - 1)};
    }
    while (rest.len > 0 && n < 4) {
        const char *colon = memchr(rest.s, ':', rest.len);
        const size_t here = colon != NULL ? (size_t)(colon - rest.s) : rest.len;
        parts[n] = number((struct cluster_text){rest.s, here});
        if (parts[n++] < 0) {
            return -1;
        }
        const size_t step = here + (colon != NULL);
        rest.s += step;
        rest.len -= step;
    }
    /* scontrol prints [D-]HH:MM:SS; anything else is a word */
    if (n != 3 || days < 0 || days > 36500 || parts[0] > 100000 || parts[1] > 59 || parts[2] > 59) {
        return -1;
    }
    return ((days * 24 + parts[0]) * 3600 + parts[1] * 60 + parts[2]) * 1000;
}

/* "MaxArraySize            = 1001" */
static struct cluster_text config_value(struct cluster_text line)
{
    const char *equals = memchr(line.s, '=', line.len);
    if (equals == NULL) {
        return (struct cluster_text){"", 0};
    }
    struct cluster_text v = {equals + 1, (size_t)(line.s + line.len - equals - 1)};
    while (v.len > 0 && v.s[0] == ' ') {
        v.s++;
        v.len--;
    }
    return v;
}

void cluster_read_config(struct cluster *c, const char *text, size_t len)
{
    struct cluster_text rest = {text, len};
    struct cluster_text line;
    while (next_line(&rest, &line)) {
        if (begins(line, "ClusterName ")) {
            c->name = keep(c, config_value(line));
        } else if (begins(line, "SLURM_VERSION ")) {
            c->version = keep(c, config_value(line));
        } else if (begins(line, "AccountingStorageType ")) {
            c->accounting = keep(c, config_value(line));
        } else if (begins(line, "MaxArraySize ")) {
            c->max_array = number(config_value(line));
        } else if (begins(line, "MaxJobCount ")) {
            c->max_jobs = number(config_value(line));
        }
    }
}

static size_t count_lines(const char *text, size_t len)
{
    size_t n = 1;
    for (size_t i = 0; i < len; i++) {
        n += text[i] == '\n';
    }
    return n < ROWS_MAX ? n : ROWS_MAX;
}

void cluster_read_partitions(struct cluster *c, const char *text, size_t len)
{
    struct cluster_text rest = {text, len};
    struct cluster_text line;
    const size_t cap = count_lines(text, len);
    c->partitions = arena_array(&c->arena, cap, sizeof(*c->partitions));
    c->n_partitions = 0;
    while (c->n_partitions < cap && next_line(&rest, &line)) {
        const struct cluster_text name = field(line, "PartitionName");
        if (name.len == 0) {
            continue;
        }
        const struct cluster_text max = field(line, "MaxTime");
        const struct cluster_text usual = field(line, "DefaultTime");
        c->partitions[c->n_partitions++] =
            (struct cluster_partition){.name = keep(c, name),
                                       .is_default = is(field(line, "Default"), "YES"),
                                       .is_up = is(field(line, "State"), "UP"),
                                       .max_time_ms = cluster_time_ms(max.s, max.len),
                                       .default_time_ms = cluster_time_ms(usual.s, usual.len)};
    }
}

/* "gpu:a100:4(S:0-1),gpu:2,nvme:1" -> 6; 0 without any. */
static int64_t count_gpus(struct cluster_text gres)
{
    int64_t sum = 0;
    while (gres.len > 0) {
        const char *comma = memchr(gres.s, ',', gres.len);
        struct cluster_text one = {gres.s, comma != NULL ? (size_t)(comma - gres.s) : gres.len};
        const size_t step = one.len + (comma != NULL);
        gres.s += step;
        gres.len -= step;
        const char *paren = memchr(one.s, '(', one.len);
        one.len = paren != NULL ? (size_t)(paren - one.s) : one.len;
        if (!is(one, "gpu") && !begins(one, "gpu:")) {
            continue;
        }
        const char *last = memrchr(one.s, ':', one.len);
        const int64_t n =
            last == NULL
                ? 1
                : number((struct cluster_text){last + 1, (size_t)(one.s + one.len - last - 1)});
        sum += n > 0 ? n : 0;
    }
    return sum;
}

/* "Reason=Not responding [root@2026-11-28T10:00:00]" -> "Not responding" */
static struct cluster_text reason_of(struct cluster_text line)
{
    static const char key[] = " Reason=";
    const char *at = memmem(line.s, line.len, key, sizeof(key) - 1);
    if (at == NULL) {
        return (struct cluster_text){"", 0};
    }
    const char *from = at + sizeof(key) - 1;
    const size_t left = (size_t)(line.s + line.len - from);
    const char *who = memmem(from, left, " [", 2);
    return (struct cluster_text){from, who != NULL ? (size_t)(who - from) : left};
}

void cluster_read_nodes(struct cluster *c, const char *text, size_t len)
{
    struct cluster_text rest = {text, len};
    struct cluster_text line;
    const size_t cap = count_lines(text, len);
    c->nodes = arena_array(&c->arena, cap, sizeof(*c->nodes));
    c->n_nodes = 0;
    while (c->n_nodes < cap && next_line(&rest, &line)) {
        const struct cluster_text name = field(line, "NodeName");
        if (name.len == 0) {
            continue;
        }
        const int64_t megabytes = number(field(line, "RealMemory"));
        c->nodes[c->n_nodes++] = (struct cluster_node){
            .name = keep(c, name),
            .partitions = keep(c, field(line, "Partitions")),
            .cores = number(field(line, "CPUTot")),
            .memory_bytes =
                megabytes >= 0 && megabytes < (int64_t)1 << 40 ? megabytes * 1024 * 1024 : -1,
            .gpus = count_gpus(field(line, "Gres")),
            .state = keep(c, field(line, "State")),
            .reason = keep(c, reason_of(line))};
    }
}

bool cluster_accounts(const struct cluster *c)
{
    return strcmp(c->accounting, "accounting_storage/slurmdbd") == 0;
}

const char *cluster_default_partition(const struct cluster *c)
{
    for (size_t i = 0; i < c->n_partitions; i++) {
        if (c->partitions[i].is_default) {
            return c->partitions[i].name;
        }
    }
    return NULL;
}

const struct cluster_partition *cluster_find_partition(const struct cluster *c, const char *name,
                                                       size_t len)
{
    for (size_t i = 0; i < c->n_partitions; i++) {
        const char *known = c->partitions[i].name;
        if (strlen(known) == len && memcmp(known, name, len) == 0) {
            return &c->partitions[i];
        }
    }
    return NULL;
}

void cluster_partition_names(const struct cluster *c, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < c->n_partitions && used + 1 < size; i++) {
        const int n =
            snprintf(out + used, size - used, "%s%s", i > 0 ? ", " : "", c->partitions[i].name);
        used += n > 0 ? (size_t)n : 0;
    }
}

/* Calls for each word of a comma list; false: it has ended. */
static bool next_word(struct cluster_text *list, struct cluster_text *word)
{
    if (list->len == 0) {
        return false;
    }
    const char *comma = memchr(list->s, ',', list->len);
    word->s = list->s;
    word->len = comma != NULL ? (size_t)(comma - list->s) : list->len;
    const size_t step = word->len + (comma != NULL);
    list->s += step;
    list->len -= step;
    return true;
}

bool cluster_lacks_partition(const struct cluster *c, const char *list, char *name, size_t size)
{
    struct cluster_text rest = {list, strlen(list)};
    struct cluster_text word;
    while (next_word(&rest, &word)) {
        if (cluster_find_partition(c, word.s, word.len) == NULL) {
            (void)snprintf(name, size, "%.*s", (int)word.len, word.s);
            return true;
        }
    }
    return false;
}

/* Whether two comma lists have a word in common. */
static bool share_word(const char *a, const char *b)
{
    struct cluster_text rest = {a, strlen(a)};
    struct cluster_text word;
    while (next_word(&rest, &word)) {
        struct cluster_text others = {b, strlen(b)};
        struct cluster_text other;
        while (next_word(&others, &other)) {
            if (word.len > 0 && word.len == other.len && memcmp(word.s, other.s, word.len) == 0) {
                return true;
            }
        }
    }
    return false;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void cluster_most(const struct cluster *c, const char *partitions, struct cluster_most *out)
{
    struct cluster_text rest = {partitions, strlen(partitions)};
    struct cluster_text word;
    *out = (struct cluster_most){0};
    for (size_t i = 0; i < c->n_nodes; i++) {
        const struct cluster_node *n = &c->nodes[i];
        if (share_word(n->partitions, partitions)) {
            out->n_nodes++;
            out->cores = larger(out->cores, n->cores);
            out->memory_bytes = larger(out->memory_bytes, n->memory_bytes);
            out->gpus = larger(out->gpus, n->gpus);
        }
    }
    bool limited = true;
    while (next_word(&rest, &word)) {
        const struct cluster_partition *p = cluster_find_partition(c, word.s, word.len);
        limited = limited && p != NULL && p->max_time_ms >= 0;
        out->time_ms = p != NULL ? larger(out->time_ms, p->max_time_ms) : out->time_ms;
    }
    out->time_ms = limited ? out->time_ms : -1;
}

static bool node_fits(const struct cluster_node *n, const char *partitions,
                      const struct slurm_request *r)
{
    return share_word(n->partitions, partitions) && (n->cores < 0 || n->cores >= r->threads) &&
           (n->memory_bytes < 0 || n->memory_bytes >= r->memory_bytes) && n->gpus >= r->gpus;
}

bool cluster_has_node(const struct cluster *c, const char *partitions,
                      const struct slurm_request *r)
{
    for (size_t i = 0; i < c->n_nodes; i++) {
        if (node_fits(&c->nodes[i], partitions, r)) {
            return true;
        }
    }
    return false;
}

/* A base state and flags, as "IDLE+DRAIN" or "DOWN*"; an unknown one is not away. POWERED_DOWN is
 * a node of a cloud, which Slurm starts. */
static bool is_away(const char *state)
{
    static const char *const flags[] = {"DRAIN", "FAIL", "NOT_RESPONDING", "*", "MAINT", "UNKNOWN"};
    bool away = strncmp(state, "DOWN", 4) == 0;
    for (size_t i = 0; !away && i < ARRAY_LEN(flags); i++) {
        away = strstr(state, flags[i]) != NULL;
    }
    return away;
}

size_t cluster_count_away(const struct cluster *c, const char *partitions,
                          const struct slurm_request *r, char *words, size_t size)
{
    size_t n_away = 0;
    words[0] = '\0';
    for (size_t i = 0; i < c->n_nodes; i++) {
        const struct cluster_node *n = &c->nodes[i];
        if (!node_fits(n, partitions, r) || !is_away(n->state)) {
            continue;
        }
        if (n_away++ == 0) {
            const bool said = n->reason[0] != '\0';
            (void)snprintf(words, size, "%s is %s%s%s%s", n->name, n->state, said ? " (" : "",
                           n->reason, said ? ")" : "");
        }
    }
    return n_away;
}

int64_t cluster_number(const char *text, size_t len, const char *key)
{
    return number(field((struct cluster_text){text, len}, key));
}

int64_t cluster_max_submit(const char *text, size_t len, const char *account)
{
    struct cluster_text rest = {text, len};
    struct cluster_text line;
    int64_t most = -1;
    while (next_line(&rest, &line)) {
        const char *bar = memchr(line.s, '|', line.len);
        const struct cluster_text name = {line.s, bar != NULL ? (size_t)(bar - line.s) : 0};
        if (bar != NULL && (account == NULL || is(name, account))) {
            most = larger(most, number((struct cluster_text){bar + 1, line.len - name.len - 1}));
        }
    }
    return most;
}
