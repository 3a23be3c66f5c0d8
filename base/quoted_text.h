// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <string>
#include <string_view>

namespace vitrine::base {

/// Text from a file made fit for a one-line message: quoted, control characters escaped, cut at 80 bytes.
std::string quotedText(std::string_view text);

} // namespace vitrine::base
