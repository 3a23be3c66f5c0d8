// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

#include "engine/training/data/training_rows.h"
#include "engine/workload/common/run_setup.h"

namespace vitrine::engine {

/// How files of rows are read for a model: with its tokenizer and chat format, which the options chat_format and date
/// change. Throws BadInput when the tokenizer is damaged.
TrainingRowOptions rowOptions(const Run& run, const ModelSource& source);

} // namespace vitrine::engine
