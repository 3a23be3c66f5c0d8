// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One message of a row of training data, in OpenAI's form.

#include <optional>
#include <string>

#include "engine/training/data/row_members.h"
#include "engine/training/data/row_notes.h"

namespace vitrine::engine {

/// Reads OpenAI's {"role", "content", ...} or ShareGPT's {"from", "value"} into `message`, in OpenAI's form. Returns
/// what "weight" or "train" says. `list` is the key of the messages, for notes. Throws BadInput "WHERE: what".
std::optional<bool> readRowMessage(const RowJson& entry, const std::string& where, const std::string& list,
                                   RowNotes& notes, RowJson& message);

} // namespace vitrine::engine
