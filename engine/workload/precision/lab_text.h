// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The text that the Precision lab scores. Stateless; safe from any thread.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/workload/precision/precision_result.h"

namespace vitrine::engine {

/// A text file, and what people call it.
struct TextChoice {
    std::string path, name;
};

/// The file at `path` where it is not empty. Else the text that suits the model: `precision.txt` of its folder where
/// there is one, since a model with a language of its own says nothing about other texts; else the program's text.
TextChoice textChoice(const ModelSource& source, const std::string& path);

/// The first `tokens` tokens of a text. Fewer when the text is shorter. Throws BadInput "text_file: FILE: what" for one
/// that cannot be read or has fewer than two tokens.
LabText labText(const std::shared_ptr<const Tokenizer>& tokenizer, const TextChoice& choice, std::int64_t tokens);

/// Sets candidatePieces for all candidates of the tokens.
void addCandidatePieces(const Tokenizer& tokenizer, std::span<const TokenEffect> tokens, LabText& text);

} // namespace vitrine::engine
