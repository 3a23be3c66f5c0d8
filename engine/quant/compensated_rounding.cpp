// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/quant/compensated_rounding.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "engine/quant/integer_quantizer.h"

namespace vitrine::engine {
namespace {

constexpr double kDamping = 0.01;          ///< of the mean diagonal, as the paper has it
constexpr std::int64_t kColumnBlock = 128; ///< columns whose errors reach the rest of the row together
constexpr std::int64_t kRowsOfATask = 16;  ///< rows that read the factor together

/// The sum in eight parts, whose order is fixed: the compiler makes vectors of them.
double dotOf(const double* a, const double* b, std::int64_t count) {
    double parts[8] = {};
    std::int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        for (int k = 0; k < 8; ++k) {
            parts[k] += a[i + k] * b[i + k];
        }
    }
    double sum = 0;
    for (; i < count; ++i) {
        sum += a[i] * b[i];
    }
    for (const double part : parts) {
        sum += part;
    }
    return sum;
}

/// The matrix with both axes reversed. The lower factor of it is the upper factor of the matrix, reversed.
std::vector<double> reversed(const std::vector<double>& matrix) {
    return {matrix.rbegin(), matrix.rend()};
}

/// The lower Cholesky factor in place of the lower triangle.
void factorize(std::vector<double>& a, std::int64_t n, base::ThreadPool& pool) {
    const auto row = [&](std::int64_t i) { return a.data() + i * n; };
    for (std::int64_t j = 0; j < n; ++j) {
        const double rest = row(j)[j] - dotOf(row(j), row(j), j);
        if (!(rest > 0) || !std::isfinite(rest)) {
            throw base::BadInput("the calibration's inputs are not finite, or too large for their products");
        }
        const double diagonal = std::sqrt(rest);
        row(j)[j] = diagonal;
        pool.parallelFor(n - j - 1, 64, [&](std::int64_t begin, std::int64_t end, int) {
            for (std::int64_t i = j + 1 + begin; i < j + 1 + end; ++i) {
                row(i)[j] = (row(i)[j] - dotOf(row(i), row(j), j)) / diagonal;
            }
        });
    }
}

/// The inverse of a lower triangle, transposed: row j of the result is column j of the inverse.
std::vector<double> inverseTransposed(const std::vector<double>& lower, std::int64_t n, base::ThreadPool& pool) {
    std::vector<double> out(lower.size());
    pool.parallelFor(n, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t j = begin; j < end; ++j) {
            double* column = out.data() + j * n;
            column[j] = 1 / lower[static_cast<std::size_t>(j * n + j)];
            for (std::int64_t i = j + 1; i < n; ++i) {
                const double* row = lower.data() + i * n;
                column[i] = -dotOf(row + j, column + j, i - j) / row[i];
            }
        }
    });
    return out;
}

/// Some rows while their columns are rounded.
struct RowRounder {
    const IntegerRules& rules;
    std::int64_t in;
    std::span<float> values; ///< (rows, in), spoiled
    std::span<const float> factor;
    std::span<IntegerGroup> groups; ///< (rows, in / group)

    std::int64_t rows() const { return static_cast<std::int64_t>(values.size()) / in; }

    void roundBlock(std::int64_t begin, std::int64_t end, std::span<float> errors, std::span<std::uint8_t> codes) {
        const std::int64_t perRow = in / rules.group;
        for (std::int64_t i = begin; i < end; ++i) {
            const float* u = factor.data() + i * in;
            for (std::int64_t row = 0; row < rows(); ++row) {
                float* w = values.data() + row * in;
                IntegerGroup& group = groups[static_cast<std::size_t>(row * perRow + i / rules.group)];
                if (i % rules.group == 0) {
                    group = integerGroup(rules, {w + i, static_cast<std::size_t>(rules.group)});
                }
                const std::uint8_t code = integerCode(rules, group, w[i]);
                codes[static_cast<std::size_t>(row * in + i)] = code;
                const float error = (w[i] - static_cast<float>(code - group.zero) * group.scale) / u[i];
                errors[static_cast<std::size_t>(row * kColumnBlock + i - begin)] = error;
                for (std::int64_t j = i + 1; j < end; ++j) {
                    w[j] -= error * u[j];
                }
            }
        }
    }

    void spread(std::int64_t begin, std::int64_t end, std::span<const float> errors) {
        for (std::int64_t row = 0; row < rows(); ++row) {
            float* w = values.data() + row * in;
            for (std::int64_t i = begin; i < end; ++i) {
                const float error = errors[static_cast<std::size_t>(row * kColumnBlock + i - begin)];
                const float* u = factor.data() + i * in;
                for (std::int64_t j = end; j < in; ++j) {
                    w[j] -= error * u[j];
                }
            }
        }
    }
};

} // namespace

std::vector<double> productOfInputs(std::span<const float> rows, std::int64_t in, base::ThreadPool& pool) {
    const std::int64_t count = static_cast<std::int64_t>(rows.size()) / in;
    std::vector<double> columns(rows.size()); // each input's values one after the other
    pool.parallelFor(in, 16, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t row = 0; row < count; ++row) {
            for (std::int64_t i = begin; i < end; ++i) {
                columns[static_cast<std::size_t>(i * count + row)] = rows[static_cast<std::size_t>(row * in + i)];
            }
        }
    });
    std::vector<double> out(static_cast<std::size_t>(in * in));
    pool.parallelFor(in, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t i = begin; i < end; ++i) {
            for (std::int64_t j = 0; j <= i; ++j) {
                const double sum = dotOf(columns.data() + i * count, columns.data() + j * count, count);
                out[static_cast<std::size_t>(i * in + j)] = out[static_cast<std::size_t>(j * in + i)] = sum;
            }
        }
    });
    return out;
}

std::vector<float> inverseFactor(std::vector<double> products, std::int64_t in, base::ThreadPool& pool) {
    double mean = 0;
    for (std::int64_t i = 0; i < in; ++i) {
        double& diagonal = products[static_cast<std::size_t>(i * in + i)];
        diagonal = diagonal == 0 ? 1 : diagonal;
        mean += diagonal / static_cast<double>(in);
    }
    for (std::int64_t i = 0; i < in; ++i) {
        products[static_cast<std::size_t>(i * in + i)] += kDamping * mean;
    }
    // H = R R^T with R upper triangular comes from the reversed matrix; then H^-1 = R^-T R^-1, so U is R^-1.
    std::vector<double> lower = reversed(products);
    factorize(lower, in, pool);
    const std::vector<double> inverse = inverseTransposed(lower, in, pool);
    std::vector<float> factor(products.size());
    pool.parallelFor(in, 64, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t i = begin; i < end; ++i) {
            for (std::int64_t j = i; j < in; ++j) {
                factor[static_cast<std::size_t>(i * in + j)] =
                    static_cast<float>(inverse[static_cast<std::size_t>((in - 1 - j) * in + in - 1 - i)]);
            }
        }
    });
    return factor;
}

PackedValues packCompensated(const WeightPacking& packing, const MatrixSize& size, bool symmetric, kernels::DType dtype,
                             std::vector<float> values, std::span<const float> factor, base::ThreadPool& pool) {
    const IntegerRules rules = integerRules(packing, size, symmetric, dtype);
    const std::int64_t perRow = size.in / rules.group;
    std::vector<IntegerGroup> groups(static_cast<std::size_t>(size.out * perRow));
    std::vector<std::uint8_t> codes(values.size());
    const auto rowsOf = [](auto& all, std::int64_t width, std::int64_t begin, std::int64_t end) {
        return std::span(all).subspan(static_cast<std::size_t>(begin * width),
                                      static_cast<std::size_t>((end - begin) * width));
    };
    const std::int64_t tasks = (size.out + kRowsOfATask - 1) / kRowsOfATask;
    pool.parallelFor(tasks, 1, [&](std::int64_t first, std::int64_t last, int) {
        std::vector<float> errors(static_cast<std::size_t>(kRowsOfATask * kColumnBlock));
        for (std::int64_t begin = first * kRowsOfATask; begin < std::min(size.out, last * kRowsOfATask);
             begin += kRowsOfATask) {
            const std::int64_t end = std::min(size.out, begin + kRowsOfATask);
            RowRounder rounder{rules, size.in, rowsOf(values, size.in, begin, end), factor,
                               rowsOf(groups, perRow, begin, end)};
            for (std::int64_t i = 0; i < size.in; i += kColumnBlock) {
                const std::int64_t stop = std::min(size.in, i + kColumnBlock);
                rounder.roundBlock(i, stop, errors, rowsOf(codes, size.in, begin, end));
                rounder.spread(i, stop, errors);
            }
        }
    });
    return packedIntegers(packing, rules, codes, groups);
}

} // namespace vitrine::engine
