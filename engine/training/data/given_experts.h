// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Experts that a sampler's routers chose for tokens, so that training takes the same ones (Rollout Routing Replay,
// arXiv 2510.11370): the routers then make only the weights of these experts, see kernels::RouterTopK.

#include <cstdint>
#include <span>
#include <vector>

namespace vitrine::engine {

/// A record for each token: for each layer with experts, in the model's order, the ids of the k experts that the layer
/// chose while the model read the token. A row of k that begins with kNone is not given: the router chooses.
struct GivenExperts {
    static constexpr std::uint16_t kNone = 0xFFFF;

    std::int64_t layers = 0;        ///< with experts; 0: none are given
    std::int64_t k = 0;             ///< experts of a token in a layer
    std::vector<std::uint16_t> ids; ///< (tokens, layers, k); a plan on Meta has none

    bool empty() const { return layers == 0; }
    /// Ids of a token's record.
    std::size_t width() const { return static_cast<std::size_t>(layers * k); }
    std::span<const std::uint16_t> record(std::int64_t token) const {
        return std::span(ids).subspan(static_cast<std::size_t>(token) * width(), width());
    }
    /// Whether experts of the token are given in any layer.
    bool has(std::int64_t token) const;
    /// Records of further tokens that give nothing.
    void addNone(std::int64_t tokens) { ids.resize(ids.size() + static_cast<std::size_t>(tokens) * width(), kNone); }
    /// Adds those of `added` tokens to those of `tokens`, either of which may give none. Throws Internal where both
    /// give some, of different layers or k.
    void append(std::int64_t tokens, const GivenExperts& more, std::int64_t added);
};

} // namespace vitrine::engine
