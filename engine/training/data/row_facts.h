// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What is kept of a row while its tokens are not: 32 bytes, so that the rows of a file of gigabytes fit in memory.

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/training/data/training_rows.h"

namespace vitrine::engine {

struct RowFacts {
    std::uint64_t offset = 0;       ///< as TrainingRow::offset
    std::uint32_t line = 0;         ///< as TrainingRow::line
    std::uint32_t tokens = 0;       ///< of the whole row
    std::uint32_t trained = 0;      ///< kept tokens that the model learns to predict
    std::uint32_t trainedWhole = 0; ///< the same of the whole row
    std::uint32_t hash = 0;         ///< of the token ids
    bool keepsEnd = false;          ///< as TrainingRow::keepsEnd
    bool endTrained = false;        ///< an answer that is kept ends with a trained token after which the model stops

    std::int64_t kept(std::int64_t sequenceLength) const;
};
static_assert(sizeof(RowFacts) == 32);

/// By line. A deque grows without a copy of what it has.
using RowTable = std::deque<RowFacts>;

/// `sequenceLength` 0: the row is kept whole. `ends`: tokens after which the model stops.
RowFacts factsOf(const TrainingRow& row, std::int64_t sequenceLength, std::span<const std::int32_t> ends);

/// Finds rows by the hashes of their tokens, in four bytes for each slot of a table.
class RowsByHash {
public:
    /// The first row of the table with this hash of which `same` says that it is the one.
    std::optional<std::uint32_t> find(const RowTable& rows, std::uint32_t hash,
                                      const std::function<bool(const RowFacts&)>& same) const;
    /// Adds the last row of the table.
    void addLast(const RowTable& rows);

private:
    std::size_t slotOf(std::uint32_t hash) const;
    void put(std::uint32_t hash, std::uint32_t row);

    std::vector<std::uint32_t> slots_; ///< row + 1; 0: free
    std::size_t used_ = 0;
};

} // namespace vitrine::engine
