/*
 * A container image that a stage runs in: `environment = "podman://NAME"`. podman(1) runs as a
 * child without a shell and says which image a name leads to; what it stores is believed. Nothing
 * of the image runs here.
 */
#ifndef PREREG_LOCK_IMAGE_H
#define PREREG_LOCK_IMAGE_H

#include "base/err.h"
#include "base/files/digest.h"

/* Gives the digest of the image that `name` leads to now: that of its configuration, which holds
 * those of its layers. ERR_NOT_FOUND: no image has this name here. */
int image_find(const char *name, char hex[DIGEST_HEX_SIZE], struct err *err) MUST_CHECK;

/* The path of podman, for free(). ERR_NOT_FOUND where it is not installed. */
int image_runtime(char **path, struct err *err) MUST_CHECK;

/* The variables of this process that podman needs to find its programs and its images,
 * NULL-terminated; for xfree_list(). */
char **image_runtime_variables(void) __attribute__((returns_nonnull));

#endif
