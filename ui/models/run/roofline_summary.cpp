// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/run/roofline_summary.h"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ui/models/common/format.h"
#include "ui/models/common/json_values.h"

namespace vitrine::ui {

namespace {

struct PartKind {
    const char* key;
    const char* name;
    base::MemoryCategory category;
    int tone; ///< as the parts of a load are toned
};
constexpr PartKind kParts[] = {
    {"experts", QT_TRANSLATE_NOOP("Roofline", "experts"), base::MemoryCategory::Weights, 0},
    {"attention", QT_TRANSLATE_NOOP("Roofline", "attention"), base::MemoryCategory::Weights, 2},
    {"layers", QT_TRANSLATE_NOOP("Roofline", "layers"), base::MemoryCategory::Weights, 2},
    {"head", QT_TRANSLATE_NOOP("Roofline", "head"), base::MemoryCategory::Weights, 1},
    {"kv_cache", QT_TRANSLATE_NOOP("Roofline", "KV cache"), base::MemoryCategory::KvCache, 0},
};

QString words(const char* text) {
    return QCoreApplication::translate("Roofline", text);
}

/// "4.23 TB/s": two digits behind the point, for a ratio with as many stands beside it.
QString bandwidthText(double rate) {
    return rate < 1e12 ? rateText(rate) : QString::number(rate * 1e-12, 'f', 2) + QStringLiteral("\u00A0TB/s");
}

std::optional<double> positive(const nlohmann::json& object, const char* key) {
    const auto value = numberAt(object, key);
    return value && std::isfinite(*value) && *value > 0 ? value : std::nullopt;
}

} // namespace

std::optional<RooflineSummary> rooflineSummary(const std::string& metricsJson) {
    const nlohmann::json metrics = parsedObject(metricsJson);
    const auto found = metrics.find("roofline");
    if (found == metrics.end() || !found->is_object()) {
        return std::nullopt;
    }
    const nlohmann::json& told = *found;
    const auto bandwidth = positive(told, "bandwidth"), seconds = positive(told, "seconds_per_token");
    const auto parts = told.find("parts");
    if (!bandwidth || !seconds || parts == told.end() || !parts->is_object()) {
        return std::nullopt;
    }
    RooflineSummary facts;
    facts.bandwidth = *bandwidth;
    facts.seconds = *seconds;
    facts.source = textAt(told, "bandwidth_source");
    facts.sequences = positive(told, "sequences").value_or(1);
    facts.contextTokens = positive(told, "context_tokens");
    for (const PartKind& kind : kParts) {
        if (const auto bytes = positive(*parts, kind.key)) {
            RooflineTerm part;
            part.layer = {words(kind.name), static_cast<int>(kind.category), kind.tone};
            part.bytes = *bytes;
            part.floorSeconds = *bytes / facts.bandwidth;
            facts.bytes += *bytes;
            facts.parts.push_back(std::move(part));
        }
    }
    if (facts.parts.empty()) {
        return std::nullopt;
    }
    for (RooflineTerm& part : facts.parts) {
        part.share = part.bytes / facts.bytes;
    }
    facts.floorSeconds = facts.bytes / facts.bandwidth;
    facts.ratio = facts.floorSeconds / facts.seconds;
    return facts;
}

QString rooflineSentence(const RooflineSummary& facts) {
    const auto largest = std::max_element(facts.parts.begin(), facts.parts.end(),
                                          [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    const QString share = words(QT_TRANSLATE_NOOP("Roofline", "%1: %2 % of the bytes"))
                              .arg(largest->layer.name)
                              .arg(std::lround(largest->share * 100));
    if (facts.ratio > 1) {
        return words(QT_TRANSLATE_NOOP("Roofline", "Faster than %1 allow: the caches hold what is read. %2."))
            .arg(bandwidthText(facts.bandwidth), share);
    }
    return words(QT_TRANSLATE_NOOP("Roofline", "%1 of what %2 allow; %3."))
        .arg(QString::number(facts.ratio, 'f', 2), bandwidthText(facts.bandwidth), share);
}

QString rooflineFootnote(const RooflineSummary& facts) {
    QStringList notes;
    if (!facts.source.isEmpty()) {
        notes << words(QT_TRANSLATE_NOOP("Roofline", "Bandwidth: %1")).arg(facts.source);
    }
    if (facts.contextTokens) {
        notes << words(QT_TRANSLATE_NOOP("Roofline", "mean context %1 tokens"))
                     .arg(countText(std::llround(*facts.contextTokens)));
    }
    if (facts.sequences > 1) {
        notes << words(QT_TRANSLATE_NOOP("Roofline", "%1 sequences share the weights"))
                     .arg(QString::number(facts.sequences, 'g', 3));
    }
    return notes.join(QStringLiteral(", "));
}

} // namespace vitrine::ui
