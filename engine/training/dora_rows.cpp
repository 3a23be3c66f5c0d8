// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/dora_rows.h"

#include <cmath>
#include <memory>
#include <utility>

namespace vitrine::engine {

namespace {

void makeDoraRow(const DoraParts& parts, std::int64_t row, std::span<float> w) {
    const std::size_t rank = parts.a.size() / w.size();
    for (std::size_t r = 0; r < rank; ++r) {
        const float factor = parts.scale * parts.b[static_cast<std::size_t>(row) * rank + r];
        const float* a = parts.a.data() + r * w.size();
        for (std::size_t i = 0; i < w.size(); ++i) {
            w[i] += factor * a[i];
        }
    }
    double squares = 0;
    for (const float value : w) {
        squares += static_cast<double>(value) * value;
    }
    const auto factor = static_cast<float>(parts.magnitude[static_cast<std::size_t>(row)] / std::sqrt(squares));
    for (float& value : w) {
        value *= factor;
    }
}

} // namespace

RowMaker doraRows(RowMaker below, DoraParts parts, std::int64_t in) {
    return [below = std::move(below), parts = std::make_shared<const DoraParts>(std::move(parts)),
            in](std::int64_t first, std::int64_t count, std::span<float> out) {
        below(first, count, out);
        for (std::int64_t i = 0; i < count; ++i) {
            makeDoraRow(*parts, first + i, out.subspan(static_cast<std::size_t>(i * in), static_cast<std::size_t>(in)));
        }
    };
}

} // namespace vitrine::engine
