// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How far two names are from each other: for "did you mean".

#include <cstddef>
#include <string_view>

namespace vitrine::base {

/// The least number of bytes to insert, remove or replace that turns `a` into `b`.
std::size_t editDistance(std::string_view a, std::string_view b);

} // namespace vitrine::base
