/* A library with the shape of ONNX Runtime and nothing behind it. What the test wants wrong about it is defined on the command line. */

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct base {
    const void * (*api)(uint32_t version);
    const char * (*version)(void);
};

static void nothing(void) {}

static void (*table[ENTRIES])(void);

/* Shows that the library was let in at all. */
__attribute__((constructor)) static void loaded(void) {
    fprintf(stderr, "loaded %s\n", NAME);
#ifdef ON_LOAD
    ON_LOAD;
#endif
}

static const void * api(uint32_t version) {
    /* As the real one does. */
    if (version > API) {
        fprintf(stderr, "asked for version %u\n", (unsigned) version);
        return NULL;
    }
    for (int i = 0; i < ENTRIES; ++i) {
        table[i] = nothing;
    }
#ifdef MISSING_ENTRY
    table[MISSING_ENTRY] = NULL;
#endif
    return table;
}

static const char * version(void) { return RELEASE; }

#ifdef NO_BASE_SYMBOL
int something_else = 1;
#else
const void * OrtGetApiBase(void) {
    static struct base base = { BASE_API, BASE_VERSION };
    (void) api;
    (void) version;
#    ifdef NO_BASE
    (void) base;
    return NULL;
#    else
    return &base;
#    endif
}
#endif
