// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <string>

namespace vitrine::base {

/// What the program keeps for the user and can make again: VITRINE_CACHE_DIR, else XDG_CACHE_HOME/vitrine, else
/// ~/.cache/vitrine. Empty: none of these variables and no home is set.
std::string userCacheFolder();

} // namespace vitrine::base
