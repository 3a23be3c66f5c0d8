// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The structure of a loaded model: the embedding, the layers, the final norm and the head, and all parameters as one
// list. A Decoder holds views of the weight store that it was made from, so it must not outlive that store.

#include <deque>
#include <vector>

#include "engine/model/decoder_layer.h"
#include "engine/model/parameters.h"
#include "engine/model/weights.h"

namespace vitrine::engine {

/// Rotary embeddings of a model whose frequencies do not depend on the length.
struct RopeValues {
    kernels::TensorView inverseFrequency; ///< (ropeDim / 2) F32; empty: they do (dynamic scaling)
    float scale = 1;                      ///< of cos and sin
};

class Decoder {
public:
    /// `rope` and the scale of the embedding depend on the type that the model computes in. `firstId`: as firstId().
    /// `firstExpert`: DecoderLayer::firstExpert of all layers.
    Decoder(const ModelConfig& config, const WeightStore& weights, const RopeValues& rope, float embeddingScale,
            std::int64_t firstId = -1, std::int64_t firstExpert = 0);
    Decoder(const Decoder&) = delete; // layers point at its programs
    Decoder& operator=(const Decoder&) = delete;
    ~Decoder() = default;

    const std::vector<DecoderLayer>& layers() const { return layers_; }
    /// (vocab, hidden)
    const kernels::TensorView& embedding() const { return embedding_; }
    /// Its adapter, or empty. `a` is (vocab, rank): the transpose of what is called A elsewhere, so that a token has a
    /// row. `b` is (hidden, rank).
    const kernels::AdapterView& embeddingAdapter() const { return embeddingAdapter_; }
    /// What the rows of the embedding are multiplied by.
    float embeddingScale() const { return embeddingScale_; }
    /// The token of the first row of the embedding and the head, which are a part of the vocabulary; -1: all of it.
    std::int64_t firstId() const { return firstId_; }
    const RopeValues& rope() const { return rope_; }
    const kernels::NormWeights& finalNorm() const { return finalNorm_; }
    /// (vocab, hidden). A model with tied weights has the embedding here too.
    const kernels::LinearView& head() const { return head_; }
    /// All weights, each one once, in the order embedding, layers, head.
    const std::vector<Parameter>& parameters() const { return parameters_; }
    /// Adds an adapter to the linear whose weight has this name or to the embedding, or takes it away (an empty view).
    /// The linear has its own weight then, or what replaces it. Throws Internal for another name. The caller owns the
    /// adapter's memory.
    void setAdapter(const std::string& weight, const kernels::AdapterView& adapter);
    /// The same with a weight of the same shape that has the adapter in it. The caller owns its memory too.
    void setMerged(const std::string& weight, const kernels::WeightView& merged, const kernels::AdapterView& adapter);
    /// The linear whose weight has this name computes with a weight of the same shape from now on, or with its own
    /// again (an empty view). Its adapter stays. The caller owns the memory.
    void replaceWeight(const std::string& weight, const kernels::WeightView& replacement);
    /// The linear whose weight has this name; null where there is none.
    const kernels::LinearView* linear(const std::string& weight) const;

private:
    /// The parameter that is this weight; null where there is none.
    const Parameter* weightOf(const std::string& weight) const;
    /// The linear that the parameter is the weight of; null where it is none. `Self`: Decoder, const or not.
    template <class Self> static auto linearOf(Self& decoder, const std::string& weight) -> decltype(&decoder.head_);
    kernels::LinearView& changedLinear(const std::string& weight);
    void bindPrograms(const ModelConfig& config);

    std::vector<DecoderLayer> layers_;
    std::map<std::string, kernels::WeightView> replaced_; ///< by the name of the weight
    std::deque<kernels::KnownProgram> programs_;          ///< of attention; layers point at them
    RopeValues rope_;
    float embeddingScale_;
    std::int64_t firstId_;
    kernels::TensorView embedding_;
    kernels::AdapterView embeddingAdapter_;
    kernels::NormWeights finalNorm_;
    kernels::LinearView head_;
    std::vector<Parameter> parameters_;
};

} // namespace vitrine::engine
