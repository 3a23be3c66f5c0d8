// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What it costs to check drafts, from the bytes and products of a step. It need not be exact: it decides how long
// drafts are (draft_pace.h), and never what an answer is.

#include <cstdint>

#include "engine/generation/draft_pace.h"
#include "engine/model/model.h"

namespace vitrine::engine {

class CheckCosts {
public:
    CheckCosts() = default; ///< checking is free
    /// `draftBytes`: weights that the making of one drafted token reads.
    CheckCosts(Model& model, std::uint64_t draftBytes);

    /// For a step over `rows` requests that each check as many tokens. REQUIRES rows >= 1.
    ///
    /// A plain step reads the weights that all tokens share, and of each layer's E experts those that one of its tokens
    /// chose: E * (1 - (1 - k / E)^rows) if each token chooses k of them at random. A token more is about k *
    /// (1 - k / E)^rows experts more, and its products. The draft model reads its weights once for all rows.
    CheckCost of(std::int64_t rows) const;

private:
    double shared_ = 0;       ///< bytes
    double expertsBytes_ = 0; ///< of the experts of all layers that one token chooses
    double chosenShare_ = 0;  ///< k / E; 0: no experts
    double draftBytes_ = 0;
    double products_ = 0; ///< time of a token's products, over the time of reading their weights
};

} // namespace vitrine::engine
