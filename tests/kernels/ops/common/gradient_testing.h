// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What tests of gradients share: central finite differences in float64, and copies in another dtype.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "tests/kernels/ops/common/op_testing.h"

namespace vitrine::kernels::testing {

/// `gradient` against the central differences of loss() in the elements of a contiguous float64 tensor, within 1e-6 of
/// the largest one.
template <class Loss> void expectGradient(const TestTensor& at, const std::vector<double>& gradient, const Loss& loss) {
    constexpr double kStep = 1e-5;
    auto* values = at.view().as<double>();
    ASSERT_EQ(static_cast<std::int64_t>(gradient.size()), at.view().shape.count());
    double largest = 1e-3;
    for (const double value : gradient) {
        largest = std::max(largest, std::fabs(value));
    }
    for (std::size_t i = 0; i < gradient.size(); ++i) {
        const double before = values[i];
        values[i] = before + kStep;
        const double above = loss();
        values[i] = before - kStep;
        const double below = loss();
        values[i] = before;
        ASSERT_NEAR(gradient[i], (above - below) / (2 * kStep), 1e-6 * largest) << "element " << i;
    }
}

/// The sum of products of two tensors' elements.
inline double dotOf(const TestTensor& a, const TestTensor& b) {
    const std::vector<double> first = a.values();
    const std::vector<double> second = b.values();
    double sum = 0;
    for (std::size_t i = 0; i < first.size(); ++i) {
        sum += first[i] * second.at(i);
    }
    return sum;
}

/// Fills a narrow tensor at random and the float64 one with what it then holds.
inline void fillBoth(std::mt19937& random, TestTensor& narrow, TestTensor& wide, double deviation = 1) {
    narrow.fillNormal(random, deviation);
    wide.fill(narrow.values());
}

/// Every element within `tolerance` of the largest expected one, guards intact.
inline void expectClose(const TestTensor& actual, const std::vector<double>& expected, double tolerance) {
    double largest = 1e-3;
    for (const double value : expected) {
        largest = std::max(largest, std::fabs(value));
    }
    expectNear(actual, expected, tolerance * largest);
}

} // namespace vitrine::kernels::testing
