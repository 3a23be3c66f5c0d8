// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Colour steps of weight errors: ten steps that are even in decibels. A scale is made once and then kept, so that a
// colour means the same error in all formats.

#include <QString>
#include <cstdint>
#include <span>
#include <vector>

namespace vitrine::ui {

enum class ErrorMeasure : std::uint8_t {
    Snr,   ///< dB: 10 log10(sum w^2 / sum (w' - w)^2); more is better
    Mse,   ///< mean of (w' - w)^2; less is better
    Cosine ///< between w and w'; more is better, 1 is exact
};

/// The error behind a value in decibels, more being worse: -SNR, 10 log10 MSE, 10 log10(1 - cosine). Minus infinity
/// for an exact value, NaN for NaN.
double errorDecibels(ErrorMeasure measure, double value);
/// The value that has this error.
double valueOfError(ErrorMeasure measure, double decibels);

/// The mean by squared errors: of SNR the mean of the noise-to-signal ratios, of the others the mean of MSE or of
/// 1 - cosine. Values that are NaN are left out; NaN without any other.
double meanError(ErrorMeasure measure, std::span<const float> values);
/// The value with the largest error; NaN where all are NaN.
double worstError(ErrorMeasure measure, std::span<const float> values);

struct ErrorScale {
    static constexpr int kSteps = 10;

    ErrorMeasure measure = ErrorMeasure::Snr;
    double least = -20.5; ///< the error at which step 0 begins, in decibels; smaller errors belong to step 0, too
    double width = 0.5;   ///< of a step, in decibels

    /// 0 for the least error, kSteps - 1 for the most; -1 for NaN.
    int stepOf(double value) const;
    bool worse(double value, double than) const;
    /// What stands on the swatch of a step: its worst value, and "less" or "more" on the last one.
    QString stepText(int step) const;
    /// A value as the scale writes it: "17.1" dB, "3.2e−5", "0.9904".
    QString valueText(double value) const;
};

/// A scale from the 95th percentile of the best role to the 5th of the worst, as SNR counts. Steps are 0.5 dB wide, or
/// the smallest multiple of it that covers the range. `roles` has the values of each role; without values it is the
/// default of ErrorScale.
ErrorScale errorScale(ErrorMeasure measure, const std::vector<std::vector<float>>& roles);

} // namespace vitrine::ui
