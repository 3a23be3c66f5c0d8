// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Where the files of a saved run are now. A session keeps an experiment as it was written, so a model may be named from
// the folder in which the program was started. A session is opened from any folder, and models are moved.

#include <map>
#include <string>

namespace vitrine::engine {

/// The folders in which files of a run are looked for, the first one first. One that is empty is not known.
struct StoredPlaces {
    std::string workingFolder; ///< in which the run was started; sessions of older versions do not have it
    std::string sessionFolder; ///< of the session file, with which a model may have been moved
    /// Where people said that a model is now, by its name in experiments.
    std::map<std::string, std::string> moved;
};

struct StoredFiles {
    std::string experiment;   ///< JSON; the files that were found are named from the root on, the rest is as it was
    std::string missingModel; ///< the model as the experiment names it where it is in none of the places; else empty
};

/// Looks for the files that the experiment reads. What it writes keeps its name. A text that is no experiment is given
/// back as it is. Any thread; asks the file system.
StoredFiles findStoredFiles(const std::string& experiment, const StoredPlaces& places);

} // namespace vitrine::engine
