// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Files of tied models that have a head all the same. Merged adapters and models with added tokens are saved so, and
// the flag of the config is then left over from the base model.

#include "engine/checkpoint/checkpoint.h"

namespace vitrine::engine {

/// Clears tiedEmbeddings, and says so in a warning, when the files have an lm_head.weight that is not the embedding:
/// the stored head is used, as in transformers 5. A head with the values of the embedding leaves them tied. Reads both
/// tensors until they differ, a piece at a time; what came out is remembered for files that have not changed.
void untieOwnHead(ModelConfig& config, const Checkpoint& checkpoint);

} // namespace vitrine::engine
