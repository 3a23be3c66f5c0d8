// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What a training leaves in its output folder, and what of it the next one may take away. A training lists the files
// that it writes in training_files.json, and a checkpoint is known by its files. So a file of somebody else is never
// removed, whatever its name is. Links are not followed.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace vitrine::engine {

inline constexpr const char* kTrainerProgressName = "trainer_state.json";
inline constexpr const char* kTrainerTensorsName = "trainer_state.safetensors";

enum class CheckpointKind {
    Foreign, ///< no checkpoint of a training of ours, or none that is complete
    Own,     ///< the two files of a checkpoint and nothing else
    Mixed,   ///< a checkpoint of ours with other files in it
    Link,    ///< a link to a checkpoint of ours
};
CheckpointKind checkpointKind(const std::string& folder);
/// Whether a run may go on from the folder: one of the kinds above but Foreign, or one that has lost its tensors, which
/// reading it tells.
bool isNamedCheckpoint(const std::string& folder);
/// The folders of checkpoints that were not written to their end, without those that have other files.
std::vector<std::string> partialCheckpoints(const std::string& output);
/// The name of a checkpoint's folder, "checkpoint-12".
std::string checkpointName(std::int64_t step);
/// Whatever has the name of a checkpoint, by its step.
std::map<std::int64_t, std::string> namedCheckpoints(const std::string& output);
/// Removes the files of a checkpoint of ours, complete or not, and then the folder. Throws BadInput where it has
/// others.
void removeCheckpoint(const std::string& folder);

/// Adds files, named from `output` on, to the list of what trainings wrote there. Throws BadInput.
void noteTrainingFiles(const std::string& output, const std::vector<std::string>& names);

/// The files and checkpoints that trainings of ours left in `output`. Throws BadInput "output: what" where a link or a
/// checkpoint with other files in it stands in the way.
std::vector<std::string> earlierTraining(const std::string& output);
/// The same of a training that ended before it wrote a checkpoint or a result, so that nobody can go on from it: its
/// metrics, and checkpoints that were not written to their end. Empty where there is more, or no training of ours.
std::vector<std::string> abandonedTraining(const std::string& output);
/// Bytes on the disk of the files of earlierTraining().
std::uint64_t earlierTrainingBytes(const std::string& output);
/// Removes them. Where an older version kept no list, only what its content shows to be of a training goes, and a
/// warning names what stays. Throws as earlierTraining() does, and BadInput for what cannot be removed.
void removeEarlierTraining(const std::string& output);

} // namespace vitrine::engine
