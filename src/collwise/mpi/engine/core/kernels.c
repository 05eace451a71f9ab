#include "kernels.h"

#include <stddef.h>
#include <string.h>

/* Vectors may lie anywhere: elements have no alignment, and alias what the user declared. */
#define ELEMENT(type) __attribute__((aligned(1), may_alias)) type

/* The result is one of the two operands or apart from them. */
#if defined(__clang__)
#define APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define APART _Pragma("GCC ivdep")
#endif

#define LOOP(name, type, expression) \
    static void name(const void *left, const void *right, void *into, int64_t count) { \
        typedef ELEMENT(type) element; \
        const element *a = left, *b = right; \
        element *c = into; \
        APART for (int64_t i = 0; i < count; i++) { \
            type x = a[i], y = b[i]; \
            c[i] = (type)(expression); \
        } \
    }

/* Sums and products wrap around, so they are computed without signs, at least as wide as int. */
#define ARITHMETIC(suffix, type) \
    LOOP(sum_##suffix, type, (uint64_t)x + (uint64_t)y) \
    LOOP(prod_##suffix, type, (uint64_t)x * (uint64_t)y) \
    LOOP(band_##suffix, type, x & y) \
    LOOP(bor_##suffix, type, x | y) \
    LOOP(bxor_##suffix, type, x ^ y)
#define ORDER(suffix, type) \
    LOOP(min_##suffix, type, x < y ? x : y) \
    LOOP(max_##suffix, type, x > y ? x : y)

ARITHMETIC(1, uint8_t)
ARITHMETIC(2, uint16_t)
ARITHMETIC(4, uint32_t)
ARITHMETIC(8, uint64_t)
ORDER(b, int8_t)
ORDER(h, int16_t)
ORDER(i, int32_t)
ORDER(q, int64_t)
ORDER(B, uint8_t)
ORDER(H, uint16_t)
ORDER(I, uint32_t)
ORDER(Q, uint64_t)
/* Of two NaNs that of the right operand, which is the library's first, becomes the result, quiet. */
#define REAL(suffix, type) \
    LOOP(sum_##suffix, type, y != y ? y + y : x + y) \
    LOOP(prod_##suffix, type, y != y ? y + y : x * y)
REAL(f, float)
REAL(d, double)
LOOP(land, uint8_t, x && y)
LOOP(lor, uint8_t, x || y)
LOOP(lxor, uint8_t, !x != !y)

static const struct {
    const char *operation, *types;
    kernel loop;
} KERNELS[] = {
#define BY_WIDTH(name) \
    {#name, "bB", name##_1}, {#name, "hH", name##_2}, {#name, "iI", name##_4}, \
    {#name, "qQ", name##_8},
    BY_WIDTH(sum) BY_WIDTH(prod) BY_WIDTH(band) BY_WIDTH(bor) BY_WIDTH(bxor)
#undef BY_WIDTH
#define BY_TYPE(name) \
    {#name, "b", name##_b}, {#name, "h", name##_h}, {#name, "i", name##_i}, \
    {#name, "q", name##_q}, {#name, "B", name##_B}, {#name, "H", name##_H}, \
    {#name, "I", name##_I}, {#name, "Q", name##_Q},
    BY_TYPE(min) BY_TYPE(max)
#undef BY_TYPE
    {"sum", "f", sum_f}, {"sum", "d", sum_d}, {"prod", "f", prod_f}, {"prod", "d", prod_d},
    {"land", "?", land}, {"lor", "?", lor}, {"lxor", "?", lxor},
};

kernel kernel_for(const char *operation, char type) {
    for (size_t n = 0; n < sizeof KERNELS / sizeof *KERNELS; n++) {
        if (type && strchr(KERNELS[n].types, type) && !strcmp(KERNELS[n].operation, operation)) {
            return KERNELS[n].loop;
        }
    }
    return NULL;
}
