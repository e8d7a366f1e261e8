// Opens ONNX Runtime's library in a process of its own, and asks it what it is. A library that aborts, crashes, hangs or ends the process
// does it here, where it is an answer and not the end of that program.
//
//     infer-onnxruntime-probe LIBRARY SECONDS API
//
// The answer is on stdout, a fact a line, and complete when its last line is "done". Whatever the library prints goes to stderr. What is
// known of ONNX Runtime here is the one structure that no version changes.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// OrtApiBase.
struct base {
    const void * (*api)(uint32_t version);
    const char * (*version)(void);
};

static FILE * answer;

// One line of the answer, whatever the text has in it.
static void say(const char * what, const char * text) {
    fprintf(answer, "%s ", what);
    for (; text != NULL && *text != '\0'; ++text) {
        fputc((unsigned char) *text < ' ' ? ' ' : *text, answer);
    }
    fputc('\n', answer);
}

static void look(const char * path, uint32_t version) {
    void * library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        say("unloadable", dlerror());
        return;
    }
    const struct base * (*open)(void) = NULL;
    void * symbol = dlsym(library, "OrtGetApiBase");
    if (symbol == NULL) {
        say("symbol", dlerror());
        return;
    }
    memcpy(&open, &symbol, sizeof(open));
    const struct base * base = open();
    if (base == NULL || (uintptr_t) base % sizeof(void *) != 0 || base->api == NULL || base->version == NULL) {
        say("base", "none");
        return;
    }
    say("release", base->version());
    if (base->api(version) != NULL) {
        say("table", "there");
    }
}

int main(int argc, char ** argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: infer-onnxruntime-probe LIBRARY SECONDS API\n");
        return 2;
    }
    // Should whoever started this be gone, it still ends.
    alarm((unsigned) atoi(argv[2]));
    const int out = dup(STDOUT_FILENO);
    answer = out < 0 ? NULL : fdopen(out, "w");
    if (answer == NULL || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        perror("infer-onnxruntime-probe");
        return 2;
    }
    fprintf(answer, "infer-onnxruntime-probe 1\n");
    look(argv[1], (uint32_t) atoi(argv[3]));
    fprintf(answer, "done\n");
    // Without the library's exit handlers: they belong to the end of a program, not to its first steps.
    _exit(fclose(answer) == 0 ? 0 : 1);
}
