// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Answers to prompts as a policy is trained on them, and the safetensors file that holds them:
//   input_ids (rows, tokens) I32 or I64     prompt and answer, then anything
//   prompt_lengths, lengths (rows)          tokens of the prompt; of prompt and answer together
//   advantages (rows) F32                   or rewards (rows) F32 and groups (rows), see group_advantages.h
//   old_logprobs, rollout_logprobs, reference_logprobs (rows, tokens) F32, each optional: the value of token t at t
// Counts are I32 or I64. Other tensors are ignored.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/training/data/given_experts.h"

namespace vitrine::engine {

struct Rollouts {
    std::int64_t rows = 0, width = 0;
    std::vector<std::int32_t> ids;           ///< (rows, width)
    std::vector<std::int32_t> promptLengths; ///< (rows), at least 1
    std::vector<std::int32_t> lengths;       ///< (rows), above that of the prompt
    std::vector<float> advantages;           ///< (rows)
    std::vector<float> rewards;              ///< (rows); empty where the file has advantages
    /// (rows, width), or empty: log-probabilities before the first update, as the sampler gave them, of the reference.
    std::vector<float> old, rollout, reference;
    /// (rows, width), or empty: 1 for what the policy said. Other tokens behind the prompt, such as a user's messages
    /// in a conversation, are read and not trained. Empty: all behind the prompt is the policy's.
    std::vector<std::uint8_t> said;
    /// Of rows * width tokens, or empty: the experts that the sampler chose while it read token t, at t. It never reads
    /// the last token of a row, and it may not have recorded those of a prompt that it did not read again.
    GivenExperts experts;

    std::span<const std::int32_t> prompt(std::int64_t row) const { return tokens(row, 0, promptLengths); }
    std::span<const std::int32_t> answer(std::int64_t row) const {
        return tokens(row, promptLengths[static_cast<std::size_t>(row)], lengths);
    }
    /// Whether a token behind the prompt is the policy's.
    bool isSaid(std::int64_t row, std::int64_t token) const {
        return said.empty() || said[static_cast<std::size_t>(row * width + token)] != 0;
    }
    /// Tokens of a row that the policy said.
    std::int64_t saidTokens(std::int64_t row) const;
    /// The same of all rows.
    std::int64_t answerTokens() const;

private:
    std::span<const std::int32_t> tokens(std::int64_t row, std::int64_t begin,
                                         const std::vector<std::int32_t>& ends) const {
        const std::int64_t end = ends[static_cast<std::size_t>(row)];
        return {ids.data() + row * width + begin, static_cast<std::size_t>(end - begin)};
    }
};

/// Reads and checks a file. Throws BadInput "FILE: TENSOR: what", with the row where one is wrong, for shapes, types,
/// ids outside the vocabulary, lengths, and values of answers that are not finite; Unsupported for a GGUF file.
Rollouts readRollouts(const std::string& path, std::int64_t vocab);

/// Reads rows that are to be scored: as above, without advantages (they are 0) and log-probabilities. Without lengths,
/// rows are as long as the tensor; without prompt_lengths, all tokens but the first one are the answer.
Rollouts readRows(const std::string& path, std::int64_t vocab);
/// Writes such a file, with advantages. Throws BadInput when it cannot be written.
void writeRollouts(const std::string& path, const Rollouts& rollouts);

} // namespace vitrine::engine
