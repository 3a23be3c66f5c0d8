// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/linear/gemv.h"

#include <array>
#include <bit>
#include <cstring>

#include "kernels/core/floats.h"
#include "kernels/formats/mxfp4_format.h"

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kLanes = 16;
constexpr std::int64_t kPiece = 256;

float sumLanes(const float* lanes) {
    float sum = 0;
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
        sum += lanes[lane];
    }
    return sum;
}

/// lanes[i % kLanes] += weights[i] * x[i]; zeros after `count` fill the last lanes.
void addLanes(const float* weights, const float* x, std::int64_t count, float* __restrict lanes) {
    for (std::int64_t i = 0; i < count; i += kLanes) {
        for (std::int64_t lane = 0; lane < kLanes; ++lane) {
            lanes[lane] += weights[i + lane] * x[i + lane];
        }
    }
}

void dotRows(const GemvCall& call) {
    const std::int64_t in = call.matrix.in;
    for (std::int64_t o = 0; o < call.outCount; ++o) {
        float lanes[kGemvRows][kLanes] = {};
        for (std::int64_t begin = 0; begin < in; begin += kPiece) {
            float weights[kPiece] = {};
            const std::int64_t count = in - begin < kPiece ? in - begin : kPiece;
            loadWeights(call.matrix, call.outBegin + o, begin, count, weights);
            for (std::int64_t r = 0; r < call.rows; ++r) {
                addLanes(weights, call.x[r] + begin, count, lanes[r]);
            }
        }
        for (std::int64_t r = 0; r < call.rows; ++r) {
            call.y[r * kGemvOutputs + o] = sumLanes(lanes[r]);
        }
    }
}

/// Four floats and two doubles of every processor's plainest registers.
using Four = float __attribute__((vector_size(16)));
using TwoPairs = double __attribute__((vector_size(16)));

/// The two elements of every byte, as the bits that a double carries: one look-up for both.
constexpr std::array<double, 256> makePairs() {
    std::array<double, 256> pairs{};
    for (std::size_t byte = 0; byte < pairs.size(); ++byte) {
        const auto low = std::bit_cast<std::uint32_t>(kE2M1[byte & 15]);
        const auto high = std::bit_cast<std::uint32_t>(kE2M1[byte >> 4]);
        pairs[byte] =
            std::bit_cast<double>(std::endian::native == std::endian::little ? std::uint64_t{high} << 32 | low
                                                                             : std::uint64_t{low} << 32 | high);
    }
    return pairs;
}
constexpr std::array<double, 256> kPairs = makePairs();

Four fourAt(const float* p) {
    Four values;
    std::memcpy(&values, p, sizeof values);
    return values;
}

/// One group by x, in two independent sums, not scaled.
Four dotGroup(const Four* weights, const float* x) {
    Four even = weights[0] * fourAt(x);
    Four odd = weights[1] * fourAt(x + 4);
    for (std::int64_t i = 2; i < kMxfp4Group / 4; i += 2) {
        even += weights[i] * fourAt(x + 4 * i);
        odd += weights[i + 1] * fourAt(x + 4 * i + 4);
    }
    return even + odd;
}

float sumFour(Four sums) {
    return sums[0] + sums[1] + (sums[2] + sums[3]);
}

/// Output `o` of the call by R rows of x from `row` on: a group is looked up once and multiplied with each row.
template <int R> void dotMxfp4(const GemvCall& call, std::int64_t row, std::int64_t o) {
    const std::int64_t groups = call.matrix.in / kMxfp4Group;
    const std::int64_t out = call.outBegin + o;
    const std::uint8_t* block = call.matrix.packing.row(out);
    const std::uint8_t* const scales = call.matrix.packing.scales + out * groups;
    Four sums[R] = {};
    for (std::int64_t g = 0; g < groups; ++g) {
        Four weights[kMxfp4Group / 4];
        for (Four& values : weights) {
            const TwoPairs pairs = {kPairs[block[0]], kPairs[block[1]]};
            values = std::bit_cast<Four>(pairs);
            block += 2;
        }
        const float scale = std::bit_cast<float>(e8m0Bits(scales[g]));
        for (std::int64_t r = 0; r < R; ++r) {
            sums[r] += dotGroup(weights, call.x[row + r] + g * kMxfp4Group) * scale;
        }
    }
    for (std::int64_t r = 0; r < R; ++r) {
        call.y[(row + r) * kGemvOutputs + o] = sumFour(sums[r]);
    }
}

void dotMxfp4Rows(const GemvCall& call) {
    constexpr std::int64_t kTogether = 4;
    for (std::int64_t o = 0; o < call.outCount; ++o) {
        std::int64_t row = 0;
        for (; row + kTogether <= call.rows; row += kTogether) {
            dotMxfp4<kTogether>(call, row, o);
        }
        for (; row < call.rows; ++row) {
            dotMxfp4<1>(call, row, o);
        }
    }
}

void sumColumns(const GemvCall& call) {
    float weights[kGemvOutputs];
    float sums[kGemvRows][kGemvOutputs] = {};
    for (std::int64_t k = 0; k < call.matrix.in; ++k) {
        loadFloats(call.matrix.dtype, call.matrix.data, k * call.matrix.stride + call.outBegin, call.outCount, weights);
        for (std::int64_t r = 0; r < call.rows; ++r) {
            const float x = call.x[r][k];
            for (std::int64_t o = 0; o < call.outCount; ++o) {
                sums[r][o] += x * weights[o];
            }
        }
    }
    for (std::int64_t r = 0; r < call.rows; ++r) {
        for (std::int64_t o = 0; o < call.outCount; ++o) {
            call.y[r * kGemvOutputs + o] = sums[r][o];
        }
    }
}

/// The same sums over a stretch whose weights are expanded, scales and all: a power of two changes no rounding.
void addGroups(const float* weights, const float* x, std::int64_t count, float* lanes) {
    Four sums = fourAt(lanes);
    for (std::int64_t k = 0; k < count; k += kMxfp4Group) {
        Four group[kMxfp4Group / 4];
        std::memcpy(group, weights + k, sizeof group);
        sums += dotGroup(group, x + k);
    }
    std::memcpy(lanes, &sums, sizeof sums);
}

} // namespace

void addDotsScalar(const DotTileCall& call) {
    const bool grouped = call.matrix.format == WeightFormat::Mxfp4;
    for (std::int64_t o = 0; o < call.outCount; ++o) {
        float weights[kDotDepth] = {};
        loadWeights(call.matrix, call.outBegin + o, call.begin, call.count, weights);
        for (std::int64_t r = 0; r < call.rows; ++r) {
            float* const lanes = call.lanes + (o * kDotRows + r) * kDotLanes;
            (grouped ? addGroups : addLanes)(weights, call.x + r * kDotDepth, call.count, lanes);
        }
    }
}

void sumDotsScalar(const DotTileCall& call, float* sums) {
    const bool grouped = call.matrix.format == WeightFormat::Mxfp4;
    for (std::int64_t o = 0; o < call.outCount; ++o) {
        for (std::int64_t r = 0; r < call.rows; ++r) {
            const float* const lanes = call.lanes + (o * kDotRows + r) * kDotLanes;
            sums[r * kTileOutputs + o] = grouped ? sumFour(fourAt(lanes)) : sumLanes(lanes);
        }
    }
}

void gemvScalar(const GemvCall& call) {
    if (call.matrix.transposed) {
        sumColumns(call);
    } else if (call.matrix.format == WeightFormat::Mxfp4) {
        dotMxfp4Rows(call);
    } else {
        dotRows(call);
    }
}

} // namespace vitrine::kernels
