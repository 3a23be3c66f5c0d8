// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/adapters/dora_rows.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
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

/// The columns of an embedding with what they are multiplied by, which is found once.
class DoraTable {
public:
    DoraTable(RowMaker below, DoraParts parts, std::int64_t rows, std::int64_t width)
        : below_(std::move(below)), parts_(std::move(parts)), rows_(rows), width_(static_cast<std::size_t>(width)) {}

    void make(std::int64_t first, std::int64_t count, std::span<float> out) {
        std::call_once(once_, [this] { findFactors(); });
        sum(first, count, out);
        for (std::size_t i = 0; i < out.size(); ++i) {
            out[i] *= factors_[i % width_];
        }
    }

private:
    /// W + scale (B A) transposed.
    void sum(std::int64_t first, std::int64_t count, std::span<float> out) const {
        below_(first, count, out);
        const std::size_t rank = parts_.b.size() / width_;
        for (std::int64_t i = 0; i < count; ++i) {
            float* row = out.data() + static_cast<std::size_t>(i) * width_;
            for (std::size_t r = 0; r < rank; ++r) {
                const float a =
                    parts_.scale * parts_.a[r * static_cast<std::size_t>(rows_) + static_cast<std::size_t>(first + i)];
                for (std::size_t h = 0; h < width_; ++h) {
                    row[h] += a * parts_.b[h * rank + r];
                }
            }
        }
    }

    void findFactors() {
        constexpr std::int64_t kRows = 1024;
        std::vector<double> squares(width_);
        std::vector<float> values;
        for (std::int64_t row = 0; row < rows_; row += kRows) {
            const std::int64_t count = std::min(kRows, rows_ - row);
            values.resize(static_cast<std::size_t>(count) * width_);
            sum(row, count, values);
            for (std::size_t i = 0; i < values.size(); ++i) {
                squares[i % width_] += static_cast<double>(values[i]) * values[i];
            }
        }
        factors_.resize(width_);
        for (std::size_t h = 0; h < width_; ++h) {
            factors_[h] = static_cast<float>(parts_.magnitude[h] / std::sqrt(squares[h]));
        }
    }

    RowMaker below_;
    DoraParts parts_;
    std::int64_t rows_;
    std::size_t width_;
    std::once_flag once_;
    std::vector<float> factors_;
};

} // namespace

RowMaker doraColumns(RowMaker below, DoraParts parts, std::int64_t rows, std::int64_t width) {
    const auto table = std::make_shared<DoraTable>(std::move(below), std::move(parts), rows, width);
    return [table](std::int64_t first, std::int64_t count, std::span<float> out) { table->make(first, count, out); };
}

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
