/*
 * Whether the verdict's evidence and the instruments say the same of one contrast. Each voice reads
 * figures that were computed elsewhere (verdict.json, instruments.json) and says one of three
 * things: a difference, none, or that it cannot be read. Nothing here binds.
 *
 * The contrast is the binding counter's, else the one that the first instrument with a contrast
 * names. Only voices about that contrast take part; a mixed model takes part when the contrast's
 * factor is among its fixed ones.
 */
#ifndef TRUTHTABLE_REPORT_AGREEMENT_H
#define TRUTHTABLE_REPORT_AGREEMENT_H

#include "truthtable/report/report_model.h"

enum voice_says { SAYS_UNREADABLE, SAYS_NONE, SAYS_DIFFERENCE };

struct voice {
    const char *who; /* "Intervals over replicates", "Bayes factors (bayes)" */
    enum voice_says says;
    const char *words; /* what it rests on, a phrase without a full stop */
};

#define VOICES_MAX ((size_t)16)

struct agreement {
    const char *contrast; /* NULL: the program has none to speak of */
    struct voice voices[VOICES_MAX];
    size_t n;
    const char
        *sentence; /* whether those that can be read agree; NULL with fewer than two voices */
};

/* Texts are in the arena; a missing instruments.json leaves the voice of the verdict alone. */
struct agreement agreement_of(struct arena *a, const struct report_model *m);

#endif
