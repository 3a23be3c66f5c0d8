// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Patterns of tokenizer.json are written for Oniguruma; we run PCRE2. This turns one into the other.

#include <string>
#include <string_view>

namespace vitrine::engine {

/// Returns the PCRE2 pattern (to be compiled with UTF, UCP and MULTILINE) that matches what `pattern` matches in
/// Oniguruma: white space, word characters, scripts, `{n,m}+`, `(?m:`, nested classes. Throws Unsupported or BadInput
/// "WHERE: what" for constructs that PCRE2 has no equal for, such as the class intersection `&&`.
std::string translateOnigurumaPattern(std::string_view pattern, const std::string& where);

} // namespace vitrine::engine
