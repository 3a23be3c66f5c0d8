// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/cli/result_text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>

#include "app/runner/machine_report.h"
#include "base/units.h"

namespace vitrine::app {

namespace {

using nlohmann::json;

/// Characters on the screen: bytes that start one.
std::size_t displayWidth(const std::string& text) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool looksLikeNumber(const std::string& text) {
    return !text.empty() &&
           (std::isdigit(static_cast<unsigned char>(text.front())) != 0 || text.front() == '-' || text.front() == '+');
}

void appendFields(const json& value, const std::string& prefix, std::vector<std::vector<std::string>>& rows) {
    for (const auto& [key, member] : value.items()) {
        const std::string name = prefix.empty() ? key : fmt::format("{}.{}", prefix, key);
        if (member.is_object()) {
            appendFields(member, name, rows);
        } else {
            rows.push_back({name, fieldText(name, member)});
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

/// Objects with the same fields as a table.
std::string rowsText(const json& list) {
    std::vector<std::string> keys;
    for (const json& row : list) {
        for (const auto& [key, member] : row.items()) {
            if (!member.is_structured() && std::find(keys.begin(), keys.end(), key) == keys.end()) {
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
            cells.push_back(row.contains(key) ? valueText(key, row[key]) : "");
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
            row.push_back(fieldText(fmt::format("{}.{}", member, key), fields.contains(key) ? fields[key] : json()));
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
    std::string text =
        columnsText("after the load", "value", metrics["variants"], "after_load", [](const json&) { return true; });
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

std::string tokenRowsText(const json& rows) {
    std::string text;
    for (const json& row : rows) {
        std::string ids;
        for (const json& id : row.value("ids", json::array())) {
            ids += (ids.empty() ? "" : " ") + id.dump();
        }
        text += fmt::format("{}\t{}\n", ids,
                            row.value("decoded", json()).dump(-1, ' ', false, json::error_handler_t::replace));
    }
    return text;
}

std::string generateText(const json& metrics) {
    // Without a tokenizer nothing was streamed: the ids are the result.
    if (metrics.contains("text") && metrics["text"].is_null() && metrics.contains("ids")) {
        return metrics["ids"].dump() + "\n";
    }
    return {};
}

std::string attentionText(const json& report) {
    const auto rate = [&](const std::string& key) {
        return report.contains(key) && report[key].is_number() ? fmt::format("{:.4g}", report[key].get<double>())
                                                               : std::string("-");
    };
    std::string text = fmt::format("{} on {}: batch {}, heads {}, KV heads {}, {} queries, {} keys, head dim {}\n",
                                   report["dtype"].get<std::string>(), report["device"].get<std::string>(),
                                   report["batch"].get<std::int64_t>(), report["heads"].get<std::int64_t>(),
                                   report["kv_heads"].get<std::int64_t>(), report["q_len"].get<std::int64_t>(),
                                   report["kv_len"].get<std::int64_t>(), report["head_dim"].get<std::int64_t>());
    if (report.contains("block_sparsity")) {
        text += fmt::format("block sparsity {:.4f}, full share {:.4f}\n", report["block_sparsity"].get<double>(),
                            report["full_share"].get<double>());
    }
    std::vector<std::vector<std::string>> rows{{"", "ms", "TFLOP/s"}};
    for (const std::string name : {"forward", "backward"}) {
        rows.push_back({name, rate(name + "_ms"), rate(name + "_tflops")});
        if (report.contains("full_" + name + "_ms")) {
            rows.push_back({name + " without the mask", rate("full_" + name + "_ms"), ""});
            rows.push_back({name + " predicted", rate("predicted_" + name + "_ms"), ""});
        }
    }
    return text + tableText(rows);
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

std::string valueText(const std::string& key, const json& value) {
    const std::string_view name(key);
    if (value.is_number() && (name.ends_with("_bytes") || name == "bytes" || name == "bytes_read")) {
        const auto bytes = value.is_number_float() ? std::llround(value.get<double>()) : value.get<std::int64_t>();
        return (bytes < 0 ? "-" : "") + base::formatBytes(static_cast<std::uint64_t>(std::abs(bytes)));
    }
    if (value.is_number() && (name.ends_with("seconds") || name.ends_with("seconds_estimate"))) {
        return base::formatDuration(static_cast<std::int64_t>(std::llround(value.get<double>() * 1e9)));
    }
    if (value.is_number_integer()) {
        return base::formatGrouped(value.get<std::int64_t>());
    }
    if (value.is_number_float()) {
        // Four digits, of large numbers all before the point.
        constexpr double kWhole = 1000, kTooLarge = 1e15;
        const auto number = value.get<double>();
        return std::abs(number) >= kWhole && std::abs(number) < kTooLarge ? base::formatGrouped(std::llround(number))
                                                                          : fmt::format("{:.4g}", number);
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
    return value.is_string() ? value.get<std::string>() : value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string fieldText(const std::string& path, const json& value) {
    const std::string_view name(path);
    const auto has = [&](std::string_view word) { return name.find(word) != std::string_view::npos; };
    const auto within = [&](std::string_view parent) { return name.starts_with(parent); };
    if (name == "roofline.bandwidth" && value.is_number()) {
        return base::formatBytesPerSecond(value.get<double>());
    }
    // "kv_page_bytes_by_group.full" is as much a size as its parent says.
    if (has("bytes") || has("by_category.") || within("roofline.parts.")) {
        return valueText("_bytes", value);
    }
    if (has("seconds") || within("ttft.") || within("tpot.") || within("e2e.")) {
        return valueText("seconds", value);
    }
    return valueText(path.substr(path.rfind('.') + 1), value);
}

std::string resultText(const json& experiment, const json& metrics) {
    const std::string workload = experiment.value("workload", "");
    if (!metrics.is_object()) {
        return {};
    }
    if (workload == "tokenize") {
        return tokenRowsText(metrics.value("rows", json::array()));
    }
    if (workload == "generate" && !experiment.value("plan", false) && metrics.value("backend", "") != "meta") {
        return generateText(metrics);
    }
    if (workload == "attention" && metrics.contains("forward_ms")) {
        return attentionText(metrics);
    }
    if (metrics.contains("rows") && metrics["rows"].is_array()) {
        return rowsText(metrics["rows"]);
    }
    if (metrics.contains("variants") && metrics["variants"].is_array()) {
        return rowsText(metrics["variants"]) + categoriesText(metrics["variants"]) + answersText(metrics);
    }
    json fields = metrics;
    fields.erase("peak_by_category");
    fields.erase("max_by_category");
    return fieldsText(fields) + categoriesText(json::array({metrics}));
}

std::string doctorText(const json& report) {
    const json& machine = report["machine"];
    std::string text =
        fmt::format("Vitrine {}\n{}, {} cores, {}; memory {}, {} free\n{}\n\n", report.value("version", ""),
                    machine.value("cpu", ""), machine.value("cores", 0), machine.value("simd", ""),
                    base::formatBytes(machine.value("memory_bytes", std::uint64_t{0})),
                    base::formatBytes(machine.value("available_bytes", std::uint64_t{0})), machine.value("os", ""));
    text += "Backends\n";
    for (const json& backend : report["backends"]) {
        const bool available = backend.value("available", false);
        text += fmt::format("  {:<6}{}{}\n", backend.value("name", ""),
                            available ? "on" : "off: ", backend.value("reason", ""));
    }
    text += "\nGPUs\n";
    for (const json& gpu : report["gpus"]) {
        text += fmt::format("  {}, {}\n", gpu.value("name", ""),
                            base::formatBytes(gpu.value("memory_bytes", std::uint64_t{0})));
    }
    text += report["gpus"].empty() ? "  none\n" : "";
    text += "\nLibraries\n";
    for (const json& library : report["libraries"]) {
        if (library.value("found", false)) {
            text += fmt::format("  {:<9} {} {}\n", library.value("name", ""), library.value("version", ""),
                                library.value("path", ""));
        } else {
            text += fmt::format("  {:<9} {}\n", library.value("name", ""), missingText(library));
        }
    }
    if (!report["profiling"].empty()) {
        text += "\nProfiling of the GPU\n";
    }
    for (const json& part : report["profiling"]) {
        const bool ready = part.value("ready", false);
        text +=
            fmt::format("  {}: {}{}\n", part.value("name", ""), ready ? "ready" : "off: ", part.value("reason", ""));
    }
    for (const json& warning : report["warnings"]) {
        text += fmt::format("\nWarning: {}\n", warning.get<std::string>());
    }
    return text;
}

} // namespace vitrine::app
