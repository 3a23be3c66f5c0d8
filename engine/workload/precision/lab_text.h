// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The text that the Precision lab scores. Stateless; safe from any thread.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/tokenizer/tokenizer.h"
#include "engine/workload/precision/precision_result.h"

namespace vitrine::engine {

/// The first `tokens` tokens of a text file, or of the program's own text when `path` is empty. Fewer when the text is
/// shorter. Throws BadInput "text_file: FILE: what" for one that cannot be read or has fewer than two tokens.
LabText labText(const std::shared_ptr<const Tokenizer>& tokenizer, const std::string& path, std::int64_t tokens);

/// Sets candidatePieces for all candidates of the tokens.
void addCandidatePieces(const Tokenizer& tokenizer, std::span<const TokenEffect> tokens, LabText& text);

} // namespace vitrine::engine
