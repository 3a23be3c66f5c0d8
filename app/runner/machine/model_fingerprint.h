// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Tells two states of a model's folder apart without reading all of it.

#include <string>

namespace vitrine::app {

/// 16 hexadecimal digits of SHA-256 over the name, the size, the first 64 KiB and the last 64 KiB of every file right
/// in the folder, by name. What lies between in larger files is not covered: another value is another model, an equal
/// one is the same model unless someone changed bytes in the middle of a file alone. "unknown" when a file cannot be
/// read. Any thread.
std::string modelFingerprint(const std::string& folder);

} // namespace vitrine::app
