// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a training leaves in its output folder: the adapter or the model, and the merged model. Each is read again and
// evaluated.

#include "engine/workload/finetune/finetune_run.h"

namespace vitrine::engine {

/// Throws BadInput when the disk has no room for the model and the checkpoints that the run will write from step
/// `first` to step `last`: before it trains for hours. What --overwrite will remove counts as room.
void requireRoomForResult(const Run& run, const ModelSource& source, FinetuneModel& model, std::int64_t first,
                          std::int64_t last);

/// Does nothing without an output folder. Adds saved_loss and, with a merge, merged_loss, base_loss and merge_loss_kept
/// (the share of what training gained that the merged model still has) to the metrics. After merge-aware training
/// saved_loss is that of the packed weights with the adapter in them, and adapter_loss is added: that of the adapter
/// beside the weights as they were. Losses are those of the next token over `batches`; without any, no loss is added.
void saveResult(const Run& run, const ModelSource& source, FinetuneModel& model, Trainer& trainer,
                const std::vector<TrainingBatch>& batches);

} // namespace vitrine::engine
