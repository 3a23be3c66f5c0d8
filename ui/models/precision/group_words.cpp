// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/precision/group_words.h"

#include <QObject>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"
#include "ui/models/precision/number_ticks.h"

namespace vitrine::ui {

namespace {

constexpr float kLonely = 4;      ///< times the next weight
constexpr float kEvenPart = 0.02; ///< of a step that levels may be off

} // namespace

bool evenLevels(const engine::GroupDetail& group) {
    const std::vector<float>& levels = group.levels;
    for (std::size_t i = 1; i < levels.size(); ++i) {
        if (std::abs(levels[i] - levels[i - 1] - group.step) > group.step * kEvenPart) {
            return false;
        }
    }
    return levels.size() > 1;
}

int signedCode(const engine::GroupDetail& group, std::size_t weight) {
    return group.codes[weight] - group.zeroLevel;
}

std::optional<std::size_t> lonelyWeight(const engine::GroupDetail& group) {
    if (group.values.size() < 2) {
        return std::nullopt;
    }
    std::size_t largest = 0;
    float next = 0;
    for (std::size_t i = 1; i < group.values.size(); ++i) {
        const float value = std::abs(group.values[i]), before = std::abs(group.values[largest]);
        next = std::max(next, std::min(value, before));
        largest = value > before ? i : largest;
    }
    return std::abs(group.values[largest]) > kLonely * next ? std::optional(largest) : std::nullopt;
}

QString lonelyWords(const engine::GroupDetail& group) {
    const std::optional<std::size_t> weight = lonelyWeight(group);
    if (!weight) {
        return {};
    }
    const auto zeros = std::ranges::count(group.codes, group.zeroLevel);
    return QObject::tr("weight %1 of the row sets the scale: %2 of %3 weights become 0")
        .arg(countText(group.error.first + static_cast<std::int64_t>(*weight)), countText(zeros),
             countText(static_cast<std::int64_t>(group.values.size())));
}

std::optional<std::size_t> worstWeight(const engine::GroupDetail& group) {
    std::optional<std::size_t> worst;
    float most = -1;
    for (std::size_t i = 0; i < group.values.size(); ++i) {
        if (const float error = std::abs(group.rounded[i] - group.values[i]); error > most) {
            most = error;
            worst = i;
        }
    }
    return worst;
}

QString groupTitle(const engine::GroupDetail& group) {
    const auto last = group.error.first + static_cast<std::int64_t>(group.values.size()) - 1;
    return QObject::tr("Group %1: row %2, inputs %3 to %4")
        .arg(countText(group.error.group), QString::number(group.error.row), QString::number(group.error.first),
             QString::number(last));
}

QString groupScaleWords(const engine::GroupDetail& group) {
    if (!evenLevels(group)) {
        return QObject::tr("%1 levels from %2 to %3")
            .arg(countText(static_cast<std::int64_t>(group.levels.size())),
                 decimalText(group.levels.empty() ? 0 : group.levels.front(), 5),
                 decimalText(group.levels.empty() ? 0 : group.levels.back(), 5));
    }
    const auto up = static_cast<std::int64_t>(group.levels.size()) - 1 - group.zeroLevel;
    const bool symmetric = group.zeroLevel == up || group.zeroLevel == up + 1;
    if (!symmetric || up < 1) {
        return QObject::tr("scale s = %1, zero at level %2   grid lines are s apart")
            .arg(decimalText(group.step, 5), QString::number(group.zeroLevel));
    }
    // The levels reach half a step beyond the largest value on one side and end half a step before it on the other.
    const double largest = group.error.largestValue, steps = (static_cast<double>(group.levels.size()) - 1) / 2;
    return QObject::tr("scale s = %1 / %2 = %3, as stored %4   grid lines are s apart")
        .arg(decimalText(largest, 5), QString::number(steps), decimalText(largest / steps, 5),
             decimalText(group.step, 5));
}

} // namespace vitrine::ui
