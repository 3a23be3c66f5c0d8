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

namespace vitrine::kernels {

namespace {

constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();

/// Values of rows in the type of the weight.
std::vector<float> valuesOf(const PackWeight& op, std::int64_t row, std::int64_t rows) {
    const std::int64_t in = op.x.shape[op.x.shape.rank() - 1];
    std::vector<float> values(static_cast<std::size_t>(rows * in));
    loadFloats(op.x.dtype, op.x.data, row * in, rows * in, values.data());
    withRounding(op.type, [&](const auto& round) { std::ranges::transform(values, values.begin(), round); });
    return values;
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

std::int64_t packIntegers(const PackWeight& op, std::int64_t row) {
    const std::int64_t in = op.out.inFeatures(), group = op.out.group;
    const std::vector<float> values = valuesOf(op, row, 1);
    Writer writer(op.out.data.as<std::uint8_t>() + row * in / 2, true);
    withRounding(typeOfSteps(op.rule, op.type), [&](const auto& round) {
        for (std::int64_t begin = 0; begin < in; begin += group) {
            const float largest = largestOf(values.data() + begin, group);
            const float scale = std::isfinite(largest) ? symmetricScale(op.rule, 4, op.type, largest) : kNoNumber;
            storeFloats(op.type, &scale, 1, op.out.scales.data, row * (in / group) + begin / group);
            const auto middle = static_cast<std::uint8_t>(middleCode(4));
            const IntegerCoder coder(op.rule, 4, scale, middle);
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

std::int64_t packGroups(const PackWeight& op, std::int64_t row) {
    const std::int64_t in = op.out.inFeatures();
    const std::vector<float> values = valuesOf(op, row, 1);
    std::vector<std::uint8_t> blocks(static_cast<std::size_t>(in / 2));
    packMxfp4(values.data(), in, blocks.data(), op.out.scales.as<std::uint8_t>() + row * (in / kMxfp4Group));
    Writer writer(op.out.data.as<std::uint8_t>() + row * in / 2, true);
    std::ranges::for_each(blocks, [&](std::uint8_t byte) { writer.put(byte); });
    return writer.different();
}

/// `rows` rows from `row` of the stack share scales, which begin at `scales`.
std::int64_t packBlocks(const PackWeight& op, std::int64_t row, std::int64_t rows, float* scales) {
    const std::int64_t in = op.out.inFeatures(), group = op.out.group;
    const std::vector<float> values = valuesOf(op, row, rows);
    for (std::int64_t begin = 0; begin < in; begin += group) {
        float largest = 0;
        for (std::int64_t r = 0; r < rows; ++r) {
            const float one = largestOf(values.data() + r * in + begin, std::min(group, in - begin));
            largest = std::isnan(one) || std::isnan(largest) ? kNoNumber : std::max(largest, one);
        }
        const float scale = largest / kLargestE4m3;
        scales[begin / group] = scale == 0 ? 1 : scale;
    }
    Writer writer(op.out.data.as<std::uint8_t>() + row * in, false);
    for (std::int64_t i = 0; i < rows * in; ++i) {
        const float scale = scales[i % in / group];
        writer.put(std::isnan(scale) ? std::uint8_t{0} : floatToE4m3(values[static_cast<std::size_t>(i)] / scale));
    }
    return writer.different();
}

} // namespace

void execute(CpuContext& context, const PackWeight& op) {
    const std::int64_t out = op.out.outFeatures(), in = op.out.inFeatures();
    std::atomic<std::int64_t> changed = 0;
    if (op.out.format == WeightFormat::Fp8) {
        const std::int64_t block = op.out.rowGroup, blocks = (out + block - 1) / block;
        const std::int64_t groups = (in + op.out.group - 1) / op.out.group;
        forRows(context, op.out.experts() * blocks, block * in, [&](std::int64_t number) {
            const std::int64_t first = number % blocks * block;
            changed += packBlocks(op, number / blocks * out + first, std::min(block, out - first),
                                  op.out.scales.as<float>() + number * groups);
        });
    } else {
        const bool integers = op.out.format == WeightFormat::Int4;
        forRows(context, op.out.experts() * out, in,
                [&](std::int64_t row) { changed += integers ? packIntegers(op, row) : packGroups(op, row); });
    }
    if (!op.changed.empty()) {
        *op.changed.as<std::int64_t>() += changed;
    }
}

} // namespace vitrine::kernels
