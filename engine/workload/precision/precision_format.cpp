// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/precision/precision_format.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <string_view>

#include "base/error.h"
#include "base/quoted_text.h"
#include "engine/quant/conversion_target.h"

namespace vitrine::engine {
namespace {

constexpr std::string_view kReference = "bf16";

std::vector<std::string_view> partsOf(std::string_view list, char separator) {
    std::vector<std::string_view> parts;
    for (std::size_t begin = 0; begin <= list.size();) {
        const std::size_t end = std::min(list.find(separator, begin), list.size());
        parts.push_back(list.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

std::int64_t groupSize(const std::string& text, std::string_view digits) {
    std::int64_t group = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), group);
    if (error != std::errc() || end != digits.data() + digits.size() || !isGroupSize(group)) {
        throw base::BadInput(fmt::format("formats: {}: after the colon stands a group size: a multiple of 8, or -1 "
                                         "for a whole row",
                                         base::quotedText(text)));
    }
    return group;
}

/// What follows the second colon.
std::string_view ruleOf(const std::string& text, std::string_view rule) {
    const std::vector<std::string_view> rules = partsOf(kInt4Rules, '|');
    if (std::ranges::find(rules, rule) == rules.end()) {
        throw base::BadInput(fmt::format("formats: {}: after the second colon stands a rule: {}",
                                         base::quotedText(text), fmt::join(rules, " or ")));
    }
    return rule;
}

} // namespace

PrecisionFormat precisionFormat(const std::string& text) {
    const std::size_t colon = text.find(':');
    const std::string_view name = std::string_view(text).substr(0, colon);
    const std::vector<std::string_view> names = partsOf(kConversionChoices, '|');
    if (std::ranges::find(names, name) == names.end()) {
        throw base::BadInput(
            fmt::format("formats: {} is no format; write {}, if need be with a group size as in int4:32",
                        base::quotedText(text), fmt::join(names, ", ")));
    }
    std::optional<std::int64_t> group;
    std::string_view rule;
    if (colon != std::string::npos) {
        const std::string_view rest = std::string_view(text).substr(colon + 1);
        const std::size_t second = rest.find(':');
        group = groupSize(text, rest.substr(0, second));
        rule = second == std::string_view::npos ? rule : ruleOf(text, rest.substr(second + 1));
    }
    PrecisionFormat format{text, "BF16", std::nullopt};
    try {
        format.quantization = conversionTarget(name, group, std::nullopt, rule);
    } catch (const base::BadInput& error) {
        throw base::BadInput(fmt::format("formats: {}: {}", base::quotedText(text), error.message()));
    }
    if (format.quantization) {
        format.title = conversionTitle(*format.quantization);
    }
    return format;
}

std::vector<PrecisionFormat> precisionFormats(std::string_view list) {
    std::vector<PrecisionFormat> formats{precisionFormat(std::string(kReference))};
    bool sawReference = false;
    for (const std::string_view part : partsOf(list, ',')) {
        const std::string text(part);
        PrecisionFormat format = precisionFormat(text);
        const bool isReference = !format.quantization;
        const bool isKnown = std::ranges::any_of(formats, [&](const auto& known) { return known.name == text; });
        if (isReference ? sawReference : isKnown) {
            throw base::BadInput(fmt::format("formats: {} is there twice; leave one out", base::quotedText(text)));
        }
        sawReference = sawReference || isReference;
        if (!isReference) {
            formats.push_back(std::move(format));
        }
    }
    if (formats.size() == 1) {
        throw base::BadInput("formats: holds nothing to compare with bf16; add a format such as int4:32");
    }
    return formats;
}

} // namespace vitrine::engine
