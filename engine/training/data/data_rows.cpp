// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/data/data_rows.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <utility>

#include "base/error.h"
#include "engine/training/data/packing.h"

namespace vitrine::engine {

LongRows longRowsByName(std::string_view name) {
    return name == "skip" ? LongRows::Skip : name == "keep-end" ? LongRows::KeepEnd : LongRows::Cut;
}

std::map<std::int64_t, LongRows> parseLongRowExceptions(std::string_view text, const std::string& where) {
    std::map<std::int64_t, LongRows> out;
    while (!text.empty()) {
        const std::string_view part = text.substr(0, text.find('+'));
        text.remove_prefix(std::min(text.size(), part.size() + 1));
        const std::size_t sign = part.find('=');
        const std::string_view number = part.substr(0, sign);
        const std::string_view how = sign == std::string_view::npos ? "" : part.substr(sign + 1);
        std::int64_t line = 0;
        const auto read = std::from_chars(number.data(), number.data() + number.size(), line);
        const bool known = how == "cut" || how == "skip" || how == "keep-end";
        if (read.ec != std::errc() || read.ptr != number.data() + number.size() || line < 1 || !known) {
            throw base::BadInput(fmt::format("{}: \"{}\" is no LINE=cut, LINE=skip or LINE=keep-end; join several with "
                                             "+",
                                             where, part));
        }
        out[line] = longRowsByName(how);
    }
    return out;
}

void DataRows::leaveOut(LeftOutRow row) {
    ++counts_[static_cast<std::size_t>(row.reason)];
    if (leftOut_.size() < kMostListedRows) {
        leftOut_.push_back(std::move(row));
    }
}

bool DataRows::hasTokens(const RowFacts& facts, const std::vector<std::int32_t>& tokens) const {
    if (facts.tokens != tokens.size()) {
        return false;
    }
    if (options_.readAgain) {
        return options_.readAgain(facts).tokens == tokens;
    }
    const auto same = std::lower_bound(tokens_.begin(), tokens_.end(), facts.line,
                                       [](const TrainingRow& row, std::int64_t line) { return row.line < line; });
    return same->tokens == tokens;
}

void DataRows::add(TrainingRow row) {
    ++rows_;
    const auto tokens = static_cast<std::int64_t>(row.tokens.size());
    if (trainedTokens(row, {0, tokens}) == 0) {
        leaveOut({LeftOutReason::NoAnswer, row.line, {}, 0});
        return;
    }
    if (options_.sequenceLength > 0 && tokens > options_.sequenceLength) {
        const auto exception = options_.exceptions.find(row.line);
        const LongRows how = exception == options_.exceptions.end() ? options_.longRows : exception->second;
        if (how == LongRows::Skip) {
            leaveOut({LeftOutReason::TooLong, row.line, {}, 0});
            return;
        }
        row.keepsEnd = how == LongRows::KeepEnd;
    }
    const RowFacts facts = factsOf(row, options_.sequenceLength, options_.ends);
    if (!options_.keepDuplicates) {
        const auto first =
            byHash_.find(used_, facts.hash, [&](const RowFacts& one) { return hasTokens(one, row.tokens); });
        if (first) {
            leaveOut({LeftOutReason::Duplicate, row.line, {}, used_[*first].line});
            return;
        }
    }
    used_.push_back(facts);
    if (!options_.keepDuplicates) {
        byHash_.addLast(used_);
    }
    conversations_ += row.conversation ? 1 : 0;
    templateTokens_ += row.templateTokens;
    if (!options_.readAgain) {
        tokens_.push_back(std::move(row));
    }
}

void DataRows::addUnreadable(std::int64_t line, std::string why) {
    ++rows_;
    leaveOut({LeftOutReason::Unreadable, line, std::move(why), 0});
}

} // namespace vitrine::engine
