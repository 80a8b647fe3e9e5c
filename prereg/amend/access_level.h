/* How much of the results can have been seen when a program is amended, as the daemon that owns the
 * data knows it (docs/amendments.md). Levels only rise: later ones permit fewer changes. */
#ifndef PREREG_AMEND_ACCESS_LEVEL_H
#define PREREG_AMEND_ACCESS_LEVEL_H

enum access_level {
    ACCESS_NOTHING_RUN,    /* no attempt of any task was ever started */
    ACCESS_NOTHING_SCORED, /* no task of a sealed stage was ever started */
    ACCESS_SEALED,         /* results of sealed stages may exist; none was shown */
    ACCESS_SEEN,           /* unsealed or unblinded */
    ACCESS_NR
};

const char *access_level_name(enum access_level level);  /* "nothing_run", ... as in the journal */
const char *access_level_words(enum access_level level); /* "nothing has run", ... for people */
enum access_level access_level_from_name(const char *name); /* ACCESS_NR when unknown */

#endif
