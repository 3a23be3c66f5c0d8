// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only

// The summary of training data as JSON and as text.

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "engine/workload/common/result_text.h"
#include "engine/workload/finetune/data_summary.h"

namespace vitrine::engine {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kShownLinesOfReason = 7;

std::string_view reasonWord(LeftOutReason reason) {
    switch (reason) {
    case LeftOutReason::Unreadable:
        return "unreadable";
    case LeftOutReason::NoAnswer:
        return "no assistant turn";
    case LeftOutReason::Duplicate:
        return "duplicate";
    case LeftOutReason::TooLong:
        return "longer than a sequence";
    }
    return "";
}

std::string percent(double share) {
    return fmt::format("{:.1f} %", share * 100);
}

std::string grouped(std::int64_t value) {
    std::string text = std::to_string(value);
    for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) {
        text.insert(static_cast<std::size_t>(at), ",");
    }
    return text;
}

/// "lines 4, 19, 7 and 2 more"; `count`: of all lines, of which `lines` may be the first ones. `word`: "line" or "row".
std::string linesText(const std::vector<std::int64_t>& lines, std::int64_t count, std::string_view word) {
    std::string text;
    for (std::size_t i = 0; i < std::min(lines.size(), kShownLinesOfReason); ++i) {
        text += (text.empty() ? fmt::format("{}{} ", word, lines.size() == 1 ? "" : "s") : ", ") + grouped(lines[i]);
    }
    const std::int64_t more = count - static_cast<std::int64_t>(std::min(lines.size(), kShownLinesOfReason));
    return more > 0 && !text.empty() ? fmt::format("{} and {} more", text, grouped(more)) : text;
}

std::vector<std::int64_t> linesOf(const DataSummary& summary, LeftOutReason reason) {
    std::vector<std::int64_t> lines;
    for (const LeftOutRow& row : summary.leftOut) {
        if (row.reason == reason) {
            lines.push_back(row.line);
        }
    }
    return lines;
}

/// A field of a CSV file.
std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        out += c == '"' ? "\"\"" : std::string(1, c);
    }
    return out + '"';
}

/// A line of the summary: a count, or a share of 1.
struct SummaryRow {
    std::string name;
    std::int64_t value = 0;
    std::string note;
    std::optional<double> share;
};

std::vector<SummaryRow> summaryRows(const DataSummary& s) {
    const std::string_view word = s.inArray ? "row" : "line";
    std::vector<SummaryRow> rows{{"rows used", s.used, "of " + grouped(s.rows), {}}};
    for (const auto& [reason, count] : {std::pair{LeftOutReason::Duplicate, s.duplicates},
                                        {LeftOutReason::NoAnswer, s.noAnswer},
                                        {LeftOutReason::Unreadable, s.unreadable},
                                        {LeftOutReason::TooLong, s.tooLong}}) {
        if (count > 0) {
            rows.push_back({fmt::format("left out, {}", reasonWord(reason)),
                            count,
                            linesText(linesOf(s, reason), count, word),
                            {}});
        }
    }
    const auto add = [&rows](const char* name, std::int64_t value, const std::string& note) {
        rows.push_back({name, value, note, {}});
    };
    add("rows that train", s.trainRows, "");
    add("rows that validate", s.validationRows, s.validationApart ? "of another file" : "");
    add("tokens", s.tokens, fmt::format("mean {}", s.used > 0 ? grouped(s.tokens / s.used) : "0"));
    if (s.templateTokens > 0) {
        add("added by the template", s.templateTokens,
            percent(static_cast<double>(s.templateTokens) / static_cast<double>(s.tokens)));
    }
    std::vector<std::int64_t> cutLines;
    cutLines.reserve(s.cut.size());
    for (const CutRow& row : s.cut) {
        cutLines.push_back(row.line);
    }
    add("rows cut", s.cutRows, linesText(cutLines, s.cutRows, word));
    add("rows that keep no answer", s.keepNoAnswer, "");
    add("lost", s.lost, percent(s.lostShare()));
    add("kept", s.kept, "");
    add("trained", s.trained, percent(s.trainedShare()) + " of kept");
    add("end of turn trained", s.endTrained, fmt::format("of {} rows", grouped(s.endAsked)));
    add("longest row", s.longestTokens, fmt::format("{} {}", word, grouped(s.longestLine)));
    add("sequences", s.sequences, fmt::format("{} to validate", grouped(s.validationSequences)));
    add("sequence length", s.length, "tokens");
    rows.push_back({"fill", 0, fmt::format("{} padding", grouped(s.padding)), s.fill()});
    add("steps an epoch", s.stepsOfEpoch, fmt::format("batch of {}", grouped(s.batch)));
    return rows;
}

} // namespace

Json dataSummaryJson(const DataSummary& s) {
    Json cut = Json::array();
    for (const CutRow& row : s.cut) {
        cut.push_back({{"line", row.line},
                       {"tokens", row.tokens},
                       {"lost", row.lost},
                       {"lost_trained", row.lostTrained},
                       {"kept_trained", row.keptTrained},
                       {"keeps_end", row.keepsEnd}});
    }
    Json leftOut = Json::array();
    for (const LeftOutRow& row : s.leftOut) {
        Json item = {{"line", row.line}, {"reason", reasonWord(row.reason)}};
        if (!row.why.empty()) {
            item["why"] = row.why;
        }
        if (row.firstLine > 0) {
            item["same_as_line"] = row.firstLine;
        }
        leftOut.push_back(std::move(item));
    }
    Json lengths = Json::array();
    for (const LengthBin& bin : s.lengths) {
        lengths.push_back({{"from", bin.from}, {"to", bin.to}, {"rows", bin.rows}, {"tokens", bin.tokens}});
    }
    return {{"rows", s.rows},
            {"used", s.used},
            {"train_rows", s.trainRows},
            {"validation_rows", s.validationRows},
            {"unreadable", s.unreadable},
            {"no_assistant_turn", s.noAnswer},
            {"duplicates", s.duplicates},
            {"skipped", s.tooLong},
            {"left_out", std::move(leftOut)},
            {"conversations", s.conversations},
            {"tokens", s.tokens},
            {"template_tokens", s.templateTokens},
            {"lost", s.lost},
            {"kept", s.kept},
            {"trained", s.trained},
            {"trained_share", s.trainedShare()},
            {"longest_row", {{"tokens", s.longestTokens}, {"line", s.longestLine}}},
            {"median_tokens", s.medianTokens},
            {"cut_rows", s.cutRows},
            {"cut", std::move(cut)},
            {"keep_no_answer", s.keepNoAnswer},
            {"end_of_turn_trained", s.endTrained},
            {"lengths", std::move(lengths)},
            {"sequence_length", s.length},
            {"sequences", s.sequences},
            {"validation_sequences", s.validationSequences},
            {"sequence_tokens", s.sequenceTokens},
            {"padding", s.padding},
            {"fill", s.fill()},
            {"batch", s.batch},
            {"steps_of_epoch", s.stepsOfEpoch}};
}

std::string dataSummaryText(const DataSummary& summary) {
    std::vector<std::vector<std::string>> rows;
    for (const SummaryRow& row : summaryRows(summary)) {
        rows.push_back({row.name, row.share ? percent(*row.share) : grouped(row.value), row.note});
    }
    return tableText(rows);
}

std::string dataSummaryCsv(const DataSummary& summary) {
    std::string out = "what,value,note\n";
    for (const SummaryRow& row : summaryRows(summary)) {
        out += fmt::format("{},{},{}\n", quoted(row.name),
                           row.share ? fmt::format("{:.6f}", *row.share) : std::to_string(row.value), quoted(row.note));
    }
    return out;
}

} // namespace vitrine::engine
