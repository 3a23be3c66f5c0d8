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

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::engine {

enum class RowKind { Text, Completion, Chat, Tokens };

/// A member of a row with its key, for messages. Null: the row does not have it.
struct RowList {
    std::string key;
    nlohmann::json value;
};

struct RowForm {
    RowKind kind = RowKind::Text;
    std::string prompt;              ///< Completion: the text before `text`
    std::string text;                ///< Text and Completion: what is trained
    nlohmann::ordered_json messages; ///< Chat: a list in OpenAI's form
    nlohmann::ordered_json tools;    ///< Chat: a list; null: none
    /// Chat: for each message whether its tokens are trained; nothing: as its role says.
    std::vector<std::optional<bool>> trained;
    RowList tokens, marks, labels; ///< Tokens: as the row has them, not checked
};

/// What is said once for a file.
class RowNotes {
public:
    void unused(std::string key);
    /// An answer of the row at `place` has nothing that could be trained.
    void withoutContent(const std::string& place);
    /// Logs a warning for each kind of note.
    void say(const std::string& file) const;

private:
    std::set<std::string> unused_; ///< bounded
    std::int64_t empty_ = 0;
    std::string firstEmpty_;
};

/// Throws BadInput and Unsupported "PLACE: FIELD: what".
RowForm readRowLayout(nlohmann::ordered_json row, const std::string& place, RowNotes& notes);

} // namespace vitrine::engine
