// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Rows become sequences of a bounded length. Packing puts several rows into one sequence as documents that do not see
// each other: best fit decreasing, in which the longest rows come first and each goes where it leaves the least room.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/training/data/training_batch.h"
#include "engine/training/data/training_rows.h"

namespace vitrine::engine {

/// A target is the next token of the document. It is -1 for the last token of a document, and where the next token is
/// not trained.
struct PackedSequence : TrainingBatch {
    std::vector<std::int32_t> rows; ///< index of each document's row, ascending
};

struct PackingOptions {
    std::int64_t sequenceLength = 0; ///< the most tokens of a sequence, at least 1
    bool pack = true;                ///< false: one row a sequence
};

/// Tokens [begin, begin + count) of a row that a sequence takes.
struct KeptTokens {
    std::int64_t begin = 0;
    std::int64_t count = 0;
};
KeptTokens keptTokens(const TrainingRow& row, std::int64_t sequenceLength);
/// Kept tokens that the model learns to predict. The first one of a document cannot be.
std::int64_t trainedTokens(const TrainingRow& row, const KeptTokens& kept);

struct PackingResult {
    std::vector<PackedSequence> sequences; ///< in the order of their first rows
    std::int64_t cutRows = 0;              ///< longer than a sequence: their ends are cut off, or their beginnings
    std::int64_t cutTokens = 0;            ///< those that were cut off
    std::vector<std::int64_t> cutLines;    ///< TrainingRow::line of the cut rows
    std::int64_t trainedTokens = 0;        ///< targets that count
    std::int64_t totalTokens = 0;          ///< of all sequences
    std::int64_t untrainableRows = 0;      ///< without any target that counts; they are left out
};

/// Which rows stand in which sequence, in 8 bytes for each row.
class PackedRows {
public:
    std::size_t size() const { return begins_.empty() ? 0 : begins_.size() - 1; }
    /// Indices of a sequence's rows, ascending.
    std::span<const std::int32_t> sequence(std::size_t number) const;
    /// The sequence that has a row; size() where none has.
    std::size_t sequenceOf(std::int32_t row) const;

private:
    friend PackedRows placeRows(std::span<const std::int32_t> lengths, const PackingOptions& options);

    std::vector<std::int32_t> rows_;
    std::vector<std::int32_t> begins_; ///< of each sequence in rows_, and the end of the last one
};
/// `lengths`: kept tokens of each row, at most sequenceLength; 0: no sequence takes it. The sequences are in the order
/// of their first rows.
PackedRows placeRows(std::span<const std::int32_t> lengths, const PackingOptions& options);

/// Depends on the rows and options alone. Time grows as n log n with the number of rows.
PackingResult packRows(std::span<const TrainingRow> rows, const PackingOptions& options);

} // namespace vitrine::engine
