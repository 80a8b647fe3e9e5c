/* The program that `preregctl init` writes: ctl/starter.toml, put into the executable by the build.
 */
#ifndef CTL_STARTER_H
#define CTL_STARTER_H

#include <stddef.h>

extern const unsigned char starter_text[];
extern const size_t starter_len;

#endif
