// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/pack_weight.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/core/floats.h"
#include "kernels/cpu/row_loop.h"
#include "kernels/formats/mxfp4_format.h"
#include "kernels/ops/linear/weight_product.h"

namespace vitrine::kernels {

namespace {

constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();

/// Adds scale B A to a row, which counts the rows of all experts.
void addAdapter(const PackWeight& weight, std::int64_t row, float* values) {
    const AdapterView& adapter = weight.adapter;
    const std::int64_t in = weight.out.inFeatures(), rank = adapter.rank();
    const std::int64_t firstOfA = row / weight.out.outFeatures() * rank;
    forPieces(in, [&](std::int64_t begin, std::int64_t count) {
        float sums[kRowPiece] = {};
        float piece[kRowPiece];
        for (std::int64_t r = 0; r < rank; ++r) {
            float factor = 0;
            loadFloats(adapter.b.dtype, adapter.b.data, row * rank + r, 1, &factor);
            loadFloats(adapter.a.dtype, adapter.a.data, (firstOfA + r) * in + begin, count, piece);
            for (std::int64_t i = 0; i < count; ++i) {
                sums[i] += factor * piece[i];
            }
        }
        for (std::int64_t i = 0; i < count; ++i) {
            values[begin + i] += adapter.scale * sums[i];
        }
    });
}

/// Values of rows in the type of the weight. Rows count those of all experts.
std::vector<float> valuesOf(const PackWeight& weight, std::int64_t row, std::int64_t rows) {
    const std::int64_t in = weight.out.inFeatures(), out = weight.out.outFeatures();
    std::vector<float> values(static_cast<std::size_t>(rows * in));
    for (std::int64_t r = row; r < row + rows; ++r) {
        float* const to = values.data() + (r - row) * in;
        const MatrixRef matrix = matrixOf(weight.x, r / out);
        forPieces(in, [&](std::int64_t begin, std::int64_t count) {
            loadWeights(matrix, r % out, begin, count, to + begin);
        });
        if (!weight.adapter.empty()) {
            addAdapter(weight, r, to);
        }
    }
    withRounding(weight.type, [&](const auto& round) { std::ranges::transform(values, values.begin(), round); });
    return values;
}

/// Writes what the packed rows stand for.
void putValues(const PackWeight& weight, std::int64_t row, std::int64_t rows) {
    if (weight.values.empty()) {
        return;
    }
    const std::int64_t in = weight.out.inFeatures(), out = weight.out.outFeatures();
    for (std::int64_t r = row; r < row + rows; ++r) {
        const MatrixRef matrix = matrixOf(weight.out, r / out);
        forPieces(in, [&](std::int64_t begin, std::int64_t count) {
            float values[kRowPiece];
            loadWeights(matrix, r % out, begin, count, values);
            storeFloats(weight.values.dtype, values, count, weight.values.data, r * in + begin);
        });
    }
}

/// The largest magnitude; not finite where a value is not.
float largestOf(const float* values, std::int64_t count) {
    float largest = 0;
    float nothing = 0; // x - x is 0 for finite numbers only
    for (std::int64_t i = 0; i < count; ++i) {
        largest = std::max(largest, std::abs(values[i]));
        nothing += values[i] - values[i];
    }
    return nothing == 0 ? largest : kNoNumber;
}

/// How many 4-bit codes of two bytes differ.
int differentNibbles(std::uint8_t a, std::uint8_t b) {
    const unsigned bits = a ^ b;
    return ((bits & 0x0FU) != 0 ? 1 : 0) + ((bits & 0xF0U) != 0 ? 1 : 0);
}

/// Writes bytes and returns how many codes differ from those that were there.
class Writer {
public:
    Writer(std::uint8_t* to, bool nibbles) : to_(to), nibbles_(nibbles) {}
    void put(std::uint8_t byte) {
        different_ += nibbles_ ? differentNibbles(*to_, byte) : (*to_ != byte ? 1 : 0);
        *to_++ = byte;
    }
    std::int64_t different() const { return different_; }

private:
    std::uint8_t* to_;
    bool nibbles_;
    std::int64_t different_ = 0;
};

std::int64_t packIntegers(const PackWeight& weight, std::int64_t row) {
    const std::int64_t in = weight.out.inFeatures(), group = weight.out.group;
    const std::vector<float> values = valuesOf(weight, row, 1);
    Writer writer(weight.out.data.as<std::uint8_t>() + row * in / 2, true);
    withRounding(typeOfSteps(weight.rule, weight.type), [&](const auto& round) {
        for (std::int64_t begin = 0; begin < in; begin += group) {
            const float largest = largestOf(values.data() + begin, group);
            const float scale =
                std::isfinite(largest) ? symmetricScale(weight.rule, 4, weight.type, largest) : kNoNumber;
            storeFloats(weight.type, &scale, 1, weight.out.scales.data, row * (in / group) + begin / group);
            const auto middle = static_cast<std::uint8_t>(middleCode(4));
            const IntegerCoder coder(weight.rule, 4, scale, middle);
            const auto code = [&](std::int64_t i) {
                return std::isfinite(scale)
                           ? static_cast<unsigned>(coder.code(values[static_cast<std::size_t>(begin + i)], round))
                           : middle;
            };
            for (std::int64_t i = 0; i < group; i += 2) {
                writer.put(static_cast<std::uint8_t>(code(i) | code(i + 1) << 4));
            }
        }
    });
    return writer.different();
}

std::int64_t packGroups(const PackWeight& weight, std::int64_t row) {
    const std::int64_t in = weight.out.inFeatures();
    const std::vector<float> values = valuesOf(weight, row, 1);
    std::vector<std::uint8_t> blocks(static_cast<std::size_t>(in / 2));
    packMxfp4(values.data(), in, blocks.data(), weight.out.scales.as<std::uint8_t>() + row * (in / kMxfp4Group));
    Writer writer(weight.out.data.as<std::uint8_t>() + row * in / 2, true);
    std::ranges::for_each(blocks, [&](std::uint8_t byte) { writer.put(byte); });
    return writer.different();
}

/// `rows` rows from `row` of the stack share scales, which begin at `scales`.
std::int64_t packBlocks(const PackWeight& weight, std::int64_t row, std::int64_t rows, float* scales) {
    const std::int64_t in = weight.out.inFeatures(), group = weight.out.group;
    const std::vector<float> values = valuesOf(weight, row, rows);
    for (std::int64_t begin = 0; begin < in; begin += group) {
        float largest = 0;
        for (std::int64_t r = 0; r < rows; ++r) {
            const float one = largestOf(values.data() + r * in + begin, std::min(group, in - begin));
            largest = std::isnan(one) || std::isnan(largest) ? kNoNumber : std::max(largest, one);
        }
        const float scale = largest / kLargestE4m3;
        scales[begin / group] = scale == 0 ? 1 : scale;
    }
    Writer writer(weight.out.data.as<std::uint8_t>() + row * in, false);
    for (std::int64_t i = 0; i < rows * in; ++i) {
        const float scale = scales[i % in / group];
        writer.put(std::isnan(scale) ? std::uint8_t{0} : floatToE4m3(values[static_cast<std::size_t>(i)] / scale));
    }
    return writer.different();
}

} // namespace

namespace {

/// Returns how many codes changed.
std::int64_t packOne(CpuContext& context, const PackWeight& weight) {
    const std::int64_t out = weight.out.outFeatures(), in = weight.out.inFeatures();
    std::atomic<std::int64_t> changed = 0;
    if (weight.out.format == WeightFormat::Fp8) {
        const std::int64_t block = weight.out.rowGroup, blocks = (out + block - 1) / block;
        const std::int64_t groups = (in + weight.out.group - 1) / weight.out.group;
        forRows(context, weight.out.experts() * blocks, block * in, [&](std::int64_t number) {
            const std::int64_t first = number % blocks * block, rows = std::min(block, out - first);
            const std::int64_t row = number / blocks * out + first;
            changed += packBlocks(weight, row, rows, weight.out.scales.as<float>() + number * groups);
            putValues(weight, row, rows);
        });
        return changed;
    }
    const bool integers = weight.out.format == WeightFormat::Int4;
    forRows(context, weight.out.experts() * out, in, [&](std::int64_t row) {
        changed += integers ? packIntegers(weight, row) : packGroups(weight, row);
        putValues(weight, row, 1);
    });
    return changed;
}

} // namespace

void execute(CpuContext& context, const PackWeights& op) {
    std::int64_t changed = 0;
    for (const PackWeight& weight : op.weights) {
        changed += packOne(context, weight);
    }
    if (!op.changed.empty()) {
        *op.changed.as<std::int64_t>() += changed;
    }
}

} // namespace vitrine::kernels
