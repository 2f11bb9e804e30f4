/* What this library says of itself. */
#include "plane.h"

/* build.py finds the digest in the file by the words before it, without opening the library. */
#define WORDS "tideover-plane-sources:"

static const char sources[] = WORDS PLANE_SOURCES;

const char *plane_made_by(void) {
    return PLANE_COMPILER;
}

const char *plane_sources(void) {
    return sources + sizeof WORDS - 1;
}
