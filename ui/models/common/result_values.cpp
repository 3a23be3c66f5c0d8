// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/common/result_values.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "engine/workload/experiment/result_fields.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

constexpr double kMostAsBytes = 9e18, kMostSeconds = 9e9, kMostWhole = 9e15;

QString bareNumber(double value) {
    return std::abs(value) < kMostWhole && value == std::floor(value) ? countText(static_cast<qint64>(value))
                                                                      : QString::number(value, 'g', 4);
}

} // namespace

QString metricText(std::string_view path, std::optional<double> value) {
    using engine::ResultUnit;
    if (!value || !std::isfinite(*value)) {
        return unknownText();
    }
    const engine::ResultField* field = engine::findResult(path);
    switch (field == nullptr ? ResultUnit::Number : field->unit) {
    case ResultUnit::TokensPerSecond:
        return (*value < 10 ? QString::number(*value, 'f', 1) : countText(std::llround(std::min(*value, kMostWhole)))) +
               QStringLiteral("\u00A0tok/s");
    case ResultUnit::GigabytesPerSecond:
        return rateText(*value * 1e9);
    case ResultUnit::BytesPerSecond:
        return rateText(*value);
    case ResultUnit::Milliseconds:
        return QString::number(*value, 'g', 4) + QStringLiteral("\u00A0ms");
    case ResultUnit::TeraflopsPerSecond:
        return QString::number(*value, 'g', 4) + QStringLiteral("\u00A0TFLOP/s");
    case ResultUnit::Bytes:
        return *value >= 0 && *value < kMostAsBytes ? bytesText(static_cast<std::uint64_t>(*value))
                                                    : bareNumber(*value);
    case ResultUnit::Seconds:
        return std::abs(*value) < kMostSeconds ? durationText(static_cast<base::TimeNs>(std::llround(*value * 1e9)))
                                               : bareNumber(*value);
    default:
        return bareNumber(*value);
    }
}

} // namespace vitrine::ui
