// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The adapter that an experiment uses with its model.

#include <memory>

#include "engine/training/adapters/adapter.h"
#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// The adapter of the option `adapter`, attached to the model, whose source is that of openSource(). Null without the
/// option, and where all of the adapter is in the weights already. The model outlives it. Throws
/// BadInput "FILE: TENSOR: what" when it does not fit the model, OutOfMemory.
std::unique_ptr<Adapter> loadAdapter(const Run& run, Model& model);

} // namespace vitrine::engine
