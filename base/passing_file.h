// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Files that are written under a passing name beside their place, "PATH.new-PID-N", and renamed when they are whole: no
// reader ever sees half a file, and a kill leaves only what the next writer removes. Any thread.

#include <string>

namespace vitrine::base {

/// A name for this process to write under; never the same twice.
std::string passingName(const std::string& path);

/// Removes what programs killed while they made `path` left beside it: files of processes that are gone, older than a
/// minute. The minute guards files that another machine is making on a shared disk, whose processes cannot be seen.
void removeAbandonedFiles(const std::string& path);

} // namespace vitrine::base
