// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/attention/kv_pages.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.h"

namespace vitrine::kernels {

void checkKvView(const OpCheck& rule, const KvView& view, std::int64_t kvHeads, std::int64_t headDim) {
    rule.shape(view.keys, "cache.keys", {OpCheck::kAny, OpCheck::kAny, kvHeads, headDim});
    if (isQuantizedKv(view.keys.dtype)) {
        rule.shape(view.keyScales, "cache.keyScales", {OpCheck::kAny, kvHeads, view.keys.shape[1]});
        rule.dtype(view.keyScales, "cache.keyScales", DType::F32);
        rule.shape(view.valueScales, "cache.valueScales", {OpCheck::kAny, kvHeads, view.keys.shape[1]});
        rule.dtype(view.valueScales, "cache.valueScales", DType::F32);
    } else {
        rule.floating(view.keys, "cache.keys");
        rule.require(view.keyScales.empty() && view.valueScales.empty(), "cache.keyScales", "floats have no scales");
    }
    rule.require(view.keys.shape[1] > 0, "cache.keys", "pages hold no tokens");
    rule.shape(view.values, "cache.values", {OpCheck::kAny, view.keys.shape[1], kvHeads, headDim});
    rule.require(view.values.dtype == view.keys.dtype, "cache.values", "dtype differs from the keys'");
    rule.shape(view.blockTable, "cache.blockTable", {OpCheck::kAny, OpCheck::kAny});
    rule.dtype(view.blockTable, "cache.blockTable", DType::I32);
    rule.contiguous(view.blockTable, "cache.blockTable");
    const std::int64_t sequences = view.blockTable.shape[0];
    rule.shape(view.first, "cache.first", {sequences});
    rule.dtype(view.first, "cache.first", DType::I32);
    rule.shape(view.lengths, "cache.lengths", {sequences});
    rule.dtype(view.lengths, "cache.lengths", DType::I32);
}

KvPages::KvPages(const KvView& view)
    : table_(view.blockTable.as<const std::int32_t>()), first_(view.first.as<const std::int32_t>()),
      lengths_(view.lengths.as<const std::int32_t>()), sequences_(view.blockTable.shape[0]),
      maxPages_(view.blockTable.shape[1]), pageTokens_(view.keys.shape[1]),
      tokenStride_(view.keys.shape[2] * view.keys.shape[3]), keyPageStride_(view.keys.stride0()),
      valuePageStride_(view.values.stride0()), keyScaleStride_(view.quantized() ? view.keyScales.stride0() : 0),
      valueScaleStride_(view.quantized() ? view.valueScales.stride0() : 0), ring_(view.ring) {}

std::int64_t KvPages::pagesOf(std::int64_t sequence) const {
    std::int64_t pages = 0;
    while (pages < maxPages_ && table_[sequence * maxPages_ + pages] >= 0) {
        ++pages;
    }
    return pages;
}

KvPages::Place KvPages::place(std::int64_t sequence, std::int64_t position) const {
    std::int64_t at = position - first_[sequence];
    if (ring_) {
        const std::int64_t capacity = pagesOf(sequence) * pageTokens_;
        at = capacity == 0 ? -1 : position % capacity;
    }
    const std::int64_t page = at < 0 ? -1 : at / pageTokens_;
    if (page < 0 || page >= maxPages_ || table_[sequence * maxPages_ + page] < 0) {
        throw base::Internal(fmt::format("KV cache: position {} of sequence {} lies in no page", position, sequence));
    }
    const std::int64_t number = table_[sequence * maxPages_ + page];
    const std::int64_t inPage = at % pageTokens_;
    return {number * keyPageStride_ + inPage * tokenStride_, number * valuePageStride_ + inPage * tokenStride_,
            pageTokens_ - inPage, number * keyScaleStride_ + inPage, number * valueScaleStride_ + inPage};
}

} // namespace vitrine::kernels
