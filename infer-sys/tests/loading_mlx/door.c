/* A library with the shape of MLX's door and nothing behind it. What the test wants wrong about it is defined on the command line. */

#include "mlx_door.h"

#include <stddef.h>
#include <stdio.h>

#ifdef NEEDS
extern int needed_by_the_door;
int use(void) { return needed_by_the_door; }
#endif

static void nothing(void) {}

/* Shows that the library was let in at all. */
__attribute__((constructor)) static void loaded(void) { fprintf(stderr, "loaded %s\n", NAME); }

#ifdef NO_SYMBOL
int something_else = 1;
#else
const infer_mlx_table * infer_mlx_api(uint32_t version) {
    static infer_mlx_table table = {
        .size              = SIZE,
        .version           = VERSION,
        .mlx_version       = RELEASE,
        .mlx_pinned        = PINNED,
        .mlx_c_version     = "0.7.0",
        .variant           = VARIANT,
        .sizeof_device     = sizeof(infer_mlx_device),
        .sizeof_array_info = SIZEOF_ARRAY_INFO,
        .sizeof_memory     = sizeof(infer_mlx_memory),
        .sizeof_live       = sizeof(infer_mlx_live),
    };
    void (**entries)(void) = (void (**)(void)) &table.last_error;
    for (size_t i = 0; i < (sizeof(table) - offsetof(infer_mlx_table, last_error)) / sizeof(entries[0]); ++i) {
        entries[i] = nothing;
    }
#    ifdef MISSING_ENTRY
    table.MISSING_ENTRY = NULL;
#    endif
#    ifdef NO_TABLE
    return NULL;
#    endif
    return version == 0 || version == table.version ? &table : NULL;
}
#endif
