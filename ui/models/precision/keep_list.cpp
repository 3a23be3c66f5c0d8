// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/precision/keep_list.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QObject>
#include <algorithm>
#include <set>

#include "engine/workload/precision/keep_parts.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

/// Some layers of a role lie within all of them.
bool liesWithin(const engine::KeepPart& part, const engine::KeepPart& other) {
    return part.role == other.role && !part.allLayers() && other.allLayers();
}

QString asJson(const QJsonObject& object) {
    return QString::fromUtf8(QJsonDocument(object).toJson(QJsonDocument::Compact));
}

QJsonObject optionsOf(const std::string& json) {
    return QJsonDocument::fromJson(QByteArray::fromStdString(json)).object();
}

QJsonArray patternArray(const QJsonArray& before, const std::vector<std::string>& ignored) {
    QJsonArray patterns = before;
    for (const std::string& pattern : ignored) {
        if (const QString text = QString::fromStdString(pattern); !patterns.contains(text)) {
            patterns.append(text);
        }
    }
    return patterns;
}

} // namespace

std::vector<KeepRow> keepRows(const engine::PrecisionResult& result, std::size_t format) {
    std::vector<KeepRow> rows;
    if (format == 0 || format >= result.formats.size()) {
        return rows;
    }
    rows.push_back({QObject::tr("embedding, head, norms"), {}, result.keptBytes, std::nullopt});
    std::set<std::string> seen;
    for (const engine::LabWeight& weight : result.weights) {
        if (!seen.insert(weight.role).second) {
            continue;
        }
        std::uint64_t bytes = 0;
        bool all = true;
        for (std::size_t i = 0; i < result.weights.size(); ++i) {
            if (result.weights[i].role == weight.role) {
                all = all && result.effect(format, i).kept;
                bytes += result.effect(0, i).bytes;
            }
        }
        if (all) {
            rows.push_back({QString::fromStdString(weight.role), {}, bytes, std::nullopt});
        }
    }
    const std::optional<double> rate = result.formats[format].plannedRate;
    for (const engine::KeepEffect& effect : result.keep) {
        if (effect.format == format && rows.size() < kMostKeepRows) {
            rows.push_back(
                {QString::fromStdString(keepTitle(effect.part)), keepPattern(result, effect.part), effect.bytesAdded,
                 effect.klSaved, effect.part,
                 rate && effect.plannedRate ? std::optional(1 / *effect.plannedRate - 1 / *rate) : std::nullopt});
        }
    }
    return rows;
}

KeepSum keepSum(const engine::PrecisionResult& result, std::size_t format, const std::vector<KeepRow>& rows,
                const std::vector<bool>& checked) {
    const engine::FormatEffect& whole = result.formats[format];
    KeepSum sum{whole.bytes, whole.klMean, whole.plannedRate, std::nullopt};
    const auto counts = [&](std::size_t i) { return i < checked.size() && checked[i] && rows[i].klSaved; };
    std::optional<double> seconds = whole.plannedRate ? std::optional(1 / *whole.plannedRate) : std::nullopt;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        bool within = false;
        for (std::size_t other = 0; other < rows.size(); ++other) {
            within = within || (counts(other) && liesWithin(rows[i].part, rows[other].part));
        }
        if (counts(i) && !within) {
            sum.bytes += rows[i].bytes;
            sum.kl = sum.kl ? std::optional(*sum.kl - *rows[i].klSaved) : std::nullopt;
            seconds = seconds && rows[i].secondsAdded ? std::optional(*seconds + *rows[i].secondsAdded) : std::nullopt;
        }
    }
    sum.rate = seconds ? std::optional(1 / *seconds) : std::nullopt;
    sum.change = sum.rate ? std::optional(*sum.rate / *whole.plannedRate - 1) : std::nullopt;
    return sum;
}

QString measureExperiment(const std::string& options, const std::vector<std::string>& ignored) {
    QJsonObject object = optionsOf(options);
    object[QStringLiteral("ignore")] = patternArray(object[QStringLiteral("ignore")].toArray(), ignored);
    return asJson(object);
}

QString scoreExperiment(const std::string& options, int tokens) {
    QJsonObject object = optionsOf(options);
    object[QStringLiteral("text_tokens")] = tokens;
    return asJson(object);
}

QString keepEffectsExperiment(const std::string& options) {
    QJsonObject object = optionsOf(options);
    object[QStringLiteral("keep_effects")] = true;
    return asJson(object);
}

QString labExperiment(const std::string& model) {
    return asJson({{QStringLiteral("vitrine"), 1},
                   {QStringLiteral("workload"), QStringLiteral("precision")},
                   {QStringLiteral("model"), QString::fromStdString(model)}});
}

QString convertExperiment(const PrecisionData& data, std::size_t format, const std::vector<std::string>& ignored) {
    const QStringList parts = QString::fromStdString(data.result.formats[format].name).split(QLatin1Char(':'));
    QJsonObject object{{QStringLiteral("vitrine"), 1},
                       {QStringLiteral("workload"), QStringLiteral("convert")},
                       {QStringLiteral("model"), QString::fromStdString(data.model)},
                       {QStringLiteral("to"), parts[0]}};
    if (parts.size() > 1) {
        object[QStringLiteral("group_size")] = parts[1].toInt();
    }
    if (!ignored.empty()) {
        object[QStringLiteral("ignore")] = patternArray({}, ignored);
    }
    return asJson(object);
}

} // namespace vitrine::ui
