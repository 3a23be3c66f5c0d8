// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// g++ 12's own intrinsics header reads undefined vectors on purpose and warns about it (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include "kernels/cpu/tile_kernels.h"

#include <immintrin.h>

#include "kernels/context/cpu_context.h"

#define VITRINE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")))
#define VITRINE_AVX2 __attribute__((target("avx2,fma")))

namespace vitrine::kernels {

namespace {

template <int Rows> VITRINE_AVX512 void rowsAvx512(const TileCall& call, std::int64_t row) {
    __m512 low[Rows];
    __m512 high[Rows];
    float* sums = call.sums + row * call.sumsStride;
#pragma GCC unroll 12
    for (int r = 0; r < Rows; ++r) {
        low[r] = call.add ? _mm512_loadu_ps(sums + r * call.sumsStride) : _mm512_setzero_ps();
        high[r] = call.add ? _mm512_loadu_ps(sums + r * call.sumsStride + 16) : _mm512_setzero_ps();
    }
    const float* x = call.x + row * call.xStride;
    const float* panel = call.panel;
    for (std::int64_t i = 0; i < call.depth; ++i, panel += kPanelOutputs) {
        const __m512 first = _mm512_loadu_ps(panel);
        const __m512 second = _mm512_loadu_ps(panel + 16);
#pragma GCC unroll 12
        for (int r = 0; r < Rows; ++r) {
            const __m512 value = _mm512_set1_ps(x[r * call.xStride + i]);
            low[r] = _mm512_fmadd_ps(value, first, low[r]);
            high[r] = _mm512_fmadd_ps(value, second, high[r]);
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < Rows; ++r) {
        _mm512_storeu_ps(sums + r * call.sumsStride, low[r]);
        _mm512_storeu_ps(sums + r * call.sumsStride + 16, high[r]);
    }
}

void panelAvx512(const TileCall& call) {
    std::int64_t row = 0;
    for (; row + 12 <= call.rows; row += 12) {
        rowsAvx512<12>(call, row);
    }
    for (; row + 4 <= call.rows; row += 4) {
        rowsAvx512<4>(call, row);
    }
    for (; row < call.rows; ++row) {
        rowsAvx512<1>(call, row);
    }
}

template <int Rows> VITRINE_AVX2 void rowsAvx2(const TileCall& call, std::int64_t row, std::int64_t column) {
    __m256 low[Rows];
    __m256 high[Rows];
    float* sums = call.sums + row * call.sumsStride + column;
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
        low[r] = call.add ? _mm256_loadu_ps(sums + r * call.sumsStride) : _mm256_setzero_ps();
        high[r] = call.add ? _mm256_loadu_ps(sums + r * call.sumsStride + 8) : _mm256_setzero_ps();
    }
    const float* x = call.x + row * call.xStride;
    const float* panel = call.panel + column;
    for (std::int64_t i = 0; i < call.depth; ++i, panel += kPanelOutputs) {
        const __m256 first = _mm256_loadu_ps(panel);
        const __m256 second = _mm256_loadu_ps(panel + 8);
#pragma GCC unroll 6
        for (int r = 0; r < Rows; ++r) {
            const __m256 value = _mm256_set1_ps(x[r * call.xStride + i]);
            low[r] = _mm256_fmadd_ps(value, first, low[r]);
            high[r] = _mm256_fmadd_ps(value, second, high[r]);
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
        _mm256_storeu_ps(sums + r * call.sumsStride, low[r]);
        _mm256_storeu_ps(sums + r * call.sumsStride + 8, high[r]);
    }
}

void panelAvx2(const TileCall& call) {
    for (std::int64_t column = 0; column < kPanelOutputs; column += 16) {
        std::int64_t row = 0;
        for (; row + 6 <= call.rows; row += 6) {
            rowsAvx2<6>(call, row, column);
        }
        for (; row < call.rows; ++row) {
            rowsAvx2<1>(call, row, column);
        }
    }
}

void panelScalar(const TileCall& call) {
    for (std::int64_t row = 0; row < call.rows; ++row) {
        float lanes[kPanelOutputs] = {};
        float* sums = call.sums + row * call.sumsStride;
        for (std::int64_t o = 0; o < kPanelOutputs && call.add; ++o) {
            lanes[o] = sums[o];
        }
        for (std::int64_t i = 0; i < call.depth; ++i) {
            const float value = call.x[row * call.xStride + i];
            for (std::int64_t o = 0; o < kPanelOutputs; ++o) {
                lanes[o] += value * call.panel[i * kPanelOutputs + o];
            }
        }
        for (std::int64_t o = 0; o < kPanelOutputs; ++o) {
            sums[o] = lanes[o];
        }
    }
}

} // namespace

void multiplyPanel(SimdLevel simd, const TileCall& call) {
    switch (simd) {
    case SimdLevel::Avx512:
        return panelAvx512(call);
    case SimdLevel::Avx2:
        return panelAvx2(call);
    case SimdLevel::Scalar:
        return panelScalar(call);
    }
}

} // namespace vitrine::kernels
