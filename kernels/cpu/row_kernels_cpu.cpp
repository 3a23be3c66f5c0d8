// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// g++ 12's own intrinsics header reads undefined vectors on purpose and warns about it (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include "kernels/cpu/row_kernels.h"

#include <immintrin.h>

#include "kernels/context/cpu_context.h"

#define VITRINE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma")))
#define VITRINE_AVX2 __attribute__((target("avx2,fma")))

namespace vitrine::kernels {

namespace {

constexpr std::int64_t kLanes = 16;

template <class C> C dotScalar(const C* a, const C* b, std::int64_t dim) {
    C lanes[kLanes] = {};
    std::int64_t d = 0;
    for (; d + kLanes <= dim; d += kLanes) {
        for (std::int64_t lane = 0; lane < kLanes; ++lane) {
            lanes[lane] += a[d + lane] * b[d + lane];
        }
    }
    for (; d < dim; ++d) {
        lanes[0] += a[d] * b[d];
    }
    C sum = 0;
    for (const C lane : lanes) {
        sum += lane;
    }
    return sum;
}

template <class C> void addScalar(C weight, const C* values, std::int64_t dim, C* sums) {
    for (std::int64_t d = 0; d < dim; ++d) {
        sums[d] += weight * values[d];
    }
}

VITRINE_AVX512 float dotAvx512(const float* a, const float* b, std::int64_t dim) {
    __m512 sum = _mm512_setzero_ps();
    std::int64_t d = 0;
    for (; d + 16 <= dim; d += 16) {
        sum = _mm512_fmadd_ps(_mm512_loadu_ps(a + d), _mm512_loadu_ps(b + d), sum);
    }
    if (d < dim) {
        const auto mask = static_cast<__mmask16>((1U << (dim - d)) - 1U);
        sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, a + d), _mm512_maskz_loadu_ps(mask, b + d), sum);
    }
    return _mm512_reduce_add_ps(sum);
}

VITRINE_AVX512 void dotRowsAvx512(const float* q, const float* keys, std::int64_t stride, std::int64_t count,
                                  std::int64_t dim, float* scores) {
    for (std::int64_t i = 0; i < count; ++i) {
        scores[i] = dotAvx512(q, keys + i * stride, dim);
    }
}

/// One register of the sums stays in place over all rows.
VITRINE_AVX512 void addRowsAvx512(const float* weights, const float* values, std::int64_t stride, std::int64_t count,
                                  std::int64_t dim, float* sums) {
    for (std::int64_t d = 0; d < dim; d += 16) {
        const std::int64_t left = dim - d;
        const auto mask = static_cast<__mmask16>(left >= 16 ? 0xFFFFU : (1U << left) - 1U);
        __m512 sum = _mm512_maskz_loadu_ps(mask, sums + d);
        for (std::int64_t i = 0; i < count; ++i) {
            const __m512 value = _mm512_maskz_loadu_ps(mask, values + i * stride + d);
            sum = _mm512_fmadd_ps(_mm512_set1_ps(weights[i]), value, sum);
        }
        _mm512_mask_storeu_ps(sums + d, mask, sum);
    }
}

VITRINE_AVX2 float dotAvx2(const float* a, const float* b, std::int64_t dim) {
    __m256 even = _mm256_setzero_ps();
    __m256 odd = _mm256_setzero_ps();
    std::int64_t d = 0;
    for (; d + 16 <= dim; d += 16) {
        even = _mm256_fmadd_ps(_mm256_loadu_ps(a + d), _mm256_loadu_ps(b + d), even);
        odd = _mm256_fmadd_ps(_mm256_loadu_ps(a + d + 8), _mm256_loadu_ps(b + d + 8), odd);
    }
    const __m256 both = _mm256_add_ps(even, odd);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(both), _mm256_extractf128_ps(both, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    float sum = _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
    for (; d < dim; ++d) {
        sum += a[d] * b[d];
    }
    return sum;
}

VITRINE_AVX2 void dotRowsAvx2(const float* q, const float* keys, std::int64_t stride, std::int64_t count,
                              std::int64_t dim, float* scores) {
    for (std::int64_t i = 0; i < count; ++i) {
        scores[i] = dotAvx2(q, keys + i * stride, dim);
    }
}

VITRINE_AVX2 void addRowsAvx2(const float* weights, const float* values, std::int64_t stride, std::int64_t count,
                              std::int64_t dim, float* sums) {
    std::int64_t d = 0;
    for (; d + 8 <= dim; d += 8) {
        __m256 sum = _mm256_loadu_ps(sums + d);
        for (std::int64_t i = 0; i < count; ++i) {
            sum = _mm256_fmadd_ps(_mm256_set1_ps(weights[i]), _mm256_loadu_ps(values + i * stride + d), sum);
        }
        _mm256_storeu_ps(sums + d, sum);
    }
    for (; d < dim; ++d) {
        for (std::int64_t i = 0; i < count; ++i) {
            sums[d] += weights[i] * values[i * stride + d];
        }
    }
}

} // namespace

void dotRows(SimdLevel simd, const float* q, const float* keys, std::int64_t stride, std::int64_t count,
             std::int64_t dim, float* scores) {
    if (simd == SimdLevel::Avx512) {
        dotRowsAvx512(q, keys, stride, count, dim, scores);
        return;
    }
    if (simd == SimdLevel::Avx2) {
        dotRowsAvx2(q, keys, stride, count, dim, scores);
        return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
        scores[i] = dotScalar(q, keys + i * stride, dim);
    }
}

void dotRows(SimdLevel, const double* q, const double* keys, std::int64_t stride, std::int64_t count, std::int64_t dim,
             double* scores) {
    for (std::int64_t i = 0; i < count; ++i) {
        scores[i] = dotScalar(q, keys + i * stride, dim);
    }
}

void addScaledRows(SimdLevel simd, const float* weights, const float* values, std::int64_t stride, std::int64_t count,
                   std::int64_t dim, float* sums) {
    if (simd == SimdLevel::Avx512) {
        addRowsAvx512(weights, values, stride, count, dim, sums);
        return;
    }
    if (simd == SimdLevel::Avx2) {
        addRowsAvx2(weights, values, stride, count, dim, sums);
        return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
        addScalar(weights[i], values + i * stride, dim, sums);
    }
}

void addScaledRows(SimdLevel, const double* weights, const double* values, std::int64_t stride, std::int64_t count,
                   std::int64_t dim, double* sums) {
    for (std::int64_t i = 0; i < count; ++i) {
        addScalar(weights[i], values + i * stride, dim, sums);
    }
}

} // namespace vitrine::kernels
