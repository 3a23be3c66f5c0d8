// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which tokens of a draft a request keeps.
//
// A step that checks a draft computes the model's own choice for each place: the token that plain decoding would take
// there if the draft were right so far. The choice uses the request's sampling parameters and the random number of that
// position, which does not depend on the draft. The request takes its own choices up to and including the first one
// that differs from the draft. So its tokens are those of plain decoding, one by one, for every way of sampling.
//
// For a single place this is the rejection sampling of Leviathan et al. (Fast Inference from Transformers via
// Speculative Decoding, 2023), because a draft is one fixed token d and its own distribution is a point mass: d is kept
// with probability p(d), the model's probability of d. A token that takes its place is distributed as p without d.

#include <cstdint>
#include <span>

namespace vitrine::engine {

/// How many tokens of the draft are right. `chosen` has the model's choice for the place of each of them, and may have
/// the one after them too.
std::int64_t acceptedTokens(std::span<const std::int32_t> draft, std::span<const std::int32_t> chosen);

/// For plans, where no token is computed: how many of `drafted` tokens are right if each is right with probability
/// `rate`, given that those before it are. The mean is the sum of rate^i for i from 1 to drafted. The result is a
/// whole number, and the results for index = 0, 1, ... have that mean. It depends on the arguments only.
std::int64_t assumedAcceptedTokens(double rate, std::int64_t drafted, std::int64_t index);

} // namespace vitrine::engine
