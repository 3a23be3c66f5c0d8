// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The layouts in which people write rows of training data, brought into one form. A row is one of
//   {"text": TEXT}
//   {"prompt": TEXT, "completion": TEXT}            one text, of which the completion is trained
//   {"tokens": IDS} or {"input_ids": IDS}           with "trained" (or "completion_mask", "assistant_masks",
//                                                   "loss_mask"): 0 or 1 for each; or with "labels"
//   {"messages": LIST} or {"conversations": LIST}   with "tools" and "system", if there are any. Messages are OpenAI's
//                                                   {"role", "content", ...} or ShareGPT's {"from", "value"}
//   {"prompt": LIST, "completion": LIST}            messages, of which the answers of the completion are trained
//   {"instruction", "input", "output"}              a question and an answer, with "system" and "history": [[Q, A], ..]
// Messages can have "weight" (0 or 1) or "train" (true or false). Null is the same as no member. Other keys are noted,
// and refused by name where they would change what is trained.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/training/data/row_members.h"
#include "engine/training/data/row_notes.h"

namespace vitrine::engine {

enum class RowLayout { Text, Completion, Chat, Tokens };

/// A member of a row with its key, for messages.
struct RowList {
    std::string key;
    std::shared_ptr<const nlohmann::json> value; ///< null: the row does not have it
};

struct RowForm {
    RowLayout kind = RowLayout::Text;
    std::string prompt;            ///< Completion: the text before `text`
    std::string text;              ///< Text and Completion: what is trained
    std::vector<RowJson> messages; ///< Chat: in OpenAI's form
    std::vector<RowJson> tools;    ///< Chat; empty: none
    /// Chat: for each message whether its tokens are trained; nothing: as its role says.
    std::vector<std::optional<bool>> trained;
    RowList tokens, marks, labels; ///< Tokens: as the row has them, not checked
};

/// Throws BadInput and Unsupported "PLACE: FIELD: what".
RowForm readRowLayout(RowJson row, const std::string& place, RowNotes& notes);

} // namespace vitrine::engine
