// Opens a door in a process of its own, and does with it what a program does first. A library that aborts, crashes, hangs or ends the
// process does it here, where it is an answer and not the end of that program.
//
//     infer-llama-probe LIBRARY SECONDS
//
// The answer is on stdout, a fact a line, and complete when its last line is "done". Whatever the library prints goes to stderr.
#include "llama_door.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE * answer;

// One line of the answer, whatever the text has in it.
static void say(const char * what, const char * text) {
    fprintf(answer, "%s ", what);
    for (; text != NULL && *text != '\0'; ++text) {
        fputc((unsigned char) *text < ' ' ? ' ' : *text, answer);
    }
    fputc('\n', answer);
}

// Ends without the library's exit handlers: they belong to the end of a program, not to its first steps.
static int end(const char * word) {
    fprintf(answer, "%s\n", word);
    _exit(fclose(answer) == 0 ? 0 : 1);
}

static void start(const infer_llama_table * table) {
    infer_llama_error error;
    if (table->backend_init(&error) != INFER_LLAMA_OK) {
        say("failed", error.message);
        return;
    }
    const size_t n = table->device_count();
    for (size_t i = 0; i < n; ++i) {
        infer_llama_device device;
        if (table->device_info(i, &device, &error) != INFER_LLAMA_OK) {
            say("failed", error.message);
            return;
        }
        say("device", device.name);
    }
}

int main(int argc, char ** argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: infer-llama-probe LIBRARY SECONDS\n");
        return 2;
    }
    // Should whoever started this be gone, it still ends.
    alarm((unsigned) atoi(argv[2]));
    const int out = dup(STDOUT_FILENO);
    answer = out < 0 ? NULL : fdopen(out, "w");
    if (answer == NULL || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        perror("infer-llama-probe");
        return 2;
    }
    fprintf(answer, "infer-llama-probe %u\n", (unsigned) INFER_LLAMA_DOOR_VERSION);

    void * library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        say("unloadable", dlerror());
        return end("done");
    }
    const infer_llama_table * (*open)(uint32_t) = NULL;
    void * symbol = dlsym(library, "infer_llama_api");
    if (symbol == NULL) {
        say("symbol", dlerror());
        return end("done");
    }
    memcpy(&open, &symbol, sizeof(open));
    const infer_llama_table * table = open(INFER_LLAMA_DOOR_VERSION);
    if (table == NULL) {
        table = open(0);
    }
    if (table == NULL || (uintptr_t) table % sizeof(void *) != 0) {
        return end("done");
    }
    fprintf(answer, "version %u\nsize %u\n", (unsigned) table->version, (unsigned) table->size);
    // Of another shape nothing more may be read; whoever asked refuses it by these two numbers.
    if (table->version == INFER_LLAMA_DOOR_VERSION && table->size == sizeof(infer_llama_table) &&
        table->sizeof_error == sizeof(infer_llama_error) && table->sizeof_device == sizeof(infer_llama_device) &&
        table->backend_init != NULL && table->device_count != NULL && table->device_info != NULL) {
        start(table);
    }
    return end("done");
}
