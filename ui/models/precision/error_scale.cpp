// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/precision/error_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace vitrine::ui {

namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();
constexpr double kStepDecibels = 0.5;

/// The errors of one role in decibels, from the least, without those that are exact or unknown.
std::vector<double> sortedErrors(ErrorMeasure measure, const std::vector<float>& values) {
    std::vector<double> errors;
    errors.reserve(values.size());
    for (const float value : values) {
        if (const double error = errorDecibels(measure, value); std::isfinite(error)) {
            errors.push_back(error);
        }
    }
    std::ranges::sort(errors);
    return errors;
}

double partAt(const std::vector<double>& sorted, double part) {
    return sorted[static_cast<std::size_t>(std::lround(part * static_cast<double>(sorted.size() - 1)))];
}

QString withMinus(QString text) {
    return text.replace(QLatin1Char('-'), QChar(0x2212));
}

} // namespace

double errorDecibels(ErrorMeasure measure, double value) {
    switch (measure) {
    case ErrorMeasure::Snr:
        return -value;
    case ErrorMeasure::Mse:
        return std::isnan(value) ? kNoValue : 10 * std::log10(std::max(0.0, value));
    case ErrorMeasure::Cosine:
        return std::isnan(value) ? kNoValue : 10 * std::log10(std::max(0.0, 1 - value));
    }
    return kNoValue;
}

double valueOfError(ErrorMeasure measure, double decibels) {
    const double power = std::pow(10.0, decibels / 10);
    return measure == ErrorMeasure::Snr ? -decibels : measure == ErrorMeasure::Mse ? power : 1 - power;
}

double meanError(ErrorMeasure measure, std::span<const float> values) {
    double sum = 0;
    std::size_t known = 0;
    for (const float value : values) {
        if (!std::isnan(value)) {
            sum += std::pow(10.0, errorDecibels(measure, value) / 10);
            ++known;
        }
    }
    return known == 0 ? kNoValue : valueOfError(measure, 10 * std::log10(sum / static_cast<double>(known)));
}

double worstError(ErrorMeasure measure, std::span<const float> values) {
    double worst = kNoValue;
    for (const float value : values) {
        if (!std::isnan(value) && !(errorDecibels(measure, value) <= errorDecibels(measure, worst))) {
            worst = value;
        }
    }
    return worst;
}

int ErrorScale::stepOf(double value) const {
    const double error = errorDecibels(measure, value);
    if (std::isnan(error)) {
        return -1;
    }
    return static_cast<int>(std::clamp(std::floor((error - least) / width), 0.0, double(kSteps - 1)));
}

bool ErrorScale::worse(double value, double than) const {
    return errorDecibels(measure, value) > errorDecibels(measure, than);
}

QString ErrorScale::stepText(int step) const {
    if (step >= kSteps - 1) {
        return measure == ErrorMeasure::Mse ? QStringLiteral("more") : QStringLiteral("less");
    }
    return valueText(valueOfError(measure, least + (step + 1) * width));
}

QString ErrorScale::valueText(double value) const {
    if (std::isnan(value)) {
        return QStringLiteral("–");
    }
    switch (measure) {
    case ErrorMeasure::Snr:
        return std::isinf(value) ? QStringLiteral("exact") : withMinus(QString::number(value, 'f', 1));
    case ErrorMeasure::Mse:
        return value == 0
                   ? QStringLiteral("0")
                   : withMinus(QString::number(value, 'e', 1).replace(QLatin1String("e-0"), QLatin1String("e-")));
    case ErrorMeasure::Cosine:
        return withMinus(QString::number(value, 'f', 4));
    }
    return {};
}

ErrorScale errorScale(ErrorMeasure measure, const std::vector<std::vector<float>>& roles) {
    ErrorScale scale;
    scale.measure = measure;
    std::vector<double> best, worst;
    double bestMean = 0, worstMean = 0;
    for (const std::vector<float>& role : roles) {
        std::vector<double> errors = sortedErrors(measure, role);
        if (errors.empty()) {
            continue;
        }
        const double mean = errorDecibels(measure, meanError(measure, role));
        if (best.empty() || mean < bestMean) {
            best = errors;
            bestMean = mean;
        }
        if (worst.empty() || mean > worstMean) {
            worst = std::move(errors);
            worstMean = mean;
        }
    }
    if (best.empty()) {
        return scale;
    }
    const double from = partAt(best, 0.05), to = std::max(from, partAt(worst, 0.95));
    scale.least = std::floor(from / kStepDecibels) * kStepDecibels;
    const double steps = std::ceil((to - scale.least) / (kStepDecibels * ErrorScale::kSteps));
    scale.width = kStepDecibels * std::clamp(steps, 1.0, 100.0);
    return scale;
}

} // namespace vitrine::ui
