// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which rows of a file are used. Each row that is not has a reason and a line.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/training/training_rows.h"

namespace vitrine::engine {

enum class LeftOutReason : std::uint8_t {
    Unreadable, ///< no row can be made of the line
    NoAnswer,   ///< no token is trained: a conversation without an assistant turn, a text of one token
    Duplicate,  ///< an earlier used row has the same token ids
    TooLong     ///< longer than a sequence, and such rows are skipped
};

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
};

/// Takes the rows of a file in their order and sorts them. One thread at a time.
class DataRows {
public:
    explicit DataRows(DataRowOptions options) : options_(std::move(options)) {}

    void add(TrainingRow row);
    void addUnreadable(std::int64_t line, std::string why);

    std::int64_t rows() const { return rows_; } ///< of the file, those left out included
    const std::vector<TrainingRow>& used() const { return used_; }
    const std::vector<LeftOutRow>& leftOut() const { return leftOut_; }
    std::int64_t count(LeftOutReason reason) const;
    std::vector<TrainingRow> takeUsed() { return std::move(used_); }

private:
    /// The index of an earlier row with these ids, or -1.
    std::int64_t earlier(const TrainingRow& row, std::uint64_t hash) const;

    DataRowOptions options_;
    std::int64_t rows_ = 0;
    std::vector<TrainingRow> used_;
    std::vector<LeftOutRow> leftOut_;
    std::unordered_multimap<std::uint64_t, std::int64_t> byHash_;
};

} // namespace vitrine::engine
