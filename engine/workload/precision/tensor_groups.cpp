// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/precision/tensor_groups.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace vitrine::engine {

GroupLayout::GroupLayout(const kernels::WeightView& packed)
    : size{packed.outFeatures(), packed.inFeatures()}, group(std::min(packed.group, size.in)),
      perRow((size.in + group - 1) / group) {}

LevelFinder::LevelFinder(const RoundedMatrix& matrix)
    : layout_(matrix.view()), packed_(kernels::packedMatrixOf(matrix.view(), 0)),
      bytes_(packed_.rowBytes >= layout_.size.in) {
    // Rows are written before they are read, each by the thread that asks for it.
    rows_ =
        std::make_unique_for_overwrite<std::uint8_t[]>(static_cast<std::size_t>(packed_.rowBytes * layout_.size.out));
    packed_.data = rows_.get();
    findOrder();
}

template <class Take> void LevelFinder::tryCode(std::int64_t row, int code, const Take& take) {
    std::fill_n(rows_.get() + row * packed_.rowBytes, packed_.rowBytes,
                static_cast<std::uint8_t>(bytes_ ? code : code * 17));
    std::vector<float> values(static_cast<std::size_t>(packed_.format->unit));
    for (std::int64_t group = 0; group < layout_.perRow; ++group) {
        packed_.format->expand(packed_, row, layout_.first(group), packed_.format->unit, values.data());
        take(static_cast<std::size_t>(group), values[0] == 0 ? 0.0F : values[0]); // no negative zero
    }
}

std::vector<std::vector<float>> LevelFinder::ofRow(std::int64_t row) {
    std::vector<std::vector<float>> levels(static_cast<std::size_t>(layout_.perRow));
    for (int code = 0; code < codes(); ++code) {
        tryCode(row, code, [&](std::size_t group, float value) {
            if (std::isfinite(value)) {
                levels[group].push_back(value);
            }
        });
    }
    for (std::vector<float>& each : levels) {
        std::ranges::sort(each);
        each.erase(std::ranges::unique(each).begin(), each.end());
    }
    return levels;
}

void LevelFinder::findOrder() {
    std::vector<std::pair<float, int>> known;
    for (std::int64_t row = 0; row < layout_.size.out && known.size() < 2; ++row) {
        std::vector<std::vector<std::pair<float, int>>> levels(static_cast<std::size_t>(layout_.perRow));
        for (int code = 0; code < codes(); ++code) {
            tryCode(row, code, [&](std::size_t group, float value) {
                if (std::isfinite(value)) {
                    levels[group].emplace_back(value, code);
                }
            });
        }
        for (auto group = levels.begin(); group != levels.end() && known.size() < 2; ++group) {
            std::ranges::sort(*group);
            group->erase(std::ranges::unique(*group, {}, &std::pair<float, int>::first).begin(), group->end());
            known = *group;
        }
    }
    if (known.size() >= 2) {
        for (const auto& [value, code] : known) {
            order_.push_back(code);
        }
    }
}

void LevelFinder::endsOfRow(std::int64_t row, std::span<LevelEnds> ends) {
    std::ranges::fill(ends, LevelEnds());
    if (order_.empty()) {
        return;
    }
    const std::size_t count = order_.size();
    const auto put = [&](std::size_t place, float LevelEnds::* end) {
        tryCode(row, order_[place], [&](std::size_t group, float value) { ends[group].*end = value; });
    };
    put(0, &LevelEnds::low);
    put(1, &LevelEnds::lowNext);
    put(count - 2, &LevelEnds::highNext);
    put(count - 1, &LevelEnds::high);
}

} // namespace vitrine::engine
