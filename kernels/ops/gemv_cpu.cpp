// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/ops/gemv.h"

#include "kernels/ops/floats.h"

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

void dotRows(const GemvCall& call) {
    const std::int64_t in = call.matrix.in;
    for (std::int64_t o = 0; o < call.outCount; ++o) {
        float lanes[kGemvRows][kLanes] = {};
        for (std::int64_t begin = 0; begin < in; begin += kPiece) {
            float weights[kPiece] = {};
            const std::int64_t count = in - begin < kPiece ? in - begin : kPiece;
            loadWeights(call.matrix, call.outBegin + o, begin, count, weights); // zeros behind fill the last lanes
            for (std::int64_t r = 0; r < call.rows; ++r) {
                const float* x = call.x[r] + begin;
                for (std::int64_t i = 0; i < count; i += kLanes) {
                    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
                        lanes[r][lane] += weights[i + lane] * x[i + lane];
                    }
                }
            }
        }
        for (std::int64_t r = 0; r < call.rows; ++r) {
            call.y[r * kGemvOutputs + o] = sumLanes(lanes[r]);
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

} // namespace

void gemvScalar(const GemvCall& call) {
    if (call.matrix.transposed) {
        sumColumns(call);
    } else {
        dotRows(call);
    }
}

} // namespace vitrine::kernels
