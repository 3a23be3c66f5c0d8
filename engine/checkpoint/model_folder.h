// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include <string>

namespace vitrine::engine {

/// The folder of a model's files: the folder itself, or the snapshot of ORG/NAME in the local Hugging Face cache. Any
/// thread. Throws BadInput when there is none.
std::string modelFolder(const std::string& model);

} // namespace vitrine::engine
