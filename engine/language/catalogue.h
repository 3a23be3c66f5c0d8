// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// resources/mods: ready programs, a file each. The first line of a file's docstring explains it; `# example:` lines
// name expressions to choose ("sliding_window_mask(1024)"), which the tests evaluate.

#include <string>
#include <vector>

#include "engine/language/module.h"

namespace vitrine::engine {

struct ModCatalogueEntry {
    std::string name;        ///< "sliding_window"
    std::string explanation; ///< one line
    PyFile file;
    std::vector<std::string> examples;
};

/// In alphabetical order; read once. Throws BadInput when the folder is missing or broken.
const std::vector<ModCatalogueEntry>& modCatalogue();
/// Null when there is none of that name.
const ModCatalogueEntry* findMod(std::string_view name);

} // namespace vitrine::engine
