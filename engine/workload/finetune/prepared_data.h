// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The rows and packed sequences of a fine-tuning run, made of its options. The trainer takes its batches from them, and
// whoever shows the data before the run shows these. To look at data, facts about rows are enough: the tokens of a row
// are read again when somebody looks at it, so that a file of gigabytes takes little memory.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/training/data/data_rows.h"
#include "engine/training/data/packing.h"
#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

struct PreparedData {
    std::string file;                ///< empty: arbitrary tokens
    std::int64_t fileRows = 0;       ///< of `file`, those left out included
    bool inArray = false;            ///< `file` is one array; "line" is the row's number in it
    std::vector<LeftOutRow> leftOut; ///< the first kMostListedRows
    std::array<std::int64_t, kLeftOutReasons> leftOutCounts{}; ///< of all, by LeftOutReason
    RowTable training;                                  ///< used rows that are trained; PackedRows has indices of it
    RowTable held;                                      ///< rows that validate: of the same file, or all of eval_data
    bool heldApart = false;                             ///< `held` comes from eval_data
    std::int64_t conversations = 0, templateTokens = 0; ///< of the used rows of `file`
    std::int64_t length = 0;     ///< most tokens of a sequence: the one that was asked for, or the model's context
    std::int64_t heldLength = 0; ///< the same of the rows that validate
    bool packs = false;
    PackedRows packed;    ///< of `training`
    bool stopped = false; ///< reading ended before the file did
    std::shared_ptr<const Tokenizer> tokenizer;
    std::shared_ptr<const ChatFormat> format;
    std::vector<std::int32_t> eosTokens;
    TrainingRowOptions rowOptions; ///< to read a row again
    /// The tokens of `training` and `held`; empty where they are read again.
    std::vector<TrainingRow> trainingTokens, heldTokens;

    /// A row of `training`, from memory or read again. Throws what readTrainingRow() throws, and BadInput where the
    /// file has changed. Any thread.
    TrainingRow row(std::int32_t index) const;
    PackingOptions packing() const { return {length, packs}; }
    PackingOptions heldPacking() const { return {heldLength, false}; }
};

/// What somebody who waits for the rows of `data` hears and may ask for.
struct PrepareWatch {
    std::function<void(const DataRows& soFar)> read; ///< after each row
    std::function<bool()> enough;                    ///< true: what was read is all
    bool countTemplate = false;                      ///< sets PreparedData::templateTokens
    bool keepTokens = false;                         ///< of a file of lines; those of other rows are always kept
};

/// Rows of a run that names no data.
std::int64_t arbitraryRowCount(const Run& run);

/// Reads and packs what the options name. Rows that cannot be used are left out. Throws BadInput "FILE: what" where no
/// row is left or no token counts for the loss, Cancelled.
PreparedData prepareData(const Run& run, const ModelSource& source, const PrepareWatch& watch = {});

} // namespace vitrine::engine
