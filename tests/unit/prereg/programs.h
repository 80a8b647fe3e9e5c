/* Running the real ssh-keygen, openssl and git from a test. */
#ifndef TESTS_UNIT_PREREG_PROGRAMS_H
#define TESTS_UNIT_PREREG_PROGRAMS_H

#include <stdbool.h>

/* Whether sh finds it; says so when it does not. A test without it skips. */
bool program_is_there(const char *name);
/* Runs a line of sh in a folder; fails the test unless it ends with 0. */
void program_run(const char *folder, const char *line);
/* An ed25519 key FOLDER/NAME and NAME.pub. */
void program_make_key(const char *folder, const char *name, const char *passphrase);
/* FOLDER/NAME: `principal` with options ("" for none) signs with the key of FOLDER/KEY.pub. */
char *program_allow(const char *folder, const char *name, const char *line_of, const char *key);

#endif
