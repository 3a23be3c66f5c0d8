// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/precision/keep_list.h"

#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QObject>
#include <algorithm>
#include <set>

#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

/// What ignore lists call the modules of a role: the last part of their name, "down_proj". Weights of shared experts
/// have the part before it, too, for other experts end alike.
std::string rolePattern(const engine::PrecisionResult& result, const std::string& role) {
    const auto weight = std::ranges::find(result.weights, role, &engine::LabWeight::role);
    if (weight == result.weights.end()) {
        return {};
    }
    std::string module = weight->name;
    if (constexpr std::string_view kEnding = ".weight"; module.ends_with(kEnding)) {
        module.resize(module.size() - kEnding.size());
    }
    std::size_t dot = module.rfind('.');
    if (role.starts_with("shared") && dot != std::string::npos && dot > 0) {
        dot = module.rfind('.', dot - 1);
    }
    return dot == std::string::npos ? module : module.substr(dot + 1);
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
    for (const engine::KeepEffect& effect : result.keep) {
        if (effect.format == format) {
            rows.push_back({QObject::tr("%1, all layers").arg(QString::fromStdString(effect.role)),
                            rolePattern(result, effect.role), effect.bytesAdded, effect.klSaved});
        }
    }
    return rows;
}

KeepSum keepSum(const engine::PrecisionResult& result, std::size_t format, const std::vector<KeepRow>& rows,
                const std::vector<bool>& checked) {
    KeepSum sum{result.formats[format].bytes, result.formats[format].klMean};
    for (std::size_t i = 0; i < rows.size() && i < checked.size(); ++i) {
        if (checked[i] && rows[i].klSaved) {
            sum.bytes += rows[i].bytes;
            sum.kl = sum.kl ? std::optional(*sum.kl - *rows[i].klSaved) : std::nullopt;
        }
    }
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
