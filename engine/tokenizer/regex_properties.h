// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Names of Unicode properties in Oniguruma and in PCRE2.

#include <string>

namespace vitrine::engine {

/// What PCRE2 writes between the braces of \p{...} for a name of Oniguruma (lower case, without spaces, "_" and "-").
/// Empty when the name cannot be one.
std::string pcreProperty(const std::string& name);

} // namespace vitrine::engine
