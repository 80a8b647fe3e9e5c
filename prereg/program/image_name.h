/* Names of container images in a program: `environment = "podman://NAME"`. */
#ifndef PREREG_PROGRAM_IMAGE_NAME_H
#define PREREG_PROGRAM_IMAGE_NAME_H

#include <stdbool.h>

#define IMAGE_SCHEME "podman://"

/* Whether podman takes it for the name of an image and for nothing else. */
bool image_name_ok(const char *name);

#endif
