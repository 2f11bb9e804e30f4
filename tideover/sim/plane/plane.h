/* The data plane's public side. C includes this file, and Python reads it through cffi, which knows no preprocessor:
 * only plain structs, enums and prototypes, and `#define NAME integer`. Lines that begin with #ifndef, #include,
 * #endif or an attribute of their own are for C alone. */
#ifndef TIDEOVER_PLANE_H
#define TIDEOVER_PLANE_H

#include <stdint.h>

#pragma GCC visibility push(default)

/* The compiler that made this library, with its version. */
const char *plane_made_by(void);

/* SHA-256 of the sources that it was made of (build.py says of what exactly), as 64 hexadecimal digits. */
const char *plane_sources(void);

#pragma GCC visibility pop

#endif
