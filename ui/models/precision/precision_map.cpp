// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/precision/precision_map.h"

#include <QObject>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ui/models/common/format.h"
#include "ui/models/precision/number_ticks.h"

namespace vitrine::ui {

namespace {

constexpr float kNoError = std::numeric_limits<float>::quiet_NaN();
constexpr int kMostLayers = 4096;
constexpr double kFourBits = 6; ///< formats with fewer bits for a weight count as formats of four

constexpr std::array<std::string_view, 10> kRoleOrder = {"qkv",  "q",  "k",       "v",    "o",
                                                         "gate", "up", "gate_up", "down", "router"};

std::size_t roleRank(const std::string& role) {
    return static_cast<std::size_t>(std::ranges::find(kRoleOrder, role) - kRoleOrder.begin());
}

float exactValue(ErrorMeasure measure) {
    return measure == ErrorMeasure::Snr   ? std::numeric_limits<float>::infinity()
           : measure == ErrorMeasure::Mse ? 0.0F
                                          : 1.0F;
}

QString valueWords(ErrorMeasure measure, double value) {
    switch (measure) {
    case ErrorMeasure::Snr:
        return std::isinf(value) ? QObject::tr("exact") : QObject::tr("%1 dB").arg(decimalText(value, 2));
    case ErrorMeasure::Mse:
        return QObject::tr("MSE %1").arg(scientificText(value));
    case ErrorMeasure::Cosine:
        return QObject::tr("cosine %1").arg(decimalText(value, 5));
    }
    return {};
}

} // namespace

std::size_t PrecisionMap::experts(std::size_t role) const {
    std::size_t most = 0;
    for (int layer = 0; layer < layers; ++layer) {
        most = std::max(most, cell(role, layer).weights.size());
    }
    return most;
}

PrecisionMap precisionMap(const engine::PrecisionResult& result) {
    PrecisionMap map;
    const auto shown = [](const engine::LabWeight& weight) { return weight.layer >= 0 && weight.layer < kMostLayers; };
    for (const engine::LabWeight& weight : result.weights) {
        if (shown(weight)) {
            map.layers = std::max(map.layers, weight.layer + 1);
            if (std::ranges::find(map.roles, weight.role) == map.roles.end()) {
                map.roles.push_back(weight.role);
            }
        }
    }
    std::ranges::stable_sort(map.roles, {}, roleRank);
    map.cells.resize(map.roles.size() * static_cast<std::size_t>(map.layers));
    for (std::size_t i = 0; i < result.weights.size(); ++i) {
        const engine::LabWeight& weight = result.weights[i];
        if (shown(weight)) {
            const auto role = static_cast<std::size_t>(std::ranges::find(map.roles, weight.role) - map.roles.begin());
            const std::size_t at = role * static_cast<std::size_t>(map.layers) + static_cast<std::size_t>(weight.layer);
            map.cells[at].weights.push_back(i);
        }
    }
    return map;
}

bool awaited(const engine::PrecisionResult& result, std::size_t format, std::size_t weight) {
    const engine::WeightEffect& effect = result.effect(format, weight);
    return format != 0 && effect.packable && effect.error.count == 0;
}

KnownErrors knownErrors(const engine::PrecisionResult& result, std::size_t format) {
    KnownErrors out;
    for (std::size_t weight = 0; weight < result.weights.size(); ++weight) {
        const bool has = result.effect(format, weight).packable;
        out.all += has ? 1 : 0;
        out.known += has && !awaited(result, format, weight) ? 1 : 0;
    }
    return out;
}

std::size_t formatInWork(const engine::PrecisionResult& result) {
    for (std::size_t format = result.formats.size(); format-- > 1;) {
        if (knownErrors(result, format).known > 0) {
            return format;
        }
    }
    return firstFormat(result);
}

float weightError(const engine::PrecisionResult& result, ErrorMeasure measure, std::size_t format, std::size_t weight) {
    const engine::WeightEffect& effect = result.effect(format, weight);
    if (!effect.packable || awaited(result, format, weight)) {
        return kNoError;
    }
    if (format == 0 || effect.error.squaredError == 0) {
        return exactValue(measure);
    }
    switch (measure) {
    case ErrorMeasure::Snr:
        return static_cast<float>(effect.error.signalToNoise().value_or(kNoError));
    case ErrorMeasure::Mse:
        return static_cast<float>(effect.error.meanSquare());
    case ErrorMeasure::Cosine:
        return static_cast<float>(effect.error.cosine().value_or(kNoError));
    }
    return kNoError;
}

std::vector<float> cellErrors(const engine::PrecisionResult& result, ErrorMeasure measure, std::size_t format,
                              const PrecisionCell& cell) {
    std::vector<float> errors;
    errors.reserve(cell.weights.size());
    for (const std::size_t weight : cell.weights) {
        errors.push_back(weightError(result, measure, format, weight));
    }
    return errors;
}

std::vector<float> cellMeans(const engine::PrecisionResult& result, const PrecisionMap& map, ErrorMeasure measure,
                             std::size_t format) {
    std::vector<float> means;
    means.reserve(map.cells.size());
    for (const PrecisionCell& cell : map.cells) {
        means.push_back(static_cast<float>(meanError(measure, cellErrors(result, measure, format, cell))));
    }
    return means;
}

std::vector<std::uint8_t> keptCells(const engine::PrecisionResult& result, const PrecisionMap& map,
                                    std::size_t format) {
    std::vector<std::uint8_t> kept;
    kept.reserve(map.cells.size());
    for (const PrecisionCell& cell : map.cells) {
        const bool all = format != 0 && !cell.weights.empty() && std::ranges::all_of(cell.weights, [&](std::size_t w) {
                             return result.effect(format, w).kept;
                         });
        kept.push_back(all ? 1 : 0);
    }
    return kept;
}

std::size_t firstFormat(const engine::PrecisionResult& result) {
    for (std::size_t i = 1; i < result.formats.size(); ++i) {
        if (result.formats[i].bitsPerWeight < kFourBits) {
            return i;
        }
    }
    return result.formats.size() > 1 ? 1 : 0;
}

ErrorScale sessionScale(const engine::PrecisionResult& result, const PrecisionMap& map, ErrorMeasure measure) {
    const std::size_t format = firstFormat(result);
    if (format == 0) {
        ErrorScale scale;
        scale.measure = measure;
        return scale;
    }
    const std::vector<float> means = cellMeans(result, map, measure, format);
    const std::vector<std::uint8_t> kept = keptCells(result, map, format);
    std::vector<std::vector<float>> roles(map.roles.size());
    for (std::size_t i = 0; i < means.size(); ++i) {
        if (kept[i] == 0) {
            roles[i / static_cast<std::size_t>(map.layers)].push_back(means[i]);
        }
    }
    return errorScale(measure, roles);
}

std::optional<std::size_t> worstWeightOf(const engine::PrecisionResult& result, std::size_t format,
                                         const PrecisionCell& cell) {
    std::optional<std::size_t> worst;
    double most = -std::numeric_limits<double>::infinity();
    for (const std::size_t weight : cell.weights) {
        const double error = errorDecibels(ErrorMeasure::Snr, weightError(result, ErrorMeasure::Snr, format, weight));
        if (!worst || error > most) {
            worst = weight;
            most = std::isnan(error) ? most : error;
        }
    }
    return worst;
}

std::optional<std::size_t> worstWeightOf(const engine::PrecisionResult& result, std::size_t format,
                                         const PrecisionMap& map) {
    const std::vector<float> means = cellMeans(result, map, ErrorMeasure::Snr, format);
    std::optional<std::size_t> worst;
    for (std::size_t i = 0; i < means.size(); ++i) {
        if (!std::isnan(means[i]) && !map.cells[i].weights.empty() && (!worst || means[i] < means[*worst])) {
            worst = i;
        }
    }
    return worst ? worstWeightOf(result, format, map.cells[*worst]) : std::nullopt;
}

CellBytes cellBytes(const engine::PrecisionResult& result, std::size_t format, const PrecisionCell& cell) {
    CellBytes bytes;
    for (const std::size_t weight : cell.weights) {
        bytes.now += result.effect(format, weight).bytes;
        bytes.bf16 += result.effect(0, weight).bytes;
    }
    return bytes;
}

QString cellWords(const engine::PrecisionResult& result, const PrecisionMap& map, ErrorMeasure measure,
                  std::size_t format, std::size_t role, int layer) {
    const PrecisionCell& cell = map.cell(role, layer);
    const QString place = QObject::tr("Layer %1, %2").arg(layer).arg(QString::fromStdString(map.roles[role]));
    if (cell.weights.empty()) {
        return QObject::tr("%1: this layer has none").arg(place);
    }
    const double mean = meanError(measure, cellErrors(result, measure, format, cell));
    const bool waits =
        std::ranges::any_of(cell.weights, [&](std::size_t weight) { return awaited(result, format, weight); });
    const QString value = !std::isnan(mean) ? valueWords(measure, mean)
                          : waits           ? QObject::tr("not measured yet")
                                            : QObject::tr("no groups of this format fit its shape");
    const QString experts =
        cell.weights.size() > 1
            ? QObject::tr(" over %1 experts").arg(countText(static_cast<qint64>(cell.weights.size())))
            : QString();
    const CellBytes bytes = cellBytes(result, format, cell);
    const bool kept = format != 0 && std::ranges::all_of(cell.weights, [&](std::size_t weight) {
                          return result.effect(format, weight).kept;
                      });
    const QString size = kept ? QObject::tr("kept in BF16, %1").arg(bytesText(bytes.bf16))
                         : format == 0
                             ? bytesText(bytes.bf16)
                             : QObject::tr("%1 instead of %2 in BF16").arg(bytesText(bytes.now), bytesText(bytes.bf16));
    return QObject::tr("%1: %2%3, %4").arg(place, value, experts, size);
}

std::vector<std::size_t> weightsNamed(const engine::PrecisionResult& result, const QString& text) {
    std::vector<std::size_t> hits;
    for (std::size_t i = 0; i < result.weights.size(); ++i) {
        if (QString::fromStdString(result.weights[i].name).contains(text, Qt::CaseInsensitive) ||
            weightTitle(result.weights[i]).contains(text, Qt::CaseInsensitive)) {
            hits.push_back(i);
        }
    }
    return hits;
}

QString weightTitle(const engine::LabWeight& weight) {
    QString title = QString::fromStdString(weight.role);
    if (weight.layer >= 0) {
        title = QObject::tr("Layer %1, %2").arg(weight.layer).arg(title);
    }
    return weight.expert < 0 ? title : QObject::tr("%1, expert %2").arg(title).arg(weight.expert);
}

} // namespace vitrine::ui
