// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How attention sees a KV cache: pages of a pool, which a block table names. A contiguous cache is one page per
// sequence. Page n starts stride0() * n elements after `keys.data` (and `values.data`): always multiply by the stride.
// It may be smaller than a page, because pages are separate allocations that lie anywhere at multiples of it; shape[0]
// bounds nothing then, and the table holds the only page numbers that may be used. Logical position p of sequence b
// lives in page table[b][(p - first[b]) / pageTokens], place (p - first[b]) % pageTokens. Only a tile loader
// translates; masks and programs see logical positions.
//
// Keys and values are floats, or bytes with a scale for each row, which is one token's head: element = byte * scale.
// Scales lie beside their page's bytes, so a page that is shared, copied or swapped takes them along, and nothing is
// calibrated.
//   I8: the byte is x * (1 / scale) rounded to nearest even, -127 to 127; scale = max|x| / 127.
//   F8E4M3: OCP FP8 (no infinities, largest 448), x * (1 / scale) rounded to nearest even and saturated, as CUDA's
//   __NV_SATFINITE; scale = max|x| / 448.
// Each operation rounds to float32. A scale is cut to 16 significant bits (towards zero): then byte * scale is exact in
// float32, and writing what was read gives the same bytes and the same scale. A row whose scale would be below 2^-126
// is all zeros with scale 0; a row with a NaN or an infinity reads back as NaN everywhere (bytes 0, scale NaN).

#include "kernels/core/tensor.h"

namespace vitrine::kernels {

struct KvView {
    TensorView keys;       ///< (pages, pageTokens, kvHeads, headDim)
    TensorView values;     ///< the same shape; the same memory where a row serves as both
    TensorView blockTable; ///< (sequences, maxPages) I32: page numbers
    TensorView first;   ///< (sequences) I32: logical position of the first token kept (0 unless a window dropped some)
    TensorView lengths; ///< (sequences) I32: tokens kept, the current ones included
    std::int64_t totalTokens = 0; ///< the host's count of tokens kept over all sequences, for costs only; 0: unknown
    bool ring = false;      ///< a sliding layer's ring: place = p % (pagesOfSequence * pageTokens), `first` still holds
    TensorView keyScales;   ///< (pages, kvHeads, pageTokens) F32 of keys in bytes, else empty; pages as those of keys
    TensorView valueScales; ///< of values

    bool quantized() const { return !keyScales.empty(); }
    /// A cache of latents: the values are the keys, and are stored once.
    bool valuesAreKeys() const { return values.data == keys.data; }
};

/// Whether a cache of this type holds bytes and scales.
constexpr bool isQuantizedKv(DType dtype) {
    return dtype == DType::I8 || dtype == DType::F8E4M3;
}

/// Bytes of one token's key (or value) of one head, its scale included.
inline std::uint64_t kvRowBytes(DType dtype, std::int64_t headDim) {
    return bytesOf(dtype, headDim) + (isQuantizedKv(dtype) ? sizeof(float) : 0);
}

} // namespace vitrine::kernels
