// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/common/result_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/units.h"
#include "engine/workload/common/first_sentence.h"
#include "engine/workload/experiment/results.h"
#include "engine/workload/experiment/workload_table.h"

namespace vitrine::engine {

namespace {

using nlohmann::json;

/// Characters on the screen: bytes that start one.
std::size_t displayWidth(const std::string& text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool looksLikeNumber(const std::string& text) {
    const auto isDigit = [&](std::size_t i) {
        return i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    };
    return isDigit(0) || text == "-" || ((text.starts_with('-') || text.starts_with('+')) && isDigit(1));
}

/// Whether a value tells a reader nothing: 0, a list of zeros, or what is empty. Programs get it with --json.
bool isNothing(const json& value) {
    if (value.is_array()) {
        return std::ranges::all_of(value, [](const json& item) { return item.is_number() && item == 0; });
    }
    return value.is_number() ? value == 0 : !value.is_boolean() && (value.empty() || value == "");
}

/// What is for programs: how a run keeps time, and layouts that a view draws.
constexpr std::array<std::string_view, 3> kForPrograms = {"time_base", "kv_page_bytes_by_group", "kv_cache.groups"};

/// A list of numbers is a curve, not a result: a person reads its ends in the first sentence.
bool isForPrograms(const std::string& name, const json& value) {
    const bool curve = value.is_array() && value.size() > 1 && value.front().is_number();
    return curve || std::ranges::find(kForPrograms, name) != kForPrograms.end();
}

void appendFields(const json& value, const std::string& prefix, std::vector<std::vector<std::string>>& rows) {
    for (const auto& [key, member] : value.items()) {
        const std::string name = prefix.empty() ? key : fmt::format("{}.{}", prefix, key);
        if (isForPrograms(name, member)) {
            continue;
        }
        if (member.is_object()) {
            appendFields(member, name, rows);
        } else if (!isNothing(member)) {
            rows.push_back({name, resultValueText(name, member)});
        }
    }
}

/// Fields of an object as a two-column list.
std::string fieldsText(const json& value) {
    std::vector<std::vector<std::string>> rows;
    appendFields(value, "", rows);
    std::size_t width = 0;
    for (const auto& row : rows) {
        width = std::max(width, displayWidth(row[0]));
    }
    std::string text;
    for (const auto& row : rows) {
        text += fmt::format("{}{:{}}  {}\n", row[0], "", width - displayWidth(row[0]), row[1]);
    }
    return text;
}

/// Objects with the same fields as a table. A field that says nothing in all of them has no column.
std::string rowsText(const json& list) {
    std::vector<std::string> keys;
    for (const json& row : list) {
        for (const auto& [key, member] : row.items()) {
            if (!member.is_structured() && !isNothing(member) &&
                std::find(keys.begin(), keys.end(), key) == keys.end()) {
                keys.push_back(key);
            }
        }
    }
    std::stable_sort(keys.begin(), keys.end(), [](const std::string& a, const std::string& b) {
        const auto first = [](const std::string& key) { return key == "name" || key == "weights" ? 0 : 1; };
        return first(a) < first(b);
    });
    std::vector<std::vector<std::string>> rows{keys};
    for (const json& row : list) {
        std::vector<std::string> cells;
        cells.reserve(keys.size());
        for (const std::string& key : keys) {
            cells.push_back(row.contains(key) ? resultValueText(key, row[key]) : "");
        }
        rows.push_back(std::move(cells));
    }
    return tableText(rows);
}

/// The fields of `member` in any of the results, a column for each result, named `single` where there is only one.
/// `isNews` says whether a value is worth a row.
template <class IsNews>
std::string columnsText(const std::string& head, const std::string& single, const json& results,
                        const std::string& member, const IsNews& isNews) {
    std::vector<std::vector<std::string>> rows{{head}};
    std::vector<std::string> keys;
    for (const json& result : results) {
        rows[0].push_back(results.size() > 1 ? result.value("weights", "") : single);
        const json fields = result.value(member, json::object());
        for (const auto& [key, value] : fields.items()) {
            if (isNews(value) && std::find(keys.begin(), keys.end(), key) == keys.end()) {
                keys.push_back(key);
            }
        }
    }
    for (const std::string& key : keys) {
        std::vector<std::string> row{key};
        for (const json& result : results) {
            const json fields = result.value(member, json::object());
            row.push_back(
                resultValueText(fmt::format("{}.{}", member, key), fields.contains(key) ? fields[key] : json()));
        }
        rows.push_back(std::move(row));
    }
    return rows.size() > 1 ? "\n" + tableText(rows) : std::string();
}

/// Memory at the peak, a column for each result; categories that hold nothing are left out.
std::string categoriesText(const json& results) {
    return columnsText("held at the peak", "bytes", results, "peak_by_category",
                       [](const json& bytes) { return bytes != 0; });
}

/// How fast each variant of a load answered its prompt, and how close two answers are; empty without a prompt.
std::string answersText(const json& metrics) {
    std::string text = columnsText("after the load", "value", metrics[result::kVariants.key], "after_load",
                                   [](const json&) { return true; });
    if (metrics.contains("agreement")) {
        const json& agreement = metrics["agreement"];
        text += fmt::format("Of {} greedy tokens {} are the same", agreement.value("tokens", 0),
                            agreement.value("tokens_equal", 0));
        if (agreement.contains("first_difference")) {
            text += fmt::format(", the first other one is number {}", agreement["first_difference"].get<int>() + 1);
        }
        if (agreement.contains("logit_spread")) {
            text += fmt::format("; the prompt's logits differ by {:.3g} at most and span {:.3g}",
                                agreement.value("largest_logit_difference", 0.0), agreement.value("logit_spread", 0.0));
        }
        text += ".\n";
    }
    return text;
}

/// A row for each rank: what it took, with the categories that any of them held.
std::string ranksText(const json& metrics) {
    const auto found = metrics.find(result::kRanks.key);
    if (found == metrics.end() || !found->is_array()) {
        return {};
    }
    const std::string split(result::kPeakByCategory.key);
    std::vector<std::string> categories;
    for (const json& row : *found) {
        const json held = row.value(split, json::object());
        for (const auto& [category, bytes] : held.items()) {
            if (bytes != 0 && std::ranges::find(categories, category) == categories.end()) {
                categories.push_back(category);
            }
        }
    }
    const std::array<const ResultField*, 4> fields = {&result::kPeakBytes, &result::kSeconds, &result::kTimeShare,
                                                      &result::kCommunicationShare};
    std::vector<std::vector<std::string>> rows{{"rank"}};
    for (const ResultField* field : fields) {
        rows[0].emplace_back(found->front().contains(field->key) ? field->words : std::string_view());
    }
    std::erase(rows[0], std::string());
    rows[0].insert(rows[0].end(), categories.begin(), categories.end());
    for (const json& row : *found) {
        std::vector<std::string> cells{row.value(result::kRank.key, json()).dump()};
        for (const ResultField* field : fields) {
            if (row.contains(field->key)) {
                cells.push_back(resultValueText(std::string(field->key), row[field->key]));
            }
        }
        const json held = row.value(split, json::object());
        for (const std::string& category : categories) {
            cells.push_back(resultValueText(fmt::format("{}.{}", split, category), held.value(category, json(0))));
        }
        rows.push_back(std::move(cells));
    }
    return "\n" + tableText(rows);
}

/// What the work itself gave.
std::string workText(const Experiment& experiment, const json& metrics) {
    if (const auto own = experiment.workload().resultText; own != nullptr) {
        if (const std::optional<std::string> text = own(experiment, metrics)) {
            return *text;
        }
    }
    if (metrics.contains(result::kRows.key) && metrics[result::kRows.key].is_array()) {
        return rowsText(metrics[result::kRows.key]);
    }
    if (metrics.contains(result::kVariants.key) && metrics[result::kVariants.key].is_array()) {
        return variantsSentence(experiment, metrics) + "\n" + rowsText(metrics[result::kVariants.key]) +
               categoriesText(metrics[result::kVariants.key]) + ranksText(metrics) + answersText(metrics);
    }
    json fields = metrics;
    fields.erase("peak_by_category");
    fields.erase("max_by_category");
    fields.erase("techniques");
    fields.erase(std::string(result::kRanks.key));
    fields.erase(std::string(result::kLostRecords.key));
    if (const auto memory = fields.find(result::kOutOfMemory.key); memory != fields.end() && memory->is_object()) {
        *memory = memory->value("message", json());
    }
    const std::string sentence = firstSentence(experiment, metrics);
    const std::string text = sentence + (sentence.empty() ? "" : "\n") + fieldsText(fields) +
                             categoriesText(json::array({metrics})) + ranksText(metrics);
    return metrics.contains(result::kTechniques.key) ? text + "\n" + rowsText(metrics[result::kTechniques.key]) : text;
}

/// Records that the session does not hold; empty when it holds all.
std::string lostText(const json& metrics) {
    const auto lost = metrics.value(result::kLostRecords.key, std::int64_t{0});
    return lost == 0 ? std::string()
                     : fmt::format("lost      {} records: they came faster than the session could keep them, so its "
                                   "timeline has gaps\n",
                                   base::formatGrouped(lost));
}

} // namespace

std::string tableText(const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths;
    std::vector<bool> numeric;
    for (std::size_t r = 0; r < rows.size(); ++r) {
        for (std::size_t c = 0; c < rows[r].size(); ++c) {
            widths.resize(std::max(widths.size(), c + 1), 0);
            numeric.resize(widths.size(), true);
            widths[c] = std::max(widths[c], displayWidth(rows[r][c]));
            numeric[c] = numeric[c] && (r == 0 || rows[r][c].empty() || looksLikeNumber(rows[r][c]));
        }
    }
    std::string text;
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t c = 0; c < row.size(); ++c) {
            const std::string space(widths[c] - displayWidth(row[c]), ' ');
            line += (c == 0 ? "" : "  ") + (numeric[c] ? space + row[c] : row[c] + space);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

std::string resultText(const Experiment& experiment, const json& metrics) {
    return metrics.is_object() ? workText(experiment, metrics) + lostText(metrics) : std::string();
}

std::string runWorkload(const Experiment& experiment) {
    return (experiment.isPlan() ? "plan " : "") + std::string(experiment.workload().name);
}

std::string modelName(const Experiment& experiment) {
    std::string model = experiment.text("model");
    while (model.size() > 1 && model.ends_with('/')) {
        model.pop_back();
    }
    return model.substr(model.find_last_of("/:") + 1);
}

std::string runName(const Experiment& experiment) {
    if (const auto own = experiment.workload().runName; own != nullptr) {
        return (experiment.isPlan() ? "plan " : "") + own(experiment);
    }
    const std::string model = modelName(experiment);
    return runWorkload(experiment) + (model.empty() ? "" : " ") + model;
}

} // namespace vitrine::engine
