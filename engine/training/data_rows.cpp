// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/data_rows.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <utility>

#include "base/error.h"
#include "engine/training/packing.h"

namespace vitrine::engine {

namespace {

/// FNV-1a over the ids; rows with equal hashes are compared.
std::uint64_t hashOfTokens(const std::vector<std::int32_t>& tokens) {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const std::int32_t token : tokens) {
        hash = (hash ^ static_cast<std::uint32_t>(token)) * 0x100000001b3U;
    }
    return hash;
}

} // namespace

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

std::int64_t DataRows::earlier(const TrainingRow& row, std::uint64_t hash) const {
    const auto [begin, end] = byHash_.equal_range(hash);
    const auto found = std::find_if(begin, end, [&](const auto& entry) {
        return used_[static_cast<std::size_t>(entry.second)].tokens == row.tokens;
    });
    return found == end ? -1 : found->second;
}

void DataRows::add(TrainingRow row) {
    ++rows_;
    const auto tokens = static_cast<std::int64_t>(row.tokens.size());
    if (trainedTokens(row, {0, tokens}) == 0) {
        leftOut_.push_back({LeftOutReason::NoAnswer, row.line, {}, 0});
        return;
    }
    if (options_.sequenceLength > 0 && tokens > options_.sequenceLength) {
        const auto exception = options_.exceptions.find(row.line);
        const LongRows how = exception == options_.exceptions.end() ? options_.longRows : exception->second;
        if (how == LongRows::Skip) {
            leftOut_.push_back({LeftOutReason::TooLong, row.line, {}, 0});
            return;
        }
        row.keepsEnd = how == LongRows::KeepEnd;
    }
    if (!options_.keepDuplicates) {
        const std::uint64_t hash = hashOfTokens(row.tokens);
        if (const std::int64_t first = earlier(row, hash); first >= 0) {
            leftOut_.push_back({LeftOutReason::Duplicate, row.line, {}, used_[static_cast<std::size_t>(first)].line});
            return;
        }
        byHash_.emplace(hash, static_cast<std::int64_t>(used_.size()));
    }
    used_.push_back(std::move(row));
}

void DataRows::addUnreadable(std::int64_t line, std::string why) {
    ++rows_;
    leftOut_.push_back({LeftOutReason::Unreadable, line, std::move(why), 0});
}

std::int64_t DataRows::count(LeftOutReason reason) const {
    return std::count_if(leftOut_.begin(), leftOut_.end(),
                         [reason](const LeftOutRow& row) { return row.reason == reason; });
}

} // namespace vitrine::engine
