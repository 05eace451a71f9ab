#include "crossing.h"

#include <stdlib.h>

struct program *program_new(const struct library *library, int messages, int order,
                            int instructions, int slots) {
    struct program *program = calloc(1, sizeof *program);
    if (!program) {
        return NULL;
    }
    program->library = library;
    program->messages_number = messages;
    program->order_number = order;
    program->instructions_number = program->at = program->settled = instructions;
    program->slots_number = slots;
    program->turn = 1; /* no message was over in it */
    /* One more than needed, since calloc may return NULL for nothing. */
    program->messages = calloc((size_t)messages + 1, sizeof *program->messages);
    program->order = calloc((size_t)order + 1, sizeof *program->order);
    program->instructions = calloc((size_t)instructions + 1, sizeof *program->instructions);
    program->slots = calloc((size_t)slots + 1, sizeof *program->slots);
    program->requests = calloc((size_t)messages + 1, sizeof(handle));
    program->status = calloc(1, (size_t)library->status_size + 1);
    if (!program->messages || !program->order || !program->instructions || !program->slots ||
        !program->requests || !program->status) {
        program_free(program);
        return NULL;
    }
    return program;
}

void program_free(struct program *program) {
    if (program) {
        free(program->messages);
        free(program->order);
        free(program->instructions);
        free(program->slots);
        free(program->requests);
        free(program->status);
        crossings_free(program);
        free(program);
    }
}

static int known(const struct program *program, struct place place) {
    return place.slot >= 0 && place.slot < program->slots_number;
}

int program_check(const struct program *program) {
    for (int n = 0; n < program->messages_number; n++) {
        const struct message *one = &program->messages[n];
        if (!known(program, one->place) || one->count < 0 ||
            (one->combine && (one->combine < 0 || one->combine >= program->instructions_number ||
                              program->instructions[one->combine].kind != COMBINE ||
                              program->instructions[one->combine].count <= 0))) {
            return 0;
        }
    }
    for (int n = 0; n < program->order_number; n++) {
        if (program->order[n] < 0 || program->order[n] >= program->messages_number) {
            return 0;
        }
    }
    for (int n = 0; n < program->instructions_number; n++) {
        const struct instruction *todo = &program->instructions[n];
        if (todo->kind == START || todo->kind == AWAIT) {
            if (todo->first < 0 || todo->number < 0 ||
                todo->first > program->order_number - todo->number) {
                return 0;
            }
        } else if (!known(program, todo->left) || !known(program, todo->into) ||
                   !known(program, todo->right) || todo->count < 0) {
            return 0;
        }
    }
    return program->forwarding >= 0 && program->forwarding <= program->instructions_number;
}
