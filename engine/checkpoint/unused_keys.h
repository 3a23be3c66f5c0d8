// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vitrine::engine {

/// The one warning of a file whose reader came upon keys that it does not use: "FILE: not used: A, B and 3 more; ...".
/// `keys` are texts as they are shown, with quotes and perhaps a reason. `meaning` says what follows from that. Without
/// keys nothing is said.
void warnOfUnusedKeys(const std::string& file, std::vector<std::string> keys,
                      std::string_view meaning = "where another program uses one of them, its answers may differ");

} // namespace vitrine::engine
