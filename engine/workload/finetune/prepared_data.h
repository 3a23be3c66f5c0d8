// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The rows and packed sequences of a fine-tuning run, made of its options. The trainer takes its batches from them, and
// whoever shows the data before the run shows these.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/training/data_rows.h"
#include "engine/training/packing.h"
#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

struct PreparedData {
    std::string file;          ///< empty: arbitrary tokens
    std::int64_t fileRows = 0; ///< of `file`, those left out included
    std::vector<LeftOutRow> leftOut;
    std::vector<TrainingRow> training; ///< used rows that are trained; PackedSequence::rows are indices of it
    std::vector<TrainingRow> held;     ///< rows that validate: of the same file, or all of eval_data
    bool heldApart = false;            ///< `held` comes from eval_data
    std::int64_t length = 0;           ///< most tokens of a sequence
    bool packs = false;
    PackingResult packed;     ///< of `training`
    PackingResult heldPacked; ///< of `held`, a row a sequence
    bool stopped = false;     ///< reading ended before the file did
    std::shared_ptr<const Tokenizer> tokenizer;
    std::shared_ptr<const ChatFormat> format;
    std::vector<std::int32_t> eosTokens;
};

/// What somebody who waits for the rows of `data` hears and may ask for.
struct PrepareWatch {
    std::function<void(const DataRows& soFar)> read; ///< after each row
    std::function<bool()> enough;                    ///< true: what was read is all
    bool countTemplate = false;                      ///< sets TrainingRow::templateTokens
};

/// Rows of a run that names no data.
std::int64_t arbitraryRowCount(const Run& run);

/// Reads and packs what the options name. Rows that cannot be used are left out. Throws BadInput "FILE: what" where no
/// row is left or no token counts for the loss, Cancelled.
PreparedData prepareData(const Run& run, const ModelSource& source, const PrepareWatch& watch = {});

} // namespace vitrine::engine
