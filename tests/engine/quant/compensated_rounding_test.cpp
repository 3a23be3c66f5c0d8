// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/compensated_rounding.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "base/error.h"
#include "engine/quant/conversion_target.h"

namespace vitrine::engine {
namespace {

using kernels::DType;

/// Rows whose inputs depend on each other; input 3 is always 0.
std::vector<float> dependentRows(std::mt19937& random, std::int64_t rows, std::int64_t in) {
    std::normal_distribution<float> normal;
    std::vector<float> out;
    for (std::int64_t row = 0; row < rows; ++row) {
        const float common = normal(random);
        float last = normal(random);
        for (std::int64_t i = 0; i < in; ++i) {
            last = 0.7F * last + 0.5F * normal(random) + 0.4F * common;
            out.push_back(i == 3 ? 0 : last);
        }
    }
    return out;
}

std::vector<float> normalMatrix(std::mt19937& random, const MatrixSize& size) {
    std::normal_distribution<float> normal(0, 0.05F);
    std::vector<float> values(static_cast<std::size_t>(size.count()));
    for (float& value : values) {
        value = normal(random);
    }
    return values;
}

std::mt19937 seeded() {
    const unsigned seed = std::random_device{}();
    testing::Test::RecordProperty("seed", std::to_string(seed));
    return std::mt19937(seed);
}

TEST(CompensatedRounding, TheFactorIsThatOfTheInverse) {
    std::mt19937 random = seeded();
    constexpr std::int64_t kIn = 45, kRows = 90;
    const std::vector<float> rows = dependentRows(random, kRows, kIn);
    base::ThreadPool pool(3), single(1);
    std::vector<double> products = productOfInputs(rows, kIn, pool);
    EXPECT_EQ(products, productOfInputs(rows, kIn, single));
    const auto at = [](std::int64_t i, std::int64_t j) { return static_cast<std::size_t>(i * kIn + j); };
    double sum = 0;
    for (std::int64_t row = 0; row < kRows; ++row) {
        sum += double{rows[static_cast<std::size_t>(row * kIn + 7)]} * rows[static_cast<std::size_t>(row * kIn + 30)];
    }
    EXPECT_NEAR(products[at(7, 30)], sum, 1e-9 * kRows);
    const std::vector<float> factor = inverseFactor(products, kIn, pool);
    EXPECT_EQ(factor, inverseFactor(products, kIn, single));
    // Damped as the header says; U^T U times it is the identity.
    products[at(3, 3)] = 1;
    double mean = 0;
    for (std::int64_t i = 0; i < kIn; ++i) {
        mean += products[at(i, i)] / kIn;
    }
    for (std::int64_t i = 0; i < kIn; ++i) {
        products[at(i, i)] += 0.01 * mean;
    }
    for (std::int64_t i = 0; i < kIn; ++i) {
        for (std::int64_t j = 0; j < kIn; ++j) {
            double element = 0;
            for (std::int64_t k = 0; k < kIn; ++k) {
                double inverse = 0;
                for (std::int64_t l = 0; l <= std::min(i, k); ++l) {
                    inverse += double{factor[at(l, i)]} * factor[at(l, k)];
                }
                element += inverse * products[at(k, j)];
            }
            ASSERT_NEAR(element, i == j ? 1 : 0, 1e-4) << i << ", " << j;
        }
    }
}

/// The method without blocks, written down once more: column after column of one row.
std::vector<float> byColumns(const WeightPacking& packing, const IntegerRules& rules, std::vector<float> row,
                             const std::vector<float>& factor) {
    const auto in = static_cast<std::int64_t>(row.size());
    std::vector<float> out(row.size());
    IntegerGroup group;
    for (std::int64_t i = 0; i < in; ++i) {
        if (i % packing.group == 0) {
            group = integerGroup(
                rules, std::span(row).subspan(static_cast<std::size_t>(i), static_cast<std::size_t>(packing.group)));
        }
        const float value = row[static_cast<std::size_t>(i)];
        const float rounded = static_cast<float>(integerCode(rules, group, value) - group.zero) * group.scale;
        out[static_cast<std::size_t>(i)] = rounded;
        const float error = (value - rounded) / factor[static_cast<std::size_t>(i * in + i)];
        for (std::int64_t j = i + 1; j < in; ++j) {
            row[static_cast<std::size_t>(j)] -= error * factor[static_cast<std::size_t>(i * in + j)];
        }
    }
    return out;
}

TEST(CompensatedRounding, IsTheMethodAndBeatsTheNearest) {
    std::mt19937 random = seeded();
    const MatrixSize size{40, 320}; // more than two blocks of columns, rows that do not fill a task
    const std::vector<float> inputs = dependentRows(random, 500, size.in);
    const std::vector<float> values = normalMatrix(random, size);
    base::ThreadPool pool(3);
    const std::vector<float> factor = inverseFactor(productOfInputs(inputs, size.in, pool), size.in, pool);
    for (const char* target : {"int4", "awq"}) {
        SCOPED_TRACE(target);
        const Quantization to = *conversionTarget(target, 32, std::nullopt);
        const PackedValues packed = packCompensated(to.packing, size, to.symmetric, DType::F32, values, factor, pool);
        std::vector<float> rounded(values.size()), nearest(values.size());
        expandMatrix(viewOf(to.packing, size, packed), rounded, pool);
        const std::vector<float> firstRow(values.begin(), values.begin() + size.in);
        const std::vector<float> again =
            byColumns(to.packing, integerRules(to.packing, size, to.symmetric, DType::F32), firstRow, factor);
        std::size_t different = 0; // blocks add in another order, which may move a value over the middle of a step
        for (std::size_t i = 0; i < again.size(); ++i) {
            different += std::abs(again[i] - rounded[i]) > 1e-5F ? 1 : 0;
        }
        EXPECT_LE(different, 12U);
        const PackedValues plain = packMatrix(to.packing, size, to.symmetric, DType::F32, values, pool);
        expandMatrix(viewOf(to.packing, size, plain), nearest, pool);
        const auto outputError = [&](const std::vector<float>& weights) {
            double sum = 0;
            for (std::size_t x = 0; x < inputs.size(); x += static_cast<std::size_t>(size.in)) {
                for (std::size_t row = 0; row < values.size(); row += static_cast<std::size_t>(size.in)) {
                    double product = 0;
                    for (std::size_t i = 0; i < static_cast<std::size_t>(size.in); ++i) {
                        product += double{inputs[x + i]} * (double{weights[row + i]} - values[row + i]);
                    }
                    sum += product * product;
                }
            }
            return sum;
        };
        EXPECT_LT(outputError(rounded), 0.5 * outputError(nearest));
    }
}

TEST(CompensatedRounding, InputsThatAreNoNumbersAreRefused) {
    base::ThreadPool pool(1);
    const std::vector<float> rows(64, std::numeric_limits<float>::quiet_NaN());
    EXPECT_THROW(inverseFactor(productOfInputs(rows, 8, pool), 8, pool), base::BadInput);
}

} // namespace
} // namespace vitrine::engine
