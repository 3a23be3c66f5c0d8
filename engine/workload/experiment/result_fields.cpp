// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/experiment/result_fields.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/units.h"
#include "engine/workload/experiment/result_sets.h"
#include "engine/workload/experiment/workload_table.h"

namespace vitrine::engine {
namespace {

using Json = nlohmann::json;

/// A field that a path names, and the parts of the path that are names of members or rows.
struct FoundResult {
    const ResultField* field = nullptr;
    std::string member;  ///< of a field with each
    std::string row;     ///< of a field of rows
    bool inside = false; ///< the path goes on into the value, which is no result to compare
};

/// In the order of lists: what answers a question first stands first.
const std::vector<const ResultField*>& orderOfLists() {
    using namespace result;
    static const std::vector<const ResultField*> first = {&kPeakBytes,
                                                          &kResidentBytes,
                                                          &kKvBytes,
                                                          &kKvPageBytes,
                                                          &kLoadSeconds,
                                                          &kPrefillSeconds,
                                                          &kPrefillCompileSeconds,
                                                          &kDecodeSeconds,
                                                          &kDecodeTokensPerSecond,
                                                          &kTokensPerSecond,
                                                          &kTtft,
                                                          &kTpot,
                                                          &kE2e,
                                                          &kRooflineRatio,
                                                          &kRooflineBytesPerToken,
                                                          &kRooflineBandwidth,
                                                          &kStepSecondsEstimate,
                                                          &kPromptTokens,
                                                          &kGeneratedTokens,
                                                          &kDecodeSteps,
                                                          &kMaxContext,
                                                          &kMaxBatch,
                                                          &kBytesRead,
                                                          &kBudgetBytes,
                                                          &kShortByBytes,
                                                          &kPeakReservedBytes,
                                                          &kHostPeakBytes};
    return first;
}

/// Calls `see` with each declared field until it returns true.
template <class See> const ResultField* firstField(const See& see) {
    for (const ResultField* field : result::kProgramSet) {
        if (see(*field)) {
            return field;
        }
    }
    for (const Workload* workload : workloadTable()) {
        for (const ResultSet set : workload->results) {
            const auto found =
                std::find_if(set.begin(), set.end(), [&](const ResultField* field) { return see(*field); });
            if (found != set.end()) {
                return *found;
            }
        }
    }
    return nullptr;
}

FoundResult foundResult(std::string_view path) {
    FoundResult found;
    found.field = firstField([&](const ResultField& field) { return field.key == path; });
    const auto within = [&](const ResultField& field) {
        return path.size() > field.key.size() + 1 && path.starts_with(field.key) && path[field.key.size()] == '.';
    };
    if (found.field == nullptr) {
        found.field = firstField([&](const ResultField& field) { return field.each && within(field); });
        found.member = found.field == nullptr ? "" : std::string(path.substr(found.field->key.size() + 1));
    }
    if (found.field != nullptr) {
        return found;
    }
    const ResultField* outer = firstField(within);
    if (outer == nullptr || outer->unit != ResultUnit::Rows) {
        found.field = outer;
        found.inside = outer != nullptr;
        return found;
    }
    // The name of a row may have points too.
    const std::string_view rest = path.substr(outer->key.size() + 1);
    for (std::size_t at = rest.find('.'); at != std::string_view::npos; at = rest.find('.', at + 1)) {
        if (FoundResult inner = foundResult(rest.substr(at + 1)); inner.field != nullptr) {
            inner.row = std::string(rest.substr(0, at));
            return inner;
        }
    }
    return found;
}

/// "decode rate" for "decode_rate", "a, b" for "a.b".
std::string spelled(std::string_view path) {
    std::string text;
    for (const char c : path) {
        text += c == '.' ? std::string(", ") : std::string(1, c == '_' ? ' ' : c);
    }
    return text;
}

/// Four digits, of large numbers all before the point.
std::string plainNumber(const Json& value) {
    constexpr double kWhole = 1000, kTooLarge = 1e15;
    if (value.is_number_integer()) {
        return base::formatGrouped(value.get<std::int64_t>());
    }
    const auto number = value.get<double>();
    return std::abs(number) >= kWhole && std::abs(number) < kTooLarge ? base::formatGrouped(std::llround(number))
                                                                      : fmt::format("{:.4g}", number);
}

std::string numberWithUnit(ResultUnit unit, const Json& value) {
    constexpr double kLargest = 9e18;
    const auto number = value.get<double>();
    const bool fits = std::abs(number) < kLargest;
    switch (unit) {
    case ResultUnit::Bytes:
        return fits ? (number < 0 ? "-" : "") +
                          base::formatBytes(static_cast<std::uint64_t>(std::llround(std::abs(number))))
                    : plainNumber(value);
    case ResultUnit::Seconds:
        return fits && std::abs(number) < kLargest * 1e-9 ? base::formatDuration(std::llround(number * 1e9))
                                                          : plainNumber(value);
    case ResultUnit::Milliseconds:
        return plainNumber(value) + " ms";
    case ResultUnit::BytesPerSecond:
        return base::formatBytesPerSecond(number);
    case ResultUnit::GigabytesPerSecond:
        return plainNumber(value) + " GB/s";
    case ResultUnit::TokensPerSecond:
        return plainNumber(value) + " tok/s";
    case ResultUnit::TeraflopsPerSecond:
        return plainNumber(value) + " TFLOP/s";
    default:
        return plainNumber(value);
    }
}

} // namespace

const ResultField* findResult(std::string_view path) {
    const FoundResult found = foundResult(path);
    return found.inside ? nullptr : found.field;
}

std::string resultWords(std::string_view path) {
    const FoundResult found = foundResult(path);
    if (found.field == nullptr || found.inside) {
        return spelled(path);
    }
    return (found.row.empty() ? "" : found.row + ": ") + std::string(found.field->words) +
           (found.member.empty() ? "" : ": " + found.member);
}

int resultRank(std::string_view path) {
    const std::vector<const ResultField*>& first = orderOfLists();
    const FoundResult found = foundResult(path);
    constexpr int kMembers = 1000, kUnknown = 2000; // below the fields that stand for themselves
    const auto at = std::find(first.begin(), first.end(), found.field);
    if (at != first.end() && found.row.empty()) {
        return static_cast<int>(at - first.begin());
    }
    return found.field == nullptr ? kUnknown : found.field->each ? kMembers : static_cast<int>(first.size());
}

bool isComparable(std::string_view path) {
    const FoundResult found = foundResult(path);
    if (found.field == nullptr) {
        return path != "seed";
    }
    return !found.inside && found.field->unit != ResultUnit::Data && found.field->unit != ResultUnit::List;
}

std::vector<std::string_view> comparableResults() {
    std::vector<std::string_view> keys;
    firstField([&](const ResultField& field) {
        if (field.unit != ResultUnit::Text && isComparable(field.key) &&
            std::find(keys.begin(), keys.end(), field.key) == keys.end()) {
            keys.push_back(field.key);
        }
        return false;
    });
    return keys;
}

std::string resultValueText(std::string_view path, const Json& value) {
    if (value.is_number()) {
        const FoundResult found = foundResult(path);
        return numberWithUnit(found.field == nullptr || found.inside ? ResultUnit::Number : found.field->unit, value);
    }
    if (value.is_boolean()) {
        return value.get<bool>() ? "yes" : "no";
    }
    if (value.is_null()) {
        return "–";
    }
    constexpr std::size_t kReadable = 8;
    if (value.is_array() && (value.size() > kReadable || (!value.empty() && value.front().is_structured()))) {
        return fmt::format("{} values", value.size());
    }
    return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const Json* valueOf(const Json& object, const ResultField& field) {
    const Json* at = &object;
    std::string_view rest = field.key;
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find('.'), rest.size());
        const auto found = at->is_object() ? at->find(rest.substr(0, end)) : at->end();
        if (!at->is_object() || found == at->end()) {
            return nullptr;
        }
        at = &*found;
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return at;
}

std::optional<double> numberOf(const Json& object, const ResultField& field) {
    const Json* value = valueOf(object, field);
    return value != nullptr && value->is_number() ? std::optional(value->get<double>()) : std::nullopt;
}

std::optional<std::uint64_t> countOf(const Json& object, const ResultField& field) {
    constexpr double kLimit = 9e18;
    const Json* value = valueOf(object, field);
    if (value == nullptr || !value->is_number() || !(value->get<double>() >= 0 && value->get<double>() < kLimit)) {
        return std::nullopt;
    }
    return value->is_number_float() ? static_cast<std::uint64_t>(value->get<double>()) : value->get<std::uint64_t>();
}

std::string textOf(const Json& object, const ResultField& field) {
    const Json* value = valueOf(object, field);
    return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

std::optional<bool> flagOf(const Json& object, const ResultField& field) {
    const Json* value = valueOf(object, field);
    return value != nullptr && value->is_boolean() ? std::optional(value->get<bool>()) : std::nullopt;
}

const Json& rowsOf(const Json& object, const ResultField& field) {
    static const Json none = Json::array();
    const Json* value = valueOf(object, field);
    return value != nullptr && value->is_array() ? *value : none;
}

} // namespace vitrine::engine
