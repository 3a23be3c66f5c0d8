// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How attention sees a KV cache: pages of a pool behind a block table. A contiguous cache is one page per sequence.
// Page n starts stride0() * n elements after `keys.data` (and `values.data`): always multiply by the stride. It may be
// smaller than a page, because pages are separate allocations that lie anywhere at multiples of it; shape[0] bounds
// nothing then, and the table holds the only page numbers that may be used.
// Logical position p of sequence b lives in page table[b][(p - first[b]) / pageTokens], slot (p - first[b]) % pageTokens.
// Only a tile loader translates; masks and programs see logical positions.

#include "kernels/tensor.h"

namespace vitrine::kernels {

struct KvView {
    TensorView keys;       ///< (pages, pageTokens, kvHeads, headDim)
    TensorView values;     ///< the same shape
    TensorView blockTable; ///< (sequences, maxPages) I32: page numbers
    TensorView first;   ///< (sequences) I32: logical position of the first token kept (0 unless a window dropped some)
    TensorView lengths; ///< (sequences) I32: tokens kept, the current ones included
    std::int64_t totalTokens = 0; ///< the host's count of tokens kept over all sequences, for costs only; 0: unknown
    bool ring = false; ///< a sliding layer's ring: slot = p % (pagesOfSequence * pageTokens), `first` still holds
};

} // namespace vitrine::kernels
