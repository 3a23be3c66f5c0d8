// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One message of a row of training data, in OpenAI's form.

#include <optional>
#include <string>

#include "engine/training/row_members.h"
#include "engine/training/row_notes.h"

namespace vitrine::engine {

struct RowMessage {
    RowJson message;             ///< role, content, thinking or reasoning_content, name, tool_calls, tool_call_id
    std::optional<bool> trained; ///< what "weight" or "train" says
};

/// Reads OpenAI's {"role", "content", ...} or ShareGPT's {"from", "value"}. `list` is the key of the messages, for
/// notes. Throws BadInput "WHERE: what".
RowMessage readRowMessage(const RowJson& entry, const std::string& where, const std::string& list, RowNotes& notes);

} // namespace vitrine::engine
