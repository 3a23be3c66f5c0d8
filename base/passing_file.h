// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Names for files that are written under a temporary name in the folder of their target, "PATH.new-PID-N", and renamed
// when they are complete. So no reader sees half a file. A program that is killed leaves only a temporary file, which
// the next writer removes. All functions are thread-safe.

#include <string>

namespace vitrine::base {

/// A name for this process to write under; never the same twice.
std::string passingName(const std::string& path);

/// Removes the temporary files that killed programs left while they wrote `path`. A file is removed when its process is
/// gone and it is older than a minute. The minute protects files that another machine writes on a shared disk: its
/// processes cannot be seen from here.
void removeAbandonedFiles(const std::string& path);

} // namespace vitrine::base
