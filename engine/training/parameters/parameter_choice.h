// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which parameters of a model are trained, as a user writes it: words joined by "+", such as "attention+experts".
//   attention    q, k, v and o of all layers (and the sinks)
//   experts      gate, up and down of all experts
//   mlp          gate, up and down of all dense MLPs
//   all-linear   the three above, without the sinks
//   router, embedding, head, norms
//   all          every parameter
//   re:PATTERN   names in which the regular expression is found; it may hold a "+" and so comes last

#include <optional>
#include <string>
#include <vector>

#include "engine/model/parameters.h"
#include "engine/tokenizer/regex.h"

namespace vitrine::engine {

class ParameterChoice {
public:
    /// `where` begins the messages, "train". Throws BadInput for an unknown word or a broken pattern.
    ParameterChoice(const std::string& text, const std::string& where);

    bool contains(const Parameter& parameter) const;
    const std::string& text() const { return text_; }

private:
    void addWord(const std::string& word, const std::string& where);

    std::string text_;
    std::vector<ParameterRole> roles_;
    bool all_ = false;
    std::optional<Regex> pattern_;
};

/// Whether a parameter is the matrix, or the stack of matrices, of a product, so that an adapter can be added to it.
bool isLinear(const Parameter& parameter);
/// A linear, or the embedding.
bool isAdaptable(const Parameter& parameter);

} // namespace vitrine::engine
