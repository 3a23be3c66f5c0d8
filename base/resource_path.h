// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Where the program's data files are: presets, device profiles, synthetic models, the demo model, icons.

#include <string>
#include <string_view>

namespace vitrine::base {

/// The full path of a file or folder of resources/, `relative` to it: "synthetic/mistral-7b.json".
/// Looks in the folder that the environment variable VITRINE_RESOURCES names, then in ../share/vitrine beside the
/// executable (an installed program), then in the source tree that the program was built from; the first that has it
/// wins. Throws BadInput when none has it, or when `relative` is absolute or contains "..". Thread-safe.
std::string resourcePath(std::string_view relative);

} // namespace vitrine::base
