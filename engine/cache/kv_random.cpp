// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Random keys and values: contexts of measurements, without a prefill.

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/philox.h"
#include "engine/cache/kv_cache.h"
#include "kernels/context/context.h"
#include "kernels/ops/attention/kv_rows.h"
#include "kernels/ops/linear/weights.h"

namespace vitrine::engine {
namespace {

/// Rows of quantized pages repeat after this many: a prime, so that neighbouring pages, heads and layers differ.
constexpr std::int64_t kRandomRows = 997;

/// Normal values (Box and Muller).
std::vector<float> normalRows(std::int64_t count, std::uint64_t seed) {
    constexpr float kTurn = 6.28318531F;
    std::vector<float> values;
    for (std::uint64_t block = 0; static_cast<std::int64_t>(values.size()) < count; ++block) {
        const auto bits = base::philox4x32(base::philoxKey(seed, 0), block, 0);
        for (std::size_t pair = 0; pair < 4; pair += 2) {
            const float radius = std::sqrt(-2 * std::log(base::uniformOpen(bits[pair])));
            const float angle = kTurn * base::uniformOpen(bits[pair + 1]);
            values.push_back(radius * std::cos(angle));
            values.push_back(radius * std::sin(angle));
        }
    }
    return values;
}

} // namespace

/// A page of a quantized cache as the host's bytes; of other caches none.
std::vector<std::byte> KvCache::randomPage(int group, std::uint64_t seed) const {
    if (!kernels::isQuantizedKv(options_.dtype)) {
        return {};
    }
    const KvGroup& kind = groups_[static_cast<std::size_t>(group)];
    const std::vector<float> normal = normalRows(kRandomRows * headDim_, seed);
    std::vector<std::byte> bytes(static_cast<std::size_t>(kRandomRows * headDim_));
    std::vector<float> scales;
    scales.reserve(static_cast<std::size_t>(kRandomRows));
    for (std::int64_t row = 0; row < kRandomRows; ++row) {
        scales.push_back(kernels::quantizeKvRow(options_.dtype, normal.data() + row * headDim_, headDim_,
                                                bytes.data() + row * headDim_));
    }
    std::vector<std::byte> page(kind.pageBytes);
    const std::int64_t tokens = kind.pageTokens;
    const auto rows = static_cast<std::int64_t>(kind.layers.size()) * halves_ * tokens * kvHeads_;
    for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t from = row % kRandomRows;
        std::memcpy(page.data() + row * headDim_, bytes.data() + from * headDim_, static_cast<std::size_t>(headDim_));
        const std::int64_t half = row / (tokens * kvHeads_), token = row / kvHeads_ % tokens, head = row % kvHeads_;
        const auto scaleAt = static_cast<std::uint64_t>((half * kvHeads_ + head) * tokens + token) * sizeof(float);
        std::memcpy(page.data() + kind.scalesAt + scaleAt, &scales[static_cast<std::size_t>(from)], sizeof(float));
    }
    return page;
}

void KvCache::fillRandom(int sequence, std::int64_t tokens, std::uint64_t seed) {
    const KvAppend append{sequence, tokens};
    if (length(sequence) != 0) {
        throw base::Internal("only an empty sequence is filled with random keys and values");
    }
    reserve({&append, 1});
    const std::uint64_t key = seed + static_cast<std::uint64_t>(sequence);
    std::uint32_t stream = 0;
    for (std::size_t group = 0; group < groups_.size(); ++group) {
        const int number = static_cast<int>(group);
        const std::uint64_t bytes = groups_[group].pageBytes;
        const std::vector<std::byte> quantized = randomPage(number, key);
        for (const std::int32_t page : book_.pages(sequence, number)) {
            const std::uint32_t own = stream++;
            ranges_[group]->onEveryRank([&](kernels::Context& context, int rank) {
                std::byte* const address = pageData(number, page, rank);
                if (!quantized.empty()) {
                    context.upload(quantized.data(), address, bytes);
                    return;
                }
                kernels::FillRandom fill;
                fill.out.data = address;
                fill.out.dtype = options_.dtype;
                fill.out.shape = kernels::Shape{static_cast<std::int64_t>(bytes / kernels::bytesOf(options_.dtype, 1))};
                fill.seed = key;
                fill.stream = own;
                context.run(fill);
            });
        }
    }
    commit({&append, 1});
}

} // namespace vitrine::engine
