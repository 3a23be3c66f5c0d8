// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Files that are read as a whole or row by row. A pipe or a device is refused before it is opened: it could have no
// end, and opening a pipe waits for its writer.

#include <cstdint>
#include <functional>
#include <string>

namespace vitrine::base {

/// The bytes of a regular file. Throws BadInput "PATH: what" where there is none.
std::uint64_t regularFileBytes(const std::string& path);

/// Calls `read`, which reads the file through a stream. What a stream's buffer throws when the disk fails becomes a
/// BadInput that names the file. Other exceptions are passed on.
void readNaming(const std::string& path, const std::function<void()>& read);

} // namespace vitrine::base
