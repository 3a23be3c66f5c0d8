// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Training data as rows of tokens. A file is one of
//   NAME.safetensors   the tensor input_ids (batch, seq), I32 or I64; every token is trained
//   any other name     rows that are JSON objects: one on each line, or one array of them. row_layouts.h has their
//   layouts
// Texts get special tokens as the tokenizer puts them, then the token that ends a text. Every token of a text is
// trained, and of a text with a prompt those of the completion. Conversations get the model's chat format; the
// assistant's answers are trained, but for those whose message says otherwise. Blank lines are skipped. Of keys that
// change nothing, and of answers without content, one warning for the file is logged.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/stop.h"
#include "engine/chat/chat_format.h"
#include "engine/tokenizer/tokenizer.h"

namespace vitrine::engine {

struct TrainingRow {
    std::vector<std::int32_t> tokens;
    std::vector<std::uint8_t> trained; ///< for each token 1 where the loss counts when it is predicted
    std::int64_t line = 0;             ///< of the file, from 1; of a tensor or an array: the row, from 1
    std::uint64_t offset = 0;          ///< of the row's first byte in the file; of a tensor: 0
    std::int64_t templateTokens = 0;   ///< of a conversation: tokens that its messages do not have themselves
    bool conversation = false;         ///< made of messages
    bool keepsEnd = false;             ///< packing cuts its beginning, not its end
};

/// What rows are made with, and how much is read.
struct TrainingRowOptions {
    std::shared_ptr<const Tokenizer> tokenizer; ///< null: only rows of tokens can be read
    std::shared_ptr<const ChatFormat> format;   ///< null: no conversations can be read
    ChatOptions chat;                           ///< the date should be pinned, so that rows stay the same tomorrow
    std::int64_t vocab = 0;                     ///< ids must be below it
    std::vector<std::int32_t> eosTokens;        ///< of the model; the first one ends a text. Empty: nothing does
    std::int64_t mostRows = 0;                  ///< reading ends after this many; 0: at the end of the file
    /// Takes a line (of an array: a row) that cannot be read and why, and reading goes on; null: such a line throws.
    std::function<void(std::int64_t line, const std::string& reason)> unreadable;
    /// Asked before each row; true ends the reading. Null: nobody asks.
    std::function<bool()> enough;
    bool countTemplate = false; ///< sets TrainingRow::templateTokens, which takes a second pass over the messages
    /// A file with more tokens is refused. A row takes five bytes for each token.
    std::int64_t mostTokens = std::int64_t{1} << 31;
};

/// Whether the file has this name because it holds a tensor of ids.
bool isTensorFile(const std::string& path);

/// Whether the file is one JSON array of rows.
bool isArrayOfRows(const std::string& path);

/// Begins messages about a row: "FILE: line 3", or "FILE: row 3" where the file is one array. `line` as above.
std::string rowPlace(const std::string& path, std::int64_t line, bool inArray);

/// Calls `take` for each row in the order of the file; of a file of JSON only one row is in memory at a time.
/// Throws BadInput and Unsupported "FILE: line N: FIELD: what" (of an array: "row N"), Cancelled. `progress` may be
/// null; it gets bytes of the file.
void forTrainingRows(const std::string& path, const TrainingRowOptions& options, const base::StopToken& stop,
                     base::ProgressSink* progress, const std::function<void(TrainingRow row)>& take);

/// One row of a file of JSON again, which begins at `offset`. Throws as above.
TrainingRow readTrainingRow(const std::string& path, std::int64_t line, std::uint64_t offset,
                            const TrainingRowOptions& options);

/// All rows. Throws BadInput too when there is no row, or no row with a token that is trained and can be predicted (the
/// first token of a row cannot).
std::vector<TrainingRow> readTrainingRows(const std::string& path, const TrainingRowOptions& options,
                                          const base::StopToken& stop, base::ProgressSink* progress);

} // namespace vitrine::engine
