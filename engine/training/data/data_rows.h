// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which rows of a file are used. Each row that is not has a reason and a line. Rows are kept as facts about them, and
// with their tokens where somebody wants these.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/training/data/row_facts.h"
#include "engine/training/data/training_rows.h"

namespace vitrine::engine {

enum class LeftOutReason : std::uint8_t {
    Unreadable, ///< no row can be made of the line
    NoAnswer,   ///< no token is trained: a conversation without an assistant turn, a text of one token
    Duplicate,  ///< an earlier used row has the same token ids
    TooLong     ///< longer than a sequence, and such rows are skipped
};
inline constexpr std::size_t kLeftOutReasons = 4;
/// Of the rows that are left out or cut, this many are listed. All of them are counted.
inline constexpr std::size_t kMostListedRows = 100'000;

struct LeftOutRow {
    LeftOutReason reason = LeftOutReason::Unreadable;
    std::int64_t line = 0;
    std::string why;            ///< of an unreadable line
    std::int64_t firstLine = 0; ///< of a duplicate: the line of the row that is used
};

/// What becomes of a row that is longer than a sequence.
enum class LongRows : std::uint8_t { Cut, Skip, KeepEnd };
/// "cut", "skip", "keep-end": the values of the option long_rows.
LongRows longRowsByName(std::string_view name);
/// Reads "7731=keep-end+412=skip": the lines of single rows and what becomes of them. Throws BadInput "WHERE: what".
std::map<std::int64_t, LongRows> parseLongRowExceptions(std::string_view text, const std::string& where);

struct DataRowOptions {
    bool keepDuplicates = false;
    std::int64_t sequenceLength = 0; ///< 0: rows of any length are whole
    LongRows longRows = LongRows::Cut;
    std::map<std::int64_t, LongRows> exceptions; ///< by line
    std::vector<std::int32_t> ends;              ///< tokens after which the model stops
    /// Reads the tokens of an earlier row again, which may be the same as those of a new one; null: they are kept.
    std::function<TrainingRow(const RowFacts& row)> readAgain;
};

/// Takes the rows of a file in their order and sorts them. One thread at a time.
class DataRows {
public:
    explicit DataRows(DataRowOptions options) : options_(std::move(options)) {}

    void add(TrainingRow row);
    void addUnreadable(std::int64_t line, std::string why);

    std::int64_t rows() const { return rows_; } ///< of the file, those left out included
    const RowTable& used() const { return used_; }
    const std::vector<LeftOutRow>& leftOut() const { return leftOut_; } ///< the first kMostListedRows
    std::int64_t count(LeftOutReason reason) const { return counts_[static_cast<std::size_t>(reason)]; }
    std::int64_t conversations() const { return conversations_; }   ///< used rows that are made of messages
    std::int64_t templateTokens() const { return templateTokens_; } ///< of used rows
    RowTable takeUsed() { return std::move(used_); }
    /// The used rows with their tokens; empty where these are read again.
    std::vector<TrainingRow> takeTokens() { return std::move(tokens_); }

private:
    void leaveOut(LeftOutRow row);
    bool hasTokens(const RowFacts& facts, const std::vector<std::int32_t>& tokens) const;

    DataRowOptions options_;
    std::int64_t rows_ = 0;
    RowTable used_;
    std::vector<TrainingRow> tokens_;
    std::vector<LeftOutRow> leftOut_;
    std::array<std::int64_t, kLeftOutReasons> counts_{};
    std::int64_t conversations_ = 0, templateTokens_ = 0;
    RowsByHash byHash_;
};

} // namespace vitrine::engine
