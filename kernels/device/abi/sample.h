// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

namespace vitrine::kernels::abi {

constexpr int kSampleAbi = 3;

/// One row's parameters as they lie in device memory: `kSampleRowWords` 32-bit words a row, then the lists of all rows.
struct SampleRow {
    float temperature; ///< 0: greedy
    float topP;
    float least; ///< of (logit - best) / temperature: log(min-p), or -inf
    float repetitionPenalty;
    int topK; ///< 0: off
    unsigned seed, request;
    unsigned positionLow, positionHigh;
    int historyBegin, historyLength;     ///< words from the start of the array
    int forbiddenBegin, forbiddenLength; ///< the same
    int changesBegin, changesLength;     ///< the same; pairs of an id and the bits of what is added to its logit
    int padding;
};
constexpr int kSampleRowWords = 16;

/// logits (rows, vocab), `stride` elements between rows. `scratch` as the kernel of the variant says.
struct SampleParams {
    const void* logits;
    const SampleRow* parameters; ///< the greedy kernel reads none
    int* ids;
    float* logprobs;         ///< or null
    int* topIds;             ///< (rows, topLogprobs)
    float* topLogprobValues; ///< (rows, topLogprobs)
    void* scratch;
    long long stride;
    int rows, vocab, topLogprobs;
    int slots; ///< rows in work at once
    /// Or null: (rows, 2), the log of the probability that the token was drawn with, and of its share of
    /// softmax(logits / temperature). The variable draw_logprobs tells which.
    float* drawLogprobs;
};

} // namespace vitrine::kernels::abi
