// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The tokenizer of a GGUF file as the tokenizer.json that Hugging Face's form of the model has.

#include <nlohmann/json_fwd.hpp>

#include "engine/checkpoint/gguf_header.h"

namespace vitrine::engine {

/// Of the kinds "gpt2" (byte-level BPE with a list of merges) and "llama" (SentencePiece's BPE: the merges follow from
/// the scores of the pieces, as transformers' converter makes them). Throws BadInput "FILE: KEY: what" for lists that
/// are missing or do not fit each other, and Unsupported for other kinds and for ways to split words that are not
/// known.
nlohmann::json ggufTokenizerJson(const GgufHeader& header);

} // namespace vitrine::engine
