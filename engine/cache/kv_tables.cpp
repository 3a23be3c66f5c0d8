// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The block tables and views of the cache that the ops of a step get.

#include <algorithm>
#include <bit>
#include <limits>

#include "engine/cache/kv_cache.h"

namespace vitrine::engine {
namespace {

/// Page numbers of block tables count this many bytes from the first page: every page starts on such a border.
constexpr std::uint64_t kPageUnit = kernels::kMemoryAlignment;

/// Tokens that attention reads of a sequence. A ring is read before the step's tokens replace older ones; the other
/// caches hold them already.
std::int64_t readLength(const KvGroup& kind, std::int64_t before, std::int64_t newTokens) {
    return kind.ring() ? std::min(before, kind.window - 1) : before + newTokens;
}

} // namespace

std::int64_t KvCache::tokensToRead(int group, std::span<const KvAppend> appends) const {
    const KvGroup& kind = groups_[static_cast<std::size_t>(group)];
    std::int64_t sum = 0;
    for (const KvAppend& append : appends) {
        sum += readLength(kind, length(append.sequence), append.tokens);
    }
    return sum;
}

std::int64_t KvCache::tableColumns(int group, std::span<const KvAppend> appends) const {
    const KvGroup& kind = groups_[static_cast<std::size_t>(group)];
    std::int64_t pages = std::max<std::int64_t>(1, book_.pagesFor(group, options_.tableTokens));
    for (const KvAppend& append : appends) {
        pages = std::max(pages, book_.pagesFor(group, length(append.sequence) + append.tokens));
    }
    const auto rounded = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(pages)));
    // A full ring takes its size from its table, so the table of a ring is never wider than the ring.
    return kind.ring() ? std::min(rounded, kind.ringPages) : rounded;
}

KvTables KvCache::tables(int group, std::span<const KvAppend> appends) const {
    const KvGroup& kind = groups_[static_cast<std::size_t>(group)];
    const auto unitsOfPage = static_cast<std::int32_t>(pageStride(group) / kPageUnit);
    KvTables out;
    out.columns = tableColumns(group, appends);
    out.pages.reserve(appends.size() * static_cast<std::size_t>(out.columns));
    for (const KvAppend& append : appends) {
        const std::int64_t before = this->length(append.sequence);
        const std::span<const std::int32_t> held = book_.pages(append.sequence, group);
        for (std::int64_t column = 0; column < out.columns; ++column) {
            const auto index = static_cast<std::size_t>(column);
            out.pages.push_back(index < held.size() ? held[index] * unitsOfPage : -1);
        }
        const std::int64_t after = before + append.tokens;
        const std::int64_t length = readLength(kind, before, append.tokens);
        out.first.push_back(kind.ring() ? static_cast<std::int32_t>(before - length) : 0);
        out.lengths.push_back(static_cast<std::int32_t>(length));
        if (kind.ring()) {
            const std::int64_t kept = std::min(after, kind.ringTokens);
            out.firstAfter.push_back(static_cast<std::int32_t>(after - kept));
            out.lengthsAfter.push_back(static_cast<std::int32_t>(kept));
        }
    }
    out.totalTokens = tokensToRead(group, appends);
    return out;
}

kernels::KvView KvCache::layerView(int layer, int rank) const {
    const int group = groupOf(layer);
    const KvGroup& kind = groups_[static_cast<std::size_t>(group)];
    const auto elementBytes = static_cast<std::int64_t>(kernels::bytesOf(options_.dtype, 1));
    const std::int64_t block = kind.pageTokens * kvHeads_ * headDim_ * elementBytes;
    const std::int64_t slot = layerPlace_[static_cast<std::size_t>(layer)];
    std::byte* base = ranges_[static_cast<std::size_t>(group)]->data(rank);

    kernels::KvView view;
    view.ring = kind.ring();
    for (std::int64_t half = 0; half < halves_; ++half) {
        kernels::TensorView& tensor = half == 0 ? view.keys : view.values;
        tensor.data = base + (halves_ * slot + half) * block;
        tensor.dtype = options_.dtype;
        tensor.shape = kernels::Shape{std::numeric_limits<std::int32_t>::max(), kind.pageTokens, kvHeads_, headDim_};
        tensor.strides[0] = static_cast<std::int64_t>(kPageUnit) / elementBytes;
        if (kernels::isQuantizedKv(options_.dtype)) {
            kernels::TensorView& scales = half == 0 ? view.keyScales : view.valueScales;
            const std::int64_t scaleBlock = kind.pageTokens * kvHeads_ * static_cast<std::int64_t>(sizeof(float));
            scales.data = base + kind.scalesAt + (halves_ * slot + half) * scaleBlock;
            scales.dtype = kernels::DType::F32;
            scales.shape = kernels::Shape{tensor.shape[0], kvHeads_, kind.pageTokens};
            scales.strides[0] = static_cast<std::int64_t>(kPageUnit / sizeof(float));
        }
    }
    if (halves_ == 1) {
        view.values = view.keys;
        view.valueScales = view.keyScales;
    }
    return view;
}

} // namespace vitrine::engine
