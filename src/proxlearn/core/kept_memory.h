/* Memory for large matrices of a solve, some of which is kept for the next solve.
 *
 * The C library gives blocks of megabytes back to the system as soon as they are free, and the system clears each page
 * when it is touched again. That was 38% of the time of an elastic net of 800 x 700 whose working set has 630 columns, and 36%
 * at 300 x 3000 (simulated designs, 2026-11-19). */
#ifndef PROXLEARN_KEPT_MEMORY_H
#define PROXLEARN_KEPT_MEMORY_H

#include <stdlib.h>

#define KEPT_LINE 64
#define KEPT_SLOTS 4            /* Blocks that are kept: a Hessian, its factor, copies of columns, and one more. */
#define KEPT_LEAST (1L << 17)   /* Bytes of a block below which the C library keeps it itself, */
#define KEPT_MOST (1L << 23)    /* and above which nobody keeps it: 8 MiB, so that at most 32 MiB are kept. */

static void *kept_slot[KEPT_SLOTS];

/* A block has its size in the line before it. */
static inline size_t kept_size(void *block) { return *(size_t *)((char *)block - KEPT_LINE); }

static inline void kept_free(void *block) {
    if (block) free((char *)block - KEPT_LINE);
}

static inline void *kept_swap(int slot, void *block) { return __atomic_exchange_n(&kept_slot[slot], block, __ATOMIC_ACQ_REL); }

/* Give a block back. The largest ones are kept; threads may do this at the same time. */
static inline void release_block(void *block) {
    if (block && kept_size(block) >= KEPT_LEAST && kept_size(block) <= KEPT_MOST)
        for (int slot = 0; slot < KEPT_SLOTS && block; slot++) {
            void *there = kept_swap(slot, NULL);
            if (there && kept_size(there) >= kept_size(block)) {
                void *large = there;
                there = block, block = large;
            }
            kept_free(kept_swap(slot, block)); /* which is NULL but where two threads meet */
            block = there;
        }
    kept_free(block);
}

/* A block of at least `bytes`, at the start of a cache line; NULL where there is no memory. */
static inline void *take_block(size_t bytes) {
    void *block = NULL;
    for (int slot = KEPT_SLOTS - 1; bytes >= KEPT_LEAST && slot >= 0; slot--) {
        block = kept_swap(slot, NULL);
        if (block && kept_size(block) >= bytes) return block;
        if (block) kept_free(kept_swap(slot, block));
    }
    if (posix_memalign(&block, KEPT_LINE, bytes + KEPT_LINE) != 0) return NULL;
    *(size_t *)block = bytes;
    return (char *)block + KEPT_LINE;
}
#endif
