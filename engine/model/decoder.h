// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The structure of a loaded model: its layers, what stands before and behind them, and all parameters as a list.
// Everything views the weight store that it was made from, and must not outlive it.

#include <deque>
#include <vector>

#include "engine/model/decoder_layer.h"
#include "engine/model/parameters.h"
#include "engine/model/weights.h"

namespace vitrine::engine {

class Decoder {
public:
    Decoder(const ModelConfig& config, const WeightStore& weights);
    Decoder(const Decoder&) = delete; // layers point at its programs
    Decoder& operator=(const Decoder&) = delete;
    ~Decoder() = default;

    const std::vector<DecoderLayer>& layers() const { return layers_; }
    /// (vocab, hidden)
    const kernels::TensorView& embedding() const { return embedding_; }
    const kernels::NormWeights& finalNorm() const { return finalNorm_; }
    /// (vocab, hidden); the embedding where the two are tied.
    const kernels::LinearView& head() const { return head_; }
    /// Every weight once, from the embedding through the layers to the head.
    const std::vector<Parameter>& parameters() const { return parameters_; }

private:
    void bindPrograms(const ModelConfig& config);

    std::vector<DecoderLayer> layers_;
    std::deque<kernels::KnownProgram> programs_; ///< of attention; layers point at them
    kernels::TensorView embedding_;
    kernels::NormWeights finalNorm_;
    kernels::LinearView head_;
    std::vector<Parameter> parameters_;
};

} // namespace vitrine::engine
