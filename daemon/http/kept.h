/*
 * Answers that cost much, kept for those who ask the same again: tabs that show the same curves
 * then cost what one of them does. A few, the newest; each is valid while its program has not
 * changed since its end, or else for a while that grows with what it cost.
 */
#ifndef DAEMON_HTTP_KEPT_H
#define DAEMON_HTTP_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEPT_ANSWERS   4
#define KEPT_BYTES_MAX ((size_t)8 * 1024 * 1024) /* of each; larger ones are not kept */
#define KEPT_REST      20                        /* times what it cost, */
#define KEPT_REST_NS   60000000000               /* but no longer than this */

struct kept_answer {
    char *question; /* NULL: unused */
    char *bytes;
    size_t len;
    uint64_t version; /* of the program, when it was asked */
    bool final;       /* the program had ended: valid until its version changes */
    int64_t until_ns; /* else: mono */
};

struct kept_new {
    const char *question;
    const char *bytes;
    size_t len;
    uint64_t version;
    bool final;
    int64_t began_ns; /* what it cost is the time since then */
};

struct kept {
    struct kept_answer items[KEPT_ANSWERS];
    size_t next;
};

/* final: the program has ended, so what was answered before is not valid. NULL: there is none that
 * is. Borrowed. */
const struct kept_answer *kept_find(const struct kept *k, const char *question, uint64_t version,
                                    bool final, int64_t now_ns);
/* Copies question and bytes. */
void kept_add(struct kept *k, const struct kept_new *made, int64_t now_ns);
void kept_release(struct kept *k);

#endif
