// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The metadata of a GGUF file as the config.json that Hugging Face's form of the model has.

#include <nlohmann/json_fwd.hpp>

#include "engine/checkpoint/gguf_file.h"

namespace vitrine::engine {

/// An object for parseModelConfig. Reads small tensors of the file too, where only they say something. Throws BadInput
/// "FILE: KEY: what" for metadata that are missing or wrong, and Unsupported for architectures that are not known.
nlohmann::json ggufConfigJson(const GgufFile& file);

} // namespace vitrine::engine
