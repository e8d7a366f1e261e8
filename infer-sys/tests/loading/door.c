/* A library with the shape of a door and nothing behind it. What the test wants wrong about it is defined on the command line. */

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct table {
    uint32_t     size;
    uint32_t     version;
    const char * commit;
    const char * llama_version;
    const char * variant;
    const void * fields;
    size_t       n_fields;
    uint32_t     sizes[12];
    void (*entries[ENTRIES])(void);
};

/* OK, for those entries that have a status. */
static int32_t nothing(void) { return 0; }

struct error {
    int32_t code;
    char    message[1024];
};

/* The first entry starts the library. */
static int32_t start(struct error * error) {
    (void) error;
#ifdef ON_START
    ON_START;
#endif
    return 0;
}

/* Shows that the library was let in at all. */
__attribute__((constructor)) static void loaded(void) {
    fprintf(stderr, "loaded %s\n", VARIANT);
#ifdef ON_LOAD
    ON_LOAD;
#endif
}

#ifdef NO_DOOR
int something_else = 1;
#else

static struct table table;

#ifdef SHORT
/* A table whose memory ends where it says it ends. */
#    include <sys/mman.h>
static const void * short_table(void) {
    const size_t page = (size_t) sysconf(_SC_PAGESIZE);
    char * pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + page, page, PROT_NONE);
    struct { uint32_t size, version; } prefix = { 8, VERSION };
    memcpy(pages + page - sizeof(prefix), &prefix, sizeof(prefix));
    return pages + page - sizeof(prefix);
}
#endif

const void * infer_llama_api(uint32_t version) {
#ifdef NO_TABLE
    (void) version;
    return NULL;
#elif defined(SHORT)
    (void) version;
    return short_table();
#elif defined(CROOKED)
    (void) version;
    return (const char *) &table + 1;
#else
    if (version != 0 && version != VERSION) {
        return NULL;
    }
    static const uint32_t sizes[12] = { SIZES };
    table.size          = SIZE;
    table.version       = VERSION;
    table.commit        = COMMIT;
    table.llama_version = "0";
    table.variant       = VARIANT;
    for (int i = 0; i < 12; ++i) {
        table.sizes[i] = sizes[i];
    }
    for (int i = 0; i < ENTRIES; ++i) {
        table.entries[i] = (void (*)(void)) nothing;
    }
    table.entries[0] = (void (*)(void)) start;
#    ifdef MISSING_ENTRY
    table.entries[MISSING_ENTRY] = NULL;
#    endif
    return &table;
#endif
}
#endif
