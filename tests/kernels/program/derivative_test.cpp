// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/program/derivative.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "base/error.h"
#include "kernels/program/emitter.h"
#include "kernels/program/interpreter.h"
#include "tests/kernels/program/program_testing.h"
#include "tests/repetitions.h"

namespace vitrine::kernels {
namespace {

using testing::Captures;
using testing::Expr;
using testing::Maker;
using testing::where;

double valueAt(const Program& program, const CaptureBinding& binding, const ProgramRow& row, std::int64_t key,
               double score) {
    Interpreter<double> interpreter(program, binding);
    interpreter.run(row, key, 1, &score);
    return interpreter.floats()[0];
}

/// A derivative by central differences; none where halving the step changes it (a kink, a pole) or where the values are
/// so large that their last bits hide it.
template <class Function> std::optional<double> slope(const Function& f) {
    const auto central = [&](double h) { return (f(h) - f(-h)) / (2 * h); };
    const double coarse = central(2e-5);
    const double fine = central(1e-5);
    const double left = (f(0.0) - f(-1e-5)) / 1e-5;
    const double right = (f(1e-5) - f(0.0)) / 1e-5;
    const double scale = 1 + std::fabs(fine);
    const double lost = std::fabs(f(0.0)) * std::numeric_limits<double>::epsilon() / 1e-5;
    if (!std::isfinite(coarse) || lost > 1e-6 * scale || std::fabs(coarse - fine) > 1e-6 * scale ||
        std::fabs(left - right) > 1e-2 * scale) {
        return std::nullopt;
    }
    return fine;
}

void expectSlopes(const Program& program, Captures& captures, int& compared) {
    const ScoreGradient gradient = derivativeOf(program);
    std::vector<std::int32_t> roots{gradient.program.result};
    for (const ScoreGradient::CaptureGradient& item : gradient.captures) {
        roots.push_back(item.value);
        roots.insert(roots.end(), item.indices.begin(), item.indices.end());
    }
    Interpreter<double> interpreter(gradient.program, captures.binding, roots);
    for (const std::int64_t query : {3, 17}) {
        for (const std::int64_t key : {0, 3, 11}) {
            const ProgramRow row{0, 1, query};
            const double score = 0.37 * static_cast<double>(query - key) - 0.6;
            const double upstream = 1;
            interpreter.run(row, key, 1, &score, &upstream);
            const auto byScore =
                slope([&](double h) { return valueAt(program, captures.binding, row, key, score + h); });
            // Where an inner value overflows, 0 * inf is NaN, in PyTorch too.
            if (byScore && std::isfinite(interpreter.floats(0)[0])) {
                EXPECT_NEAR(interpreter.floats(0)[0], *byScore, 3e-6 * (1 + std::fabs(*byScore)))
                    << printProgram(program, "f") << printProgram(gradient.program, "df");
                ++compared;
            }
            // Sums over the loads of each element of each captured tensor.
            for (std::size_t c = 0; c < program.captures.size(); ++c) {
                if (!program.captures[c].differentiable) {
                    continue;
                }
                const TensorView& view = captures.binding.tensors[c];
                std::vector<double> sums(static_cast<std::size_t>(view.shape.count()), 0);
                int root = 1;
                for (const ScoreGradient::CaptureGradient& item : gradient.captures) {
                    const double value = interpreter.floats(root++)[0];
                    std::int64_t offset = 0;
                    for (std::size_t dim = 0; dim < item.indices.size(); ++dim) {
                        const std::int64_t extent = view.shape[static_cast<int>(dim)];
                        std::int64_t index = interpreter.integers(root++)[0];
                        index = std::clamp<std::int64_t>(index < 0 ? index + extent : index, 0, extent - 1);
                        offset = offset * extent + index;
                    }
                    if (item.capture == static_cast<std::int32_t>(c)) {
                        sums[static_cast<std::size_t>(offset)] += value;
                    }
                }
                auto* data = view.as<double>();
                for (std::size_t i = 0; i < sums.size(); ++i) {
                    const double before = data[i];
                    const auto byElement = slope([&](double h) {
                        data[i] = before + h;
                        return valueAt(program, captures.binding, row, key, score);
                    });
                    data[i] = before;
                    if (byElement && std::isfinite(sums[i])) {
                        EXPECT_NEAR(sums[i], *byElement, 3e-6 * (1 + std::fabs(*byElement)))
                            << printProgram(program, "f");
                        ++compared;
                    }
                }
            }
        }
    }
}

/// Float tables as float64, so that differences are exact enough.
struct DoubleCaptures {
    explicit DoubleCaptures(const Captures& from) {
        captures.binding = from.binding;
        for (TensorView& view : captures.binding.tensors) {
            if (view.dtype == DType::F32) {
                memory.emplace_back(view.as<const float>(), view.as<const float>() + view.shape.count());
                view = {memory.back().data(), DType::F64, view.shape, 0};
            }
        }
    }
    std::vector<std::vector<double>> memory;
    Captures captures;
};

TEST(Derivative, RandomProgramsAgainstDifferences) {
    std::mt19937 random(29);
    int compared = 0;
    for (int i = 0; i < vitrine::test::repetitions(300); ++i) {
        testing::RandomProgram source(random, 32, 2);
        const Program program = source.score();
        const Captures contents = source.captures(program);
        DoubleCaptures wide(contents);
        expectSlopes(program, wide.captures, compared);
        if (HasFailure()) {
            return;
        }
    }
    EXPECT_GT(compared, vitrine::test::moreThan(4000));
}

ScoreGradient gradientOf(Maker& m, const Expr& value) {
    return derivativeOf(m.finish(value));
}

TEST(Derivative, KnowsLinearAndIdentity) {
    Maker m;
    const Expr slopes = m.load("slopes", ProgramType::Float, {m.h}, true);
    const ScoreGradient alibi = gradientOf(m, m.score + slopes * (m.k - m.q));
    EXPECT_TRUE(alibi.identity);
    EXPECT_TRUE(alibi.linear);
    ASSERT_EQ(alibi.captures.size(), 1U);
    EXPECT_EQ(printNode(alibi.program, alibi.captures[0].value), "grad * (kv_idx - q_idx)");
    EXPECT_EQ(alibi.program.captures.size(), 1U) << "the binding of the score program serves its gradient";
    const ScoreGradient scaled = gradientOf(m, where(m.q >= m.k, m.score * 2, m.score));
    EXPECT_TRUE(scaled.linear);
    EXPECT_FALSE(scaled.identity);
    const ScoreGradient capped = gradientOf(m, (m.score / 20).of(ProgramOp::Tanh) * 20);
    EXPECT_FALSE(capped.linear);
    const ScoreGradient ignored = gradientOf(m, slopes * m.q);
    EXPECT_EQ(printNode(ignored.program, ignored.program.result), "0.0");
    const ScoreGradient fixed = gradientOf(m, m.score + m.load("bias", ProgramType::Float, {m.q, m.k}, false));
    EXPECT_TRUE(fixed.captures.empty());
}

TEST(Derivative, SubgradientsAsPyTorch) {
    const auto at = [](const auto& make, double score) {
        Maker m;
        const Expr value = make(m);
        const ScoreGradient gradient = gradientOf(m, value);
        const CaptureBinding none;
        Interpreter<double> interpreter(gradient.program, none);
        const double upstream = 3;
        interpreter.run({0, 0, 0}, 0, 1, &score, &upstream);
        return interpreter.floats()[0];
    };
    const auto absolute = [](Maker& m) { return m.score.of(ProgramOp::Abs); };
    EXPECT_EQ(at(absolute, 0), 0);
    EXPECT_EQ(at(absolute, -2), -3);
    const auto least = [](Maker& m) { return m.score.make(ProgramOp::Min, m.number(0.5)); };
    EXPECT_EQ(at(least, 0.5), 1.5);
    EXPECT_EQ(at(least, 0.4), 3);
    EXPECT_EQ(at(least, 0.6), 0);
    const auto rounded = [](Maker& m) { return m.score.of(ProgramOp::Floor) + m.score.of(ProgramOp::Round); };
    EXPECT_EQ(at(rounded, 0.3), 0);
    const auto squared = [](Maker& m) { return m.score.make(ProgramOp::Pow, m.number(2)); };
    EXPECT_EQ(at(squared, 0), 0);
    EXPECT_EQ(at(squared, 5), 30);
    const auto flat = [](Maker& m) { return m.score.make(ProgramOp::Pow, m.number(0.0)); };
    EXPECT_EQ(at(flat, 0), 0);
    const auto remainder = [](Maker& m) { return m.score.make(ProgramOp::Mod, m.number(0.25)); };
    EXPECT_EQ(at(remainder, 0.3), 3);
}

TEST(Derivative, RefusesMasks) {
    EXPECT_THROW(derivativeOf(causalMask()), base::BadInput);
}

} // namespace
} // namespace vitrine::kernels
