// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "profiler/analysis/roofline_summary.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "profiler/analysis/number_text.h"

namespace vitrine::profiler {

namespace {

struct PartKind {
    const char* key;
    const char* name;
    base::MemoryCategory category;
    int tone; ///< as the parts of a load are toned
};
constexpr PartKind kParts[] = {
    {"experts", "experts", base::MemoryCategory::Weights, 0},
    {"attention", "attention", base::MemoryCategory::Weights, 2},
    {"layers", "layers", base::MemoryCategory::Weights, 2},
    {"head", "head", base::MemoryCategory::Weights, 1},
    {"kv_cache", "KV cache", base::MemoryCategory::KvCache, 0},
};

std::optional<double> positive(const nlohmann::json& object, const char* key) {
    const auto value = base::numberAt(object, key);
    return value && std::isfinite(*value) && *value > 0 ? value : std::nullopt;
}

} // namespace

std::optional<RooflineSummary> rooflineSummary(const std::string& metricsJson) {
    const nlohmann::json metrics = base::parsedObject(metricsJson);
    const auto found = metrics.find("roofline");
    if (found == metrics.end() || !found->is_object()) {
        return std::nullopt;
    }
    const nlohmann::json& fields = *found;
    const auto bandwidth = positive(fields, "bandwidth"), seconds = positive(fields, "seconds_per_token");
    const auto parts = fields.find("parts");
    if (!bandwidth || !seconds || parts == fields.end() || !parts->is_object()) {
        return std::nullopt;
    }
    RooflineSummary roofline;
    roofline.bandwidth = *bandwidth;
    roofline.seconds = *seconds;
    roofline.source = base::textAt(fields, "bandwidth_source");
    roofline.sequences = positive(fields, "sequences").value_or(1);
    roofline.contextTokens = positive(fields, "context_tokens");
    for (const PartKind& kind : kParts) {
        if (const auto bytes = positive(*parts, kind.key)) {
            RooflineTerm part;
            part.name = kind.name;
            part.category = kind.category;
            part.tone = kind.tone;
            part.bytes = *bytes;
            part.floorSeconds = *bytes / roofline.bandwidth;
            roofline.bytes += *bytes;
            roofline.parts.push_back(std::move(part));
        }
    }
    if (roofline.parts.empty()) {
        return std::nullopt;
    }
    for (RooflineTerm& part : roofline.parts) {
        part.share = part.bytes / roofline.bytes;
    }
    roofline.floorSeconds = roofline.bytes / roofline.bandwidth;
    roofline.ratio = roofline.floorSeconds / roofline.seconds;
    return roofline;
}

std::string bandwidthText(double bytesPerSecond) {
    return bytesPerSecond < 1e12 ? rateText(bytesPerSecond) : fmt::format("{:.2f}\u00A0TB/s", bytesPerSecond * 1e-12);
}

std::string rooflineSentence(const RooflineSummary& roofline) {
    const auto largest = std::ranges::max_element(roofline.parts, {}, &RooflineTerm::bytes);
    const std::string share = fmt::format("{}: {} % of the bytes", largest->name, std::lround(largest->share * 100));
    if (roofline.ratio > 1) {
        return fmt::format("Faster than {} allow: the caches hold what is read. {}.", bandwidthText(roofline.bandwidth),
                           share);
    }
    return fmt::format("{:.2f} of what {} allow; {}.", roofline.ratio, bandwidthText(roofline.bandwidth), share);
}

std::string rooflineFootnote(const RooflineSummary& roofline) {
    std::vector<std::string> notes;
    if (!roofline.source.empty()) {
        notes.push_back("Bandwidth: " + roofline.source);
    }
    if (roofline.contextTokens) {
        notes.push_back("mean context " + countText(std::llround(*roofline.contextTokens)) + " tokens");
    }
    if (roofline.sequences > 1) {
        notes.push_back(fmt::format("{:.3g} sequences share the weights", roofline.sequences));
    }
    return fmt::format("{}", fmt::join(notes, ", "));
}

} // namespace vitrine::profiler
