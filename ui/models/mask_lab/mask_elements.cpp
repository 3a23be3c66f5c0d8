// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// Single elements of a mask, evaluated by the interpreter: only those that are asked for.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/integers.h"
#include "kernels/core/floats.h"
#include "ui/models/mask_lab/mask_grid.h"

namespace vitrine::ui {

namespace {

constexpr int kWidth = kernels::kInterpreterWidth;
using Interpreter = kernels::Interpreter<float>;

/// The first part whose value is what decides; the last one stands for all that are not listed.
std::uint8_t decider(const Interpreter& interpreter, const MaskMap& map, int i, bool allowed) {
    if (allowed != map.alternatives) {
        return kNoPart;
    }
    for (std::size_t part = 0; part < map.parts.size(); ++part) {
        if (map.parts[part].node < 0) {
            return static_cast<std::uint8_t>(part);
        }
        if ((interpreter.booleans(static_cast<int>(part) + 1)[i] != 0) == map.alternatives) {
            return static_cast<std::uint8_t>(part);
        }
    }
    return kNoPart;
}

/// Scaled q.k of the elements of a row, or what stands for them.
class BaseScores {
public:
    BaseScores(const MaskMap& map, std::span<const std::int64_t> keys) : map_(map) {
        if (map.scores.base != MaskScores::Base::Product) {
            return;
        }
        const kernels::TensorView& k = map.scores.k;
        dim_ = k.shape[3];
        const std::int64_t group = map.scores.q.shape[1] / k.shape[1];
        keys_.resize(keys.size() * base::toIndex(dim_));
        for (std::size_t i = 0; i < keys.size(); ++i) {
            read(k, std::clamp<std::int64_t>(map.head / group, 0, k.shape[1] - 1), keys[i],
                 keys_.data() + i * base::toIndex(dim_));
        }
        query_.resize(base::toIndex(dim_));
    }

    void startRow(std::int64_t query) {
        if (dim_ > 0) {
            const kernels::TensorView& q = map_.scores.q;
            read(q, std::clamp<std::int64_t>(map_.head, 0, q.shape[1] - 1), query, query_.data());
        }
    }

    float of(std::size_t key) const {
        if (dim_ == 0) {
            return map_.scores.base == MaskScores::Base::One ? 1.0F : 0.0F;
        }
        double sum = 0;
        const float* values = keys_.data() + key * base::toIndex(dim_);
        for (std::size_t i = 0; i < base::toIndex(dim_); ++i) {
            sum += static_cast<double>(query_[i]) * static_cast<double>(values[i]);
        }
        return static_cast<float>(sum * map_.scores.scale);
    }

private:
    void read(const kernels::TensorView& tensor, std::int64_t head, std::int64_t position, float* out) const {
        const std::int64_t batch = std::clamp<std::int64_t>(map_.batch, 0, tensor.shape[0] - 1);
        const std::int64_t inBatch = (head * tensor.shape[2] + position) * dim_;
        kernels::loadFloats(tensor.dtype, tensor.data, batch * tensor.stride0() + inBatch, dim_, out);
    }

    const MaskMap& map_;
    std::int64_t dim_ = 0;
    std::vector<float> keys_, query_;
};

/// Pieces of ascending positions that follow each other without a gap, as long as the interpreter takes them.
std::vector<std::pair<std::size_t, int>> pieces(std::span<const std::int64_t> keys) {
    std::vector<std::pair<std::size_t, int>> out;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (i > 0 && keys[i] == keys[i - 1] + 1 && out.back().second < kWidth) {
            ++out.back().second;
        } else {
            out.emplace_back(i, 1);
        }
    }
    return out;
}

} // namespace

ElementGrid elementGrid(const MaskMap& map, std::int64_t query, int rows, std::int64_t key, int columns,
                        const base::StopToken& stop) {
    ElementGrid grid{query, key, std::max(0, columns), std::max(0, rows), {}, {}};
    const std::size_t count = base::toIndex(grid.columns) * base::toIndex(grid.rows);
    grid.allowed.resize(count);
    grid.part.resize(count);
    std::vector<std::int32_t> roots{map.mask->program.result};
    for (const MaskOperand& part : map.parts) {
        if (part.node >= 0) {
            roots.push_back(part.node);
        }
    }
    Interpreter interpreter(map.mask->program, map.mask->binding, std::move(roots));
    for (int row = 0; row < grid.rows; ++row) {
        base::throwIfStopped(stop);
        for (int column = 0; column < grid.columns; column += kWidth) {
            const int width = std::min(kWidth, grid.columns - column);
            interpreter.run({map.batch, map.head, query + row}, key + column, width, nullptr);
            for (int i = 0; i < width; ++i) {
                const std::size_t index = grid.index(column + i, row);
                const bool allowed = interpreter.booleans()[i] != 0;
                grid.allowed[index] = allowed ? 1 : 0;
                grid.part[index] = decider(interpreter, map, i, allowed);
            }
        }
    }
    return grid;
}

float scoreDifference(float a, float b) {
    const auto blocked = [](float value) { return std::isinf(value) && value < 0; };
    return blocked(a) || blocked(b) ? -std::numeric_limits<float>::infinity() : a - b;
}

ScoreGrid scoreGrid(const MaskMap& map, std::span<const std::int64_t> queries, std::span<const std::int64_t> keys,
                    const base::StopToken& stop) {
    ScoreGrid grid{keys.size(), queries.size(), {}};
    grid.values.resize(keys.size() * queries.size());
    const auto runs = pieces(keys);
    Interpreter mask(map.mask->program, map.mask->binding);
    std::optional<Interpreter> scores;
    if (map.scores.program != nullptr) {
        scores.emplace(map.scores.program->program, map.scores.program->binding);
    }
    BaseScores base(map, keys);
    std::vector<float> line(base::toIndex(kWidth));
    for (std::size_t y = 0; y < queries.size(); ++y) {
        base::throwIfStopped(stop);
        base.startRow(queries[y]);
        const kernels::ProgramRow row{map.batch, map.head, queries[y]};
        for (const auto& [first, count] : runs) {
            for (int i = 0; i < count; ++i) {
                line[base::toIndex(i)] = base.of(first + base::toIndex(i));
            }
            const float* values = line.data();
            if (scores) {
                scores->run(row, keys[first], count, line.data());
                values = scores->floats();
            }
            mask.run(row, keys[first], count, nullptr);
            float* out = grid.values.data() + y * keys.size() + first;
            for (int i = 0; i < count; ++i) {
                out[i] = mask.booleans()[i] != 0 ? values[i] : -std::numeric_limits<float>::infinity();
            }
        }
    }
    return grid;
}

} // namespace vitrine::ui
