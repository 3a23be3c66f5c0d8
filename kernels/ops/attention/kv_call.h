// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A KV cache as kernels see it.

#include "kernels/device/abi/kv_view.h"
#include "kernels/ops/attention/kv_view.h"
#include "kernels/ops/common/cuda_call.h"

namespace vitrine::kernels {

/// Unsupported where a table or page is too large for the kernels; `op` stands in the message.
inline abi::KvViewParams kvParameters(const KvView& view, std::string_view op) {
    abi::KvViewParams out{};
    out.keys = view.keys.data;
    out.values = view.values.data;
    out.blockTable = view.blockTable.as<const int>();
    out.first = view.first.as<const int>();
    out.lengths = view.lengths.as<const int>();
    out.keyScales = view.keyScales.as<float>();
    out.valueScales = view.valueScales.as<float>();
    out.keyScaleStride = view.quantized() ? view.keyScales.stride0() : 0;
    out.valueScaleStride = view.quantized() ? view.valueScales.stride0() : 0;
    out.keyPageStride = view.keys.stride0();
    out.valuePageStride = view.values.stride0();
    out.sequences = toInt(view.blockTable.shape[0], op, "cache.blockTable");
    out.columns = toInt(view.blockTable.shape[1], op, "cache.blockTable");
    out.pageTokens = toInt(view.keys.shape[1], op, "cache.keys");
    out.tokenStride = toInt(view.keys.shape[2] * view.keys.shape[3], op, "cache.keys");
    out.pageShift = -1;
    for (int shift = 0; shift < 31; ++shift) {
        if (out.pageTokens == 1 << shift) {
            out.pageShift = shift;
        }
    }
    out.ring = view.ring ? 1 : 0;
    return out;
}

} // namespace vitrine::kernels
