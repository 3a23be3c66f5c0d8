// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Programs from text, evaluated over small grids and compared with plain functions.

#include <cmath>
#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "engine/language/module.h"
#include "kernels/program/interpreter.h"

namespace vitrine::engine {

inline ChosenProgram makeMod(const std::string& text, const std::string& expression, bool isMask,
                             const ProgramOptions& options = {}) {
    const PyFile file{"test.py", text};
    const PyModule module = PyModule::parse(std::span(&file, 1));
    return isMask ? module.mask(expression, options) : module.score(expression, options);
}

using MaskFunction = std::function<bool(int b, int h, int q, int k)>;

/// Keys nearer than the distance, on both sides of the query.
inline MaskFunction within(int distance) {
    return [distance](int, int, int q, int k) { return std::abs(q - k) < distance; };
}
using ScoreFunction = std::function<double(double score, int b, int h, int q, int k)>;

inline constexpr int kGrid = 24;

/// Over 2 batches, 3 heads and a grid of positions.
inline void expectMask(const ChosenProgram& program, const MaskFunction& expected, const std::string& what) {
    const kernels::CaptureBinding binding = program.binding();
    kernels::Interpreter<double> interpreter(program.program, binding);
    for (int b = 0; b < 2; ++b) {
        for (int h = 0; h < 3; ++h) {
            for (int q = 0; q < kGrid; ++q) {
                interpreter.run({b, h, q}, 0, kGrid, nullptr);
                for (int k = 0; k < kGrid; ++k) {
                    ASSERT_EQ(interpreter.booleans()[k] != 0, expected(b, h, q, k))
                        << what << ": b " << b << " h " << h << " q " << q << " k " << k;
                }
            }
        }
    }
}

inline void expectScore(const ChosenProgram& program, const ScoreFunction& expected, const std::string& what) {
    const kernels::CaptureBinding binding = program.binding();
    kernels::Interpreter<double> interpreter(program.program, binding);
    std::vector<double> scores(kGrid);
    for (int b = 0; b < 2; ++b) {
        for (int h = 0; h < 3; ++h) {
            for (int q = 0; q < kGrid; ++q) {
                for (int k = 0; k < kGrid; ++k) {
                    scores[static_cast<std::size_t>(k)] = 0.25 * ((q * 7 + k * 3 + h) % 17 - 8);
                }
                interpreter.run({b, h, q}, 0, kGrid, scores.data());
                for (int k = 0; k < kGrid; ++k) {
                    const double wanted = expected(scores[static_cast<std::size_t>(k)], b, h, q, k);
                    const double found = interpreter.floats()[k];
                    const bool same = wanted == found || (std::isnan(wanted) && std::isnan(found));
                    ASSERT_TRUE(same || std::abs(found - wanted) <= 1e-6 * (1 + std::abs(wanted)))
                        << what << ": b " << b << " h " << h << " q " << q << " k " << k << ": " << found << ", not "
                        << wanted;
                }
            }
        }
    }
}

inline void expectMaskOf(const std::string& text, const std::string& expression, const MaskFunction& expected) {
    try {
        expectMask(makeMod(text, expression, true), expected, expression);
    } catch (const PyError& error) {
        ADD_FAILURE() << text << "\n" << error.what() << "\n" << error.excerpt();
    }
}

inline void expectScoreOf(const std::string& text, const std::string& expression, const ScoreFunction& expected) {
    try {
        expectScore(makeMod(text, expression, false), expected, expression);
    } catch (const PyError& error) {
        ADD_FAILURE() << text << "\n" << error.what() << "\n" << error.excerpt();
    }
}

} // namespace vitrine::engine
