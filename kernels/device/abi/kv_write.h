// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "device/abi/kv_view.h"

namespace vitrine::kernels::abi {

constexpr int kKvWriteAbi = 1;

/// k and v (tokens, view.tokenStride) with `kStride` and `vStride` elements between tokens.
struct KvWriteParams {
    const void* k;
    const void* v;
    long long kStride, vStride;
    const int* sequence;  ///< (tokens)
    const int* positions; ///< (tokens)
    KvViewParams cache;
};

} // namespace vitrine::kernels::abi
